"""Running a plan: the only concurrency. Samples stream through target and metrics to a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple, TypeAlias

import msgspec

from deemster.records import Execution, Invocation, Output, Sample, TargetFailure, Usage
from deemster.run.clock import Clock
from deemster.run.guard import Caught
from deemster.run.marking import marks_of
from deemster.run.plan import Plan
from deemster.run.stopping import Stop
from deemster.target.python import PythonTarget
from deemster.target.saved import SavedOutputs

BATCH = 512
DRAIN_S = 2.0

Answer: TypeAlias = Output | TargetFailure
Sink: TypeAlias = Callable[[Sequence[Execution]], None]


class Work(NamedTuple):
    """One sample in one repetition, still to be run."""

    position: int
    sample: Sample
    repetition: int


async def perform(plan: Plan, *, sink: Sink, clock: Clock, stop: Stop) -> None:
    """Run a plan to its end, or until it is asked to stop.

    Executions reach the sink in batches, in the order in which they finish. What was not started when the run was asked
    to stop never reaches it.

    Args:
        plan: What to run.
        sink: Takes finished executions.
        clock: Measures how long the target takes.
        stop: Asks the run to stop.
    """
    if isinstance(plan.target, SavedOutputs):
        await _replay(plan, plan.target, sink=sink, stop=stop)
    else:
        await _call(plan, plan.target, sink=sink, clock=clock, stop=stop)


def work_of(plan: Plan) -> Iterator[Work]:
    """Everything there is to run: the whole dataset, repetition by repetition."""
    for repetition in range(plan.repetitions):
        for position, sample in enumerate(plan.dataset):
            yield Work(position, sample, repetition)


def executions_of(plan: Plan, works: Sequence[Work], answers: Sequence[Answer]) -> list[Execution]:
    """Mark the answers to a batch of work."""
    marks = marks_of(plan.metrics, [work.sample for work in works], answers, thresholds=plan.thresholds)
    return [
        Execution(work.position, work.sample.id, work.repetition, answer, row)
        for work, answer, row in zip(works, answers, marks, strict=True)
    ]


async def _replay(plan: Plan, saved: SavedOutputs, *, sink: Sink, stop: Stop) -> None:
    works = work_of(plan)
    while not stop.requested and (batch := list(islice(works, BATCH))):
        sink(await asyncio.to_thread(_replayed, plan, saved, batch))


def _replayed(plan: Plan, saved: SavedOutputs, batch: Sequence[Work]) -> list[Execution]:
    answers: list[Answer] = []
    for repetition in dict.fromkeys(work.repetition for work in batch):
        ids = [work.sample.id for work in batch if work.repetition == repetition]
        answers.extend(saved.answers(ids, 0 if plan.varied == "scoring" else repetition))
    return executions_of(plan, batch, answers)


async def _call(plan: Plan, target: PythonTarget, *, sink: Sink, clock: Clock, stop: Stop) -> None:
    works = work_of(plan)
    finished: asyncio.Queue[tuple[Work, Answer] | None] = asyncio.Queue(maxsize=2 * BATCH)
    pool = ThreadPoolExecutor(plan.concurrency, thread_name_prefix="deemster-target")

    async def caller() -> None:
        # The callers share one iterator: each takes the next sample when it is free.
        while not stop.requested and (work := next(works, None)) is not None:
            await finished.put((work, await _answer(target, work, clock=clock, pool=pool)))

    async def marker() -> None:
        while (first := await finished.get()) is not None:
            batch = [first]
            while len(batch) < BATCH and not finished.empty():
                further = finished.get_nowait()
                if further is None:
                    finished.put_nowait(None)
                    break
                batch.append(further)
            rows = [work for work, _ in batch], [answer for _, answer in batch]
            sink(await asyncio.to_thread(executions_of, plan, *rows))

    try:
        async with asyncio.TaskGroup() as tasks:
            marking = tasks.create_task(marker())
            callers = [tasks.create_task(caller()) for _ in range(plan.concurrency)]
            await _until_done(callers, stop)
            await finished.put(None)
            await marking
    except BaseExceptionGroup as group:
        # What a sink or a plug-in raised is told as itself, not as a group of one.
        raise group.exceptions[0] from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


async def _until_done(callers: Sequence[asyncio.Task[None]], stop: Stop) -> None:
    """Wait for the callers; once asked to stop, give what is under way a little time and then let go of it."""
    loop = asyncio.get_running_loop()
    asked = asyncio.Event()
    stop.on_request(lambda: loop.call_soon_threadsafe(asked.set))
    waiting = asyncio.ensure_future(asked.wait())
    everyone = asyncio.ensure_future(asyncio.wait(callers))
    await asyncio.wait([waiting, everyone], return_when=asyncio.FIRST_COMPLETED)
    if not everyone.done():
        await asyncio.wait([everyone], timeout=DRAIN_S)
        for caller in callers:
            caller.cancel()
    waiting.cancel()
    everyone.cancel()


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
