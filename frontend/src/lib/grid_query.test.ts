import { describe, expect, it } from "vitest";
import { type GridColumns, selectGrid } from "./grid_query";

const columns: GridColumns = {
  names: ["a", "b, c"],
  runs: ["r1", "r2"],
  places: [[0, 0], [1, 1], [2, -1], [3, 2]],
  shares: { "": [[1, 1], [1, 0], [0, null], [0, 0]], f1: [[1, 1], [1, 0], [0, null], [0, 0]] },
  scores: { f1: [[1, 0.9], [0.6, 0.4], [0.1, null], [0.9, 0.1]] },
  outputs: [[1, 1], [1, 2], [3, null], [4, 4]],
};
const find = (query: string, text: ((variant: number, place: number) => boolean) | null = null) => selectGrid(columns, new URLSearchParams(query), text);

describe("the grid of an export", () => {
  it.each([
    ["", [0, 1, 2, 3]],
    ["show=verdicts_differ", [1]],
    ["show=outputs_differ", [1]],
    ["show=failing", [1, 2, 3]],
    ["show=failing_everywhere", [2, 3]],
    ["failing=b%2C+c", [1, 3]],
    ["show=failing&column=a", [2, 3]],
    ["sort=disagreement", [1, 0, 2, 3]],
    ["sort=disagreement&metric=f1", [3, 1, 0, 2]],
    ["sort=worst", [2, 3, 1, 0]],
  ])("finds %s", (query, found) => expect(find(query)).toEqual(found));

  it("looks for words in the variants that are shown and have the sample", () => {
    expect(find("text=x", (variant) => variant === 1)).toEqual([0, 1, 3]);
    expect(find("text=x&column=a", (variant) => variant === 1)).toEqual([]);
  });
});
