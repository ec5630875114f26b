"""Calling a live target: so many calls at once, each within its time, what it raises a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.clock import Clock
from deemster.models.secret_redaction import Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Invocation, Output, TargetFailure, Usage
from deemster.runs._score_batch import Answer, AnsweredBatch, WorkItem
from deemster.runs._worker_pool import worker_pool
from deemster.runs.run_plan import LiveTarget, Plan
from deemster.runs.stop_request import Stop

BATCH = 512
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Output).decode


class TargetCaller:
    """Calls a target for every piece of work whose answer is not known.

    Args:
        plan: The run.
        target: What is called.
        clock: Measures how long it takes.
        stop: Asks the run to stop.
        note: Told every answer as it comes; says what is to be waited for before the next call, if anything.
    """

    def __init__(
        self,
        plan: Plan,
        target: LiveTarget,
        *,
        clock: Clock,
        stop: Stop,
        note: Callable[[WorkItem, Answer], asyncio.Event | None] | None = None,
    ) -> None:
        self._target, self._clock, self._stop, self._note = target, clock, stop, note
        self._secrets = plan.secrets
        own: int | None = getattr(target, "concurrency", None)
        self._limit = plan.concurrency if own is None else own
        limits = (plan.target_timeout_s, getattr(target, "timeout_s", None))
        self._timeout_s: float | None = min((limit for limit in limits if limit is not None), default=None)
        self._threads = WorkerThreads("deemster-target", at_once=self._limit)
        self._opening: asyncio.Task[None] | None = None
        self._is_open = not hasattr(target, "open")

    async def call(self, works: Iterator[WorkItem], answered: asyncio.Queue[AnsweredBatch | None]) -> None:
        """Hand on every piece of work with its answer, in batches, as they come; then None.

        Args:
            works: What is to be done.
            answered: Takes the batches.
        """
        finished: asyncio.Queue[tuple[WorkItem, Answer] | None] = asyncio.Queue(maxsize=BATCH // 2)
        try:
            async with worker_pool(self._stop) as pool:
                collecting = pool.serve(_collect(finished, answered))
                if (halt := getattr(self._target, "halt", None)) is not None:
                    self._stop.call_in(asyncio.get_running_loop(), lambda: halt(self._stop.reason or "stopped"))
                await pool.for_each(works, partial(self._call, finished), workers=self._limit)
                await finished.put(None)
                await collecting
        finally:
            self._threads.close()
            await self._closed()

    async def _call(self, finished: asyncio.Queue[tuple[WorkItem, Answer] | None], work: WorkItem) -> None:
        """Call the target for one piece of work, and hand its answer on."""
        answer = await self._answer(work) if work.answer is None else work.answer
        # A target that held the call back was not asked: the work is not done.
        if answer is None:
            return
        kept = None
        if work.answer is None:
            if self._secrets or isinstance(answer, TargetFailure):
                answer = redact_answer(answer, self._secrets)
            if self._note is not None:
                kept = self._note(work, answer)
        await finished.put((work, answer))
        if kept is not None:
            await kept.wait()

    async def _answer(self, work: WorkItem) -> Answer | None:
        if not self._is_open:
            await self._opened()
        invocation = Invocation(work.sample.id, work.sample.input, work.repetition)
        started = self._clock.elapsed_s()
        with UserCodeGuard() as caught:
            if self._timeout_s is None:
                output = await self._called(invocation)
            else:
                async with asyncio.timeout(self._timeout_s) as limit:
                    output = await self._called(invocation)
            return _timed(output, started, self._clock.elapsed_s()) if isinstance(output, Output) else output
        if self._timeout_s is not None and limit.expired():
            return TargetFailure(f"The target did not answer within {self._timeout_s:g} s.")
        return TargetFailure(caught.message)

    async def _called(self, invocation: Invocation) -> Answer | None:
        """Call the target; a cancellation that nobody asked this run for is a failure of the target's own.

        Raises:
            RuntimeError: Something inside the target was cancelled.
        """
        try:
            if self._target.is_async:
                return await self._target.call_async(invocation)
            return await self._threads.call(self._target.call, invocation)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            raise RuntimeError("The target was cancelled from within.") from None

    async def _opened(self) -> None:
        target: Any = self._target
        if self._opening is None:
            self._opening = asyncio.ensure_future(target.open(clock=self._clock))
        await asyncio.shield(self._opening)
        self._is_open = True

    async def _closed(self) -> None:
        close = getattr(self._target, "close", None)
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
        # The answers are there: what closing raises changes none of them.
        if close is not None:
            with UserCodeGuard():
                await close()


async def _collect(
    finished: asyncio.Queue[tuple[WorkItem, Answer] | None], answered: asyncio.Queue[AnsweredBatch | None]
) -> None:
    while (first := await finished.get()) is not None:
        batch = [first]
        while len(batch) < BATCH and not finished.empty():
            further = finished.get_nowait()
            if further is None:
                finished.put_nowait(None)
                break
            batch.append(further)
        await answered.put(AnsweredBatch([work for work, _ in batch], [answer for _, answer in batch]))
    await answered.put(None)


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


def redact_answer(answer: Output | TargetFailure, secrets: Secrets) -> Output | TargetFailure:
    """What a target said, without secrets; a failure also without what only looks like one.

    Args:
        answer: What it said.
        secrets: The keys that the run knows.

    >>> hidden_answer(TargetFailure("401 for Bearer abcdef123456"), Secrets()).message
    '401 for Bearer [removed]'
    """
    if isinstance(answer, TargetFailure):
        return msgspec.structs.replace(answer, message=secrets.redact(answer.message, shapes=True))
    if not secrets:
        return answer
    try:
        body = _encode(answer).decode()
    except UnicodeEncodeError:
        # Text that is no valid Unicode is marked as such, and kept.
        return msgspec.structs.replace(answer, text=secrets.redact(answer.text))
    clean = secrets.redact(body)
    return answer if clean == body else _decode(clean)
