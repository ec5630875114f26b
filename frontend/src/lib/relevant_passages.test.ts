import { describe, expect, it } from "vitest";
import { relevantPassages } from "./relevant_passages";

describe("relevantPassages", () => {
  it.each([
    [{ relevant: ["a", "b"] }, ["a", "b"]],
    [{ relevant: { a: 2, b: 0 } }, ["a"]],
    [{ relevant: "a|b" }, ["a", "b"]],
    [{ other: 1 }, []],
    [null, []],
  ])("%j", (metadata, ids) => {
    expect(relevantPassages(metadata)).toEqual(ids);
  });
});
