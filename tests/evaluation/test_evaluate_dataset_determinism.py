"""The same bytes in any finish order: concurrency, delays, shared questions, interruptions."""

from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models import Price, Role
from deemster.records import Answer, Usage
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

PRICES = {"": Price(Decimal("0.15"), Decimal("0.60"))}
METRICS = ["exact-match", "llm-as-judge", "cosine-embedding", {"g-eval": {"name": "depth", "preset": "completeness"}}]


class Judge:
    """A remote judge whose verdict depends on the question alone, with a random delay."""

    identity = {"base_url": "https://models.example/v1", "model": "far-1"}  # noqa: RUF012 - read, never changed

    def __init__(self, seed):
        self.turns = random.Random(seed)
        self.asked = self.answered = 0

    async def complete(self, ask):
        self.asked += 1
        for _ in range(self.turns.randrange(6)):
            await asyncio.sleep(0)
        words = " ".join(message.content for message in ask.messages)
        size = len(words) + sum(map(ord, words)) % 97
        whole = "integer" in json.dumps(ask.schema)
        verdict = {"reason": f"It has {size} marks.", "score": size % 3 + 1 if whole else size % 5 / 4}
        if size % 13 == 0 and not ask.again:
            verdict = {}
        self.answered += 1
        return Answer(text=json.dumps(verdict), usage=Usage(prompt_tokens=size, completion_tokens=7), model="far-1")


def samples(count, kinds):
    """Samples of which many ask the same, so that their judges are asked the same."""
    return dm.Dataset(
        [
            dm.Sample(f"s{n}", {"question": f"How many of kind {n % kinds}?"}, f"There are {n % kinds} of them.")
            for n in range(count)
        ],
        name="kinds",
    )


def target(seed, stop=None, at=None):
    turns = random.Random(seed)
    calls = 0

    async def answer(asked):
        nonlocal calls
        calls += 1
        if calls == at:
            stop.request("enough")
        for _ in range(turns.randrange(6)):
            await asyncio.sleep(0)
        kind = int(asked["question"].split()[-1][:-1])
        if kind == 3:
            raise ValueError("not this kind")
        return f"There are {kind + kind % 2} of them."

    answer.__module__, answer.__qualname__ = "app", "answer"
    return answer


def job(seed, *, concurrency=7, count=40, kinds=7, judge=None, cache=None, stop=None, at=None, **more):
    role = Role(client=judge or Judge(seed), prices=PRICES, concurrency=f"1-{concurrency}")
    return resolve_arguments(
        samples(count, kinds),
        target=target(seed, stop, at),
        metrics=METRICS,
        concurrency=concurrency,
        models={"judge": role},
        **arguments(max_unscored="100%", cache=cache, **more),
    )


def reported(seed, **options):
    return run_sync(run_evaluation(job(seed, **options), clock=CLOCK, warn=[].append))


def test_concurrency_and_delays_change_no_byte():
    texts = {
        reported(seed, concurrency=concurrency, repetitions=2).to_json()
        for concurrency in (1, 7, 64)
        for seed in (1, 2)
    }
    assert len(texts) == 1
    scoring = json.loads(texts.pop())["usage"]["scoring"]
    assert scoring["cached_calls"] > scoring["calls"] > 0


@settings(max_examples=8, deadline=None)
@given(
    seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    limits=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    count=st.integers(1, 40),
    kinds=st.integers(1, 40),
)
def test_report_does_not_depend_on_how_it_runs(seeds, limits, count, kinds):
    one, other = (
        reported(seed, concurrency=limit, count=count, kinds=kinds).to_json()
        for seed, limit in zip(seeds, limits, strict=True)
    )
    assert one == other


def test_source_date_epoch_makes_evaluate_reproducible(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(datetime(2025, 6, 15, tzinfo=UTC).timestamp())))

    def text(seed, concurrency):
        role = Role(client=Judge(seed), prices=PRICES)
        return dm.evaluate(
            samples(30, 4),
            target=target(seed),
            metrics=METRICS,
            models={"judge": role},
            concurrency=concurrency,
            settings=dm.EvaluationSettings(max_unscored="100%"),
        ).to_json()

    assert text(1, 64) == text(2, 7) == text(3, 1)


def test_cost_equals_sum_of_requests():
    judge = Judge(5)
    report = reported(5, concurrency=64, judge=judge)
    assert report.usage.scoring.calls == judge.asked
    assert report.usage.by_metric["cosine-embedding"].calls == 0


@pytest.mark.parametrize("at", [1, 2, 9, 25, 39])
def test_stopped_run_resumed_with_cache_gives_same_report(tmp_path, at):
    whole = reported(0).to_json()
    judges = []
    with open_store(tmp_path / "runs.db") as store:
        stop = Stop()
        for number, resume in enumerate((None, True, True)):
            judges.append(Judge(number))
            again = job(
                number + 1, judge=judges[-1], cache=tmp_path / "cache.jsonl", stop=stop, at=at if number < 2 else None
            )
            report = ran_in(RunStorage(store, resume=resume), again, clock=CLOCK, stop=stop, warn=[].append)
            stop = Stop()
        resumed, direct = json.loads(report.to_json()), json.loads(whole)
    assert resumed["usage"] == direct["usage"]
    assert resumed["cost"] == direct["cost"]
    assert resumed["executions"] == direct["executions"]
    assert resumed["metrics"] == direct["metrics"]
    assert sum(judge.asked for judge in judges) == report.usage.scoring.calls


class Killer(Judge):
    """A judge at whose n-th question the run is dropped as it is, with everything that is under way."""

    def __init__(self, seed, at):
        super().__init__(seed)
        self.at, self.task = at, None

    async def complete(self, ask):
        if self.asked == self.at:
            self.task.cancel()
            await asyncio.Event().wait()
        return await super().complete(ask)


@pytest.mark.parametrize("at", [0, 3, 7, 11])
def test_killed_run_resumed_with_cache_charges_every_answer_once(tmp_path, at):
    whole = json.loads(reported(0).to_json())
    killer, judge = Killer(1, at), Judge(2)

    async def dropped(store):
        work = run_evaluation(
            job(1, judge=killer, cache=tmp_path / "cache.jsonl"), clock=CLOCK, warn=[].append, storage=RunStorage(store)
        )
        killer.task = asyncio.ensure_future(work)
        with pytest.raises(asyncio.CancelledError):
            await killer.task

    with open_store(tmp_path / "runs.db") as store:
        asyncio.run(dropped(store))
        again = job(2, judge=judge, cache=tmp_path / "cache.jsonl", concurrency=1)
        keeping = RunStorage(store, resume=True)
        report = ran_in(keeping, again, clock=CLOCK, warn=[].append)
        resumed = json.loads(report.to_json())
    assert resumed["usage"] == whole["usage"]
    assert resumed["cost"] == whole["cost"]
    assert resumed["executions"] == whole["executions"]
    assert killer.answered + judge.asked == whole["usage"]["scoring"]["calls"]
