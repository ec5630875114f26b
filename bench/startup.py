"""The time of `--help` above the start of Python itself; the promise is 150 ms of CPU.

Usage: .venv/bin/python bench/startup.py [runs]
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from deemster.cli.main import COMMANDS, app

PROMISE_MS = 150
RUNS = 10
DEEMSTER = str(Path(sys.executable).parent / "deemster")


def help_commands():
    """`deemster --help`, and the same for every command and subcommand."""
    yield "deemster --help", [DEEMSTER, "--help"]
    for name in COMMANDS:
        words = [[name], *([name, each] for each in getattr(app.get_command(None, name), "commands", {}))]
        for path in words:
            yield f"deemster {' '.join(path)} --help", [DEEMSTER, *path, "--help"]


def run_once(command):
    """Wall and CPU milliseconds of one run."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"{command} ended with {process.returncode}")
    return wall * 1000, (used.ru_utime + used.ru_stime) * 1000


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import deemster": [sys.executable, "-c", "import deemster"],
        **dict(help_commands()),
    }
    # In turn, so that a busy moment of the machine hits all of them.
    times = {name: [] for name in commands}
    for _ in range(runs + 1):
        for name, command in commands.items():
            times[name].append(run_once(command))
    bare = [statistics.median(column) for column in zip(*times["python -c pass"][1:], strict=True)]
    print(f"{'':<36} {'ms wall':>8} {'ms CPU':>8}   above Python (promise: {PROMISE_MS} ms CPU)")
    for name, measured in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*measured[1:], strict=True))
        late = "  LATE" if cpu - bare[1] > PROMISE_MS else ""
        print(f"{name:<36} {wall:>8.0f} {cpu:>8.0f}   {wall - bare[0]:.0f} ms wall, {cpu - bare[1]:.0f} ms CPU{late}")


if __name__ == "__main__":
    main()
