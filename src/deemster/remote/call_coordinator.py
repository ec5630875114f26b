"""The coordinator of a cluster run: grants the model calls of all workers under one set of limits. It makes none."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget, UsageBound
from deemster.models.call_log import LoggedCall
from deemster.models.rate_limiter import LimiterState, RateLimiter
from deemster.models.shared_calls import Claim
from deemster.records import Answer


class RoleLimits(NamedTuple):
    """What the calls of one role are held to, over all workers.

    Attributes:
        low: The least concurrency, and the first.
        high: The most.
        rpm: Requests a minute.
        tpm: Tokens a minute.
    """

    low: int
    high: int
    rpm: int | None = None
    tpm: int | None = None


class CoordinatorSettings(NamedTuple):
    """What a coordinator is made of.

    Attributes:
        limits: The limits of each role.
        usd: US dollars that must not be passed; None for no limit.
        tokens: Tokens that must not be passed; None for no limit.
        spent: What earlier processes of the run used.
        run: The token of the run.
        paid: The calls that its budget and its log have already.
        answers: The answers of its earlier processes, by the hash of the request.
        lost: Their calls that were paid for and brought no answer.
        cache: The file of cached answers; None for none.
    """

    limits: Mapping[str, RoleLimits]
    usd: Decimal | None = None
    tokens: int | None = None
    spent: UsageBound = UsageBound()
    run: str = ""
    paid: Iterable[int] = ()
    answers: Mapping[bytes, Answer] = {}
    lost: Mapping[bytes, LoggedCall] = {}
    cache: Path | None = None


class CoordinatorState(NamedTuple):
    """How far a coordinator is.

    Attributes:
        spent: What settled calls used.
        exhausted: Why the budget allows no more calls, or None.
        limits: What the rate limiter of each role allows.
        notes: What a person should know about the cache.
    """

    spent: UsageBound
    exhausted: str | None
    limits: Mapping[str, LimiterState]
    notes: Sequence[str]


class _WorkerCalls:
    """What one worker was granted and has not given back."""

    def __init__(self) -> None:
        self.entered: Counter[str] = Counter()
        self.reserved: list[UsageBound] = []
        self.claimed: set[bytes] = set()


class CallCoordinator:
    """Grants model calls to the workers of a run: requests and tokens a minute, concurrency, budget, no question twice.

    A worker is known by a name of its own for every part that it runs. What a dead worker was granted is given back by
    `drop`: its calls under way count at the most that they may have used.

    Args:
        settings: Limits, budget, and what earlier processes of the run did.
    """

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._limiters = {
            role: RateLimiter(
                one.low, one.high, rpm=one.rpm, tpm=one.tpm, elapsed_s=time.monotonic, sleep=asyncio.sleep
            )
            for role, one in settings.limits.items()
        }
        # Without limits it only counts.
        self._budget = Budget(usd=settings.usd, tokens=settings.tokens, spent=settings.spent)
        self._run, self._paid = settings.run, set(settings.paid)
        self._lost = dict(settings.lost)
        self._answers = Cache(settings.cache)
        for key, answer in settings.answers.items():
            self._answers.keep(key, answer)
        self._claims: dict[bytes, asyncio.Event] = {}
        self._workers: dict[str, _WorkerCalls] = {}
        self._stopped = asyncio.Event()
        self._reason = ""

    async def reserve(self, worker: str, bound: UsageBound) -> str | None:
        """Set aside the most a call may use; why not, where the budget is exhausted."""
        if not await self._budget.reserve(bound):
            return self._budget.exhausted or ""
        if worker in self._workers:
            self._workers[worker].reserved.append(bound)
        else:
            self._budget.settle(bound, UsageBound())
        return None

    async def enter(self, worker: str, role: str, tokens: float, first: bool) -> int:  # noqa: FBT001 - sent by position
        """Wait for leave to send a request; how often concurrency was halved before."""
        limiter = self._limiters[role]
        entered = await limiter.enter(tokens, first=first)
        if worker in self._workers:
            self._workers[worker].entered[role] += 1
        else:
            limiter.leave(tokens)
        return entered

    async def claim(self, worker: str, key: bytes) -> Claim:
        """Learn the answer to a question, or that this worker is to ask it."""
        while (answer := self._answers.answer(key)) is None:
            asked = self._claims.get(key)
            if asked is None:
                self._claims[key] = asyncio.Event()
                if worker in self._workers:
                    self._workers[worker].claimed.add(key)
                return Claim(lost=self._lost.pop(key, None))
            await asked.wait()
        call = answer.call
        is_paid = call is not None and call.run == self._run and call.id in self._paid
        if call is not None:
            # The worker that is told so counts the call.
            self._paid.add(call.id)
        return Claim(answer, is_paid)

    async def post(self, worker: str, messages: Sequence[tuple[Any, ...]]) -> None:
        """Take messages of a worker, in order: each is the name of a method below and what it is given."""
        if worker in self._workers:
            for name, *given in messages:
                getattr(self, f"_{name}")(self._workers[worker], *given)

    async def begin(self, worker: str) -> None:
        """Know a worker from here on."""
        self._workers[worker] = _WorkerCalls()

    async def drop(self, worker: str, died: bool) -> None:  # noqa: FBT001 - sent by position
        """Take back what a worker was granted, because its part has ended or the worker is dead."""
        calls = self._workers.pop(worker, None)
        if calls is None:
            return
        for role in calls.entered.elements():
            self._limiters[role].leave()
        sent = calls.entered.total() if died else 0
        # Only a call that had entered may have been sent: as many of the largest reservations count at the most.
        calls.reserved.sort(key=lambda bound: (bound.usd, bound.tokens), reverse=True)
        for place, bound in enumerate(calls.reserved):
            self._budget.settle(bound, bound if place < sent else UsageBound())
        for key in tuple(calls.claimed):
            self._release(calls, key)

    async def stop(self, reason: str) -> None:
        """Ask every worker to stop."""
        self._reason = self._reason or reason
        self._stopped.set()

    async def wait_for_stop(self) -> str:
        """Wait until the run is asked to stop; why."""
        await self._stopped.wait()
        return self._reason

    async def state(self) -> CoordinatorState:
        """How far it is."""
        limits = {role: limiter.state for role, limiter in self._limiters.items()}
        return CoordinatorState(self._budget.spent, self._budget.exhausted, limits, list(self._answers.notes))

    async def close(self) -> CoordinatorState:
        """Close the cache; how far it came."""
        state = await self.state()
        self._answers.close()
        return state

    def _leave(self, worker: _WorkerCalls, role: str, unused: float) -> None:
        worker.entered[role] -= 1
        self._limiters[role].leave(unused)

    def _settle(self, worker: _WorkerCalls, bound: UsageBound, used: UsageBound) -> None:
        worker.reserved.remove(bound)
        self._budget.settle(bound, used)

    def _charge(self, _: _WorkerCalls, used: UsageBound) -> None:
        self._budget.charge(used)

    def _record_answer(self, _: _WorkerCalls, role: str) -> None:
        self._limiters[role].record_answer()

    def _record_limit(self, _: _WorkerCalls, role: str, entered: int, wait_s: float) -> None:
        self._limiters[role].record_limit(entered, wait_s=wait_s)

    def _keep(self, worker: _WorkerCalls, key: bytes, answer: Answer) -> None:
        self._answers.keep(key, answer)
        if answer.call is not None:
            self._paid.add(answer.call.id)
        self._release(worker, key)

    def _release(self, worker: _WorkerCalls, key: bytes) -> None:
        worker.claimed.discard(key)
        asked = self._claims.pop(key, None)
        if asked is not None:
            asked.set()
