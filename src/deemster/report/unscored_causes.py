"""What could not be scored: equal failures together, the most frequent first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deemster.errors import plural
from deemster.report.report_entries import FailureEntry

_MOST_GROUPS = 1_000
_EXAMPLES = 3


class FailureGroup(NamedTuple):
    """Failures of one metric with one cause and one message.

    Attributes:
        metric: The metric; None for the target.
        cause: Why there is no score.
        message: What is said about it; None where it is left out, or where the messages are too many to tell apart.
        times: How many there are.
        samples: The first samples that have it, then an ellipsis where there are more.
    """

    metric: str | None
    cause: str
    message: str | None
    times: int
    samples: tuple[str, ...]


def describe_failures(failures: Iterable[FailureEntry]) -> str:
    """The most frequent failure in a line, and how many others there are.

    Args:
        failures: At least one failure.
    """
    groups = group_failures(failures)
    group = groups[0]
    what = (group.message or group.cause).rstrip(".")
    named = what if group.metric is None else f"{group.metric}: {what}"

    others = len(groups) - 1
    return f"{named}, and {plural(others, 'other error')}" if others else named


def group_failures(failures: Iterable[FailureEntry]) -> list[FailureGroup]:
    """Equal failures together, the most frequent first; where messages are too many, by metric and cause alone."""
    counted: dict[tuple[str | None, str, str | None], tuple[int, tuple[str, ...]]] = {}

    for failure in failures:
        key = (failure.metric, failure.cause, failure.message)
        if key not in counted and len(counted) >= _MOST_GROUPS:
            key = (failure.metric, failure.cause, None)

        times, samples = counted.get(key, (0, ()))
        if failure.id not in samples and len(samples) <= _EXAMPLES:
            samples = (*samples, failure.id if len(samples) < _EXAMPLES else "...")
        counted[key] = (times + 1, samples)

    groups = [FailureGroup(*key, times, samples) for key, (times, samples) in counted.items()]
    return sorted(groups, key=lambda group: -group.times)
