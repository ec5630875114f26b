"""Who pays for a model call that several marks or votes stand on: the first of them in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from deemster.records.execution import Execution
from deemster.records.model_requests import Answer, NoAnswer, Reply, Vectors
from deemster.records.usage import Call, Usage, cached_usage, count_tokens, divide_usage, sum_usage

_calls = attrgetter("calls")


class Charged(Protocol):
    """What stands on model calls and says what they used: a mark or a vote."""

    @property
    def usage(self) -> Usage | None:
        """What its calls used, if it is the first that stands on them."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls. A single call leaves its usage to the mark; several calls carry a part each."""


_C = TypeVar("_C", bound=Charged)


def reply_calls(replies: Iterable[Reply]) -> Iterator[Call]:
    """The calls that replies come from, each with what it used, whether or not this reply was the first to use it.

    Args:
        replies: What a script was sent.
    """
    for reply in replies:
        if isinstance(reply, Answer) and reply.call is not None:
            yield reply.call
        elif isinstance(reply, Vectors) and reply.calls:
            yield from reply.calls
        elif reply.usage is not None:
            yield Call(reply.call_id if isinstance(reply, NoAnswer) else 0, reply.usage)


def with_calls(mark: _C, calls: Sequence[Call]) -> _C:
    """A mark or vote that stands on some calls.

    Args:
        mark: The mark or vote.
        calls: The calls, each with the part of its usage that falls to the mark.
    """
    if len(calls) == 1:
        # The mark has the usage of its only call.
        (call,) = calls
        return _replaced(mark, call.usage, (Call(call.id),) if call.id else ())
    usage = sum_usage(call.usage for call in calls if call.usage is not None)
    return _replaced(mark, usage, tuple(calls) if any(call.id for call in calls) else ())


def distinct_calls(calls: Iterable[Call]) -> list[Call]:
    """Calls without repetition: of several with one id the first; calls with id 0 are all different."""
    found: dict[object, Call] = {}
    for call in calls:
        found.setdefault(call.id or object(), call)
    return list(found.values())


def itemized_calls(mark: Charged) -> tuple[Call, ...]:
    """The calls that a mark or vote stands on, each with what it used."""
    if not mark.calls:
        return () if mark.usage is None else (Call(0, mark.usage),)
    if len(mark.calls) == 1:
        (call,) = mark.calls
        return (Call(call.id, call.usage or mark.usage),)
    return mark.calls


def split_calls(marks: Sequence[_C], calls: Sequence[Call]) -> list[_C]:
    """Marks or votes that come from the same calls, each with its part of what the calls used.

    Args:
        marks: The marks or votes.
        calls: The calls, each with its whole usage.

    >>> from deemster.records import MetricScore
    >>> marks = split_calls([MetricScore(1.0)] * 2, [Call(1, Usage(prompt_tokens=7))])
    >>> [mark.usage.prompt_tokens for mark in marks]
    [4, 3]
    """
    if not calls:
        return [*marks]
    if len(marks) == 1:
        return [with_calls(marks[0], distinct_calls([Call(call.id, call.usage) for call in calls]))]
    shares = [map(Call, repeat(call.id), divide_usage(call.usage, len(marks))) for call in calls]
    return [
        with_calls(mark, distinct_calls(parts)) for mark, parts in zip(marks, zip(*shares, strict=True), strict=True)
    ]


def add_earlier_calls(mark: _C, earlier: _C | None) -> _C:
    """A mark that also counts what an earlier attempt at it cost.

    >>> from deemster.records import MetricScore, Unscored
    >>> failed = Unscored("unreadable", "No verdict.", Usage(prompt_tokens=7))
    >>> add_earlier_calls(MetricScore(1.0, usage=Usage(prompt_tokens=5)), failed).usage.prompt_tokens
    12

    Args:
        mark: The mark of this attempt.
        earlier: The mark that it replaces; None if there was none.
    """
    if earlier is None or earlier.usage is None:
        return mark
    made = itemized_calls(mark)
    # A cached answer is the earlier call itself: it is among the calls of this attempt.
    known = {call.id for call in made if call.id}
    before = [call for call in itemized_calls(earlier) if call.id not in known]
    return with_calls(mark, [*before, *made]) if before else mark


def count_as_cached_call(usage: Usage) -> Usage:
    """What a mark used of a call that another mark paid for: one cached call, or none where it is a part of a call."""
    return cached_usage(usage, calls=min(usage.calls + usage.cached_calls, 1))


def count_as_cached_part(usage: Usage) -> Usage:
    """What a vote used of its part of a call that another vote paid for: as many cached calls as there were calls."""
    return cached_usage(usage, calls=usage.calls + usage.cached_calls)


class CallPayments:
    """Goes through marks or votes in order: the first that stands on a call pays, for later ones it is a cached call.

    The order decides, not which of them was answered first. So a resumed run and a run in one go cost the same.

    Args:
        paid: The ids of the calls that were paid for before.
        shared: The ids of the calls that several may stand on; None if that can be any call.
        reused: What is counted for a later mark or vote in place of the usage.

    >>> from deemster.records import MetricScore
    >>> payments = CallPayments()
    >>> mark = MetricScore(1.0, usage=Usage(prompt_tokens=7), calls=(Call(1),))
    >>> [(usage.calls, usage.cached_calls) for usage in (payments.usage(mark), payments.usage(mark))]
    [(1, 0), (0, 1)]
    """

    def __init__(
        self,
        paid: Collection[int] = (),
        *,
        shared: Collection[int] | None = None,
        reused: Callable[[Usage], Usage] = count_as_cached_call,
    ) -> None:
        self._shared, self._reused = shared, reused
        self._paid = set(paid)

    @property
    def paid(self) -> frozenset[int]:
        """The ids of the calls that were paid for so far."""
        return frozenset(self._paid)

    def pay(self, call_id: int) -> bool:
        """Pay for a call, if it is not paid yet.

        Args:
            call_id: The id of the call; 0 for a call that nothing else stands on.

        Returns:
            Whether this was the first time.
        """
        if not call_id or (self._shared is not None and call_id not in self._shared):
            return True
        if call_id in self._paid:
            return False
        self._paid.add(call_id)
        return True

    def usage(self, mark: Charged, pay: Callable[[int], bool] | None = None) -> Usage | None:
        """What a mark or vote used, with the calls that it pays for.

        Args:
            mark: The next mark or vote in order.
            pay: Decides in place of `self.pay` whether the mark pays for a call.
        """
        calls = mark.calls
        if not calls:
            return mark.usage
        pay = pay or self.pay
        if len(calls) == 1:
            (call,) = calls
            usage = call.usage or mark.usage
            return usage if pay(call.id) or usage is None else self._reused(usage)
        # A list, so that every call is noted, also one without a usage.
        pays = [(call.usage, pay(call.id)) for call in calls]
        return sum_usage(usage if first else self._reused(usage) for usage, first in pays if usage is not None)

    def settle(self, mark: _C, pay: Callable[[int], bool] | None = None) -> _C:
        """A mark or vote with what it used in the end, and without calls.

        Args:
            mark: The next mark or vote in order.
            pay: Decides in place of `self.pay` whether the mark pays for a call.
        """
        return _replaced(mark, self.usage(mark, pay), ()) if mark.calls else mark


class PaidExecutions:
    """Executions whose marks say what they used, with every call paid for once.

    Args:
        executions: All executions of a run, by position in the dataset, then repetition.
    """

    def __init__(self, executions: Iterable[Execution]) -> None:
        self._executions = executions

    def __iter__(self) -> Iterator[Execution]:
        payments = CallPayments()
        for execution in self._executions:
            if not any(map(_calls, execution.marks)):
                yield execution
            else:
                yield replace(execution, marks=tuple([payments.settle(mark) for mark in execution.marks]))


class Spending(NamedTuple):
    """What a run has spent so far.

    Attributes:
        call_ids: The ids of the calls that were paid for.
        tokens: Tokens sent and received.
        usd: US dollars, where known.
    """

    call_ids: frozenset[int]
    tokens: int
    usd: Decimal


NOTHING_SPENT = Spending(frozenset(), 0, Decimal(0))


class SpendingSum:
    """Adds up what the marks of executions have cost, which come by position in the dataset, then repetition."""

    def __init__(self) -> None:
        self._payments = CallPayments()
        self._tokens = 0
        self._usd = Decimal(0)

    def add(self, execution: Execution) -> None:
        """Add the marks of the next execution."""
        tokens, usd = paid_amount(self._payments.usage(mark) for mark in execution.marks)
        self._tokens += tokens
        self._usd += usd

    def total(self) -> Spending:
        """What was added so far."""
        return Spending(self._payments.paid, self._tokens, self._usd)


def paid_amount(usages: Iterable[Usage | None]) -> tuple[int, Decimal]:
    """The tokens and US dollars of usages; what a cache answered costs nothing.

    Args:
        usages: The usages.
    """
    tokens, usd = 0, Decimal(0)
    for usage in usages:
        if usage is not None:
            tokens += count_tokens(usage, 0)
            usd += usage.cost_usd or 0
    return tokens, usd


def _replaced(mark: _C, usage: Usage | None, calls: tuple[Call, ...]) -> _C:
    """The mark or vote with another usage and other calls; both are structs."""
    return replace(mark, usage=usage, calls=calls)  # type: ignore[type-var]
