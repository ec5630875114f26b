"""How much longer than Python itself the command line takes to answer; the promise for `deemster --help` is 150 ms.

Usage: .venv/bin/python bench/startup.py [runs]
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROMISE_MS = 150
RUNS = 10
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "import deemster": [sys.executable, "-c", "import deemster"],
    "deemster --help": [str(Path(sys.executable).parent / "deemster"), "--help"],
}


def once(command):
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
    # In turn, so that a busy moment of the machine hits all of them.
    times = {name: [] for name in COMMANDS}
    for _ in range(runs + 1):
        for name, command in COMMANDS.items():
            times[name].append(once(command))
    bare = [statistics.median(column) for column in zip(*times["python -c pass"][1:], strict=True)]
    for name, measured in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*measured[1:], strict=True))
        note = f" (promise {PROMISE_MS} ms)" if name.startswith("deemster") else ""
        more = f"  above Python: {wall - bare[0]:.0f} ms wall, {cpu - bare[1]:.0f} ms CPU{note}"
        print(f"{name:<18} {wall:>6.0f} ms wall {cpu:>6.0f} ms CPU{more if name != 'python -c pass' else ''}")


if __name__ == "__main__":
    main()
