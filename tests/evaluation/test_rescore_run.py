"""Stored outputs are marked again by other metrics, and the target is never called."""

from __future__ import annotations

import asyncio
import json

import pytest

import deemster as dm
from deemster.engine.model_access import build_model_access
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, StoreError
from deemster.evaluation.rescore_run import rescore
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.judges import metric_catalog as catalog
from deemster.records import Answer, Execution, MetricScore, Output, SampleContent, SampleFacts, SampleLabels
from deemster.report.stored_report import stored_report
from deemster.runs.run_identity import format_time
from deemster.runs.run_storage import NOT_STORED, RunStorage
from deemster.store import RunFacts, open_store
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK


def dataset():
    return dm.Dataset([dm.Sample(f"s{n}", {"q": str(n)}, f"the answer is {n}") for n in range(10)], name="d")


OUTPUTS = {f"s{n}": f"the answer is {n % 5}" for n in range(10)} | {"s9": {"error": "no answer"}}


def ran(store, metrics, **more):
    what = resolve_arguments(dataset(), outputs=OUTPUTS, metrics=metrics, **arguments(max_unscored="100%", **more))
    keeping = NOT_STORED if store is None else RunStorage(store)
    return ran_in(keeping, what, clock=CLOCK, warn=lambda _: None)


def rescored(store, *metrics, **more):
    resolved = catalog.resolve_all(metrics) if metrics else ()
    return run_sync(rescore(store, "latest", metrics=resolved, clock=CLOCK, warn=lambda _: None, **more))


def test_added_metric_gives_marks_of_original_run(store):
    ran(store, ["exact-match"])
    report, missing = rescored(store, "rouge-l")
    assert missing is None
    assert report.metric_order == ("exact-match", "rouge-l")
    direct = ran(None, ["exact-match", "rouge-l"])
    assert report.metrics == direct.metrics
    assert report.totals == direct.totals
    assert [entry.marks for entry in report.executions] == [entry.marks for entry in direct.executions]
    assert stored_report(store, "latest").to_json() == report.to_json()
    first, second = store.run("latest").scorings
    assert second.started_at == first.started_at == format_time(CLOCK.now())


def test_metric_of_same_name_replaces_the_other(store):
    ran(store, ["exact-match", {"rouge-l": {"name": "overlap"}}])
    strict = dm.judges.parse_metric("token-f1(name=overlap,threshold=0.9)")
    report, _ = rescored(store, strict)
    assert report.metric_order == ("exact-match", "overlap")
    assert report.metrics["overlap"].spec == catalog.spec(strict)
    assert report.metrics["overlap"].threshold == 0.9
    assert store.run("latest").scorings[0].cards[1].spec != catalog.spec(strict)


class Counted:
    """A metric that records the marked samples."""

    name = "counted"

    def __init__(self):
        self.seen = []

    def score(self, sample, output):
        self.seen.append(sample.id)
        return MetricScore(1.0)


class Asking:
    """A judge with one question for each sample."""

    name = "slow"
    roles = ("judge",)

    def script(self, sample, output):
        (reply,) = yield [dm.records.Ask(role="judge", messages=(dm.records.Message("user", sample.id),))]
        if isinstance(reply, dm.records.NoAnswer):
            return dm.Unscored(reply.cause, reply.message)
        return MetricScore(json.loads(reply.text)["score"])


class Client:
    """A model that asks the work to stop while it answers the third question."""

    def __init__(self, stop):
        self.asked, self.stop = [], stop
        self.identity = {"model": "c"}

    async def complete(self, ask):
        self.asked.append(ask.messages[-1].content)
        if len(self.asked) == 3:
            self.stop.request("enough")
            # A task that waits for the stop request is woken in the loop.
            for _ in range(10):
                await asyncio.sleep(0)
        return Answer(text='{"score": 0.5}')


def test_stopped_rescoring_resumes(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        before = ran(store, ["exact-match"])
        stop = Stop()
        client = Client(stop)
        asking = build_model_access({"judge": dm.models.Role(client=client, concurrency=1)})
        report, missing = rescored(store, Asking(), access=asking, stop=stop)
        assert "outputs are not scored (enough)" in missing
        assert report.metric_order == before.metric_order == ("exact-match",)
        report, missing = rescored(store, Asking(), access=asking)
        assert missing is None
        assert (report.metrics["slow"].n_scored, report.metrics["slow"].mean) == (9, 0.5)
        assert sorted(client.asked) == sorted({f"s{n}" for n in range(9)})
        assert len(store.run("latest").scorings) == 2


def test_rescoring_with_same_metric_makes_new_marks(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        ran(store, ["exact-match"])
        first, second = Counted(), Counted()
        rescored(store, first)
        rescored(store, second)
        assert len(first.seen) == len(second.seen) == 9


def test_gate_uses_replaced_metric(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        ran(store, ["exact-match"], gate={"metrics": {"exact-match": {"min_pass_rate": 0.9}}})
        assert stored_report(store, "latest").gate.decision == "fail"
        report, _ = rescored(store, dm.judges.parse_metric("length-within(name=exact-match,max=100)"))
        assert report.gate.decision == "pass"


def test_recording_is_scored_by_metrics_without_expected_output(store):
    facts = RunFacts(
        id="rec",
        kind="recording",
        dataset="live",
        fingerprint="",
        samples=0,
        started_at="2026-01-01T00:00:00.000Z",
        tool_version="0",
    )
    with store.begin(facts, [], cards=[]), store.writer("rec") as writer:
        for position in range(3):
            kept = SampleFacts(position, f"r{position}", "0" * 64, SampleLabels(), SampleContent(None, {"q": position}))
            writer.add_samples([kept])
            writer.add([Execution(position, f"r{position}", 0, Output("short" * (position + 1)), ())])
    report, missing = rescored(store, "length-within(max=12)")
    assert (missing, report.totals.samples, report.metrics["length-within"].n_passed) == (None, 3, 2)


def test_invalid_text_is_bad_output_and_cut_text_is_too_large(tmp_path):
    outputs = {f"s{n}": "fine" for n in range(10)} | {"s1": "\ud800 broken", "s2": "x" * 2_000_000}
    with open_store(tmp_path / "runs.db") as store:
        what = resolve_arguments(
            dataset(), outputs=outputs, metrics=["exact-match"], settings=dm.EvaluationSettings(max_unscored="100%")
        )
        run_sync(run_evaluation(what, clock=CLOCK, warn=lambda _: None, storage=RunStorage(store)))
        report, _ = rescored(store, "contains")
        assert report.metrics["contains"].unscored_by_cause == {"bad_output": 1, "too_large": 1}
        assert report.metrics["exact-match"].unscored_by_cause == {"bad_output": 1}


def test_unsuitable_run_for_rescore_is_error(tmp_path):
    with open_store(tmp_path / "runs.db") as store:
        with pytest.raises(StoreError, match="holds no run yet"):
            rescored(store, "contains")
        ran(store, ["exact-match"])
        with pytest.raises(ConfigurationError, match="Name at least one metric"):
            rescored(store)
        with pytest.raises(ConfigurationError, match="`judge`, which is not there"):
            rescored(store, "llm-as-judge")
