"""Who pays for a call that several marks stand on: the first of them in order, whoever was asked first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

import msgspec

from deemster.records import Call, Execution, Mark, Usage
from deemster.records.usage import added, cached, tokens_of

_calls = attrgetter("calls")


class Payer:
    """Goes through marks in order and says what each used: a call counts for the first, and is a cached one for others.

    >>> from deemster.records import MetricScore
    >>> payer = Payer()
    >>> mark = MetricScore(1.0, usage=Usage(prompt_tokens=7), calls=(Call(1),))
    >>> [(usage.calls, usage.cached_calls) for usage in (payer.usage(mark), payer.usage(mark))]
    [(1, 0), (0, 1)]
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def usage(self, mark: Mark) -> Usage | None:
        """What a mark used.

        Args:
            mark: The next mark in order.
        """
        calls = mark.calls
        if not calls:
            return mark.usage
        if len(calls) == 1:
            usage = calls[0].usage or mark.usage
            return usage if usage is None or self._is_first(calls[0]) else _shared(usage)
        # All of them, so that each is noted.
        first = [self._is_first(call) for call in calls]
        if all(first):
            return mark.usage
        parts = zip(calls, first, strict=True)
        used = (call.usage if pays or call.usage is None else _shared(call.usage) for call, pays in parts)
        return added(usage for usage in used if usage is not None)

    def _is_first(self, call: Call) -> bool:
        if call.id in self._seen:
            return False
        if call.id:
            self._seen.add(call.id)
        return True


class Paid:
    """Executions whose marks carry what they used, each call paid for once.

    Args:
        executions: All of a run, in the order of the dataset, then repetition; None where there was none.
    """

    def __init__(self, executions: Iterable[Execution | None]) -> None:
        self._executions = executions

    def __iter__(self) -> Iterator[Execution | None]:
        payer = Payer()
        for execution in self._executions:
            if execution is None or not any(map(_calls, execution.marks)):
                yield execution
                continue
            marks = tuple(
                msgspec.structs.replace(mark, usage=payer.usage(mark), calls=()) if mark.calls else mark
                for mark in execution.marks
            )
            yield msgspec.structs.replace(execution, marks=marks)


class Spent(NamedTuple):
    """What the marks of a run have cost so far.

    Attributes:
        ids: The calls they stand on.
        tokens: Tokens sent and received.
        usd: US dollars, where known.
    """

    ids: frozenset[int]
    tokens: int
    usd: Decimal


def spent_in(executions: Iterable[Execution | None]) -> Spent:
    """What the marks of some executions have cost.

    Args:
        executions: Those that are there, in the order of the dataset, then repetition.
    """
    payer, tokens, usd = Payer(), 0, Decimal(0)
    ids: set[int] = set()
    for execution in executions:
        for mark in () if execution is None else execution.marks:
            if mark.calls:
                ids.update(call.id for call in mark.calls)
            elif mark.usage is None:
                continue
            usage = payer.usage(mark)
            if usage is not None and usage.calls:
                tokens += tokens_of(usage, 0)
                usd += usage.cost_usd or 0
    return Spent(frozenset(ids), tokens, usd)


def _shared(usage: Usage) -> Usage | None:
    """What is left of a call that another mark has paid for; of a part of one that is nothing."""
    return cached(usage) if usage.calls or usage.cached_calls else None
