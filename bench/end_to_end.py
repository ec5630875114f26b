"""Saved outputs scored with exact-match, end to end, against peers in separate environments.

Measured is CPU time from cases in memory to a finished report object: building the dataset, scoring, aggregating.
Imports are left out, a small run comes first and the best of three counts, on every side. Rates per CPU second are
compared, since the peers get fewer samples. All tools must count the same passes. The line "command line" is a
complete `deemster run`: start, JSONL files in, JSON report out.

Usage: .venv/bin/python bench/end_to_end.py [samples] [samples of a peer]
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environments import ASKED, environment, exists, python, version

import deemster as dm

HERE = Path(__file__).parent
REPEATS = 3
GOALS = {"pydantic-evals": 5, "deepeval": 30, "inspect-ai": 100, "promptfoo": None}


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


def ours(given):
    """The least CPU time of a few runs, with and without building the dataset."""

    def built():
        return dm.Dataset(rows(given), name="bench")

    def report_of(dataset):
        return dm.evaluate(dataset, outputs={case["id"]: case["output"] for case in given}, metrics=["exact-match"])

    whole, alone = [], []
    for _ in range(REPEATS):
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
    command = [Path(sys.executable).parent / "deemster", "run", folder / "suite.yml", "--quiet", "--no-store"]
    command += ["--json", folder / "report.json"]
    return min(_child_seconds(command) for _ in range(REPEATS))


def _child_seconds(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peer(name, given, folder):
    """The CPU seconds and the number of passes that a peer reports."""
    path = folder / "cases.json"
    path.write_text(json.dumps(given))
    folder = environment(name)
    script = HERE / "peers" / f"{name.replace('-', '_')}_peer"
    command = ["node", f"{script}.mjs", path, folder] if name in ASKED else [python(name), f"{script}.py", path]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, passed = told.split()[-2:]
    return float(seconds), int(passed)


def line(name, samples, seconds, note=""):
    print(
        f"{name:<24} {samples:>7,} samples {seconds:>8.3f} CPU s {samples / seconds:>10,.0f} per CPU s{note}",
        flush=True,
    )


def main():
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
        right = sum(case["output"] == case["expected"] for case in few)
        for tool, goal in GOALS.items():
            if tool in ASKED and not exists(tool):
                print(f"{tool}: not measured; `python3 bench/environments.py {tool}` installs it")
                continue
            seconds, told = peer(tool, few, folder)
            if told != right:
                sys.exit(f"{tool} says that {told} of {len(few)} passed; {right} did")
            ratio = (seconds / len(few)) / (whole / count)
            note = f"  deemster is {ratio:.1f} times faster" + (f" (goal {goal})" if goal else "")
            line(f"{tool} {version(tool)}", len(few), seconds, note)


if __name__ == "__main__":
    main()
