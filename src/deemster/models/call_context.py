"""What the calls of one gateway share: clock, cache, budget, stop, and the usage counted so far."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import NamedTuple, TypeVar

import msgspec

from deemster.errors import ConfigurationError, Issue
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget, UsageBound
from deemster.models.call_log import NO_CALLS, CallLog, LoggedCall, RestoredCalls
from deemster.models.clock import Clock, SystemClock, span_clock
from deemster.models.price import Price
from deemster.models.shared_calls import CallBudget, SharedCalls
from deemster.records import Call, NoAnswer, Usage
from deemster.records.usage import count_tokens, sum_usage

_T = TypeVar("_T")
_MOST_ISSUES = 1000
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

    def add(self, prompt_tokens: int, completion_tokens: int, price: Price | None) -> None:
        """Count one more call."""
        self.calls += 1
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        if price is None or self.cost_usd is None:
            self.cost_usd = None
        else:
            self.cost_usd += price.cost(prompt_tokens, completion_tokens)

    def __add__(self, other: PlannedCalls) -> PlannedCalls:
        costs = self.cost_usd, other.cost_usd
        return PlannedCalls(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost_usd=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
        )


class UsageTotal:
    """The usage of one role, added up as it comes."""

    def __init__(self) -> None:
        # One tuple, because the thread that shows progress reads it while the loop adds to it.
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
        return sum_usage(([] if total is None else [total]) + recent)


class CallContext:
    """What the calls of one gateway, or of one HTTP target, share. It belongs to the running event loop.

    Args:
        clock: Tells time and waits; the machine's where not given. Where it measures no time, the event loop's clock
            paces retries and limits.
        cache: Answers kept on disk; None for none. The caller closes it.
        budget: What may be spent; None for no limit.
        seed: For the jitter of retries.
        offline: Whether only recordings, the cache and models that reach no network may answer.
        dry_run: Whether requests are counted and not sent.
        on_stop: Called once, with the reason, when the budget is exhausted or a request cannot be made at all.
        run: The run that its calls belong to: what an earlier process of the same run left in the cache was paid for by
            this run. None for one that is never resumed.
        log: Keeps every call of the run when it ends, for a resumed run; None where they are not kept.
        restored: The calls of the run's earlier processes. Their answers are closed with the gateway.
        shared: What it shares with other processes of the run, or other runs, limits and budget included; None where it
            is alone.

    Attributes:
        run_budget: What the run may spend.
        budget: Where calls set money and tokens aside: the budget of the run, or the one that its processes share.
        elapsed_s: Measures spans.
        measures_time: Whether those spans are real, so that latencies can be reported.
        sleep: Waits.
        run_cache: Answers of this run, for roles whose answers no file keeps.
        issues: Requests that could not be made because of how the run is set up.
        halted: Why nothing further is sent, or None.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        cache: Cache | None = None,
        budget: Budget | None = None,
        seed: int = 42,
        offline: bool = False,
        dry_run: bool = False,
        on_stop: Callable[[str], None] | None = None,
        run: str | None = None,
        log: CallLog | None = None,
        restored: RestoredCalls = NO_CALLS,
        shared: SharedCalls | None = None,
    ) -> None:
        # The processes of one run must not number their calls alike. No report shows the numbers.
        self._first = self._last = secrets.randbits(62) + 1
        self.run = run or f"{self._first:016x}"
        self._paid = set(restored.ids)
        self.log = log
        self.lost_calls = dict(restored.lost)
        self.run_cache = Cache(None) if restored.answers is None else restored.answers
        self.cache, self.run_budget, self.shared = cache, budget, shared
        if shared is not None:
            shared.join(self.run)
        self.budget: CallBudget | None = budget if shared is None else shared.share_budget(budget)
        clock = clock or SystemClock()
        self.measures_time = clock.elapsed_s() is not None
        self.elapsed_s = span_clock(clock)
        self.sleep: Callable[[float], Awaitable[None]] = clock.sleep
        self.seed, self.offline, self.dry_run = seed, offline, dry_run
        self.issues: list[Issue] = []
        self.halted: str | None = None
        self._on_stop = on_stop

    def new_call_id(self) -> int:
        """The id of a call that is about to be made."""
        self._last += 1
        return self._last

    def note_paid(self, call: Call | None) -> None:
        """Note a call of this run that its budget and its log have already."""
        if call is not None:
            self._paid.add(call.id)

    def own_call(self, key: bytes, stored: Call | None, usage: Usage | None) -> Call | None:
        """The call behind a stored answer, where this run made it, or one beside it; None where any other run did.

        Args:
            key: The hash of the request.
            stored: The call as the file keeps it.
            usage: What it used.
        """
        if stored is None or usage is None:
            return None
        if stored.run != self.run:
            # Runs side by side each count what they would have cost alone, whichever of them asked first.
            is_beside = self.shared is not None and self.shared.is_beside(stored.run)
            return Call(stored.id, usage) if is_beside else None
        if not self._first < stored.id <= self._last and stored.id not in self._paid:
            # An earlier process of this run was killed before it had counted what it paid for.
            self._paid.add(stored.id)
            counted = UsageBound(count_tokens(usage, 0), usage.cost_usd or _NOTHING)
            self.keep_call(LoggedCall(id=stored.id, key=key, counted=counted))
            if self.budget is not None:
                self.budget.charge(counted)
        return Call(stored.id, usage)

    def keep_call(self, call: LoggedCall) -> Awaitable[None] | None:
        """Keep a call that has ended, where calls are logged.

        Args:
            call: The call; with its answer where no file has it.

        Returns:
            What to await before the answer is used; None where nothing is.
        """
        return None if self.log is None else self.log.keep(call)

    def report_issue(self, message: str) -> None:
        """Note a request that cannot be made, and ask the run to stop.

        Args:
            message: Which request, why, and what to do.
        """
        issue = Issue(message)
        if issue not in self.issues and len(self.issues) < _MOST_ISSUES:
            self.issues.append(issue)
        self.stop(message)

    def stop(self, reason: str) -> None:
        """Ask the run to stop, once."""
        if self._on_stop is not None:
            on_stop, self._on_stop = self._on_stop, None
            on_stop(reason)


class RoleAccess(NamedTuple):
    """Where the replies to one role may come from.

    Attributes:
        name: The role's name.
        prefix: Hashed with every request, so that models do not share answers.
        is_cached: Whether its answers are kept in the cache.
        may_call: Whether its model may be asked.
        recording: Its recording.
        context: What the calls of the gateway share.
    """

    name: str
    prefix: bytes
    is_cached: bool
    may_call: bool
    recording: Recording | None
    context: CallContext

    def refuse(self, request: str, *, has_client: bool) -> NoAnswer:
        """Report a request that no file answers and no model may answer.

        Args:
            request: How messages name the request.
            has_client: Whether the role has a model at all.
        """
        if self.recording is not None or not has_client:
            message = f"There is no recording of the request {request}. Record it first."
        else:
            message = f"`{self.name}` needs the network, and this run is offline: the request {request}."
        self.context.report_issue(message)
        return NoAnswer(cause="not_run", message=message)

    def record(self, write: Callable[[Recording], _T]) -> _T | None:
        """Write to the recording, where there is one and this is no dry run. A file that cannot be written is an issue.

        Args:
            write: Writes.
        """
        if self.recording is not None and not self.context.dry_run:
            try:
                return write(self.recording)
            except ConfigurationError as error:
                self.context.report_issue(str(error))
        return None
