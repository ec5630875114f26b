import { describe, expect, it } from "vitest";
import { type Columns, selectPositions, type Texts } from "./sample_query";

const columns: Columns = {
  total: 5,
  metrics: ["match", "judge"],
  rows: {
    id: ["b", "a", "\u{1f600}", "\ufffd", "c"],
    tags: [["red"], ["red", "big"], [], ["big"], ["red"]],
    metadata: [{ lang: "de", level: 3 }, { lang: ["de", "en"] }, {}, { lang: "en", level: 3.5 }, { lang: null }],
    repetitions: [2, 2, 2, 2, 2],
    passed: [1, 0.5, 0, null, 1],
    unstable: [false, true, false, false, false],
    latency_ms: [10, null, 30, 20, 10],
    output_chars: [5, 4, 3, 2, 1],
    worst: [null, 1, 0, null, null],
    scores: {
      match: { score: [1, 0.3, 0, null, 0.1 + 0.2], passed: [1, 0.5, 0, null, 1], cause: [null, null, null, null, null] },
      judge: { score: [null, 0.9, 0.2, null, 0.9], passed: [0, 1, 0, null, 1], cause: ["timeout", null, null, null, null] },
    },
  },
};
const texts: Texts = { id: ["b", "a", "x", "y", "c"], output: ["straße", "one", "two", "three", "four"], input: ["one", "", "", "", ""] };

const ask = (query: string) => selectPositions(columns, new URLSearchParams(query), texts);

describe("selectPositions", () => {
  it.each([
    ["", [0, 1, 2, 3, 4]],
    ["only=tag:red", [0, 1, 4]],
    ["only=tag:(untagged)", [2]],
    ["only=lang=de", [0, 1]],
    ["only=meta.lang=en", [1, 3]],
    ["only=level=3", [0]],
    ["only=lang=null", [4]],
    ["only=lang=de&only=lang=null", [0, 1, 4]],
    ["only=tag:big&only=tag:red", [0, 1, 3, 4]],
    ["only=tag:red&only=lang=en", [1]],
    ["only=id:[!ab]", [2, 3, 4]],
    ["only=id:?", [0, 1, 2, 3, 4]],
    ["only=id:[b", []],
    ["only=failed", [1, 2, 3]],
    ["metric=match&max=0.3", [1, 2, 4]],
    ["metric=match&min=0.3", [0, 1, 4]],
    ["metric=judge&min=0", [1, 2, 4]],
    ["passed=yes", [0, 4]],
    ["passed=no", [1, 2]],
    ["metric=judge&passed=no", [0, 2]],
    ["unstable=yes", [1]],
    ["unstable=no", [0, 2, 4]],
    ["cause=any", [0]],
    ["cause=timeout", [0]],
    ["metric=match&cause=any", []],
    ["metric=absent", []],
    ["min_ms=20", [2, 3]],
    ["max_ms=10", [0, 4]],
    ["text=ONE", [0, 1]],
    ["text=one&in=output", [1]],
    ["text=nothing", []],
  ])("%s", (query, positions) => {
    expect(ask(query)).toEqual(positions);
  });

  it("sorts with undefined values last in both orders, and equal ones by position", () => {
    expect(ask("sort=latency")).toEqual([0, 4, 3, 2, 1]);
    expect(ask("sort=latency&order=desc")).toEqual([2, 3, 0, 4, 1]);
    expect(ask("sort=judge&order=desc")).toEqual([1, 4, 2, 0, 3]);
    expect(ask("sort=chars")).toEqual([4, 3, 2, 1, 0]);
    expect(ask("passed=no&sort=worst")).toEqual([2, 1]);
    expect(ask("order=desc")).toEqual([4, 3, 2, 1, 0]);
  });

  it("sorts ids by code point", () => {
    expect(ask("sort=id")).toEqual([1, 0, 4, 3, 2]);
  });
});
