"""Total = scored + unscored by cause + not run, for every metric, with failures, stops and resumes."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.models import ModelFailure, Role
from deemster.records import Answer
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

OUTCOMES = ("fine", "target", "metric", "model", "unreadable", "limited", "absent")
CAUSES = {
    "target": {"judge": "target_failed", "own": "target_failed", "exact-match": "target_failed"},
    "metric": {"own": "metric_failed"},
    "model": {"judge": "model_failed"},
    "unreadable": {"judge": "unreadable"},
    "limited": {"judge": "rate_limited"},
    "absent": {"exact-match": "no_expected", "judge": "no_expected"},
}


class Own:
    """A custom metric that fails on marked samples."""

    name = "own"

    def score(self, sample, output):
        if sample.input["goes"] == "metric":
            raise ValueError("not this one")
        return 1.0


class Judge:
    """A judge that fails on marked questions."""

    async def complete(self, ask):
        await asyncio.sleep(0)
        text = ask.messages[-1].content
        if "goes model" in text:
            raise ModelFailure("refused", "It answered 400.")
        if "goes limited" in text:
            raise ModelFailure("limited", "It answered 429.")
        return Answer(text="no verdict" if "goes unreadable" in text else '{"reason": "r", "score": 0.5}')


def job(outcomes, stop, at, *, concurrency, repetitions):
    calls = 0

    async def answer(invocation):
        nonlocal calls
        calls += 1
        if calls == at:
            stop.request("enough")
        await asyncio.sleep(0)
        if invocation.input["goes"] == "target":
            raise ConnectionError("down")
        return f"it goes {invocation.input['goes']}"

    answer.__module__, answer.__qualname__ = "app", "answer"
    samples = [
        dm.Sample(f"s{n}", {"goes": goes}, None if goes == "absent" else f"expected {n}")
        for n, goes in enumerate(outcomes)
    ]
    return resolve_arguments(
        dm.Dataset(samples, name="d"),
        target=answer,
        metrics=["exact-match", Own(), {"llm-as-judge": {"name": "judge"}}],
        models={"judge": Role(client=Judge(), retries=0)},
        concurrency=concurrency,
        repetitions=repetitions,
        settings=dm.EvaluationSettings(max_unscored="100%"),
    )


def counted(report):
    """For every metric, how many marks there are of each kind, by its executions."""
    return {
        name: Counter(
            "scored" if hasattr(entry.marks[name], "score") else entry.marks[name].unscored.cause
            for entry in report.executions
        )
        for name in report.metric_order
    }


@settings(max_examples=12, deadline=None)
@given(
    # A metric that no sample has anything for is refused.
    outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=14).filter(lambda drawn: {*drawn} != {"absent"}),
    stops=st.lists(st.integers(1, 20), max_size=3),
    concurrency=st.integers(1, 8),
    repetitions=st.integers(1, 2),
)
def test_every_mark_is_scored_unscored_for_a_cause_or_not_run(outcomes, stops, concurrency, repetitions):
    total = len(outcomes) * repetitions
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder, "runs.db")) as store:
        for turn, at in enumerate([*stops, None]):
            stop = Stop()
            again = job(outcomes, stop, at, concurrency=concurrency, repetitions=repetitions)
            keeping = RunStorage(store, resume=True if turn else None)
            report = ran_in(keeping, again, clock=CLOCK, stop=stop, warn=[].append)
            for name, found in counted(report).items():
                figures = report.metrics[name]
                assert sum(found.values()) == figures.n == total
                assert (found.pop("scored", 0), found.pop("not_run", 0)) == (figures.n_scored, figures.n_not_run)
                assert dict(found) == dict(figures.unscored_by_cause)
                assert figures.n == figures.n_scored + sum(figures.unscored_by_cause.values()) + figures.n_not_run
            totals = report.totals
            assert totals.marks == totals.scored + totals.unscored + totals.not_run == 3 * total
        expected = {name: Counter() for name in report.metric_order}
        for goes in outcomes:
            for name, found in expected.items():
                found[CAUSES.get(goes, {}).get(name, "scored")] += repetitions
        assert counted(report) == expected
