"""A confidence interval, its level, and the normal quantile behind it."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import msgspec


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float

    @property
    def leaves_out_zero(self) -> bool:
        """Whether it shows on which side of 0 a number lies."""
        return self.low > 0 or self.high < 0


class ConfidenceInterval(msgspec.Struct, frozen=True):
    """The two ends of a confidence interval, its level, and how it was made.

    Attributes:
        lower: The lower end.
        upper: The upper end.
        confidence: The level, such as 0.95.
        method: How it was made.
    """

    lower: float
    upper: float
    confidence: float
    method: str

    @property
    def width(self) -> float:
        """How far the ends lie apart."""
        return self.upper - self.lower


def interval_ends(interval: ConfidenceInterval | None) -> Interval | None:
    """The two ends of an interval; None stays None.

    >>> interval_ends(ConfidenceInterval(0.25, 0.75, 0.95, "wilson"))
    Interval(low=0.25, high=0.75)
    """
    return None if interval is None else Interval(interval.lower, interval.upper)


def check_confidence(confidence: float) -> float:
    """Check a confidence level.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> check_confidence(0.95)
    0.95
    """
    if not 0 < confidence < 1:
        raise ValueError(f"A confidence level lies strictly between 0 and 1, not {confidence!r}.")
    return float(confidence)


def normal_quantile(confidence: float = 0.95) -> float:
    """The two-sided normal quantile z of a confidence level.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> round(normal_quantile(), 6)
    1.959964
    """
    return NormalDist().inv_cdf((1 + check_confidence(confidence)) / 2)


def shared_confidence(intervals: int, confidence: float) -> float:
    """The level of each of several intervals, at which all hold together with a given confidence.

    1 - (1 - confidence)/m, by Bonferroni's inequality, whatever the intervals have to do with each other.

    Reference: O. J. Dunn, Multiple comparisons among means, JASA 56 (1961).

    >>> round(shared_confidence(3, 0.95), 4), shared_confidence(0, 0.95)
    (0.9833, 0.95)
    """
    return 1 - (1 - confidence) / max(1, intervals)
