"""The viewer over stored runs of 100,000 and of a million samples: times of its answers, and its memory.

Each store is made once and kept in a temporary folder for the next time. The viewer runs in a process of its own; the
times are those of a client on the same machine, the first and the best of three. The promises: the first page of a
million samples in 2 s, at most 300 MB, and pages of 100,000 samples in 200 ms.

Usage: .venv/bin/python bench/viewer.py [samples ...]     (default: 100000 1000000)
"""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

REPEATS = 3
WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"]
METRICS = ("exact-match", "rouge-l", "token-f1", "contains", "levenshtein")
PROMISE_FIRST_S, PROMISE_MB, PROMISE_PAGE_S = 2.0, 300, 0.2
PAGES = {
    "list of runs": "runs",
    "run": "runs/latest",
    "what failed": "runs/latest/samples?limit=5&passed=no&sort=worst",
    "first page": "runs/latest/samples?limit=100",
    "filter by score": "runs/latest/samples?limit=100&metric=rouge-l&min=0.2&max=0.8",
    "filter by tag": "runs/latest/samples?limit=100&tag=gamma&passed=no",
    "sort by score": "runs/latest/samples?limit=100&sort=rouge-l&order=desc",
    "sort by length": "runs/latest/samples?limit=100&sort=chars",
    "sort by id": "runs/latest/samples?limit=100&sort=id&order=desc",
    "far page": "runs/latest/samples?limit=100&sort=rouge-l&order=desc&offset={far}",
    "one sample": "runs/latest/samples/{far}",
    "score by length": "runs/latest/score-length?metric=rouge-l",
    "search outputs": "runs/latest/samples?limit=100&in=output&text=theta%20iota%20kappa",
    "search everything": "runs/latest/samples?limit=100&text=iota%20kappa%20beta",
    "search many": "runs/latest/samples?limit=100&text=kappa",
}
# Reads every row with texts.
UNPROMISED = {"search outputs", "search everything", "search many"}


def store(count):
    """The store with a run of so many samples."""
    folder = Path(tempfile.gettempdir()) / f"deemster-bench-viewer-{count}"
    place = folder / "runs.db"
    if (folder / "made").exists():
        return place
    folder.mkdir(exist_ok=True)
    draw = random.Random(7)
    with (folder / "golden.jsonl").open("w") as golden, (folder / "answers.jsonl").open("w") as answers:
        for number in range(count):
            expected = [draw.choice(WORDS) for _ in range(8)]
            said = [word if draw.random() < 0.9 else draw.choice(WORDS) for word in expected]
            name, tags = f"s{number:07d}", {"tags": [WORDS[number % 4]], "level": number % 5}
            sample = {"id": name, "input": {"question": f"What is {number}?"}, "expected_output": " ".join(expected)}
            golden.write(json.dumps(sample | {"metadata": tags}) + "\n")
            answers.write(json.dumps({"id": name, "output": " ".join(said)}) + "\n")
    suite = f"name: bench\ndataset: golden.jsonl\ntarget: {{ outputs: answers.jsonl }}\nmetrics: {list(METRICS)}\n"
    (folder / "suite.yml").write_text(suite.replace("'", ""))
    place.unlink(missing_ok=True)
    command = [sys.executable, "-m", "deemster", "run", folder / "suite.yml", "--quiet", "--store", place]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    (folder / "made").touch()
    return place


def asked(address, path):
    """Seconds and bytes of one answer."""
    start = time.perf_counter()
    with urllib.request.urlopen(f"{address}api/{path}") as answer:
        size = len(answer.read())
    return time.perf_counter() - start, size


def resident_mb(pid, key="VmRSS"):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"^{key}:\s+(\d+) kB", status, re.MULTILINE)[1]) / 1024


def measured(count):
    command = [sys.executable, "-m", "deemster", "view", "--port", "0", "--store", store(count)]
    viewer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        address = re.search(r"http://\S+/", viewer.stderr.readline())[0]
        asked(address, "session")
        print(f"\n{count:,} samples, {len(METRICS)} metrics; started with {resident_mb(viewer.pid):.0f} MB")
        print(f"{'page':<18}{'first':>10}{'again':>10}{'bytes':>10}   promise")
        for name, pattern in PAGES.items():
            path = pattern.format(far=count * 9 // 10)
            times = []
            for number in range(REPEATS):
                # Another limit is another page of the same answer, so what is kept of it is found again.
                spent, size = asked(address, path.replace("limit=100", f"limit={100 + number}"))
                times.append(spent)
            promise = ""
            if name == "first page":
                promise = f"first {PROMISE_FIRST_S} s"
            elif name not in UNPROMISED and count <= 100_000:
                promise = f"{PROMISE_PAGE_S} s"
            print(f"{name:<18}{times[0]:>9.3f}s{min(times[1:]):>9.3f}s{size:>10,}   {promise}")
        peak = resident_mb(viewer.pid, "VmHWM")
        print(f"memory: {resident_mb(viewer.pid):.0f} MB, at most {peak:.0f} MB   promise {PROMISE_MB} MB")
    finally:
        viewer.terminate()
        viewer.wait()


if __name__ == "__main__":
    for text in sys.argv[1:] or ["100000", "1000000"]:
        measured(int(text))
