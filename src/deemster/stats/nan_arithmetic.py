"""Arithmetic on arrays in which NaN stands for undefined: division, means, NaN to None."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
# Differences of sums below this share of the sums are rounding errors.
DUST = 1e-12


def quotient(above: ArrayLike, below: ArrayLike) -> Floats:
    """Division that gives NaN, silently, where the divisor is zero or either side is NaN.

    >>> quotient([1.0, 1.0], [2.0, 0.0])
    array([0.5, nan])
    """
    bottom = np.asarray(below, dtype=np.float64)
    # A look at the divisors costs a third of the time of copying them.
    return np.asarray(np.divide(above, bottom if bottom.all() else np.where(bottom, bottom, np.nan)))


def mean_defined(rows: Floats) -> Floats:
    """The mean over the first axis of what is defined; NaN where nothing is.

    >>> mean_defined(np.array([[0.5, np.nan], [1.0, np.nan]]))
    array([0.75,  nan])
    """
    known = ~np.isnan(rows)
    return quotient(np.where(known, rows, 0.0).sum(axis=0), known.sum(axis=0))


def float_or_none(value: float | np.floating | Floats) -> float | None:
    """A plain float, or None where it is NaN.

    >>> float_or_none(np.float64(0.5)), float_or_none(np.nan)
    (0.5, None)
    """
    number = float(value)
    return None if number != number else number  # noqa: PLR0124 - only NaN differs from itself


def merge_rounded(values: Floats) -> Floats:
    """The values, where those that differ by rounding only are one value.

    (0.1 + 0.2)/0.6 and 0.3/0.6 are equal as fractions and not as floats; ranks, modes and thresholds take them for two.
    Neighbours within 1e-12 times the largest absolute value, at least 1, take the least of them. NaN stays NaN.

    >>> np.unique(merge_rounded(np.array([(0.1 + 0.2) / 0.6, 0.3 / 0.6, 0.75]))).tolist()
    [0.5, 0.75]
    """
    flat = values.ravel()
    order = np.argsort(flat, kind="stable")
    ascending = flat[order]
    known = ascending[~np.isnan(ascending)]
    if not known.size:
        return values
    limit = 1e-12 * max(1.0, abs(float(known[0])), abs(float(known[-1])))
    starts = np.concatenate([[True], np.diff(known) > limit])
    merged = flat.copy()
    merged[order[: known.size]] = known[np.flatnonzero(starts)[np.cumsum(starts) - 1]]
    return merged.reshape(values.shape)
