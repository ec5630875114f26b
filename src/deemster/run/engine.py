"""Running a plan: the only concurrency. Samples stream through target and metrics to a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeAlias

import msgspec

from deemster.records import Execution, Invocation, Output, TargetFailure, Usage
from deemster.run.batch import Answer, Batch, Work, executions_of, work_of
from deemster.run.clock import Clock
from deemster.run.guard import Caught
from deemster.run.judging import Judging
from deemster.run.plan import Plan
from deemster.run.playing import Ask
from deemster.run.stopping import Stop, until_done
from deemster.target.python import PythonTarget
from deemster.target.saved import SavedOutputs

BATCH = 512

Sink: TypeAlias = Callable[[Sequence[Execution]], None]


async def perform(plan: Plan, *, sink: Sink, clock: Clock, stop: Stop, ask: Ask | None = None) -> None:
    """Run a plan to its end, or until it is asked to stop.

    Executions reach the sink in batches, in the order in which they finish. What was not started when the run was asked
    to stop never reaches it.

    Args:
        plan: What to run.
        sink: Takes finished executions.
        clock: Measures how long the target takes.
        stop: Asks the run to stop.
        ask: Answers what scripts ask; needed where the plan has metrics with scripts.
    """
    answered: asyncio.Queue[Batch | None] = asyncio.Queue(maxsize=1)
    try:
        async with asyncio.TaskGroup() as tasks:
            if isinstance(plan.target, SavedOutputs):
                tasks.create_task(_replay(plan, plan.target, answered, stop=stop))
            else:
                tasks.create_task(_call(plan, plan.target, answered, clock=clock, stop=stop))
            if ask is None or not plan.scorers:
                tasks.create_task(_mark(plan, answered, sink))
            else:
                tasks.create_task(Judging(plan, sink, ask=ask, stop=stop).judge(answered))
    except BaseExceptionGroup as group:
        # What a sink or a plug-in raised is told as itself, not as a group of one.
        raise _first(group) from None


def _first(group: BaseExceptionGroup) -> BaseException:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


async def _mark(plan: Plan, answered: asyncio.Queue[Batch | None], sink: Sink) -> None:
    """Mark batches as they come, where no metric asks a model."""
    while (batch := await answered.get()) is not None:
        sink(await asyncio.to_thread(executions_of, plan, batch))


async def _replay(plan: Plan, saved: SavedOutputs, answered: asyncio.Queue[Batch | None], *, stop: Stop) -> None:
    works = work_of(plan)
    while not stop.requested and (batch := list(islice(works, BATCH))):
        await answered.put(await asyncio.to_thread(_replayed, plan, saved, batch))
    await answered.put(None)


def _replayed(plan: Plan, saved: SavedOutputs, works: Sequence[Work]) -> Batch:
    answers: list[Answer] = []
    for repetition in dict.fromkeys(work.repetition for work in works):
        ids = [work.sample.id for work in works if work.repetition == repetition]
        answers.extend(saved.answers(ids, 0 if plan.varied == "scoring" else repetition))
    return Batch(works, answers)


async def _call(
    plan: Plan, target: PythonTarget, answered: asyncio.Queue[Batch | None], *, clock: Clock, stop: Stop
) -> None:
    works = work_of(plan)
    finished: asyncio.Queue[tuple[Work, Answer] | None] = asyncio.Queue(maxsize=BATCH // 2)
    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="deemster-target")

    async def caller() -> None:
        # The callers share one iterator: each takes the next sample when it is free.
        while not stop.requested and (work := next(works, None)) is not None:
            await finished.put((work, await _answer(target, work, clock=clock, pool=pool)))

    async def collector() -> None:
        while (first := await finished.get()) is not None:
            batch = [first]
            while len(batch) < BATCH and not finished.empty():
                further = finished.get_nowait()
                if further is None:
                    finished.put_nowait(None)
                    break
                batch.append(further)
            await answered.put(Batch([work for work, _ in batch], [answer for _, answer in batch]))
        await answered.put(None)

    try:
        async with asyncio.TaskGroup() as tasks:
            collecting = tasks.create_task(collector())
            callers = [tasks.create_task(caller()) for _ in range(plan.concurrency)]
            await until_done(callers, stop)
            await finished.put(None)
            await collecting
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def _answer(target: PythonTarget, work: Work, *, clock: Clock, pool: ThreadPoolExecutor) -> Answer:
    invocation = Invocation(work.sample.id, work.sample.input, work.repetition)
    started = clock.elapsed_s()
    with Caught() as caught:
        if target.is_async:
            output = await _uncancelled(target.call_async(invocation))
        else:
            output = await asyncio.get_running_loop().run_in_executor(pool, target.call, invocation)
        return _timed(output, started, clock.elapsed_s())
    return TargetFailure(caught.message)


async def _uncancelled(work: Awaitable[Output]) -> Output:
    """Await a target; a cancellation that nobody asked this run for is a failure of the target's own.

    Raises:
        RuntimeError: Something inside the target was cancelled.
    """
    try:
        return await work
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("The target was cancelled from within.") from None


def _timed(output: Output, started: float | None, ended: float | None) -> Output:
    """The output with the time it took, unless the target measured that itself or nobody did."""
    if started is None or ended is None:
        return output
    usage, latency_ms = output.usage, (ended - started) * 1000
    if usage is None:
        return msgspec.structs.replace(output, usage=Usage(calls=0, latency_ms=latency_ms))
    if usage.latency_ms is None and not usage.cached_calls:
        return msgspec.structs.replace(output, usage=msgspec.structs.replace(usage, latency_ms=latency_ms))
    return output
