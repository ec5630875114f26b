"""A million samples of 2 KB through a live target: started, killed, resumed, and reported again from the store.

The target is a no-op async function, three deterministic metrics mark its answers, and everything is stored. The first
process is killed with SIGKILL when two fifths are stored, the second resumes and writes a JSON report, and the third
renders the report from the store. The script prints wall time, CPU time and the largest resident set of each, and the
rate of the first two together. Inspect does the same work without a kill, on fewer samples, in the same run.

Usage: .venv/bin/python bench/survival.py [samples] [samples of Inspect]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from environments import environment, python, version

from deemster.store import open_store

PROMISE_MB = 400
PROMISE_RATE = 5_000
PROMISE_TIMES = 20
KILLED_AT = 0.4
HERE = Path(__file__).parent
WORDS = [
    "refund",
    "order",
    "return",
    "policy",
    "parcel",
    "invoice",
    "credit",
    "ticket",
    "account",
    "delivery",
    "window",
    "counter",
    "receipt",
    "notice",
]
TARGET = """
async def answer(input):
    return input["reply"]
"""
SUITE = """\
name: survival
dataset: golden.jsonl
target: { python: "app:answer" }
metrics: [exact-match, contains, token-f1]
"""


def sample(number):
    """A sample of about 2 KB; one in ten answers is wrong."""
    text = " ".join(WORDS[(number * 7 + at * at) % len(WORDS)] for at in range(230))
    expected = f"{number % 60} days after delivery"
    reply = expected if number % 10 else "I do not know."
    return {
        "id": f"s{number:07d}",
        "input": {"question": f"How long do I have to return item {number}?", "context": text, "reply": reply},
        "expected_output": expected,
        "metadata": {"tags": [WORDS[number % 4]]},
    }


def written(folder, count):
    """The files of the run; returns how large a sample is."""
    with (folder / "golden.jsonl").open("w") as golden:
        golden.writelines(json.dumps(sample(number)) + "\n" for number in range(count))
    (folder / "app.py").write_text(TARGET)
    (folder / "suite.yml").write_text(SUITE)
    return (folder / "golden.jsonl").stat().st_size / count


def ended(process, start):
    """Exit code, wall seconds, CPU seconds and MB of resident set of a process."""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def command(folder, *argv):
    process = subprocess.Popen([sys.executable, "-m", "deemster", *argv], cwd=folder)
    return process, time.perf_counter()


def killed(folder, count):
    """Kill a run when a part of it is stored; return the number of stored samples."""
    process, start = command(folder, "run", "suite.yml", "--quiet")
    path = folder / ".deemster" / "runs.db"
    done = 0
    while process.poll() is None and done < KILLED_AT * count:
        time.sleep(0.25)
        done = stored(path)
    process.send_signal(signal.SIGKILL)
    figures = ended(process, start) if process.returncode is None else (0, time.perf_counter() - start, 0.0, 0.0)
    return figures, stored(path)


def stored(path):
    if not path.exists() or not path.stat().st_size:
        return 0
    with open_store(path) as store:
        rows = store.runs()
    return rows[0].done if rows else 0


def shown(title, figures, note=""):
    code, wall, cpu, peak = figures
    kept = "" if peak <= PROMISE_MB else f", ABOVE the promise of {PROMISE_MB} MB"
    print(f"{title:<26} {wall:>8.1f} s {cpu:>8.1f} CPU s  peak {peak:>4.0f} MB{kept}{note}", flush=True)
    return code


def peer(folder, count):
    """The wall seconds, CPU seconds and passes that Inspect reports."""
    cases = [sample(number) for number in range(count)]
    path = folder / "cases.json"
    path.write_text(json.dumps(cases))
    environment("inspect-ai")
    script = HERE / "peers" / "survival_inspect.py"
    told = subprocess.run([python("inspect-ai"), script, path], check=True, capture_output=True, text=True).stdout
    wall, cpu, passed = told.split()[-3:]
    return float(wall), float(cpu), int(passed)


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    count_of_peer = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    with tempfile.TemporaryDirectory(prefix="deemster-survival-") as name:
        folder = Path(name)
        print(f"{count:,} samples of {written(folder, count):,.0f} bytes")
        first, kept = killed(folder, count)
        shown("killed", first, f", {kept:,} stored")
        process, start = command(folder, "run", "suite.yml", "--resume", "--quiet", "--to", "report.json")
        second = ended(process, start)
        if shown("resumed, JSON report", second):
            sys.exit(f"resuming ended with {second[0]}")
        process, start = command(folder, "report", "latest", "--to", "again.json")
        if shown("report from the store", ended(process, start)):
            sys.exit("the report could not be rendered again")
        if (folder / "report.json").read_bytes() != (folder / "again.json").read_bytes():
            sys.exit("the two reports differ")
        with (folder / "report.json").open("rb") as report:
            head = report.read(20_000).decode("utf-8", "replace")
        if f'"executions": {count},' not in head and f'"executions":{count},' not in head:
            sys.exit("the report does not hold every sample")
        store = sum(path.stat().st_size for path in (folder / ".deemster").iterdir()) / 1e6
        wall, cpu = first[1] + second[1], first[2] + second[2]
        met = "" if count / wall >= PROMISE_RATE else ", MISSED"
        print(f"store {store:,.0f} MB; {count / wall:,.0f} samples per second end to end (goal {PROMISE_RATE:,}{met})")
        wall_of_peer, cpu_of_peer, passed = peer(folder, count_of_peer)
        if passed != count_of_peer - len(range(0, count_of_peer, 10)):
            sys.exit(f"inspect-ai says that {passed} of {count_of_peer} passed")
        print(
            f"inspect-ai {version('inspect-ai')}: {count_of_peer / wall_of_peer:,.0f} samples per second; deemster is "
            f"{(count / wall) / (count_of_peer / wall_of_peer):.1f} times faster, by CPU "
            f"{(cpu_of_peer / count_of_peer) / (cpu / count):.1f} times (goal {PROMISE_TIMES})"
        )


if __name__ == "__main__":
    main()
