"""Executes a plan: samples stream through target and metrics to a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.engine._judge_outputs import JudgePool
from deemster.engine._target_calls import BATCH, TargetCaller
from deemster.engine.kept_prompts import KeptPrompts
from deemster.engine.play_scripts import Ask
from deemster.engine.run_plan import Plan
from deemster.engine.score_batch import (
    Answer,
    AnsweredBatch,
    WorkItem,
    finish_work,
    leave_out,
    planned_work,
    score_batch,
)
from deemster.engine.stop_request import Stop, deadline
from deemster.engine.worker_pool import worker_pool
from deemster.models.clock import Clock
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution, Mark, Output, Unscored
from deemster.targets.saved_outputs import SavedOutputs


async def execute_plan(
    plan: Plan,
    *,
    sink: Sink,
    clock: Clock,
    stop: Stop,
    ask: Ask | None = None,
    works: Iterable[WorkItem] | None = None,
    may_batch: Callable[[Any], bool] | None = None,
    pending: PendingStorage | None = None,
    prompts: KeptPrompts | None = None,
) -> None:
    """Run a plan to its end, or until it is asked to stop.

    Executions reach the sink in batches, in the order in which they finish. Work that was not started when the run was
    asked to stop never reaches it. A slow sink slows the run down: the number of waiting executions is bounded.

    Args:
        plan: What to run.
        sink: Takes finished executions; called in a thread, one call at a time.
        clock: Measures how long the target takes.
        stop: Asks the run to stop.
        ask: Answers what scripts ask; needed where the plan has metrics with scripts.
        works: What is to be done; everything unless given.
        may_batch: Whether a scorer that can mark a batch with one script may do so; all may unless given.
        pending: Stores the answers of a live target that wait for their marks.
        prompts: Keeps what judges were asked; None where that is not kept.
    """
    answered: asyncio.Queue[AnsweredBatch | None] = asyncio.Queue(maxsize=1)
    threads = WorkerThreads("deemster-run", at_once=4)
    rest = iter(planned_work(plan) if works is None else works)
    if any(plan.where):
        rest = leave_out(plan, rest)
    asks = ask is not None and bool(plan.scorers)
    # Saved outputs can be read again: only the answers of a live target are stored before they are marked.
    stored = None if isinstance(plan.target, SavedOutputs) else pending
    handover = ExecutionHandover(
        sink, stored, metrics=len(plan.metrics), threads=threads, asks=asks, secrets=plan.secrets
    )
    try:
        with deadline(stop, plan.timeout_s):
            async with worker_pool(stop) as pool:
                if isinstance(plan.target, SavedOutputs):
                    pool.serve(_replay(plan, plan.target, rest, answered, stop=stop, threads=threads))
                else:
                    note = None if pending is None else handover.note
                    calling = TargetCaller(plan, plan.target, clock=clock, stop=stop, note=note)
                    pool.serve(calling.call(rest, answered))
                storing = pool.serve(handover.store_regularly())
                if ask is None or not asks:
                    work = _score(plan, answered, handover.hand_on, stop=stop, threads=threads)
                else:
                    hand_on = handover.hand_on
                    work = JudgePool(
                        plan, hand_on, ask=ask, stop=stop, threads=threads, may_batch=may_batch, prompts=prompts
                    ).judge(answered)
                await asyncio.wait([pool.serve(work)])
                # This includes answers whose scoring was cancelled.
                await handover.store_all()
                storing.cancel()
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


Sink: TypeAlias = Callable[[Sequence[Execution]], None]
# Metrics that ask no model mark an answer at once; only a slow metric lets answers wait.
SLOW_S = 1.0
_NOT_MARKED = Unscored("not_run", "The run ended before this was marked.")


class PendingStorage(NamedTuple):
    """Where answers are stored that are not marked yet, so that a killed run need not ask for them again.

    Attributes:
        sink: Takes them as executions whose missing marks are `not_run`; the finished executions replace them.
        after_s: How long an answer may wait for its judges before it is stored. At 0 every answer is stored at
            once, and its worker waits for that: a kill loses no more answers than there are calls under way.
    """

    sink: Sink
    after_s: float


class ExecutionHandover:
    """Hands finished executions to the sink, and stores answers that wait for their marks; one call at a time.

    Args:
        sink: Takes finished executions.
        pending: Stores answers that wait; None where they are not stored.
        metrics: How many metrics there are.
        threads: Where the sinks are called.
        asks: Whether models are asked for marks.
        secrets: Keys that no mark may contain.
    """

    def __init__(
        self,
        sink: Sink,
        pending: PendingStorage | None,
        *,
        metrics: int,
        threads: WorkerThreads,
        asks: bool,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._sink, self._pending, self._threads = sink, pending, threads
        self._metrics, self._secrets = metrics, secrets
        self._after_s = 0.0 if pending is None else pending.after_s
        if self._after_s and not asks:
            self._after_s = max(self._after_s, SLOW_S)
        self._stored = asyncio.Event()
        # Answers since the last look, and those that waited already then.
        self._fresh: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._stale: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._arrived = asyncio.Event()
        # A waiting answer must never be written after the execution that it became.
        self._turn = asyncio.Lock()

    def note(self, work: WorkItem, answer: Answer) -> asyncio.Event | None:
        """Note an answer of the target; the event to wait for where the answer must be stored first."""
        if not isinstance(answer, Output):
            return None
        self._fresh[work.position, work.repetition] = (work, answer)
        self._arrived.set()
        return None if self._after_s else self._stored

    async def hand_on(self, executions: Sequence[Execution]) -> None:
        """Hand finished executions to the sink."""
        async with self._turn:
            for waiting in (self._stale, self._fresh):
                if waiting:
                    for execution in executions:
                        waiting.pop((execution.position, execution.repetition), None)
            await self._threads.call(self._sink, redact_marks(executions, self._secrets))

    async def store_regularly(self) -> None:
        """Store answers that wait for too long, until cancelled."""
        while True:
            await self._arrived.wait()
            await asyncio.sleep(self._after_s / 2)
            async with self._turn:
                if not self._after_s:
                    self._stale, self._fresh = {**self._stale, **self._fresh}, {}
                await self._store(self._stale)
                self._stale, self._fresh = self._fresh, {}
                if not self._stale:
                    self._arrived.clear()

    async def store_all(self) -> None:
        """Store every answer that waits."""
        async with self._turn:
            waiting, self._stale, self._fresh = {**self._stale, **self._fresh}, {}, {}
            await self._store(waiting)

    async def _store(self, waiting: Mapping[tuple[int, int], tuple[WorkItem, Output]]) -> None:
        stored, self._stored = self._stored, asyncio.Event()
        if self._pending is not None and waiting:
            executions = [self._unmarked(work, answer) for work, answer in waiting.values()]
            await self._threads.call(self._pending.sink, executions)
        stored.set()

    def _unmarked(self, work: WorkItem, answer: Output) -> Execution:
        marks = work.marks or (None,) * self._metrics
        return finish_work(work, answer, tuple(_NOT_MARKED if mark is None else mark for mark in marks))


def redact_marks(executions: Sequence[Execution], secrets: Secrets) -> Sequence[Execution]:
    """Executions without secrets in the messages of metrics that failed."""
    return [
        msgspec.structs.replace(execution, marks=tuple(_redact_mark(mark, secrets) for mark in execution.marks))
        if [mark for mark in execution.marks if type(mark) is Unscored and mark.cause == "metric_failed"]
        else execution
        for execution in executions
    ]


def _redact_mark(mark: Mark, secrets: Secrets) -> Mark:
    if not isinstance(mark, Unscored):
        return mark
    return msgspec.structs.replace(mark, message=secrets.redact(mark.message, shapes=True))
