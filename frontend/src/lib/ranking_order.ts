/** The order of ranked runs, and how far each is behind the best. */

import type { RankedEntry, RankedPair, Ranking } from "./types";

/** The runs, the highest pass-rate first. */
export function byPassRate(ranking: Ranking): RankedEntry[] {
  return [...ranking.runs].sort((a, b) => (b.run.pass_rate ?? -1) - (a.run.pass_rate ?? -1));
}

/** The pass-rate of a run minus that of the best, with its interval; null for the best itself. */
export function behindBest(ranking: Ranking, entry: RankedEntry): Pick<RankedPair, "difference" | "interval"> | null {
  const best = ranking.runs.indexOf(byPassRate(ranking)[0]);
  const place = ranking.runs.indexOf(entry);
  const pair = ranking.pairs.find(({ first, second }) => (first === best && second === place) || (first === place && second === best));
  if (!pair) return null;
  if (pair.first === best) return pair;
  return {
    difference: pair.difference === null ? null : -pair.difference,
    interval: pair.interval && [-pair.interval[1], -pair.interval[0]],
  };
}
