import { describe, expect, it } from "vitest";
import { behindBest, byPassRate } from "./ranking_order";
import type { Ranking } from "./types";

const ranking = {
  runs: [0.5, 0.9, null].map((pass_rate, place) => ({ run: { id: `r${place}`, pass_rate } })),
  pairs: [
    { first: 0, second: 1, difference: 0.4, interval: [0.3, 0.5] },
    { first: 0, second: 2, difference: null, interval: null },
    { first: 1, second: 2, difference: null, interval: null },
  ],
} as unknown as Ranking;

describe("ranked runs", () => {
  it("stand in the order of their pass-rates", () => {
    expect(byPassRate(ranking).map(({ run }) => run.id)).toEqual(["r1", "r0", "r2"]);
  });

  it("are behind the best, whichever of a pair came first", () => {
    expect(ranking.runs.map((entry) => behindBest(ranking, entry))).toEqual([
      { difference: -0.4, interval: [-0.5, -0.3] },
      null,
      { first: 1, second: 2, difference: null, interval: null },
    ]);
  });
});
