import { describe, expect, it } from "vitest";
import { cutAtNames, decisionOf, samplesOfCheck } from "./gate_checks";

const METRICS = ["exact-match", "exact"];
const COHORTS = ["a", "a.b"];
const query = (check: string) => samplesOfCheck(check, METRICS, COHORTS);

describe("samplesOfCheck", () => {
  it.each([
    ["min_macro_f1", { passed: "no", sort: "worst" }],
    ["metrics.exact-match.min_pass_rate", { metric: "exact-match", passed: "no", sort: "worst" }],
    ["cohorts.a.b.min_pass_rate", { only: "tag:a.b", passed: "no", sort: "worst" }],
    ["cohorts.a.metrics.exact.max_mean", { only: "tag:a", metric: "exact", passed: "no", sort: "worst" }],
    ["max_unscored", { cause: "any" }],
  ])("%s is about samples", (check, expected) => {
    expect(query(check)).toEqual(expected);
  });

  it.each(["budget.max_cost_usd", "baseline.max_newly_failing", "metrics.gone.min_pass_rate", "min_aggregate_success"])("%s is about none", (check) => {
    expect(query(check)).toBeNull();
  });
});

describe("cutAtNames", () => {
  it("finds the names, the longest first, and no parts of words", () => {
    const parts = cutAtNames("below; q1, q10 and q1-b did not pass", ["q1", "q10", "q1-b", "pas"]);
    expect(parts.filter((part) => part.name).map((part) => part.name)).toEqual(["q1", "q10", "q1-b"]);
    expect(parts.map((part) => part.text).join("")).toBe("below; q1, q10 and q1-b did not pass");
  });

  it("leaves a sentence without names whole", () => {
    expect(cutAtNames("nothing here", ["q1"])).toEqual([{ text: "nothing here", name: null }]);
  });
});

it.each([
  [["skipped", "skipped"], "skipped"],
  [["skipped", "pass"], "pass"],
  [[], null],
])("a gate with the checks %s decides %s", (statuses, decision) => {
  const checks = statuses.map((status) => ({ name: "n", observed: null, low: null, high: null, required: 1, status, because: "b" }));
  expect(decisionOf({ decision: "pass", mode: "two-way", checks })).toBe(decision);
});
