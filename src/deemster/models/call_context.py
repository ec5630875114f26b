"""What every desk of a gateway shares."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable
from decimal import Decimal

import msgspec

from deemster.errors import Issue
from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget, UsageBound
from deemster.records import Call, Usage
from deemster.records.usage import added, tokens_of

_MOST_FAULTS = 1000
_NOTHING = Decimal(0)


class PlannedCalls(msgspec.Struct, kw_only=True):
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


class UsageTotal:
    """The usage of one role, added up as it comes."""

    def __init__(self) -> None:
        # In one piece, for whoever shows how far a run is may look from another thread.
        self._counted: tuple[Usage | None, list[Usage]] = (None, [])

    def add(self, usage: Usage | None) -> None:
        """Count the usage of one reply."""
        if usage is not None:
            recent = self._counted[1]
            recent.append(usage)
            # Adding many at once costs a fraction of adding each to a total.
            if len(recent) >= 1024:
                self._counted = (self.total, [])

    @property
    def total(self) -> Usage | None:
        """Everything counted so far; None where that is nothing."""
        total, recent = self._counted
        return added(([] if total is None else [total]) + recent)


class CallContext:
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
        run: The run that its calls belong to; None for one that nobody resumes.
        paid: The calls of that run that its budget counts already.

    Attributes:
        scratch: Answers kept while the gateway is open, for roles whose answers no file keeps.
        issues: Requests that could not be made because of how the run is set up.
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
        run: str | None = None,
        paid: Iterable[int] = (),
    ) -> None:
        # Calls are told apart across the processes that a run may take; no report shows their numbers.
        self._first = self._next = secrets.randbits(62) + 1
        self.run = run or f"{self._first:016x}"
        self._paid = set(paid)
        self.scratch = Cache(None)
        self.cache, self.budget = cache, budget
        self.elapsed_s, self.sleep, self.measures = elapsed_s, sleep, measures
        self.seed, self.offline, self.dry_run = seed, offline, dry_run
        self.issues: list[Issue] = []
        self.halted: str | None = None
        self._on_stop = on_stop

    def called(self, usage: Usage) -> Call:
        """A call that was just made."""
        self._next += 1
        return Call(self._next, usage)

    def found(self, kept: Call | None, usage: Usage | None) -> Call | None:
        """The call behind what a file keeps, where this run made it; None where another did.

        Args:
            kept: The call as the file keeps it.
            usage: What it used.
        """
        if kept is None or kept.run != self.run or usage is None:
            return None
        if self.budget is not None and not self._first < kept.id <= self._next and kept.id not in self._paid:
            # An earlier process of this run was killed before what it had paid for was counted.
            self._paid.add(kept.id)
            self.budget.charge(UsageBound(tokens_of(usage, 0), usage.cost_usd or _NOTHING))
        return Call(kept.id, usage)

    def refuse(self, message: str) -> None:
        """Note a request that cannot be made, and ask the run to stop.

        Args:
            message: Which one, why, and what to do.
        """
        issue = Issue(message)
        if issue not in self.issues and len(self.issues) < _MOST_FAULTS:
            self.issues.append(issue)
        self.stop(message)

    def stop(self, reason: str) -> None:
        """Ask the run to stop, once."""
        if self._on_stop is not None:
            on_stop, self._on_stop = self._on_stop, None
            on_stop(reason)
