"""The backlog of a run is found without blocking its store."""

from __future__ import annotations

import pytest

from deemster.records import Execution, MetricScore, Output, Sample, TargetFailure, Unscored
from deemster.runs import resume_backlog as backlog
from deemster.runs.resume_backlog import ResumeBacklog

DONE = Output("right"), (MetricScore(1.0),)
FAILED = TargetFailure("no answer"), (Unscored("target_failed", "no answer"),)
UNMARKED = Output("right"), (Unscored("not_run", "The run ended."),)


class Kept:
    """Stored executions, and their open readers."""

    def __init__(self, found):
        self.found = found
        self.readers = 0
        self.begun = []

    def read(self, *, since=0):
        self.begun.append(since)
        return self._read(since)

    def _read(self, since):
        self.readers += 1
        try:
            for position, repetition in sorted(self.found):
                if position >= since and (position, repetition) in self.found:
                    answer, marks = self.found[position, repetition]
                    yield Execution(position, f"s{position}", repetition, answer, marks)
        finally:
            self.readers -= 1

    def works(self, *, samples, repetitions=1, notes=None):
        note = None if notes is None else lambda execution: notes.append((execution.position, execution.repetition))
        left = ResumeBacklog(self.read, samples=samples, repetitions=repetitions, retry_target=True, note=note)
        # From here on, executions are read for the retries.
        self.begun.clear()
        return left.work_items(Sample(f"s{n}", {}, None) for n in range(samples))


def keys(works):
    return [(work.position, work.repetition) for work in works]


def test_backlog_has_missing_and_failed_in_order():
    kept = Kept({(0, 0): DONE, (0, 1): FAILED, (1, 1): DONE, (2, 0): UNMARKED})
    notes = []
    works = list(kept.works(samples=4, repetitions=2, notes=notes))
    assert keys(works) == [(0, 1), (1, 0), (2, 0), (2, 1), (3, 0), (3, 1)]
    assert [work.answer is not None for work in works] == [False, False, True, False, False, False]
    assert notes == [(0, 0), (1, 1)]
    assert kept.begun == [0]


def test_rows_before_first_retry_are_read_once():
    kept = Kept({(n, 0): DONE for n in range(5)} | {(5, 0): UNMARKED})
    assert keys(kept.works(samples=7)) == [(5, 0), (6, 0)]
    assert kept.begun == [5]


def test_vanished_execution_is_run_again():
    kept = Kept({(0, 0): UNMARKED, (1, 0): UNMARKED, (2, 0): UNMARKED})
    works = kept.works(samples=3)
    first = next(works)
    del kept.found[1, 0]
    assert [first.answer, *(work.answer for work in works)] == [Output("right"), None, Output("right")]


@pytest.mark.parametrize("behind", [0, 3])
def test_missing_executions_run_without_store_reads(monkeypatch, behind):
    monkeypatch.setattr(backlog, "_MOST_WORK_WITHOUT_READ", 3)
    kept = Kept({(0, 0): UNMARKED, (1, 0): DONE, (2, 0): DONE} | {(90 + n, 0): UNMARKED for n in range(behind)})
    works = kept.works(samples=100)
    seen = [(next(works).position, kept.readers) for _ in range(80)]
    assert seen[0] == (0, 1)
    assert {readers for position, readers in seen if position > 6} == {0}
    rest = list(works)
    assert [work.position for work in rest if work.answer is not None] == list(range(90, 90 + behind))
    assert kept.begun == [0, 90][: 1 + bool(behind)]
