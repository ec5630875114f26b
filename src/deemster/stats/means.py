"""Means with standard errors and t intervals; exact sums; quantiles."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.student_distribution import t_quantile


def exact_mean(values: ArrayLike) -> float | None:
    """The mean, with an exactly rounded sum. Undefined (None) without values.

    >>> exact_mean([0.1] * 10)
    0.1
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    return math.fsum(array.data) / array.size if array.size else None


def exact_stdev(values: ArrayLike) -> float | None:
    """The sample standard deviation, sqrt(sum (x - mean)²/(n - 1)). Undefined (None) below two values.

    >>> round(exact_stdev([1.0, 0.8, 0.4]), 4)
    0.3055
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    mean = exact_mean(array)
    if mean is None or array.size < 2:
        return None
    if array.min() == array.max():
        return 0.0
    squares = array - mean
    squares *= squares
    return math.sqrt(math.fsum(squares.data) / (array.size - 1))


def unit_sums(values: ArrayLike, units: NDArray[np.integer]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The sum of the values of each unit that has some, and how many they are.

    Args:
        values: The values.
        units: The number of each value's unit, from 0.

    >>> unit_sums([0.5, 1.0, 0.25], np.array([0, 2, 2]))
    (array([0.5 , 1.25]), array([1., 2.]))
    """
    sizes = np.bincount(units)
    has_some = sizes > 0
    sums = np.bincount(units, weights=values).astype(np.float64)
    return sums[has_some], sizes[has_some].astype(np.float64)


def quantile(ascending: ArrayLike, share: float) -> float | None:
    """The quantile of sorted values by linear interpolation at rank share·(n - 1). Undefined (None) without values.

    >>> round(quantile([0.4, 0.8, 1.0], 0.05), 4)
    0.44
    """
    array = np.asarray(ascending, dtype=np.float64)
    if not array.size:
        return None
    rank = share * (array.size - 1)
    below = math.floor(rank)
    low = float(array[below])
    if rank == below:
        return low
    return low + (float(array[below + 1]) - low) * (rank - below)


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of `n` values with its standard error and interval."""

    value: float | None = None
    n: int
    standard_error: float | None = None
    interval: ConfidenceInterval | None = None


def student(values: ArrayLike, *, confidence: float = 0.95) -> Mean:
    """A mean with Student's t interval: mean ± t·s/sqrt(n).

    Undefined: everything without values; error and interval below two values; the interval also without spread.

    Reference: Student, The probable error of a mean, Biometrika 6 (1908).

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> interval = student([1.0, 0.8, 0.4]).interval
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (-0.0256, 1.4922)
    """
    check_confidence(confidence)
    mean, spread, n = exact_mean(values), exact_stdev(values), np.size(values)
    if mean is None or spread is None:
        return Mean(value=mean, n=n)
    interval = None
    if spread:
        half = t_quantile(confidence, n - 1) * spread / math.sqrt(n)
        interval = ConfidenceInterval(mean - half, mean + half, confidence, method="student")
    return Mean(value=mean, n=n, standard_error=spread / math.sqrt(n), interval=interval)
