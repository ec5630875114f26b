"""Counting during a run gives the same numbers as counting at its end."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest

import deemster as dm
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.records import Call, MetricScore, Unscored, Usage
from deemster.report import build_report as deriving
from deemster.report.stored_report import computed_report, stored_report
from deemster.results import MetricsAggregator
from deemster.runs.run_storage import NOT_STORED, RunStorage
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK


class Sharing:
    """A custom metric whose marks share one call."""

    name = "sharing"

    def score(self, _sample, _output):
        return MetricScore(1.0, usage=Usage(prompt_tokens=7), calls=(Call(1),))


class Marking:
    """A metric of the user's own that marks by the number of a sample."""

    name = "own"

    def __init__(self, mark, *, parts=()):
        self._mark, self.parts = mark, parts

    def score(self, sample, _output):
        return self._mark(sample.input["n"])


def job(*, stop=None, stop_at=None, failing=frozenset(), spent=lambda _: {}, **more):
    rows = [dm.Sample(f"s{n}", {"n": n}, f"{n % 3}", {"tags": ["a" if n % 2 else "b"]}) for n in range(700)]

    async def answer(invocation):
        n = invocation.input["n"]
        if n == stop_at:
            stop.request("enough")
        if n in failing:
            raise TimeoutError("no answer")
        for _ in range(n % 5):
            await asyncio.sleep(0)
        return dm.Output("1", usage=Usage(calls=1, prompt_tokens=n, latency_ms=n / 7, **spent(n)))

    given = {"metrics": ["exact-match", "contains"], "repetitions": 2, "concurrency": 3}
    return resolve_arguments(dm.Dataset(rows, name="d"), target=answer, **arguments(**given | more))


def ran(what, storage=NOT_STORED, **more):
    return ran_in(storage, what, clock=CLOCK, warn=lambda _: None, **more)


@pytest.fixture
def readings(monkeypatch):
    """How often the executions of a run were read again to be counted."""
    seen = []
    batches = deriving.batches

    def noted(executions):
        seen.append(executions)
        return batches(executions)

    monkeypatch.setattr(deriving, "batches", noted)
    return seen


def test_finished_run_is_counted_without_rereading(store, readings):
    report = ran(job(failing={3, 5}), storage=RunStorage(store))
    assert readings == []
    assert report.to_json() == stored_report(store, "latest").to_json()
    assert readings == []
    assert report.to_json() == computed_report(store, "latest").to_json()
    assert len(readings) == 1


def test_unstored_run_is_counted_without_rereading(store, readings):
    report = ran(job())
    assert readings == []
    assert report.to_json() == ran(job(), storage=RunStorage(store)).to_json()


@pytest.mark.parametrize("failing", [frozenset(), {3, 650}])
def test_resumed_run_is_counted_without_rereading(store, readings, failing):
    stop = Stop()
    ran(job(stop=stop, stop_at=600, failing=failing), stop=stop, storage=RunStorage(store))
    readings.clear()
    report = ran(job(), storage=RunStorage(store, resume=True))
    assert readings == []
    assert report.to_json() == stored_report(store, "latest").to_json() == ran(job()).to_json()


def test_stopped_run_is_counted_from_its_stored_executions(store, readings):
    stop = Stop()
    report = ran(job(stop=stop, stop_at=600), stop=stop, storage=RunStorage(store))
    assert len(readings) == 1
    assert report.to_json() == stored_report(store, "latest").to_json()
    assert report.totals.not_run > 0


def test_aggregator_is_called_once_per_execution(store):
    class Counting(MetricsAggregator):
        asked = 0

        def aggregate(self, results):
            type(self).asked += 1
            return super().aggregate(results)

    aggregator = Counting()
    report = ran(job(aggregator=aggregator), storage=RunStorage(store))
    assert aggregator.asked == 1400
    assert report.metrics == stored_report(store, "latest").metrics


def test_resumed_run_with_an_aggregator_ends_in_the_same_report(store):
    stop = Stop()
    ran(job(stop=stop, stop_at=600, aggregator="and"), stop=stop, storage=RunStorage(store))
    report = ran(job(aggregator="and"), storage=RunStorage(store, resume=True))
    assert report.to_json() == ran(job(aggregator="and")).to_json()


def test_shared_call_of_custom_metric_is_charged_once(store):
    report = ran(job(metrics=[Sharing()]), storage=RunStorage(store))
    assert report.usage.scoring.calls == 1
    assert report.usage.scoring.cached_calls == 1399
    assert report.to_json() == stored_report(store, "latest").to_json()


def test_parts_of_custom_metric_are_counted_after_resume(store):
    def mark(n):
        return MetricScore(1.0, {"criteria": {"clear": {"value": n % 2, "agreement": n / 700}}})

    metrics = [Marking(mark, parts=("clear",))]
    stop = Stop()
    ran(job(metrics=metrics, stop=stop, stop_at=600), stop=stop, storage=RunStorage(store))
    report = ran(job(metrics=metrics), storage=RunStorage(store, resume=True))
    assert report.metrics["own"].criteria["clear"].n == 1400
    assert report.to_json() == stored_report(store, "latest").to_json() == ran(job(metrics=metrics)).to_json()


def test_mixed_direction_marks_use_direction_of_metric(store):
    metrics = [Marking(lambda n: MetricScore(0.5, higher_is_better=n % 3 == 0))]
    metrics[0].higher_is_better = False
    report = ran(job(metrics=metrics), storage=RunStorage(store))
    assert report.metrics["own"].higher_is_better is False
    assert report.to_json() == stored_report(store, "latest").to_json()


def test_uniform_direction_of_marks_sets_direction_of_metric(store):
    report = ran(job(metrics=[Marking(lambda _: MetricScore(0.5, higher_is_better=False))]), storage=RunStorage(store))
    assert report.metrics["own"].higher_is_better is False


@pytest.mark.parametrize("mark", [MetricScore(0.5, threshold=1), Unscored("bad_output", "None.")])
def test_integer_threshold_is_reported_as_stored(store, mark):
    metric = Marking(lambda _: mark)
    metric.threshold = 1
    report = ran(job(metrics=[metric]), storage=RunStorage(store))
    assert type(report.metrics["own"].threshold) is float
    assert report.to_json() == stored_report(store, "latest").to_json()


def test_models_with_same_stored_name_count_as_one(store):
    names = ("\ud800", "\ud801", "\ufffd")
    report = ran(job(spent=lambda n: {"model": names[n % 3]}), storage=RunStorage(store))
    assert [(model.model, model.calls) for model in report.cost.models] == [("\ufffd", 1400)]
    assert report.to_json() == stored_report(store, "latest").to_json()


def test_cost_is_exact_in_any_finish_order(store):
    def spent(n):
        return {"cost_usd": Decimal(n + 1) / 7 * Decimal(10) ** (n % 9 - 4)}

    assert ran(job(spent=spent), storage=RunStorage(store)).cost == stored_report(store, "latest").cost


@pytest.mark.parametrize("kind", [MetricScore, Unscored])
def test_usage_of_a_mark_may_be_a_map(store, kind):
    def mark(_):
        usage = {"prompt_tokens": 3}
        return MetricScore(1.0, usage=usage) if kind is MetricScore else Unscored("bad_output", "None.", usage)

    report = ran(job(metrics=[Marking(mark)]), storage=RunStorage(store))
    assert report.usage.scoring.prompt_tokens == 1400 * 3
    assert report.to_json() == stored_report(store, "latest").to_json()


def test_invalid_usage_fails_only_its_mark(store):
    metrics = [Marking(lambda n: MetricScore(1.0, usage=5 if n == 3 else None)), "contains"]
    report = ran(job(metrics=metrics), storage=RunStorage(store))
    assert report.metrics["own"].unscored_by_cause == {"metric_failed": 2}


@pytest.mark.parametrize("lost", ["outputs", "marks"])
def test_lost_executions_are_run_again(store, lost):
    ran(job(failing={3}), storage=RunStorage(store))
    with store.pool.write_transaction() as rows:
        rows.write(f"DELETE FROM {lost} WHERE position = 5")
    report = ran(job(), storage=RunStorage(store, resume=True))
    assert report.to_json() == stored_report(store, "latest").to_json() == ran(job()).to_json()


DELETED = "DELETE FROM outputs WHERE position = 600"
DAMAGED = "UPDATE outputs SET checksum = checksum + 1 WHERE position = 600"


@pytest.mark.parametrize("change", [DELETED, DAMAGED])
def test_lost_executions_are_not_run_before_resume(store, change):
    ran(job(failing={3}), storage=RunStorage(store))
    with store.pool.write_transaction() as rows:
        rows.write(change)
    stop = Stop()
    report = ran(job(stop=stop, stop_at=3, concurrency=1), stop=stop, storage=RunStorage(store, resume=True))
    assert (report.run.status, report.totals.not_run) == ("incomplete", 4)
    if change == DELETED:
        assert report.to_json() == stored_report(store, "latest").to_json()
    else:
        assert json.loads(report.to_json())["totals"]["not_run"] == 4
    assert ran(job(), storage=RunStorage(store, resume=True)).to_json() == ran(job()).to_json()
