"""What a mark has cost: the calls it stands on, those of earlier attempts at it included."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deemster.records import Call, Mark
from deemster.records.usage import added


def with_calls(mark: Mark, calls: Sequence[Call]) -> Mark:
    """A mark that stands on some calls, and what it used if it is the first that stands on them.

    Args:
        mark: The mark.
        calls: The calls, each with what it used.
    """
    if len(calls) == 1:
        (call,) = calls
        return msgspec.structs.replace(mark, usage=call.usage, calls=(Call(call.id),) if call.id else ())
    usage = added(call.usage for call in calls if call.usage is not None)
    return msgspec.structs.replace(mark, usage=usage, calls=tuple(calls) if any(call.id for call in calls) else ())


def with_earlier(mark: Mark, earlier: Mark | None) -> Mark:
    """A mark with what an earlier attempt at it has cost too: money that was spent does not come back.

    >>> from deemster.records import MetricScore, Unscored, Usage
    >>> failed = Unscored("unreadable", "No verdict.", Usage(prompt_tokens=7))
    >>> with_earlier(MetricScore(1.0, usage=Usage(prompt_tokens=5)), failed).usage.prompt_tokens
    12

    Args:
        mark: The mark as it was made now.
        earlier: The one that it takes the place of; None where there was none.
    """
    if earlier is None or earlier.usage is None:
        return mark
    made = _calls(mark)
    # An answer that was kept is the earlier call itself, and stands among those of now.
    known = {call.id for call in made if call.id}
    before = [call for call in _calls(earlier) if call.id not in known]
    return with_calls(mark, [*before, *made]) if before else mark


def _calls(mark: Mark) -> tuple[Call, ...]:
    """The calls of a mark, each with what it used."""
    if not mark.calls:
        return () if mark.usage is None else (Call(0, mark.usage),)
    if len(mark.calls) == 1:
        (call,) = mark.calls
        return (Call(call.id, call.usage or mark.usage),)
    return mark.calls
