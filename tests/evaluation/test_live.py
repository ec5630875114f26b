"""Counting while a run goes on comes to the same as counting at its end."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.evaluation import Keeping, deriving, finished, job_of, report_of, run
from deemster.records import Call, MetricScore, Usage
from deemster.run.stopping import Stop
from deemster.store import open_store
from deemster.summary import MetricsAggregator
from tests.report.runs import CLOCK


class Sharing:
    """A metric of the user's own whose marks all stand on one call."""

    name = "sharing"

    def score(self, _sample, _output):
        return MetricScore(1.0, usage=Usage(prompt_tokens=7), calls=(Call(1),))


def job(*, stop=None, stop_at=None, failing=frozenset(), **more):
    rows = [dm.Sample(f"s{n}", {"n": n}, f"{n % 3}", {"tags": ["a" if n % 2 else "b"]}) for n in range(700)]

    async def answer(invocation):
        n = invocation.input["n"]
        if n == stop_at:
            stop.request("enough")
        if n in failing:
            raise TimeoutError("no answer")
        return dm.Output("1", usage=Usage(calls=1, prompt_tokens=n, latency_ms=n / 7))

    given = {"metrics": ["exact-match", "contains"], "repetitions": 2, "concurrency": 3}
    return job_of(dm.Dataset(rows, name="d"), target=answer, **given | more)


def ran(what, **more):
    return finished(run(what, clock=CLOCK, warn=lambda _: None, **more))


@pytest.fixture
def readings(monkeypatch):
    """Which runs were read again to be counted."""
    seen = []
    counted = deriving._counted

    def noted(remains, terms, *, watched):
        seen.append(remains.id)
        return counted(remains, terms, watched=watched)

    monkeypatch.setattr(deriving, "_counted", noted)
    return seen


@pytest.fixture
def store(tmp_path):
    with open_store(tmp_path / "runs.db") as opened:
        yield opened


def test_a_run_that_comes_to_its_end_is_not_read_again_to_be_counted(store, readings):
    report = ran(job(failing={3, 5}), keeping=Keeping(store))
    assert readings == []
    assert report.to_json() == report_of(store, "latest").to_json()
    assert len(readings) == 1


def test_neither_is_one_that_is_not_stored(store, readings):
    report = ran(job())
    assert readings == []
    assert report.to_json() == ran(job(), keeping=Keeping(store)).to_json()


@pytest.mark.parametrize("failing", [frozenset(), {3, 650}])
def test_neither_is_one_that_was_interrupted_and_resumed(store, readings, failing):
    stop = Stop()
    ran(job(stop=stop, stop_at=600, failing=failing), stop=stop, keeping=Keeping(store))
    readings.clear()
    report = ran(job(), keeping=Keeping(store, resume=True))
    assert readings == []
    assert report.to_json() == report_of(store, "latest").to_json() == ran(job()).to_json()


def test_one_that_was_stopped_is_counted_by_what_is_kept_of_it(store, readings):
    stop = Stop()
    report = ran(job(stop=stop, stop_at=600), stop=stop, keeping=Keeping(store))
    assert len(readings) == 1
    assert report.to_json() == report_of(store, "latest").to_json()
    assert report.totals.not_run > 0


def test_an_aggregator_is_asked_once_for_each_execution(store):
    class Counting(MetricsAggregator):
        asked = 0

        def aggregate(self, results):
            type(self).asked += 1
            return super().aggregate(results)

    aggregator = Counting()
    report = ran(job(aggregator=aggregator), keeping=Keeping(store))
    assert aggregator.asked == 1400
    assert report.to_json() == report_of(store, "latest", aggregator=aggregator).to_json()


def test_a_resumed_run_with_an_aggregator_ends_in_the_same_report(store):
    stop = Stop()
    ran(job(stop=stop, stop_at=600, aggregator="and"), stop=stop, keeping=Keeping(store))
    report = ran(job(aggregator="and"), keeping=Keeping(store, resume=True))
    assert report.to_json() == ran(job(aggregator="and")).to_json()


def test_a_call_that_marks_of_a_users_own_metric_share_is_paid_for_once(store):
    report = ran(job(metrics=[Sharing()]), keeping=Keeping(store))
    assert report.usage.scoring.calls == 1
    assert report.usage.scoring.cached_calls == 1399
    assert report.to_json() == report_of(store, "latest").to_json()
