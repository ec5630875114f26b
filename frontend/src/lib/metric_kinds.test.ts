import { describe, expect, it } from "vitest";
import { passesOrFails } from "./metric_kinds";
import type { Figures } from "./types";

/** The figures of a metric with these scores. */
function figures(scores: number[]): Figures {
  const n = scores.length;
  const mean = scores.reduce((sum, score) => sum + score, 0) / n;
  const squares = scores.reduce((sum, score) => sum + (score - mean) ** 2, 0);
  return { mean, stdev: n > 1 ? Math.sqrt(squares / (n - 1)) : null, n_scored: n } as Figures;
}

describe("passesOrFails", () => {
  it.each([
    [[0, 1, 1, 0, 1], true],
    [[1, 1, 1], true],
    [[0, 0], true],
    [[0, 0.5, 1], false],
    [[0.9, 1, 1, 1], false],
    [[1], false],
  ])("%j", (scores, expected) => {
    expect(passesOrFails(figures(scores))).toBe(expected);
  });
});
