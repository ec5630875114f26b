"""Running a plan: the only concurrency. Samples stream through target and metrics to a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from deemster.models.clock import Clock
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution
from deemster.runs._execution_batch import Answer, AnsweredBatch, WorkItem, planned_work, score_batch
from deemster.runs._judge_pool import JudgePool
from deemster.runs._pending_answers import ExecutionHandover, PendingStorage, Sink
from deemster.runs._target_calls import BATCH, TargetCaller
from deemster.runs._worker_pool import worker_pool
from deemster.runs.play_scripts import Ask
from deemster.runs.run_plan import Plan
from deemster.runs.stop_request import Stop, deadline
from deemster.targets.saved_outputs import SavedOutputs

__all__ = ["PendingStorage", "Sink", "execute_plan"]


async def execute_plan(
    plan: Plan,
    *,
    sink: Sink,
    clock: Clock,
    stop: Stop,
    ask: Ask | None = None,
    works: Iterable[WorkItem] | None = None,
    pools: Callable[[Any], bool] | None = None,
    hold: PendingStorage | None = None,
) -> None:
    """Run a plan to its end, or until it is asked to stop.

    Executions reach the sink in batches, in the order in which they finish. What was not started when the run was asked
    to stop never reaches it. A sink that takes its time slows the run down: what is not yet handed on is bounded.

    Args:
        plan: What to run.
        sink: Takes finished executions; called in a thread, one call at a time.
        clock: Measures how long the target takes.
        stop: Asks the run to stop.
        ask: Answers what scripts ask; needed where the plan has metrics with scripts.
        works: What is to be done; everything where not given.
        pools: Whether a scorer that can mark a batch with one script may do so; all may where not given.
        hold: Keeps what a live target has said while it waits for its marks; it is lost with the run where not given.
    """
    answered: asyncio.Queue[AnsweredBatch | None] = asyncio.Queue(maxsize=1)
    threads = WorkerThreads("deemster-run", at_once=4)
    rest = iter(planned_work(plan) if works is None else works)
    asks = ask is not None and bool(plan.scorers)
    # Saved outputs can be read again: only what a live target said is kept before it is marked.
    kept = None if isinstance(plan.target, SavedOutputs) else hold
    handing = ExecutionHandover(sink, kept, metrics=len(plan.metrics), threads=threads, asks=asks, secrets=plan.secrets)
    try:
        with deadline(stop, plan.timeout_s):
            async with worker_pool(stop) as pool:
                if isinstance(plan.target, SavedOutputs):
                    pool.serve(_replay(plan, plan.target, rest, answered, stop=stop, threads=threads))
                else:
                    note = None if hold is None else handing.note
                    calling = TargetCaller(plan, plan.target, clock=clock, stop=stop, note=note)
                    pool.serve(calling.call(rest, answered))
                keeping = pool.serve(handing.keep_regularly())
                if ask is None or not asks:
                    work = _score(plan, answered, handing.hand_on, stop=stop, threads=threads)
                else:
                    judging = JudgePool(plan, handing.hand_on, ask=ask, stop=stop, threads=threads, pools=pools)
                    work = judging.judge(answered)
                await asyncio.wait([pool.serve(work)])
                # What was let go of is kept too.
                await handing.keep()
                keeping.cancel()
    finally:
        threads.close()


async def _score(
    plan: Plan,
    answered: asyncio.Queue[AnsweredBatch | None],
    hand_on: Callable[[Sequence[Execution]], Awaitable[None]],
    *,
    stop: Stop,
    threads: WorkerThreads,
) -> None:
    """Score batches as they come, where no metric asks a model."""
    async with worker_pool(stop) as pool:
        while (batch := await answered.get()) is not None:
            # A metric that never returns must not keep a run that was asked to stop.
            if not pool.is_drained:
                scoring = pool.start(threads.call(score_batch, plan, batch))
                await asyncio.wait([scoring])
                if not scoring.cancelled():
                    await hand_on(scoring.result())


async def _replay(
    plan: Plan,
    saved: SavedOutputs,
    works: Iterator[WorkItem],
    answered: asyncio.Queue[AnsweredBatch | None],
    *,
    stop: Stop,
    threads: WorkerThreads,
) -> None:
    while not stop.requested and (batch := list(islice(works, BATCH))):
        await answered.put(await threads.call(_replayed, plan, saved, batch))
    await answered.put(None)


def _replayed(plan: Plan, saved: SavedOutputs, works: Sequence[WorkItem]) -> AnsweredBatch:
    answers: list[Answer | None] = [work.answer for work in works]
    for repetition in dict.fromkeys(work.repetition for work in works):
        places = [place for place, work in enumerate(works) if work.repetition == repetition and work.answer is None]
        ids = [works[place].sample.id for place in places]
        found = saved.answers(ids, 0 if plan.varied == "scoring" else repetition) if ids else []
        for place, answer in zip(places, found, strict=True):
            answers[place] = answer
    return AnsweredBatch(works, [answer for answer in answers if answer is not None])
