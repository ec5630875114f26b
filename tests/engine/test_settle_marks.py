"""Marks that are final only once all are there."""

from __future__ import annotations

import deemster as dm
from deemster.engine.settle_marks import needs_settling, settle_marks
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.records import Call, Execution, MetricScore, Output, Unscored
from deemster.report.stored_report import stored_report
from deemster.runs.run_storage import NOT_STORED, RunStorage
from deemster.store import open_store
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK


class Late:
    """Gives each mark its rank among all: a later one would change an earlier one."""

    name = "late"
    settles = True

    def __init__(self):
        self.stop = None
        self.seen = []

    def score(self, sample, output):
        self.seen.append(sample.id)
        return MetricScore(1 - sample.input["n"] / 10)

    def settle(self, marks):
        order = sorted((mark.score for mark in marks if isinstance(mark, MetricScore)), reverse=True)
        return [MetricScore(order.index(mark.score) / 100) if isinstance(mark, MetricScore) else mark for mark in marks]


class Plain:
    name = "plain"


def mark(place):
    return Unscored("model_failed", "down") if place == 3 else MetricScore(1 - place / 10, calls=(Call(place + 1),))


EVERY = [
    Execution(place, f"s{place}", repetition, Output("x"), (mark(place), MetricScore(0.5)))
    for place in range(6)
    for repetition in range(2)
]


def test_only_settling_metrics_settle():
    assert needs_settling([Plain(), Late()])
    assert not needs_settling([Plain()])


def test_metric_that_settles_sees_all_marks_of_the_run_and_changes_no_others():
    found = list(settle_marks([Late(), Plain()], EVERY))
    assert [(each.position, each.repetition) for each in found] == [(p, r) for p in range(6) for r in range(2)]
    ranks = [each.marks[0].score for each in found if each.position != 3 and each.repetition == 0]
    assert ranks == [0.0, 0.02, 0.04, 0.06, 0.08]
    assert all(each.marks[0] == mark(3) for each in found if each.position == 3)
    assert all(each.marks[1] == MetricScore(0.5) for each in found)


def test_settled_mark_keeps_usage():
    found = list(settle_marks([Late(), Plain()], EVERY))
    assert [each.marks[0].calls for each in found] == [each.marks[0].calls for each in EVERY]


def test_settling_sees_marks_by_repetition():
    seen = []

    class Noting(Late):
        def settle(self, marks):
            seen.extend(marks)
            return marks

    list(settle_marks([Noting(), Plain()], EVERY))
    assert seen == [mark(place) for _ in range(2) for place in range(6)]


def test_run_without_executions_settles_nothing():
    assert list(settle_marks([Late()], [])) == []


def test_interrupted_settling_run_resumes_to_same_bytes(tmp_path):
    rows = [dm.Sample(f"s{n}", {"n": n}, None) for n in range(8)]

    def job(metric, bot=None):
        async def answer(invocation):
            if bot is not None and invocation.id == "s3":
                bot.request("enough")
            return "x"

        return resolve_arguments(dm.Dataset(rows, name="d"), target=answer, metrics=[metric], concurrency=1)

    def ran(what, storage=NOT_STORED, **more):
        return ran_in(storage, what, clock=CLOCK, warn=lambda _: None, **more)

    expected = ran(job(Late())).to_json()
    with open_store(tmp_path / "runs.db") as store:
        stop = Stop()
        partial = ran(job(Late(), stop), stop=stop, storage=RunStorage(store))
        assert partial.totals.not_run == 4
        assert [each.marks["late"].score for each in partial.executions[:4]] == [0.0, 0.01, 0.02, 0.03]
        metric = Late()
        report = ran(job(metric), storage=RunStorage(store, resume=True))
        assert report.to_json() == expected
        assert stored_report(store, "latest").to_json() == expected
        assert sorted(metric.seen) == ["s4", "s5", "s6", "s7"]
