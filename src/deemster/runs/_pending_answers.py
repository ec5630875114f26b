"""Keeping the answers of a live target that are not marked yet, so that nobody has to ask for them again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution, Output, Unscored
from deemster.runs._execution_batch import Answer, WorkItem, finish_work
from deemster.runs._hide_secrets import redact_marks

Sink: TypeAlias = Callable[[Sequence[Execution]], None]
# Marks without a model are made at once, batch by batch; only a metric that takes its time lets answers wait for long.
SLOW_S = 1.0
_WAITS = Unscored("not_run", "The run ended before this was marked.")


class PendingStorage(NamedTuple):
    """Where answers are kept that are not marked yet.

    Attributes:
        sink: Takes them as executions whose missing marks are `not_run`; whoever finishes them replaces them.
        after_s: How long an answer may wait for its judges before it is kept. At 0 every answer is kept at once, and
            whoever asked for it waits until it is: no more answers can be lost than calls are under way.
    """

    sink: Sink
    after_s: float


class ExecutionHandover:
    """Hands on finished executions, and answers that wait for their marks; one call of a sink at a time.

    Args:
        sink: Takes finished executions.
        hold: Takes answers that wait; None where nobody wants them.
        metrics: How many metrics there are.
        threads: Where the sinks are called.
        asks: Whether models are asked for marks.
        secrets: What no mark may tell.
    """

    def __init__(
        self,
        sink: Sink,
        hold: PendingStorage | None,
        *,
        metrics: int,
        threads: WorkerThreads,
        asks: bool,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        self._sink, self._hold, self._metrics, self._threads, self._secrets = sink, hold, metrics, threads, secrets
        self._after_s = 0.0 if hold is None else hold.after_s
        if self._after_s and not asks:
            self._after_s = max(self._after_s, SLOW_S)
        self._kept = asyncio.Event()
        # Those that came since somebody last looked, and those that waited already then.
        self._fresh: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._stale: dict[tuple[int, int], tuple[WorkItem, Output]] = {}
        self._some = asyncio.Event()
        # What waits must never be written after what it was finished to.
        self._turn = asyncio.Lock()

    def note(self, work: WorkItem, answer: Answer) -> asyncio.Event | None:
        """Take notice of what the target has just said; what is set once that is kept, where it must be waited for."""
        if not isinstance(answer, Output):
            return None
        self._fresh[work.position, work.repetition] = (work, answer)
        self._some.set()
        return None if self._after_s else self._kept

    async def hand_on(self, executions: Sequence[Execution]) -> None:
        """Hand finished executions to the sink."""
        async with self._turn:
            for waiting in (self._stale, self._fresh):
                if waiting:
                    for execution in executions:
                        waiting.pop((execution.position, execution.repetition), None)
            await self._threads.call(self._sink, redact_marks(executions, self._secrets))

    async def keep_regularly(self) -> None:
        """Keep what waits for longer than it may, until cancelled."""
        while True:
            await self._some.wait()
            await asyncio.sleep(self._after_s / 2)
            async with self._turn:
                if not self._after_s:
                    self._stale, self._fresh = {**self._stale, **self._fresh}, {}
                await self._keep(self._stale)
                self._stale, self._fresh = self._fresh, {}
                if not self._stale:
                    self._some.clear()

    async def keep(self) -> None:
        """Keep everything that waits."""
        async with self._turn:
            waiting, self._stale, self._fresh = {**self._stale, **self._fresh}, {}, {}
            await self._keep(waiting)

    async def _keep(self, waiting: Mapping[tuple[int, int], tuple[WorkItem, Output]]) -> None:
        kept, self._kept = self._kept, asyncio.Event()
        if self._hold is not None and waiting:
            executions = [self._unmarked(work, answer) for work, answer in waiting.values()]
            await self._threads.call(self._hold.sink, executions)
        kept.set()

    def _unmarked(self, work: WorkItem, answer: Output) -> Execution:
        marks = work.marks or (None,) * self._metrics
        return finish_work(work, answer, tuple(_WAITS if mark is None else mark for mark in marks))
