"""Who pays for a call that several votes stand on: the first of them in order, whoever was answered first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TypeAlias

from msgspec.structs import replace

from deemster.judges.grading_result import ItemGrading, Vote
from deemster.records import Answer, Call, Reply, Usage, Vectors
from deemster.records.usage import added, divided

_Seat: TypeAlias = tuple[str, int, int]


def calls_of(replies: Iterable[Reply]) -> Iterator[Call]:
    """The calls that replies come from, with what each used whoever was answered from it first.

    Args:
        replies: What a script was sent.
    """
    for reply in replies:
        if isinstance(reply, Answer) and reply.call is not None:
            yield reply.call
        elif isinstance(reply, Vectors) and reply.calls:
            yield from reply.calls
        elif reply.usage is not None:
            yield Call(0, reply.usage)


def charged(votes: Sequence[Vote], calls: Sequence[Call]) -> list[Vote]:
    """Votes that come of the same calls, each with its part of what they used.

    Args:
        votes: Votes of one judge on one item.
        calls: The calls, with what each used.

    >>> [vote.usage.prompt_tokens for vote in charged([Vote(judge="a")] * 2, [Call(1, Usage(prompt_tokens=7))])]
    [4, 3]
    """
    if not calls:
        return [*votes]
    shares = [map(Call, repeat(call.id), divided(call.usage, len(votes))) for call in calls]
    return [with_calls(vote, parts) for vote, parts in zip(votes, zip(*shares, strict=True), strict=True)]


def with_calls(vote: Vote, calls: Iterable[Call]) -> Vote:
    """A vote that stands on some calls, and what it used if it is the first that does; a call given twice counts once.

    Args:
        vote: The vote.
        calls: The calls, each with the vote's part of what it used.
    """
    own: dict[object, Call] = {}
    for call in calls:
        own.setdefault(call.id or object(), call)
    kept = tuple(own.values())
    usage = added(call.usage for call in kept if call.usage is not None)
    if not any(call.id for call in kept):
        return replace(vote, usage=usage, calls=())
    return replace(vote, usage=usage, calls=(Call(kept[0].id),) if len(kept) == 1 else kept)


def calls_in(vote: Vote) -> tuple[Call, ...]:
    """The calls that a vote stands on, each with its part of what it used."""
    if len(vote.calls) == 1:
        return (Call(vote.calls[0].id, vote.usage),)
    return vote.calls or (() if vote.usage is None else (Call(0, vote.usage),))


def shareable(item: ItemGrading) -> set[_Seat]:
    """The calls of an item that votes on other items may stand on too, with who asked."""
    return {
        (vote.judge, vote.repeat, call.id)
        for each in item.criteria
        for vote in each.votes
        for call in vote.calls
        if call.id
    }


def without_calls(item: ItemGrading) -> ItemGrading:
    """An item as it is when its grading is finished."""
    return Purse(watched=()).settled(item)


class Purse:
    """Goes through items in order and says what each vote used: the first that stands on a call pays for it.

    Args:
        watched: The calls that several may stand on; None for all of them.
    """

    def __init__(self, *, watched: Collection[int] | None = None) -> None:
        self._watched = watched
        self._paid: set[int] = set()

    @property
    def paid(self) -> frozenset[int]:
        """The calls that were paid for so far."""
        return frozenset(self._paid)

    def settled(self, item: ItemGrading) -> ItemGrading:
        """An item whose votes carry what they used, and no calls any more.

        Args:
            item: The next item in order.
        """
        if not any(vote.calls for each in item.criteria for vote in each.votes):
            return item
        # One question brings votes on several criteria, and these share what it used: all of them pay, or none.
        first: dict[_Seat, bool] = {}
        criteria = tuple(
            replace(each, votes=tuple([self._settled(vote, first) if vote.calls else vote for vote in each.votes]))
            for each in item.criteria
        )
        return replace(item, criteria=criteria)

    def _settled(self, vote: Vote, first: dict[_Seat, bool]) -> Vote:
        calls = calls_in(vote)
        pays = [self._pays((vote.judge, vote.repeat, call.id), first) for call in calls]
        if all(pays):
            return replace(vote, calls=())
        parts = zip(calls, pays, strict=True)
        used = (call.usage if mine else _found(call.usage) for call, mine in parts if call.usage is not None)
        return replace(vote, usage=added(usage for usage in used if usage is not None), calls=())

    def _pays(self, seat: _Seat, first: dict[_Seat, bool]) -> bool:
        name = seat[2]
        if not name or (self._watched is not None and name not in self._watched):
            return True
        if seat not in first:
            first[seat] = name not in self._paid
            self._paid.add(name)
        return first[seat]


def _found(usage: Usage | None) -> Usage | None:
    """A part of a call that another has paid for; what brought no answer of its own brings none here."""
    if usage is None:
        return None
    return replace(usage, calls=0, cached_calls=usage.calls + usage.cached_calls, cost_usd=0, latency_ms=None)
