/** The lines of the list of runs: a run, or an experiment with its runs below it. */

import type { RunRow } from "./types";

export type RunLine = { kind: "run"; run: RunRow; isInside: boolean } | { kind: "experiment"; id: string; runs: RunRow[]; isOpen: boolean };

/** Runs of one experiment stand together. Those of an experiment that is folded are left out. */
export function runLines(runs: RunRow[], isOpen: (experiment: string) => boolean): RunLine[] {
  const lines: RunLine[] = [];
  const groups = new Map<string | RunRow, RunRow[]>();
  for (const run of runs) {
    const key = run.experiment ?? run;
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  for (const [key, group] of groups) {
    if (typeof key !== "string") lines.push({ kind: "run", run: key, isInside: false });
    else {
      lines.push({ kind: "experiment", id: key, runs: group, isOpen: isOpen(key) });
      if (isOpen(key)) lines.push(...best(group).map((run): RunLine => ({ kind: "run", run, isInside: true })));
    }
  }
  return lines;
}

/** The best run first; those without a number come last. */
function best(runs: RunRow[]): RunRow[] {
  return [...runs].sort((a, b) => (b.pass_rate ?? -1) - (a.pass_rate ?? -1));
}

/** The lowest and the highest of the numbers that are known; null where none is. */
export function extent(numbers: (number | null)[]): [number, number] | null {
  const known = numbers.filter((number) => number !== null);
  return known.length ? [Math.min(...known), Math.max(...known)] : null;
}

/** The sum of the numbers that are known; null where none is. */
export function sum(numbers: (number | null)[]): number | null {
  const known = numbers.filter((number) => number !== null);
  return known.length ? known.reduce((total, number) => total + number, 0) : null;
}
