import { describe, expect, it } from "vitest";
import { extent, runLines, sum } from "./run_lines";
import type { RunRow } from "./types";

const run = (id: string, experiment: string | null, pass_rate: number | null = null) => ({ id, experiment, pass_rate }) as RunRow;

describe("lines of the list of runs", () => {
  const runs = [run("d", null), run("c", "e1", 0.5), run("b", "e1", 0.9), run("a", "e1"), run("z", null)];
  const names = (open: boolean) => runLines(runs, () => open).map((line) => (line.kind === "run" ? `${line.isInside ? "  " : ""}${line.run.id}` : `${line.id} (${line.runs.length})`));

  it("have the runs of an experiment below it, the best first", () => {
    expect(names(true)).toEqual(["d", "e1 (3)", "  b", "  c", "  a", "z"]);
  });

  it("leave the runs of a folded experiment out", () => {
    expect(names(false)).toEqual(["d", "e1 (3)", "z"]);
  });

  it("sum up what is known", () => {
    expect([extent([0.2, null, 0.1]), extent([null]), sum([1, null, 2]), sum([])]).toEqual([[0.1, 0.2], null, 3, null]);
  });
});
