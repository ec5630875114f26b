"""Runs that are killed at any moment: nothing is lost, nothing twice, and the report is the one of a run left alone.

Real processes: the command line, a live async target that is much faster than its judge, and a judge behind HTTP. Both
note every question they get. Forty kills with SIGKILL in all (ten in `make test`), while a run starts, works, resumes,
ends and writes its report.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from deemster.store import open_store
from tests.builders.json_lines import json_lines
from tests.cli.workspace import EPOCH, written

SAMPLES = 600
CONCURRENCY = 8
DELAY_S = 0.02
KILLS = {"waiting": 1, "early": 3, "at work": 10, "ending": 6}
FEW_KILLS = {"waiting": 1, "early": 1, "at work": 2, "ending": 1}
# The promise, and what a kill may lose on a machine that is busy with something else. With `durable: true` an answer
# counts as under way until it is committed, which takes some time from where the judge notes that it left.
PROMISE_S = {"grouped": 0.25, "durable": 0.05}
STALL_S = 1.5
NOTED_S = 0.25
MOST_LATE = 0.25
MOST_AGAIN = 0.2
PATIENCE_S = 120
LINE = len("CAME 0000 0000000000.000000\n")
SUITE = f"""\
name: kills
dataset: golden.jsonl
target: {{ python: "app:answer" }}
limits: {{ concurrency: {CONCURRENCY} }}
metrics: [exact-match, rouge-l, llm-as-judge]
models:
  judge: {{ base_url: "${{JUDGE_URL}}", model: m, concurrency: {CONCURRENCY} }}
"""
TARGET = """\
import asyncio
import os
import time

notes = os.open("target.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(what, number):
    os.write(notes, b"%s %04d %017.6f\\n" % (what, number, time.monotonic()))

async def answer(input):
    number = int(input["question"].split()[-1][:-1])
    note(b"CAME", number)
    await asyncio.sleep(0.002)
    note(b"LEFT", number)
    return f"answer {number if number % 7 else 0}"
"""


class Note(NamedTuple):
    """What the judge or the target noted: a question that came, or an answer that left."""

    what: str
    sample: str
    at: float


class Judge(NamedTuple):
    """The judge's address, and its notes."""

    url: str
    notes: Path

    def count(self):
        return self.notes.stat().st_size // LINE

    def read(self, start=0):
        lines = self.notes.read_text().splitlines()[start:]
        return [Note(what, sample, float(at)) for what, sample, at in map(str.split, lines)]


@contextmanager
def judging(folder):
    """A judge in a separate process."""
    notes = folder / "notes.txt"
    notes.touch()
    script = Path(__file__).parent / "counting_server.py"
    server = subprocess.Popen([sys.executable, script, notes, str(DELAY_S)], stdout=subprocess.PIPE, text=True)
    try:
        yield Judge(server.stdout.readline().strip(), notes)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def sample(number):
    return {
        "id": f"s{number:04d}",
        "input": {"question": f"What of sample {number:04d}?"},
        "expected_output": f"answer {number}",
        "metadata": {"tags": [f"t{number % 3}"]},
    }


def prepared(folder):
    golden = json_lines(*map(sample, range(SAMPLES)))
    folder.mkdir()
    written(folder, {"suite.yml": SUITE, "app.py": TARGET, "golden.jsonl": golden})
    return folder


class Trial:
    """One run, started until it is complete.

    Args:
        folder: Where it runs.
        judge: Whom it asks.
        flags: What every start is told.
    """

    def __init__(self, folder, judge, flags=()):
        self.folder, self.judge, self.flags = folder, judge, flags
        self.kept = {}

    def started(self):
        resume = ["--resume"] if (self.folder / ".deemster" / "runs.db").exists() and self.rows() else []
        flags = [*resume, "--quiet", "--cache", "none", "--to", "report.json", "--to", "report.md", *self.flags]
        return subprocess.Popen(
            [sys.executable, "-m", "deemster", "run", "suite.yml", *flags],
            cwd=self.folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "JUDGE_URL": self.judge.url},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self):
        with open_store(self.folder / ".deemster" / "runs.db") as store:
            return store.runs()

    def executions(self):
        """The stored executions, by position."""
        with open_store(self.folder / ".deemster" / "runs.db") as store:
            rows = store.runs()
            assert len(rows) <= 1
            return [execution for row in rows for execution in store.executions(row.id)]

    def finished(self):
        process = self.started()
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
        return {name: (self.folder / name).read_bytes() for name in ("report.json", "report.md")}

    def killed(self, moment):
        """Start, wait, kill. Return the time of the kill, or None if the run ended before."""
        process = self.started()
        moment(process)
        process.send_signal(signal.SIGKILL)
        at = time.monotonic()
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode in (0, -signal.SIGKILL), err
        self.check()
        return at if process.returncode else None

    def check(self):
        """Check that no stored row is missing, changed or repeated."""
        found = self.executions() if (self.folder / ".deemster" / "runs.db").exists() else []
        places = {execution.position: execution for execution in found}
        assert len(places) == len(found)
        for position, execution in self.kept.items():
            assert places[position].answer == execution.answer
            # An answer is stored before it is marked. Missing marks are added later, and no mark ever changes.
            for now, before in zip(places[position].marks, execution.marks, strict=True):
                assert now == before or getattr(before, "cause", None) == "not_run"
        self.kept = places
        report = self.folder / "report.json"
        if report.exists():
            assert json.loads(report.read_bytes())["totals"]["scored"] == 3 * SAMPLES


def moments(judge, chance):
    """How to wait for each kind of moment, by its name."""

    def until(process, is_there):
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < end and not is_there():
            time.sleep(0.002)

    def early(process):
        later = time.monotonic() + chance.uniform(0.1, 1.0)
        until(process, lambda: time.monotonic() > later)

    def at_work(process):
        enough = judge.count() + chance.randrange(1, 60)
        until(process, lambda: judge.count() >= enough)

    def waiting(process):
        # The target has answered everything long before: only its judge still has work.
        first = judge.count() + 1
        until(process, lambda: judge.count() >= first)
        later = time.monotonic() + chance.uniform(0.5, 0.6)
        until(process, lambda: time.monotonic() > later)

    def ending(process):
        asked = set()
        place = 0

        def is_over():
            nonlocal place
            fresh = judge.read(place)
            place += len(fresh)
            asked.update(note.sample for note in fresh if note.what == "LEFT")
            return len(asked) == SAMPLES

        until(process, is_over)
        later = time.monotonic() + chance.uniform(0, 0.3)
        until(process, lambda: time.monotonic() > later)

    return {"early": early, "at work": at_work, "waiting": waiting, "ending": ending}


def excess(notes, kills, window_s):
    """For each kill how many questions were asked again beyond those in flight or answered within the window."""
    by_sample = collections.defaultdict(list)
    for note in notes:
        by_sample[note.sample].append(note)
    beyond = collections.Counter()
    for several in by_sample.values():
        comes = [note.at for note in several if note.what == "CAME"]
        leaves = [note.at for note in several if note.what == "LEFT"]
        for first, again in itertools.pairwise(comes):
            # A request sent just before a kill may be recorded just after it. No new process starts that fast.
            kill = min((at for at in kills if first - NOTED_S < at < again), default=None)
            assert kill is not None, "a question was asked again though nothing was killed"
            answered = [at for at in leaves if first <= at < kill]
            if answered and max(answered) < kill - window_s:
                beyond[kill] += 1
    return beyond


@pytest.fixture(scope="module")
def judge(tmp_path_factory):
    with judging(tmp_path_factory.mktemp("judge")) as found:
        yield found


@pytest.fixture(scope="module")
def reference(tmp_path_factory, judge):
    """The reports of a run that is left alone."""
    return Trial(prepared(tmp_path_factory.mktemp("alone") / "run"), judge).finished()


@pytest.mark.parametrize("mode", PROMISE_S)
def test_run_killed_many_times_resumes_to_same_report(tmp_path, judge, reference, capsys, mode, thorough):
    counts = KILLS if thorough else FEW_KILLS
    chance = random.Random(f"kills {mode}")
    trial = Trial(prepared(tmp_path / "run"), judge)
    if mode == "durable":
        written(trial.folder, {"suite.yml": f"durable: true\n{SUITE}"})
    start = judge.count()
    waits = moments(judge, chance)
    order = [name for name in ("early", "at work") for _ in range(counts[name])]
    chance.shuffle(order)
    kills = []
    for name in [*["waiting"] * counts["waiting"], *order, *["ending"] * counts["ending"]]:
        # A run that came to its end meanwhile has no other moment left.
        while (at := trial.killed(waits[name])) is None:
            name = "ending"  # noqa: PLW2901 - the moment that is waited for instead
        kills.append(at)
    reports = trial.finished()
    found = trial.executions()
    assert [execution.position for execution in found] == list(range(SAMPLES))
    assert reports == reference
    for who, notes in {"judge": judge.read(start), "target": Judge("", trial.folder / "target.txt").read()}.items():
        asked = sum(note.what == "CAME" for note in notes)
        beyond, late = excess(notes, kills, PROMISE_S[mode]), excess(notes, kills, STALL_S)
        with capsys.disabled():
            sys.stdout.write(
                f"\n  {mode}, {who}: {len(kills)} kills, {asked - SAMPLES} of {asked} questions asked again, "
                f"{sum(beyond.values())} of them beyond {PROMISE_S[mode] * 1000:.0f} ms, in {len(beyond)} kills\n"
            )
        assert late == {}, who
        assert len(beyond) <= MOST_LATE * len(kills), who
        assert sum(beyond.values()) <= MOST_AGAIN * SAMPLES, who
        if mode == "durable":
            # However long a commit takes: at most those in flight.
            assert max(beyond.values(), default=0) <= CONCURRENCY, who
