"""Saved outputs scored with exact-match, end to end, against peers in separate environments.

Measured is CPU time from cases in memory to a finished report object: building the dataset, scoring, aggregating.
Imports are left out. The first call and the best of three more are rows of their own, on every side. Rates per CPU
second are compared, since the peers get fewer samples; the first call has as many on every side.

All tools must count the same passes. The line "command line" is a
complete `deemster run`: start, JSONL files in, JSON report out. Peak memory is that of a process with as many samples
as the peers get. "From the start" is the CPU time of a process that starts, imports the tool, and evaluates one sample
four times.

Usage: .venv/bin/python bench/end_to_end.py [samples] [samples of a peer]
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from environments import ASKED, environment, exists, python, version
from measured_rows import OURS, other_tool, record_row, run_measured

import deemster as dm

HERE = Path(__file__).parent
REPEATS = 3
WORK = "saved outputs scored with exact-match"
UNIT = "µs a sample"
GOALS = {"pydantic-evals": 5, "deepeval": 30, "inspect-ai": 100, "ragas": None, "promptfoo": None}


def cases(count):
    """Questions with the expected and the given answer, one in ten wrong."""
    return [
        {
            "id": f"s{number:05d}",
            "question": f"How long do I have to return item {number}?",
            "expected": f"{number % 60} days after delivery",
            "output": f"{number % 60} days after delivery" if number % 10 else "I do not know.",
        }
        for number in range(count)
    ]


def rows(given):
    return [
        {"id": case["id"], "input": {"question": case["question"]}, "expected_output": case["expected"]}
        for case in given
    ]


def ours(given, repeats=REPEATS):
    """The least CPU time of a few runs, with and without building the dataset."""

    def built():
        return dm.Dataset(rows(given), name="bench")

    def report_of(dataset):
        return dm.evaluate(dataset, outputs={case["id"]: case["output"] for case in given}, metrics=["exact-match"])

    whole, alone = [], []
    for _ in range(repeats):
        start = time.process_time()
        dataset = built()
        between = time.process_time()
        report = report_of(dataset)
        end = time.process_time()
        whole.append(end - start)
        alone.append(end - between)
    return min(whole), min(alone), report.metrics["exact-match"].n_passed


def command_line(given, folder):
    """CPU seconds of the whole command, files in and a JSON report out."""
    golden = [json.dumps(row) for row in rows(given)]
    outputs = [json.dumps({"id": case["id"], "output": case["output"]}) for case in given]
    (folder / "golden.jsonl").write_text("\n".join(golden))
    (folder / "outputs.jsonl").write_text("\n".join(outputs))
    suite = "name: bench\ndataset: golden.jsonl\ntarget: { outputs: outputs.jsonl }\nmetrics: [exact-match]\n"
    (folder / "suite.yml").write_text(suite)
    command = [Path(sys.executable).parent / "deemster", "run", folder / "suite.yml", "--quiet", "--store", "none"]
    command += ["--to", folder / "report.json"]
    return min(run_measured(*command).cpu_s for _ in range(REPEATS))


def own_process(path):
    """Runs in a separate process: prints what a peer prints."""
    given = json.loads(path.read_text())
    start = time.process_time()
    ours(given, repeats=1)
    first = time.process_time() - start
    seconds, _, passed = ours(given)
    print(first, seconds, passed)


def child(name, given, folder):
    """The command that evaluates cases with one tool."""
    path = folder / f"cases-{len(given)}.json"
    path.write_text(json.dumps(given))
    if name == OURS:
        return [sys.executable, __file__, "--ours", path]
    script = HERE / "peers" / f"{name.replace('-', '_')}_peer"
    return ["node", f"{script}.mjs", path, environment(name)] if name in ASKED else [python(name), f"{script}.py", path]


def measured(name, few, folder):
    """What a tool needs in a process of its own."""
    done = run_measured(*child(name, few, folder))
    first, seconds, passed = done.printed.split()[-3:]
    start_s = min(run_measured(*child(name, few[:1], folder)).cpu_s for _ in range(REPEATS))
    return Figures(float(first), float(seconds), int(passed), done.peak_mb, start_s)


class Figures(NamedTuple):
    """CPU seconds of a tool, of the first call, of a later one and from the start of a process; passes and peak MB."""

    first_s: float
    seconds: float
    passed: int
    peak_mb: float
    start_s: float


def line(name, samples, seconds, note=""):
    print(
        f"{name:<24} {samples:>7,} samples {seconds:>8.3f} CPU s {samples / seconds:>10,.0f} per CPU s{note}",
        flush=True,
    )


def say_more(figures, few):
    print(
        f"  first call {figures.first_s / len(few) * 1e6:.0f} µs a sample of {len(few):,}; "
        f"peak {figures.peak_mb:.0f} MB; {figures.start_s * 1e3:.0f} ms CPU from the start of a process",
        flush=True,
    )


def hand_over(tool, release, count, seconds, few, figures, goal=None):
    """The rows of a tool: its rate, with so many samples, its first call, with fewer, and its start."""
    more = {"version": release, "cpu_s": seconds, "peak_mb": figures.peak_mb, "goal": goal}
    record_row(WORK, tool, seconds / count * 1e6, UNIT, samples=count, **more)
    first_us = figures.first_s / few * 1e6
    record_row(f"{WORK}, first call in a process", tool, first_us, UNIT, version=release, samples=few)
    start_ms = figures.start_s * 1e3
    record_row("from the start of a process to the score of one sample", tool, start_ms, "ms", version=release)


def compare(tool, few, ours_s, goal, folder):
    """Measure a peer; `ours_s` is our CPU time for one sample."""
    environment(tool)
    release = version(tool)
    figures = measured(tool, few, folder)
    seconds = figures.seconds
    right = sum(case["output"] == case["expected"] for case in few)
    if figures.passed != right:
        sys.exit(f"{tool} says that {figures.passed} of {len(few)} passed; {right} did")
    note = f"  deemster is {seconds / len(few) / ours_s:.1f} times faster" + (f" (goal {goal})" if goal else "")
    line(f"{tool} {release}", len(few), seconds, note)
    say_more(figures, few)
    hand_over(tool, release, len(few), seconds, len(few), figures, goal)


def main():
    if sys.argv[1:2] == ["--ours"]:
        own_process(Path(sys.argv[2]))
        return
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    count_of_peer = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    given = cases(count)
    ours(given[:10])
    whole, alone, passed = ours(given)
    print(f"passed: {passed} of {count}")
    line("deemster", count, whole)
    line("  evaluate() alone", count, alone)
    with tempfile.TemporaryDirectory(prefix="deemster-bench-") as name:
        folder = Path(name)
        line("  command line", count, command_line(given, folder))
        few = given[:count_of_peer]
        figures = measured(OURS, few, folder)
        say_more(figures, few)
        hand_over(OURS, dm.__version__, count, whole, len(few), figures)
        for tool, goal in GOALS.items():
            if tool in ASKED and not exists(tool):
                print(f"{tool}: not measured; `python3 bench/environments.py {tool}` installs it")
                record_row(WORK, tool, None, UNIT, note="is not installed")
                continue
            with other_tool(WORK, tool, UNIT):
                compare(tool, few, whole / count, goal, folder)


if __name__ == "__main__":
    main()
