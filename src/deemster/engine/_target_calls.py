"""Calls a live target: bounded calls at once, each with a timeout; an error is a target failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import msgspec

from deemster.engine.run_plan import LiveTarget, Plan
from deemster.engine.stop_request import Stop
from deemster.engine.turnstile import NO_TURNS, Turns
from deemster.engine.work_items import Answer, AnsweredBatch, WorkItem
from deemster.engine.worker_pool import worker_pool
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.clock import Clock
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Invocation, Output, TargetFailure
from deemster.records.output import elapsed_ms, with_latency

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
        note: Gets every answer as it comes; gives the event to wait for before the next call, if any.
        turns: When the work of a sample may begin.
    """

    def __init__(
        self,
        plan: Plan,
        target: LiveTarget,
        *,
        clock: Clock,
        stop: Stop,
        note: Callable[[WorkItem, Answer], asyncio.Event | None],
        turns: Turns = NO_TURNS,
    ) -> None:
        self._target, self._clock, self._stop, self._note = target, clock, stop, note
        self._turns = turns
        self._secrets, self._first_repetition = plan.secrets, plan.first_repetition
        self._limit = plan.target_concurrency
        limits = (plan.target_timeout_s, getattr(target, "timeout_s", None))
        self._timeout_s: float | None = min((limit for limit in limits if limit is not None), default=None)
        self._threads = WorkerThreads("deemster-target", at_once=self._limit)
        self._opening: asyncio.Task[None] | None = None
        self._is_open = not hasattr(target, "open")

    async def answer_all(self, works: Iterator[WorkItem], answered: asyncio.Queue[AnsweredBatch | None]) -> None:
        """Hand on every piece of work with its answer, in batches, as they come; then None."""
        finished: asyncio.Queue[tuple[WorkItem, Answer] | None] = asyncio.Queue(maxsize=BATCH // 2)
        try:
            async with worker_pool(self._stop) as pool:
                collecting = pool.serve(_collect(finished, answered, self._turns.gather_s))
                if (halt := getattr(self._target, "halt", None)) is not None:
                    self._stop.call_in(asyncio.get_running_loop(), lambda: halt(self._stop.reason or "stopped"))
                await pool.for_each(works, partial(self._call, finished), workers=self._limit)
                await finished.put(None)
                await collecting
        finally:
            self._threads.close()
            if self._opening is not None:
                self._opening.cancel()
                await asyncio.wait([self._opening])
            # All answers are there: an error while closing changes none of them.
            if (close := getattr(self._target, "close", None)) is not None:
                with UserCodeGuard():
                    await close()

    async def _call(self, finished: asyncio.Queue[tuple[WorkItem, Answer] | None], work: WorkItem) -> None:
        """Call the target for one piece of work, and hand its answer on."""
        if not await self._turns.wait(work):
            return
        answer = await self._answer(work) if work.answer is None else work.answer
        # The target was not called, as its circuit is open: the work is not done.
        if answer is None:
            return
        stored = None
        if work.answer is None:
            if self._secrets is not NO_SECRETS or isinstance(answer, TargetFailure):
                answer = redact_answer(answer, self._secrets)
            stored = self._note(work, answer)
        await finished.put((work, answer))
        if stored is not None:
            await stored.wait()

    async def _answer(self, work: WorkItem) -> Answer | None:
        """Call the target; whatever it raises is a failure of the target."""
        if not self._is_open:
            await self._open()
        invocation = Invocation(work.sample.id, work.sample.input, self._first_repetition + work.repetition)
        started = self._clock.elapsed_s()
        with UserCodeGuard() as caught:
            async with asyncio.timeout(self._timeout_s) as limit:
                if self._target.is_async:
                    # A task of its own: a target that cancels its task cancels no worker.
                    output = await asyncio.ensure_future(self._call_async(invocation))
                else:
                    output = await self._threads.call(self._target.call, invocation)
            if isinstance(output, Output):
                return with_latency(output, elapsed_ms(started, self._clock.elapsed_s()))
            return output
        if limit.expired():
            return TargetFailure(f"The target did not answer within {self._timeout_s:g} s.")
        return TargetFailure(caught.message_with_place, caught.traceback)

    async def _call_async(self, invocation: Invocation) -> Answer | None:
        with UserCodeGuard() as caught:
            return await self._target.call_async(invocation)
        return TargetFailure(caught.message_with_place, caught.traceback)

    async def _open(self) -> None:
        target: Any = self._target
        if self._opening is None:
            self._opening = asyncio.ensure_future(target.open(clock=self._clock))
        await asyncio.shield(self._opening)
        self._is_open = True


async def _collect(
    finished: asyncio.Queue[tuple[WorkItem, Answer] | None],
    answered: asyncio.Queue[AnsweredBatch | None],
    gather_s: float,
) -> None:
    while (first := await finished.get()) is not None:
        batch = [first]
        if gather_s:
            await asyncio.sleep(gather_s)
        while len(batch) < BATCH and not finished.empty():
            further = finished.get_nowait()
            if further is None:
                finished.put_nowait(None)
                break
            batch.append(further)
        await answered.put(AnsweredBatch([work for work, _ in batch], [answer for _, answer in batch]))
    await answered.put(None)


def redact_answer(answer: Output | TargetFailure, secrets: Secrets) -> Output | TargetFailure:
    """An answer without secrets; a failure also without text that looks like a secret.

    >>> redact_answer(TargetFailure("401 for Bearer abcdef123456"), Secrets()).message
    '401 for Bearer [removed]'
    """
    if isinstance(answer, TargetFailure):
        trace = answer.traceback
        return TargetFailure(
            secrets.redact(answer.message, shapes=True), None if trace is None else secrets.redact(trace, shapes=True)
        )
    if not secrets:
        return answer
    try:
        body = _encode(answer).decode()
    except UnicodeEncodeError:
        # Invalid Unicode stays as it is: the metrics mark it.
        return msgspec.structs.replace(answer, text=secrets.redact(answer.text))
    clean = secrets.redact(body)
    return answer if clean == body else _decode(clean)
