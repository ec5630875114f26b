"""A run that must stop while it talks to a real server sends no further request and finishes open ones."""

from __future__ import annotations

import threading

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models import Role
from deemster.models.openai_client import OpenAIChat
from deemster.testing import ModelServer
from tests.report.runs import CLOCK

COUNT, CONCURRENCY, BEFORE = 60, 4, 9


@pytest.mark.parametrize("answers", [True, False])
def test_after_a_stop_no_further_request_is_made(answers, monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 30.0 if answers else 0.0)
    stop, lock, release = Stop(), threading.Lock(), threading.Event()
    received = 0

    def answer(messages):
        nonlocal received
        with lock:
            received += 1
            if received == BEFORE:
                stop.request("enough")
            is_late = received >= BEFORE
        if is_late and not answers:
            release.wait(30)
        return '{"reason": "so", "score": 1.0}'

    samples = [dm.Sample(f"s{n}", {"q": n}, f"answer {n}") for n in range(COUNT)]
    with ModelServer(answer=answer) as server:
        role = Role(client=OpenAIChat(server.url, "m"), concurrency=CONCURRENCY)
        job = resolve_arguments(
            dm.Dataset(samples, name="d"),
            outputs={sample.id: f"output {sample.id}" for sample in samples},
            metrics=["llm-as-judge"],
            models={"judge": role},
        )
        report = run_sync(run_evaluation(job, clock=CLOCK, stop=stop, warn=[].append))
        release.set()
        # Those that were on their way when it was asked may still arrive.
        assert BEFORE <= len(server.requests) <= BEFORE + CONCURRENCY
    assert report.run.status == "incomplete"
    assert report.run.reason.endswith("were not computed (enough)")
    totals = report.totals
    assert totals.scored + totals.unscored + totals.not_run == COUNT
    if answers:
        assert totals.scored == report.usage.scoring.calls == received
