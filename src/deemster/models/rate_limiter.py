"""The rate limiter: adaptive concurrency, requests a minute and tokens a minute of one role."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

MINUTE_S = 60.0
_EPSILON = 1e-9
# How much concurrency grows with every answer until the first 429.
_FIRST_GROWTH = 3.0


class TokenBucket:
    """A token bucket that never lets more than its minute's allowance pass in any minute.

    A full bucket holds a small part of the allowance, and the rest flows in evenly. An amount larger than a full bucket
    waits until the bucket is full, and leaves a debt.

    Args:
        per_minute: The allowance.
        burst: What may pass at once.
        now: The time on the caller's clock.
    """

    def __init__(self, per_minute: float, *, burst: float, now: float) -> None:
        self.burst = burst
        self.rate = (per_minute - burst) / MINUTE_S
        self.level = burst
        self._at = now

    def wait_s(self, amount: float, now: float) -> float:
        """How long until an amount may pass."""
        if now > self._at:
            self.level = min(self.burst, self.level + (now - self._at) * self.rate)
            self._at = now
        missing = min(amount, self.burst) - self.level
        return 0.0 if missing <= _EPSILON * self.burst else missing / self.rate

    def take(self, amount: float) -> None:
        """Take an amount; a negative one gives back what was taken too much."""
        self.level = min(self.burst, self.level - amount)


def requests_bucket(per_minute: int, now: float) -> TokenBucket:
    """The bucket of a number of requests a minute: a tenth of a second's worth may pass at once, at least one."""
    burst = max(1.0, per_minute / 600)
    # One request may stand at each end of a minute, so a burst of 1 leaves the whole rate.
    return TokenBucket(per_minute + 1, burst=burst, now=now)


def tokens_bucket(per_minute: int, now: float) -> TokenBucket:
    """The bucket of a number of tokens a minute: a tenth of them may pass at once."""
    return TokenBucket(per_minute, burst=per_minute / 10, now=now)


class LimiterState(NamedTuple):
    """What the rate limiter of a role allows at the moment.

    Attributes:
        concurrency: How many requests may be under way.
        under_way: How many are under way.
        waiting: How many wait for leave.
    """

    concurrency: int
    under_way: int
    waiting: int


class RateLimiter:
    """Limits the requests of one role: adaptive concurrency, requests and tokens a minute.

    Concurrency starts at its low bound. Until the first 429 it grows by three with every answer, which makes it four
    times as much each round. A 429 halves it, and from then on it grows by one a round. One burst of 429 halves it
    once. A machine that runs out of file descriptors halves it too, and then below its low bound.

    Args:
        low: The least concurrency, and the first.
        high: The most.
        rpm: Requests a minute.
        tpm: Tokens a minute.
        elapsed_s: The clock.
        sleep: Waits on that clock.
    """

    def __init__(
        self,
        low: int,
        high: int,
        *,
        rpm: int | None = None,
        tpm: int | None = None,
        elapsed_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._low, self._high = low, high
        self._elapsed_s, self._sleep = elapsed_s, sleep
        self._limit = float(low)
        self._is_slow_start = True
        self._reductions = 0
        self._under_way = 0
        self._lets_all_pass = False
        self._waiting: deque[tuple[asyncio.Future[None], float]] = deque()
        self._held_until = float("-inf")
        self._waker: asyncio.Task[None] | None = None
        self._wakes_at = float("inf")
        now = elapsed_s()
        self._requests = None if rpm is None else requests_bucket(rpm, now)
        self._tokens = None if tpm is None else tokens_bucket(tpm, now)

    @property
    def state(self) -> LimiterState:
        """What it allows at the moment. Safe in any thread."""
        return LimiterState(
            int(self._limit), self._under_way, sum(not future.done() for future, _ in tuple(self._waiting))
        )

    @property
    def counts_tokens(self) -> bool:
        """Whether the number of tokens matters."""
        return self._tokens is not None

    @property
    def reductions(self) -> int:
        """How often concurrency was halved, for `record_limit`."""
        return self._reductions

    def try_enter(self, tokens: float = 0.0) -> bool:
        """Enter a request if it may be sent at once.

        Args:
            tokens: How many it takes, by estimate.

        Returns:
            Whether it entered.
        """
        if self._lets_all_pass or (not self._waiting and self._wait_s(tokens) == 0.0):
            self._take(tokens)
            return True
        return False

    async def enter(self, tokens: float = 0.0, *, first: bool = True) -> int:
        """Wait for leave to send a request.

        Args:
            tokens: How many it takes, by estimate.
            first: Whether this is a call's first attempt. A later attempt goes before all calls that have not begun.

        Returns:
            How often concurrency was halved before, for `record_limit`.
        """
        if self.try_enter(tokens):
            return self._reductions
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if first:
            self._waiting.append((future, tokens))
        else:
            self._waiting.appendleft((future, tokens))
        self._serve()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                if self._requests is not None:
                    self._requests.take(-1.0)
                self.leave(tokens)
            else:
                future.cancel()
                self._serve()
            raise
        return self._reductions

    def leave(self, unused: float = 0.0) -> None:
        """End a request that had entered.

        Args:
            unused: Tokens that were taken and not used; negative where it used more.
        """
        self._under_way -= 1
        if self._tokens is not None and unused:
            self._tokens.take(-unused)
        if self._waiting:
            self._serve()

    def record_answer(self) -> None:
        """Allow more, because a request was answered."""
        if self._limit < self._high:
            self._limit = min(self._high, self._limit + (_FIRST_GROWTH if self._is_slow_start else 1.0 / self._limit))

    def record_limit(self, entered: int, *, wait_s: float) -> None:
        """Allow fewer after a 429, and none before the wait that the provider asks for is over.

        Args:
            entered: What `enter` returned for it.
            wait_s: How long the provider asks to wait.
        """
        self._held_until = max(self._held_until, self._elapsed_s() + wait_s)
        if entered == self._reductions:
            self._reductions += 1
            self._is_slow_start = False
            self._limit = max(float(self._low), self._limit / 2)

    def record_exhaustion(self, entered: int) -> None:
        """Allow fewer, down to one, because this machine has no room for the connections.

        Args:
            entered: What `enter` returned for the request.
        """
        self._low = 1
        self.record_limit(entered, wait_s=0.0)

    def let_all_pass(self) -> None:
        """Let all requests pass. The caller has halted, and each request finds that nothing is sent any more."""
        self._lets_all_pass = True
        while self._waiting:
            future, tokens = self._waiting.popleft()
            if not future.done():
                self._take(tokens)
                future.set_result(None)

    def close(self) -> None:
        """Wake no more requests that wait."""
        if self._waker is not None:
            self._waker.cancel()

    def _wait_s(self, tokens: float) -> float:
        """How long until one more request may pass; negative where another must end first."""
        if self._under_way >= int(self._limit):
            return -1.0
        if self._requests is None and self._tokens is None and self._held_until == float("-inf"):
            return 0.0
        now = self._elapsed_s()
        wait_s = max(self._held_until - now, 0.0)
        if self._requests is not None:
            wait_s = max(wait_s, self._requests.wait_s(1.0, now))
        if self._tokens is not None:
            wait_s = max(wait_s, self._tokens.wait_s(tokens, now))
        return wait_s

    def _take(self, tokens: float) -> None:
        self._under_way += 1
        if self._requests is not None:
            self._requests.take(1.0)
        if self._tokens is not None:
            self._tokens.take(tokens)

    def _serve(self) -> None:
        while self._waiting:
            future, tokens = self._waiting[0]
            if future.done():
                self._waiting.popleft()
                continue
            wait_s = self._wait_s(tokens)
            if wait_s > 0.0:
                self._wake_after(wait_s)
            if wait_s != 0.0:
                return
            self._waiting.popleft()
            self._take(tokens)
            future.set_result(None)

    def _wake_after(self, wait_s: float) -> None:
        at = self._elapsed_s() + wait_s
        if self._waker is not None and not self._waker.done():
            if at >= self._wakes_at - _EPSILON:
                return
            # A request that waits less long is at the front, or tokens were given back.
            self._waker.cancel()
        self._wakes_at = at
        self._waker = asyncio.get_running_loop().create_task(self._wake(wait_s))

    async def _wake(self, wait_s: float) -> None:
        await self._sleep(wait_s)
        self._waker = None
        self._serve()
