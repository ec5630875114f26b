"""Confidence intervals for shares and means."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.location import exact_mean, exact_stdev


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


def normal_quantile(confidence: float = 0.95) -> float:
    """The two-sided normal quantile z of a confidence level.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> round(normal_quantile(), 6)
    1.959964
    """
    if not 0 < confidence < 1:
        raise ValueError(f"A confidence level lies strictly between 0 and 1, not {confidence!r}.")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> Interval | None:
    """Wilson's score interval of a share.

    Centre (p + z²/2n)/(1 + z²/n), half-width z·sqrt(p(1-p)/n + z²/4n²)/(1 + z²/n). The ends are exactly 0 and 1 where
    nothing or everything succeeded. Undefined (None) for n = 0. ``n`` may be an effective size and so fractional.

    Reference: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Raises:
        ValueError: A count is negative, or there are more successes than trials.

    >>> low, high = wilson(3, 5)
    >>> round(low, 4), round(high, 4)
    (0.2307, 0.8824)
    """
    if not 0 <= successes <= n:
        raise ValueError(f"There are between 0 and n = {n} successes, not {successes}.")
    if n == 0:
        return None
    z = normal_quantile(confidence)
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high)


def effective_size(passed: ArrayLike, *, marks: int) -> float:
    """How many independent marks a clustered set of marks is worth.

    With two clusters that pass all and two that fail all added, q and s² are mean and variance (divisor count - 1) of
    the clusters' shares; the size is q(1-q)N/s², kept within [N, all marks]. One mark per cluster gives N.

    Args:
        passed: How many marks passed in each cluster.
        marks: Marks per cluster.

    >>> round(effective_size([5, 5, 5, 4, 3, 5, 5, 0, 2, 5], marks=5), 2)
    11.87
    """
    shares = np.asarray(passed, dtype=np.int64)
    clusters = len(shares)
    count = clusters + 4
    total = int(shares.sum()) + 2 * marks
    squares = int(np.square(shares).sum()) + 2 * marks * marks
    # Whole numbers to the last division, so that the order of the clusters cannot change a digit.
    spread = count * (count * squares - total * total)
    size = total * (count * marks - total) * clusters * (count - 1) / spread
    return min(max(size, float(clusters)), float(clusters * marks))


def clustered_wilson(passed: ArrayLike, *, marks: int, confidence: float = 0.95) -> Interval | None:
    """Wilson's interval of the share of passed marks, where marks come in clusters of equal size.

    The marks of one cluster are not independent, so the interval is that of ``effective_size`` marks. Undefined (None)
    without a mark.

    Args:
        passed: How many marks passed in each cluster.
        marks: Marks per cluster.
        confidence: The level.

    >>> low, high = clustered_wilson([5, 5, 5, 4, 3, 5, 5, 0, 2, 5], marks=5)
    >>> round(low, 4), round(high, 4)
    (0.4956, 0.9275)
    """
    shares = np.asarray(passed, dtype=np.int64)
    every = len(shares) * marks
    if every == 0:
        return None
    total = int(shares.sum())
    size = effective_size(shares, marks=marks)
    successes = size if total == every else total / every * size
    return wilson(successes, size, confidence=confidence)


def student(values: ArrayLike, *, confidence: float = 0.95) -> Interval | None:
    """Student's t interval of a mean: mean ± t·s/sqrt(n).

    Undefined (None) below two values or without spread.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> low, high = student([1.0, 0.8, 0.4])
    >>> round(low, 4), round(high, 4)
    (-0.0256, 1.4922)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"A confidence level lies strictly between 0 and 1, not {confidence!r}.")
    mean, spread = exact_mean(values), exact_stdev(values)
    if mean is None or not spread:
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 - scipy takes a tenth of a second to load

    n = np.size(values)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * spread / math.sqrt(n)
    return Interval(mean - half, mean + half)
