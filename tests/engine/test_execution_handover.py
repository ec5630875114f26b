"""Outputs of a live target are stored before their marks, and no finished execution is overwritten."""

from __future__ import annotations

import asyncio
import threading

import pytest

import deemster as dm
from deemster.engine.execution_handover import ExecutionHandover, PendingStorage
from deemster.engine.run_sync import run_sync
from deemster.engine.stop_request import Stop
from deemster.engine.work_items import WorkItem
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.models import Role
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Answer, MetricScore, Output, Sample, Unscored, Usage
from deemster.report.stored_report import stored_report
from deemster.runs.run_storage import RunStorage
from deemster.store import open_store
from tests.builders.resolved_with import ran_in
from tests.report.runs import CLOCK

SAMPLES = [dm.Sample(f"s{number}", {"n": number}, f"answer {number}") for number in range(40)]


class Judge:
    """A judge that answers a number of questions, and stops the run at the next one."""

    def __init__(self, stop, answers):
        self.stop, self.answers, self.asked = stop, answers, 0
        self.identity = {"model": "judge"}

    async def complete(self, ask):
        self.asked += 1
        if self.asked > self.answers:
            self.stop()
            await asyncio.Event().wait()
        return Answer(text='{"reason": "so", "score": 1.0}', usage=Usage(prompt_tokens=9), model="m")


def job(calls, judge):
    async def answer(asked):
        calls.append(asked["n"])
        return f"answer {asked['n'] % 4}"

    answer.__module__, answer.__qualname__ = "app", "answer"
    role = Role(client=judge, concurrency=2)
    return resolve_arguments(SAMPLES, target=answer, metrics=["exact-match", "llm-as-judge"], models={"judge": role})


def test_stored_answers_are_not_requested_again_after_stop(store, monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)
    whole = run_sync(run_evaluation(job([], Judge(None, 1000)), clock=CLOCK, warn=[].append))
    calls, stop = [], Stop()
    judge = Judge(lambda: stop.request("enough"), 5)
    partial = run_sync(
        run_evaluation(job(calls, judge), clock=CLOCK, stop=stop, warn=[].append, storage=RunStorage(store))
    )
    assert partial.metrics["llm-as-judge"].n_scored == 5
    assert partial.metrics["llm-as-judge"].n_not_run == 35
    assert len(calls) > 30
    assert stored_report(store, "latest").to_json() == partial.to_json()
    told, before = [], len(calls)
    keeping = RunStorage(store, True, tell=told.append)
    report = ran_in(keeping, job(calls, Judge(None, 1000)), clock=CLOCK, warn=[].append)
    assert report.to_json() == whole.to_json()
    assert sorted(calls) == list(range(40))
    assert f"5 of 40 done, {before - 5} answered and not yet scored." in told[0]


def test_stored_answers_are_not_requested_again_after_kill(store):
    calls, dropped = [], []

    async def drop():
        work = run_evaluation(job(calls, judge), clock=CLOCK, warn=[].append, storage=RunStorage(store))
        dropped.append(asyncio.ensure_future(work))
        with pytest.raises(asyncio.CancelledError):
            await dropped[0]

    def once_all_is_kept():
        if store.run("latest").done == len(SAMPLES):
            dropped[0].cancel()
        else:
            asyncio.get_running_loop().call_later(0.01, once_all_is_kept)

    judge = Judge(once_all_is_kept, 3)
    asyncio.run(drop())
    assert sorted(calls) == list(range(40))
    report = ran_in(RunStorage(store, resume=True), job(calls, Judge(None, 1000)), clock=CLOCK, warn=[].append)
    assert (report.totals.scored, len(calls)) == (80, 40)


def test_hanging_metric_does_not_delay_judged_run_at_deadline(store, monkeypatch):
    monkeypatch.setattr("deemster.engine.worker_pool.DRAIN_S", 0.0)
    released, calls = threading.Event(), []

    class Stuck:
        name = "stuck"

        def score(self, sample, output):
            released.wait()
            return 1.0

    what = job(calls, Judge(None, 1000))
    plan = what.plan._replace(metrics=(*what.plan.metrics, Stuck()), timeout_s=2.0)
    report = run_sync(run_evaluation(what._replace(plan=plan), clock=CLOCK, warn=[].append, storage=RunStorage(store)))
    released.set()
    assert report.totals.not_run == 120
    # The output of the target is stored nevertheless.
    assert sum(entry.output is not None for entry in report.executions) == len(calls) == 40


def test_late_pending_row_never_replaces_marks():
    """In any interleaving, the last row that is written of an execution is its finished one."""
    written: list[tuple[int, bool]] = []
    begun, gate = threading.Event(), threading.Event()

    def hold(executions):
        begun.set()
        gate.wait(30)
        written.extend((execution.position, False) for execution in executions)

    def sink(executions):
        written.extend((execution.position, True) for execution in executions)

    async def interleaved():
        handing = ExecutionHandover(
            sink, PendingStorage(hold, 0.002), metrics=1, threads=WorkerThreads("t", at_once=4), asks=True
        )
        works = [WorkItem(number, Sample(f"s{number}", {}, None), 0) for number in range(20)]
        keeping = asyncio.ensure_future(handing.store_regularly())
        for work in works:
            handing.note(work, Output("x"))
        await asyncio.to_thread(begun.wait, 30)
        finishing = [
            asyncio.ensure_future(handing.hand_on([work.finish(Output("x"), (MetricScore(1.0),))])) for work in works
        ]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*finishing)
        await handing.store_all()
        keeping.cancel()

    asyncio.run(interleaved())
    last = dict(written)
    assert sorted(last) == list(range(20))
    assert all(last.values())
    assert (0, False) in written


def test_pending_answer_has_not_run_for_missing_marks_only():
    kept: list = []

    async def held():
        handing = ExecutionHandover(
            lambda _: None, PendingStorage(kept.extend, 0.0), metrics=2, threads=WorkerThreads("t"), asks=True
        )
        handing.note(WorkItem(3, Sample("s3", {}, None), 1, None, (MetricScore(0.5), None)), Output("x"))
        await handing.store_all()

    asyncio.run(held())
    (execution,) = kept
    assert (execution.position, execution.repetition, execution.answer.text) == (3, 1, "x")
    assert execution.marks[0] == MetricScore(0.5)
    assert isinstance(execution.marks[1], Unscored)
    assert execution.marks[1].cause == "not_run"


@pytest.mark.parametrize("after_s", [0.0, 0.002])
def test_answers_arriving_during_commit_are_committed_next(after_s):
    kept: list[int] = []
    begun, gate, every = threading.Event(), threading.Event(), threading.Event()

    def hold(executions):
        begun.set()
        gate.wait(30)
        kept.extend(execution.position for execution in executions)
        if len(kept) == 10:
            every.set()

    async def held():
        threads = WorkerThreads("t", at_once=4)
        handing = ExecutionHandover(
            lambda _: None, PendingStorage(hold, after_s), metrics=1, threads=threads, asks=True
        )
        keeping = asyncio.ensure_future(handing.store_regularly())
        works = [WorkItem(number, Sample(f"s{number}", {}, None), 0) for number in range(10)]
        events = [handing.note(work, Output("x")) for work in works[:5]]
        await asyncio.to_thread(begun.wait, 30)
        events += [handing.note(work, Output("x")) for work in works[5:]]
        gate.set()
        if after_s:
            assert events == [None] * 10
            assert await asyncio.to_thread(every.wait, 30)
        else:
            async with asyncio.timeout(30):
                await asyncio.gather(*(event.wait() for event in events))
        keeping.cancel()

    asyncio.run(held())
    assert sorted(kept) == list(range(10))


def test_durable_run_commits_answer_before_next_request(tmp_path):
    """No more answers than calls under way are ever unkept."""
    unkept, most = set(), 0

    async def answer(asked):
        nonlocal most
        await asyncio.sleep(0)
        unkept.add(asked["n"])
        most = max(most, len(unkept))
        return "x"

    async def complete(ask):
        await asyncio.sleep(0.001)
        return Answer(text='{"reason": "so", "score": 1.0}', usage=Usage(), model="m")

    judge = type("Judge", (), {"identity": {"model": "judge"}, "complete": staticmethod(complete)})()
    what = resolve_arguments(
        SAMPLES, target=answer, metrics=["llm-as-judge"], models={"judge": Role(client=judge)}, concurrency=3
    )
    with open_store(tmp_path / "runs.db", durable=True) as store:
        begin = store.writer

        def writer(run_id, **options):
            made = begin(run_id, **options)
            add = made.add

            def noted(executions, **more):
                add(executions, **more)
                unkept.difference_update(SAMPLES[execution.position].input["n"] for execution in executions)

            made.add = noted
            return made

        store.writer = writer
        report = run_sync(run_evaluation(what, clock=CLOCK, warn=[].append, storage=RunStorage(store)))
    assert report.totals.scored == 40
    assert most <= 3
