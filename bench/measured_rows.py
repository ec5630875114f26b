"""Hands what a benchmark measured to bench/peers, beside what the benchmark prints."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

# Names the file that collects the rows. bench/peers sets it; without it a row goes nowhere.
ROWS = "DEEMSTER_BENCH_ROWS"
OURS = "deemster"
# A child begins with the peak memory of the process that starts it. So a small process starts the measured one.
LAUNCHER = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print()
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
sys.exit(process.returncode)
"""


class Finished(NamedTuple):
    """What a process printed, its CPU seconds, and its largest resident set."""

    printed: str
    cpu_s: float
    peak_mb: float


def run_measured(*command, environment=None):
    """Run a command to its end.

    Raises:
        SystemExit: It failed. The message holds the end of what it wrote to standard error.
    """
    words = [sys.executable, "-S", "-c", LAUNCHER, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, env=os.environ | (environment or {}), check=False)
    if done.returncode:
        sys.exit(f"{Path(words[-1]).name} ended with {done.returncode}: {done.stderr[-600:]}")
    printed, _, used = done.stdout.rstrip("\n").rpartition("\n")
    return Finished(printed.strip(), *json.loads(used))


def record_row(
    work,
    tool,
    value,
    unit,
    *,
    version=None,
    samples=None,
    goal=None,
    cpu_s=None,
    peak_mb=None,
    note="",
):
    """Hand over one row: what one tool needed for one piece of work.

    Args:
        work: What was done, the same words for all tools that did it.
        tool: Who did it; `OURS` is what the others are compared with.
        value: How much it needed; less is better. None if it could not be measured.
        unit: What the value counts.
        version: The version of the tool.
        samples: How many samples, pairs, calls or items the tool worked on.
        goal: How many times less than this tool deemster wants to need.
        cpu_s: CPU seconds of the whole work.
        peak_mb: The largest resident set of the tool's process.
        note: What a reader must know about this row.
    """
    if path := os.environ.get(ROWS):
        row = {"work": work, "tool": tool, "version": version, "value": value, "unit": unit, "samples": samples}
        row |= {"goal": goal, "cpu_s": cpu_s, "peak_mb": peak_mb, "note": note}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@contextlib.contextmanager
def other_tool(work, tool, unit):
    """Measure a peer: where rows are collected, a peer that fails is a row that says why, and the others go on."""
    try:
        yield
    except (SystemExit, OSError, subprocess.CalledProcessError) as error:
        if ROWS not in os.environ:
            raise
        print(f"{tool}: {error}", flush=True)
        last = str(error).strip().splitlines()[-1:]
        record_row(work, tool, None, unit, note=f"could not be measured: {' '.join(last)}")
