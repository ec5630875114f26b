"""A live target with five metrics, stored, against peers: what one more sample, a first call and a process take.

One more sample is the difference of a large and a small call, the least of three each, so that what a call needs at its
beginning does not count. The first call counts that, but not the import of the tool; a whole process counts both. Every
tool finds the same mean scores, or the script stops. Ours is a sync function, called in threads, and every output and
mark is stored; pydantic-evals gets an async one, with which it is faster, and stores nothing; Inspect writes its log.

Usage: .venv/bin/python bench/live_target.py [samples of a small call] [of a large one]     (default: 2,000, 10,000)
"""

import json
import sys
import tempfile
from pathlib import Path

from environments import environment, python, version
from live_cases import LONGEST, PATTERN, REPEATS, answer_of, cases, measured
from measured_rows import OURS, other_tool, record_row, run_measured

import deemster as dm

HERE = Path(__file__).parent
METRICS = [
    "exact-match",
    "contains",
    "starts-with",
    {"length-within": {"max": LONGEST}},
    {"regex": {"pattern": PATTERN}},
]
ONE_MORE = "one more sample of a live target, five metrics, stored"
FIRST = "first call in a process, live target, five metrics, stored"
WHOLE = "a whole process: import, a live target, five metrics, stored"
UNIT = "µs a sample"


def answer(inputs):
    return answer_of(inputs["question"])


def evaluated(count):
    """The sum of the mean scores of a stored run."""
    rows = [
        {"id": case["id"], "input": {"question": case["question"]}, "expected_output": case["expected"]}
        for case in cases(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        report = dm.evaluate(rows, target=answer, metrics=METRICS, storage=Path(folder) / "runs.db")
    return sum(metric.mean for metric in report.metrics.values())


def race(tool, command, *, ours=None, release, sizes, goal=None, note=""):
    """Measure a tool in its own process, say it, and return it."""
    small, large = sizes
    told = json.loads(run_measured(*command, small, large).printed.splitlines()[-1])
    if ours is not None and abs(told["scores"] - ours["scores"]) > 1e-9:
        sys.exit(f"{tool}: the means add up to {told['scores']}, ours to {ours['scores']}")
    told["one_more"] = (told["large"] - told["small"]) / (large - small) * 1e6
    told["first_each"] = told["first"] / small * 1e6
    told["whole"] = min(run_measured(*command, small, 0).cpu_s for _ in range(REPEATS)) / small * 1e6
    ratios = ""
    if ours is not None:
        times = ", ".join(f"{told[name] / ours[name]:.1f}" for name in ("one_more", "first_each", "whole"))
        ratios = f"; {times} times"
    print(
        f"{tool:<32} one more {told['one_more']:7.1f} µs, first call {told['first_each']:7.1f}, "
        f"whole process {told['whole']:7.1f}{ratios}",
        flush=True,
    )
    record_row(ONE_MORE, tool, told["one_more"], UNIT, version=release, samples=large, goal=goal, note=note)
    record_row(FIRST, tool, told["first_each"], UNIT, version=release, samples=small)
    record_row(WHOLE, tool, told["whole"], UNIT, version=release, samples=small)
    return told


def main():
    words = [word for word in sys.argv[1:] if word != "--ours"]
    small, large = map(int, words) if words else (2_000, 10_000)
    if "--ours" in sys.argv:
        print(json.dumps(measured(evaluated, small, large)))
        return

    ours = race(OURS, [sys.executable, __file__, "--ours"], release=dm.__version__, sizes=(small, large))
    peer = HERE / "peers" / "live_pydantic_evals.py"
    for tool, option, goal in (("five evaluators", [], 8), ("one evaluator", ["--one-evaluator"], 4)):
        with other_tool(ONE_MORE, f"pydantic-evals, {tool}", UNIT):
            environment("pydantic-evals")
            race(
                f"pydantic-evals, {tool}",
                [python("pydantic-evals"), peer, *option],
                ours=ours,
                release=version("pydantic-evals"),
                sizes=(small, large),
                goal=goal,
                note="it stores nothing",
            )
    with other_tool(ONE_MORE, "inspect-ai", UNIT):
        environment("inspect-ai")
        sizes = max(20, small // 10), max(40, large // 10)
        command = [python("inspect-ai"), HERE / "peers" / "live_inspect_ai.py"]
        race("inspect-ai", command, ours=ours, release=version("inspect-ai"), sizes=sizes, note="it writes its log")


if __name__ == "__main__":
    main()
