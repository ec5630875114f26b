"""The budget of a run: money and tokens that its calls may spend."""

from __future__ import annotations

import asyncio
from collections import deque
from decimal import Decimal
from typing import NamedTuple

import msgspec

_NOTHING = Decimal(0)


class UsageBound(NamedTuple):
    """An amount of tokens and money: the most a call may use, or what it did use.

    Attributes:
        tokens: Tokens sent and received.
        usd: US dollars.
        estimated_tokens: Of the tokens, those that no provider reported: they count at the most.
        estimated_usd: Of the US dollars, those that no provider reported.
    """

    tokens: int = 0
    usd: Decimal = _NOTHING
    estimated_tokens: int = 0
    estimated_usd: Decimal = _NOTHING

    def plus(self, other: UsageBound) -> UsageBound:
        """Both amounts together."""
        return UsageBound(
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.estimated_tokens + other.estimated_tokens,
            self.estimated_usd + other.estimated_usd,
        )


class Budget:
    """Money and tokens that must not be passed.

    Every call reserves the most it may use before it is sent, and settles for what it did use. A call that does not fit
    waits for those under way to settle; where none is under way, the budget is exhausted and stays so.

    Args:
        usd: US dollars; None for no limit.
        tokens: Tokens sent and received; None for no limit.
        spent: What was used before, where a run goes on.

    Attributes:
        spent: What settled calls used.
        reserved: The most that calls under way may use.
        exhausted: Why no call is made any more, or None.
    """

    def __init__(
        self, *, usd: Decimal | None = None, tokens: int | None = None, spent: UsageBound | None = None
    ) -> None:
        self.usd, self.tokens = usd, tokens
        self.spent, self.reserved = spent or UsageBound(), UsageBound()
        self.exhausted: str | None = None
        self._under_way = 0
        self._waiting: deque[tuple[asyncio.Future[bool], UsageBound]] = deque()

    async def reserve(self, bound: UsageBound) -> bool:
        """Set aside the most a call may use; False where the budget is exhausted.

        Args:
            bound: The most it may use.
        """
        if not self._waiting and (self.exhausted is not None or self._fits(bound) or not self._under_way):
            return self._try_reserve(bound)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, bound))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.settle(bound, UsageBound())
            else:
                future.cancel()
                self._serve()
            raise

    def charge(self, used: UsageBound) -> None:
        """Count what was used without being set aside first.

        Args:
            used: What was used.
        """
        self.spent = self.spent.plus(used)

    def settle(self, bound: UsageBound, used: UsageBound) -> None:
        """Replace what a call reserved by what it used.

        Args:
            bound: What it reserved.
            used: What it used.
        """
        self._under_way -= 1
        self.reserved = UsageBound(self.reserved.tokens - bound.tokens, self.reserved.usd - bound.usd)
        self.charge(used)
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            future, bound = self._waiting[0]
            if not future.done():
                if self.exhausted is None and self._under_way and not self._fits(bound):
                    return
                future.set_result(self._try_reserve(bound))
            self._waiting.popleft()

    def _try_reserve(self, bound: UsageBound) -> bool:
        if self.exhausted is None and not self._fits(bound):
            self.exhausted = self._reason(bound)
        if self.exhausted is not None:
            return False
        self._under_way += 1
        self.reserved = UsageBound(self.reserved.tokens + bound.tokens, self.reserved.usd + bound.usd)
        return True

    def _fits(self, bound: UsageBound) -> bool:
        return (self.usd is None or self.spent.usd + self.reserved.usd + bound.usd <= self.usd) and (
            self.tokens is None or self.spent.tokens + self.reserved.tokens + bound.tokens <= self.tokens
        )

    def _reason(self, bound: UsageBound) -> str:
        if self.tokens is not None and self.spent.tokens + bound.tokens > self.tokens:
            spent = f"{self.spent.tokens:,} of {self.tokens:,} tokens are spent"
            if self.spent.estimated_tokens:
                spent += f" ({self.spent.estimated_tokens:,} by estimate, where no usage was reported)"
            return f"The budget is exhausted: {spent}, and the next call may take {bound.tokens:,}."
        spent = f"{self.spent.usd:.6f} of {self.usd:f} USD are spent"
        if self.spent.estimated_usd:
            spent += f" ({self.spent.estimated_usd:.6f} by estimate, where no usage was reported)"
        return f"The budget is exhausted: {spent}, and the next call may cost {bound.usd:.6f}."


class BudgetEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run was allowed to spend, and where that stopped it.

    Attributes:
        limit_usd: The most US dollars; None for no limit.
        limit_tokens: The most tokens; None for no limit.
        spent_usd: US dollars spent, those of earlier processes of the run included.
        spent_tokens: Tokens spent, likewise.
        estimated_usd: Of the US dollars, those that no provider reported; they count at the most.
        estimated_tokens: Of the tokens, those that no provider reported.
        halted: Whether the budget stopped the run.
        completed: Executions that it did not cut off.
        remaining: The others.
        reason: Why it stopped the run.
    """

    limit_usd: Decimal | None
    limit_tokens: int | None
    spent_usd: Decimal
    spent_tokens: int
    estimated_usd: Decimal = Decimal(0)
    estimated_tokens: int = 0
    halted: bool
    completed: int
    remaining: int
    reason: str | None
