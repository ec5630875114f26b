"""A run with a deadline: executions that have not started by then are not run, with a reason."""

from __future__ import annotations

import asyncio
import signal
import threading

import pytest

import deemster as dm
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop, deadline, interruptible
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from tests.builders.arguments import arguments
from tests.report.runs import CLOCK

SAMPLES = [dm.Sample(f"s{n}", {"n": n}, "x") for n in range(5)]


def reported(target, *, timeout_s, metrics=("exact-match",), **options):
    job = resolve_arguments(SAMPLES, target=target, metrics=list(metrics), **arguments(**options))
    job = job._replace(plan=job.plan._replace(timeout_s=timeout_s))
    return run_sync(run_evaluation(job, clock=CLOCK, warn=[].append))


def test_executions_not_started_at_deadline_are_not_run(monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)

    async def answer(asked):
        if asked["n"] == 2:
            await asyncio.Event().wait()
        return "x"

    report = reported(answer, timeout_s=0.5, concurrency=1)
    assert (report.totals.scored, report.totals.not_run) == (2, 3)
    assert report.run.status == "incomplete"
    assert report.run.reason == "3 of 5 scores were not computed (The run's time of 0.5 s was over)"


def test_run_within_its_time_is_complete():
    async def answer(asked):
        return "x"

    assert reported(answer, timeout_s=3600.0).run.status == "complete"


def test_hanging_metric_does_not_delay_end_at_deadline(monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)
    released = threading.Event()

    class Stuck:
        name = "stuck"

        def score(self, sample, output):
            released.wait()

    report = reported(lambda asked: "x", timeout_s=0.05, metrics=[Stuck()])
    released.set()
    assert report.totals.not_run == 5


@pytest.mark.parametrize("timeout_s", [None, 0.01])
async def test_deadline_fires_only_inside_its_block(timeout_s):
    stop = Stop()

    with deadline(stop, timeout_s):
        pass
    await asyncio.sleep(0.03)
    assert not stop.requested


def test_signal_that_another_thread_receives_wakes_the_loop():
    stop, said, late = Stop(), [], []

    async def work():
        # By then the loop sleeps until something happens; the signal alone happens in this thread, not in the loop's.
        threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
        asyncio.get_running_loop().call_later(20, late.append, "the loop woke by itself")
        await stop.wait()

    with interruptible(stop, tell=said.append, leave=lambda: None):
        asyncio.run(work())
    assert (stop.reason, late) == ("interrupted by SIGINT", [])
    assert said == ["SIGINT: finishing what is under way; once more to leave at once"]


def test_second_interrupt_leaves_wherever_it_strikes():
    stop, left = Stop(), []

    def interrupt_again(_):
        # The line is still being printed.
        signal.raise_signal(signal.SIGINT)

    with interruptible(stop, tell=interrupt_again, leave=lambda: left.append("left")):
        signal.raise_signal(signal.SIGINT)
    assert (stop.reason, left) == ("interrupted by SIGINT", ["left"])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
