"""Rubric grading: the time of a panel against the limit of its server, and the memory of many items.

A panel of three grades 200 items by 10 criteria, 6,000 calls, through a server in a separate process that takes a
quarter of a second for every reply. With 32 concurrent requests of each judge, that server answers at most 384 calls a
second. The calls divided by that rate are the least possible time. The grading, with votes, verdicts, scores and a
store, must take at most 1.5 times as long.

Then 50,000 items by three criteria and three judges, 450,000 votes, with a model in the same process that answers at
once: the peak of resident memory beside what the dataset itself takes, for 5,000 items and for 50,000. The judges'
votes are kept in a file, so that what grows with the items is the dataset.

Usage: .venv/bin/python bench/grading.py [items of the panel] [items of the memory]
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from deemster.datasets import RubricDataset
from deemster.grading.grade_dataset import grade
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.judge_panel import Judge
from deemster.models import Role
from deemster.models.openai_client import OpenAIChat
from deemster.records import Answer

ITEMS, CRITERIA, MANY = 200, 10, 50_000
CONCURRENCY = 32
DELAY_S = 0.25
SEED = 7
MOST = 1.5
# Megabytes that may be added where the items are ten times as many.
GROWTH = 30
PANEL = "abc"
TEXT = "The refund takes thirty days from the day on which the parcel arrives at our store. " * 5


def dataset(items, criteria):
    points = [{"name": f"c{place}", "requirement": f"It is right in point {place}."} for place in range(criteria)]
    given = [{"id": f"i{place}", "submission": f"{TEXT}{place}"} for place in range(items)]
    return RubricDataset(given, rubric={"criteria": points})


def grader():
    return CriterionGrader([Judge(name, name) for name in PANEL])


def served():
    """A slow server, and its address."""
    argv = [sys.executable, "-m", "deemster.testing.model_server", "--port", "0", "--fault", f"slow={DELAY_S}:1"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = process.stdout.readline()
    return process, re.search(r"http://\S+", line)[0].rstrip(".,")


def paced(items):
    """Seconds that the panel takes, and the seconds that the server alone would take."""
    data = dataset(items, CRITERIA)
    calls = items * CRITERIA * len(PANEL)
    process, url = served()
    try:
        roles = {
            name: Role(client=OpenAIChat(base_url=url, model=name), concurrency=CONCURRENCY, timeout_s=60)
            for name in PANEL
        }
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            grading = grade(data, grader(), models=roles, storage=Path(folder) / "runs.db")
            took = time.perf_counter() - start
    finally:
        process.terminate()
        process.wait()
    if grading.usage.calls != calls or any(judge.failures for judge in grading.judges):
        raise SystemExit(f"{grading.usage.calls} calls in place of {calls}, failures {grading.judges}")
    return took, calls / (CONCURRENCY * len(PANEL) / DELAY_S), calls


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def filled(items):
    """Grade many items and print the peak memory; runs in a separate process."""
    data = dataset(items, 3)
    before = peak_mb()
    text = json.dumps({"reason": "It is stated, and the day from which the time counts is right.", "verdict": "MET"})
    roles = {name: Role(client=Quiet(text), concurrency=CONCURRENCY) for name in PANEL}
    start = time.perf_counter()
    grading = grade(data, grader(), models=roles)
    took = time.perf_counter() - start
    print(json.dumps({"before": before, "peak": peak_mb(), "votes": sum(j.votes for j in grading.judges), "s": took}))


class Quiet:
    """A model with a fixed answer and no memory."""

    def __init__(self, text):
        self._answer = Answer(text=text, model="quiet")

    async def complete(self, _):
        return self._answer


def measured(items):
    argv = [sys.executable, __file__, "--filled", str(items)]
    return json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)


def main():
    if sys.argv[1:2] == ["--filled"]:
        filled(int(sys.argv[2]))
        return 0
    items, many = (int(text) for text in [*sys.argv[1:], *map(str, (ITEMS, MANY)[len(sys.argv) - 1 :])])
    took, least, calls = paced(items)
    print(
        f"panel of {len(PANEL)}, {items} items x {CRITERIA} criteria, {calls:,} calls: {took:.1f} s; the server's "
        f"capacity is {calls / least:.0f} calls/s, so at least {least:.1f} s: {took / least:.2f} times (at most {MOST})"
    )
    small, large = measured(many // 10), measured(many)
    for count, found in ((many // 10, small), (many, large)):
        added = found["peak"] - found["before"]
        print(
            f"{count:,} items, {found['votes']:,} votes: peak {found['peak']:.0f} MB, dataset {found['before']:.0f} "
            f"MB, grading {added:.0f} MB; {found['votes'] / found['s']:,.0f} votes/s"
        )
    growth = (large["peak"] - large["before"]) - (small["peak"] - small["before"])
    print(f"ten times the items add {growth:.0f} MB beside the dataset (at most {GROWTH})")
    return 0 if took / least <= MOST and growth <= GROWTH else 1


if __name__ == "__main__":
    raise SystemExit(main())
