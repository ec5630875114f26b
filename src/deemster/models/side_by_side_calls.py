"""What runs share that go on side by side in one process: limits, budget, caches, and each question asked once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget, UsageBound
from deemster.models.clock import Clock, span_clock
from deemster.models.model_roles import Role
from deemster.models.rate_limiter import RateLimiter
from deemster.models.shared_calls import CallBudget, CallLimiter, Claim
from deemster.records import Answer


class _LentCache(Cache):
    """A cache that several gateways use; none of them closes it. What is garbage closes itself."""

    def close(self) -> None:
        """Leave it open for the others."""


class _LentLimiter(RateLimiter):
    """A rate limiter that several runs share. Requests of one that is halted wait, too, until they are next."""

    def let_all_pass(self) -> None:
        """Keep the order: others wait too."""

    def close(self) -> None:
        """Leave it open for the others."""


class SideBySideCalls:
    """What the gateways of several runs share in one process. It belongs to the running event loop.

    Args:
        roles: The models by role, which are the same for all.
        clock: Paces the limits.
        cache: The file that keeps answers; None for none.
        budget: What all of them together may spend; None for no limit.

    Attributes:
        keeps_clients: True: all ask by the same clients.
        cache: Answers kept on disk; None for none.
        answers: Answers that no file keeps.
        budget: What all of them together may spend.

    Raises:
        ConfigurationError: The cache cannot be opened.
    """

    keeps_clients = True

    def __init__(self, roles: Mapping[str, Role], *, clock: Clock, cache: Any, budget: Budget | None) -> None:
        self._roles, self._clock = roles, clock
        self._limiters: dict[str, _LentLimiter] = {}
        self._runs: set[str | None] = set()
        self._spendings: list[Budget] = []
        self._asking: dict[bytes, asyncio.Future[Answer | None]] = {}
        self.cache: Cache | None = None if cache is None else _LentCache(cache)
        self.answers: Cache = _LentCache(None)
        self.budget = budget

    def join(self, run: str) -> None:
        """Note what identifies the calls of a run."""
        self._runs.add(run)

    def is_beside(self, run: str | None) -> bool:
        """Whether calls are those of another of the runs."""
        return run in self._runs

    def share_budget(self, spending: Budget | None) -> CallBudget | None:
        """Where a run sets money and tokens aside.

        Args:
            spending: Counts what the run spends of it; what it has spent before is spent for all.
        """
        if self.budget is None or spending is None:
            return None
        self.budget.charge(spending.spent)
        self._spendings.append(spending)
        return _RunBudget(self.budget, spending, self._spendings)

    def limiter(self, name: str) -> CallLimiter:
        """The rate limiter of a role."""
        if name not in self._limiters:
            role, clock = self._roles[name], self._clock
            low, high = role.bounds
            self._limiters[name] = _LentLimiter(
                low, high, rpm=role.rpm, tpm=role.tpm, elapsed_s=span_clock(clock), sleep=clock.sleep
            )
        return self._limiters[name]

    async def claim(self, key: bytes) -> Claim:
        """Wait for the answer to a question that another run asks; without one, this run is to ask it."""
        while (asking := self._asking.get(key)) is not None:
            answer = await asyncio.shield(asking)
            if answer is not None:
                return Claim(answer)
        self._asking[key] = asyncio.get_running_loop().create_future()
        return Claim()

    def keep(self, key: bytes, answer: Answer) -> None:
        """Give the answer to a question to all who wait for it."""
        self._end_claim(key, answer)

    def release(self, key: bytes) -> None:
        """Let another run ask a question that brought no answer."""
        self._end_claim(key, None)

    def _end_claim(self, key: bytes, answer: Answer | None) -> None:
        asking = self._asking.pop(key, None)
        if asking is not None:
            asking.set_result(answer)


class _RunBudget:
    """A budget that several runs share, and what one of them spends of it.

    Args:
        common: What all of them may spend.
        spending: Counts what this one spends.
        spendings: Those of all of them: the budget that stops one stops all.
    """

    def __init__(self, common: Budget, spending: Budget, spendings: Sequence[Budget]) -> None:
        self._common, self._spending, self._spendings = common, spending, spendings

    @property
    def usd(self) -> Decimal | None:
        """US dollars that must not be passed; None for no limit."""
        return self._common.usd

    @property
    def exhausted(self) -> str | None:
        """Why no call is made any more, or None."""
        return self._common.exhausted

    async def reserve(self, bound: UsageBound) -> bool:
        """Set aside the most a call may use; False where the budget is exhausted."""
        is_reserved = await self._common.reserve(bound)
        if not is_reserved:
            for spending in self._spendings:
                spending.exhausted = self._common.exhausted
        return is_reserved

    def settle(self, bound: UsageBound, used: UsageBound) -> None:
        """Replace what a call reserved by what it used."""
        self._common.settle(bound, used)
        self._spending.charge(used)

    def charge(self, used: UsageBound) -> None:
        """Count what was used without being set aside first."""
        self._common.charge(used)
        self._spending.charge(used)
