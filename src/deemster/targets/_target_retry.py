"""Retries of target calls that fail, with the backoff of model calls."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from deemster.errors import ConfigurationError
from deemster.models.clock import Clock, SystemClock
from deemster.models.model_client import ModelFailure
from deemster.models.model_roles import Role
from deemster.models.retry_policy import Attempts, GiveUp, RetryPolicy
from deemster.records import Invocation, Output, TargetFailure
from deemster.records.output import elapsed_ms, with_latency

Answer: TypeAlias = Output | TargetFailure


class TargetRetry:
    """Makes a call, and repeats it where it fails, with the backoff of model calls.

    Args:
        retries: How often a failed call is made again.
        timeout_s: The longest attempt; None for as long as it takes.
        concurrency: How many calls may be under way; None for as many as the run says.

    Raises:
        ConfigurationError: A setting is out of range.
    """

    def __init__(self, *, retries: int, timeout_s: float | None, concurrency: int | None) -> None:
        try:
            Role(
                client=None,
                retries=retries,
                timeout_s=60.0 if timeout_s is None else timeout_s,
                concurrency=1 if concurrency is None else concurrency,
            )
            if type(concurrency) not in (int, type(None)):
                raise ValueError(f"`concurrency` is a whole number of at least 1, not {concurrency!r}.")  # noqa: TRY301
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
        self._policy = RetryPolicy(retries, math.inf, math.inf, math.inf)
        self._halted = False
        self._clock: Clock = SystemClock()

    def open(self, clock: Clock | None) -> None:
        """Begin a run, with its clock; the machine's where there is none."""
        self._halted = False
        self._clock = clock or SystemClock()

    def halt(self) -> None:
        """Call nothing again."""
        self._halted = True

    async def answer(self, call: Callable[[], Awaitable[Answer]], invocation: Invocation) -> Answer:
        """What a call comes to, after as many attempts as there may be.

        Args:
            call: Makes one attempt.
            invocation: Tells calls apart, so that their waits do not depend on which fails first.
        """
        key = hashlib.sha256(f"{invocation.repetition}:{invocation.id}".encode("utf-8", "surrogatepass")).digest()
        tries = Attempts(self._policy, seed=0, key=key)
        while True:
            began = self._clock.elapsed_s()
            answer = await call()
            if isinstance(answer, Output):
                return with_latency(answer, elapsed_ms(began, self._clock.elapsed_s()))
            if self._policy.retries == 0:
                return answer
            step = tries.next_step(ModelFailure("transport", answer.message), elapsed_s=0.0)
            if isinstance(step, GiveUp):
                return msgspec.structs.replace(answer, message=step.message)
            if self._halted:
                return answer
            await self._clock.sleep(step.wait_s)
