"""The two ends of an interval, as reports hold them."""

from __future__ import annotations

from typing import NamedTuple

from deemster.stats import ConfidenceInterval


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def ends(interval: ConfidenceInterval | None) -> Interval | None:
    """The ends of an interval; None stays None.

    >>> ends(ConfidenceInterval(0.25, 0.75, 0.95, "wilson"))
    Interval(low=0.25, high=0.75)
    """
    return None if interval is None else Interval(interval.lower, interval.upper)
