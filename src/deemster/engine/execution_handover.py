"""Hands finished executions to their sink, and stores answers that wait for their marks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from deemster.engine.work_items import Answer, WorkItem
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution, Mark, Output, Unscored

Sink: TypeAlias = Callable[[Sequence[Execution]], None]
# Metrics that ask no model mark an answer at once; only a slow metric lets answers wait.
SLOW_S = 1.0
_NOT_MARKED = Unscored("not_run", "The run ended before this was scored.")


class PendingStorage(NamedTuple):
    """Where answers are stored that are not marked yet, so that a killed run need not ask for them again.

    Attributes:
        sink: Takes them as executions whose missing marks are `not_run`; the finished executions replace them.
        after_s: How long an answer may wait for its judges before it is stored. At 0 every answer is stored at
            once, and its worker waits for that: a kill loses no more answers than there are calls under way.
    """

    sink: Sink
    after_s: float


# Answers that wait for their marks are stored nowhere.
NO_PENDING_STORAGE = PendingStorage(lambda _: None, 0.0)


class ExecutionHandover:
    """Hands finished executions to the sink, and stores answers that wait for their marks; one call at a time.

    Args:
        sink: Takes finished executions.
        pending: Stores answers that wait.
        metrics: How many metrics there are.
        threads: Where the sinks are called.
        asks: Whether models are asked for marks.
        secrets: Keys that no mark may contain.
    """

    def __init__(
        self,
        sink: Sink,
        pending: PendingStorage,
        *,
        metrics: int,
        threads: WorkerThreads,
        asks: bool,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._sink = sink
        self._pending = pending
        self._threads = threads
        self._metrics = metrics
        self._secrets = secrets

        self._after_s = pending.after_s
        if self._after_s and not asks:
            self._after_s = max(self._after_s, SLOW_S)

        # Answers since the last look, and those that waited already then.
        self._fresh: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._stale: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._arrived = asyncio.Event()
        self._stored = asyncio.Event()
        # A waiting answer must never be written after the execution that it became.
        self._turn = asyncio.Lock()

    def note(self, work: WorkItem, answer: Answer) -> asyncio.Event | None:
        """Note an answer of the target; the event to wait for where the answer must be stored first."""
        if self._pending is NO_PENDING_STORAGE or not isinstance(answer, Output):
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
                    self._stale |= self._fresh
                    self._fresh = {}
                await self._store(self._stale)

                self._stale = self._fresh
                self._fresh = {}
                if not self._stale:
                    self._arrived.clear()

    async def store_all(self) -> None:
        """Store every answer that waits."""
        async with self._turn:
            waiting = {**self._stale, **self._fresh}
            self._stale = {}
            self._fresh = {}
            await self._store(waiting)

    async def _store(self, waiting: Mapping[tuple[int, int], tuple[WorkItem, Output]]) -> None:
        # Answers that come from now on wait for the next time.
        stored = self._stored
        self._stored = asyncio.Event()

        if waiting:
            executions = [self._unmarked(work, answer) for work, answer in waiting.values()]
            await self._threads.call(self._pending.sink, executions)
        stored.set()

    def _unmarked(self, work: WorkItem, answer: Output) -> Execution:
        marks = work.marks or (None,) * self._metrics
        return work.finish(answer, tuple(_NOT_MARKED if mark is None else mark for mark in marks))


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
