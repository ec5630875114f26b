"""A million JSONL samples through the command line: loaded, scored with exact-match, aggregated and reported.

Runs `deemster run` twice, on saved outputs and on an async Python function, each writing a JSON and a Markdown report,
and prints CPU time, wall time and the largest resident set of each. The promise is 400 MB.

Usage: .venv/bin/python bench/million.py [samples] [saved|python]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMISE_MB = 400
TAGS = ("policy", "shipping", "account", "returns")
TARGET = """
async def answer(input):
    question = input["question"]
    number = int(question.rpartition(" ")[2][:-1])
    return f"{number % 60} days after delivery" if number % 10 else "I do not know."
"""


def lines(count):
    """Samples of about 150 bytes, every third without tags, and their answers, one in ten wrong."""
    for number in range(count):
        expected = f"{number % 60} days after delivery"
        metadata = {"tags": [TAGS[number % 4]]} if number % 3 else {}
        question = f"How long do I have to return item {number}?"
        sample = {"id": f"s{number:07d}", "input": {"question": question}, "expected_output": expected}
        yield (
            json.dumps(sample | {"metadata": metadata}),
            json.dumps({"id": sample["id"], "output": expected if number % 10 else "I do not know."}),
        )


def written(folder, count):
    """The files of both runs; returns how large dataset and outputs are."""
    with (folder / "golden.jsonl").open("w") as golden, (folder / "outputs.jsonl").open("w") as outputs:
        for sample, output in lines(count):
            golden.write(sample + "\n")
            outputs.write(output + "\n")
    (folder / "app.py").write_text(TARGET)
    for kind, value in (("outputs", "outputs.jsonl"), ("python", "app:answer")):
        suite = f"name: million\ndataset: golden.jsonl\ntarget: {{ {kind}: '{value}' }}\nmetrics: [exact-match]\n"
        (folder / f"{kind}.yml").write_text(suite)
    return [(folder / name).stat().st_size / 1e6 for name in ("golden.jsonl", "outputs.jsonl")]


def measured(folder, suite):
    """CPU seconds, wall seconds and MB of resident set of one run."""
    command = [Path(sys.executable).parent / "deemster", "run", folder / suite, "--quiet"]
    command += ["--store", "none", "--to", folder / "report.json", "--to", folder / "report.md"]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"deemster run {suite} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    only = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(prefix="deemster-million-") as name:
        folder = Path(name)
        sizes = written(folder, count)
        print(f"{count:,} samples of {sizes[0]:.0f} MB, outputs of {sizes[1]:.0f} MB")
        for suite, title in (("outputs.yml", "saved"), ("python.yml", "python")):
            if only in (None, title):
                cpu, wall, peak = measured(folder, suite)
                report = (folder / "report.json").stat().st_size / 1e6
                print(
                    f"{title:<8} {cpu:6.1f} CPU s  {wall:6.1f} s  {count / cpu:8,.0f} samples per CPU s  "
                    f"peak {peak:.0f} MB (promise {PROMISE_MB})  report {report:.0f} MB",
                    flush=True,
                )


if __name__ == "__main__":
    main()
