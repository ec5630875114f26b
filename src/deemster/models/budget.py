"""What a run may spend."""

from __future__ import annotations

import asyncio
from collections import deque
from decimal import Decimal
from typing import NamedTuple

_NOTHING = Decimal(0)


class UsageBound(NamedTuple):
    """The most a call may use."""

    tokens: int = 0
    usd: Decimal = _NOTHING


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
        held: What calls under way may use at most.
        exhausted: Why no call is made any more, or None.
    """

    def __init__(
        self, *, usd: Decimal | None = None, tokens: int | None = None, spent: UsageBound | None = None
    ) -> None:
        self.usd, self.tokens = usd, tokens
        self.spent, self.held = spent or UsageBound(), UsageBound()
        self.exhausted: str | None = None
        self._under_way = 0
        self._waiting: deque[tuple[asyncio.Future[bool], UsageBound]] = deque()

    async def reserve(self, most: UsageBound) -> bool:
        """Set the most a call may use aside; False where the budget is exhausted.

        Args:
            most: The most it may use.
        """
        if not self._waiting and (self.exhausted is not None or self._fits(most) or not self._under_way):
            return self._decided(most)
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((future, most))
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.result():
                self.settle(most, UsageBound())
            else:
                future.cancel()
                self._serve()
            raise

    def charge(self, used: UsageBound) -> None:
        """Count what was used without being set aside first.

        Args:
            used: What was used.
        """
        self.spent = UsageBound(self.spent.tokens + used.tokens, self.spent.usd + used.usd)

    def settle(self, most: UsageBound, used: UsageBound) -> None:
        """Replace what a call reserved by what it used.

        Args:
            most: What it reserved.
            used: What it used.
        """
        self._under_way -= 1
        self.held = UsageBound(self.held.tokens - most.tokens, self.held.usd - most.usd)
        self.charge(used)
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            future, most = self._waiting[0]
            if not future.done():
                if self.exhausted is None and self._under_way and not self._fits(most):
                    return
                future.set_result(self._decided(most))
            self._waiting.popleft()

    def _decided(self, most: UsageBound) -> bool:
        if self.exhausted is None and not self._fits(most):
            self.exhausted = self._reason(most)
        if self.exhausted is not None:
            return False
        self._under_way += 1
        self.held = UsageBound(self.held.tokens + most.tokens, self.held.usd + most.usd)
        return True

    def _fits(self, most: UsageBound) -> bool:
        return (self.usd is None or self.spent.usd + self.held.usd + most.usd <= self.usd) and (
            self.tokens is None or self.spent.tokens + self.held.tokens + most.tokens <= self.tokens
        )

    def _reason(self, most: UsageBound) -> str:
        if self.tokens is not None and self.spent.tokens + most.tokens > self.tokens:
            spent = f"{self.spent.tokens:,} of {self.tokens:,} tokens are spent"
            return f"The budget is exhausted: {spent}, and the next call may take {most.tokens:,}."
        spent = f"{self.spent.usd:.6f} of {self.usd:f} USD are spent"
        return f"The budget is exhausted: {spent}, and the next call may cost {most.usd:.6f}."
