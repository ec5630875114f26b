"""What every desk of a gateway shares."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal

import msgspec

from deemster.errors import Fault
from deemster.model.budget import Budget
from deemster.model.cache import Cache
from deemster.records import Usage
from deemster.records.usage import added

_MOST_FAULTS = 1000


class Planned(msgspec.Struct, kw_only=True):
    """What a dry run would have sent.

    Attributes:
        calls: Distinct requests that neither cache nor recording answers.
        prompt_tokens: Tokens sent, estimated at 4 bytes each.
        completion_tokens: Tokens received, at most.
        cost_usd: What that costs at most; None where a price is unknown.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)


class Account:
    """The usage of one role, added up as it comes."""

    def __init__(self) -> None:
        self._total: Usage | None = None
        self._recent: list[Usage] = []

    def add(self, usage: Usage | None) -> None:
        """Count the usage of one reply."""
        if usage is not None:
            self._recent.append(usage)
            # Adding many at once costs a fraction of adding each to a total.
            if len(self._recent) >= 1024:
                self._total = self.total

    @property
    def total(self) -> Usage | None:
        """Everything counted so far; None where that is nothing."""
        if self._recent:
            parts = self._recent if self._total is None else [self._total, *self._recent]
            self._total, self._recent = added(parts), []
        return self._total


class Rules:
    """What every desk of a gateway shares.

    Args:
        cache: Answers kept on disk.
        budget: What may be spent.
        elapsed_s: The clock.
        sleep: Waits on that clock.
        measures: Whether the clock's spans are real, so that latencies can be reported.
        seed: For jitter.
        offline: Whether only models that reach no network may be asked.
        dry_run: Whether requests are counted and not sent.
        on_stop: Called once with the reason when no further request makes sense.

    Attributes:
        faults: Requests that could not be made because of how the run is set up.
        halted: Why nothing further is sent, or None.
    """

    def __init__(
        self,
        *,
        cache: Cache | None,
        budget: Budget | None,
        elapsed_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        measures: bool,
        seed: int,
        offline: bool,
        dry_run: bool,
        on_stop: Callable[[str], None] | None,
    ) -> None:
        self.cache, self.budget = cache, budget
        self.elapsed_s, self.sleep, self.measures = elapsed_s, sleep, measures
        self.seed, self.offline, self.dry_run = seed, offline, dry_run
        self.faults: list[Fault] = []
        self.halted: str | None = None
        self._on_stop = on_stop

    def refuse(self, message: str) -> None:
        """Note a request that cannot be made, and ask the run to stop.

        Args:
            message: Which one, why, and what to do.
        """
        fault = Fault(message)
        if fault not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)
        self.stop(message)

    def stop(self, reason: str) -> None:
        """Ask the run to stop, once."""
        if self._on_stop is not None:
            on_stop, self._on_stop = self._on_stop, None
            on_stop(reason)
