"""Checks numbers that callers pass and turns them into arrays; None and NaN are missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.nan_arithmetic import Floats


def vector(values: ArrayLike, *, name: str = "x") -> Floats:
    """A sequence of numbers as a vector, None as NaN.

    Args:
        values: A plain sequence.
        name: What an error calls it.

    Raises:
        ValueError: It is no plain sequence, or holds something that is no number or infinite.

    >>> vector([1, None, 0.5])
    array([1. , nan, 0.5])
    """
    array = _floats(values, name)
    if array.ndim != 1:
        raise ValueError(f"`{name}` is a plain sequence of numbers, not an array of {array.ndim} dimensions.")
    return array


def finite_vector(values: ArrayLike, *, name: str = "values") -> Floats:
    """The values as one row of finite numbers.

    Raises:
        ValueError: They are no single row, or one is no number, NaN or infinite.

    >>> finite_vector([1, True])
    array([1., 1.])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"The {name} hold something that is no number: {error}.") from None
    if array.ndim != 1:
        raise ValueError(f"The {name} are one row of numbers, not an array of {array.ndim} dimensions.")
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise ValueError(f"The {name} are finite numbers; place {wrong[0]} holds {array[wrong[0]]}.")
    return array


def matrix(values: ArrayLike, *, name: str = "ratings") -> Floats:
    """Rows of numbers as a matrix, None as NaN; without a number it has no rows and no columns.

    Raises:
        ValueError: The rows differ in length, or hold something that is no number or infinite.

    >>> matrix([[1, None], [2, 3]])
    array([[ 1., nan],
           [ 2.,  3.]])
    """
    array = _floats(values, name)
    if not array.size:
        return np.zeros((0, 0))
    if array.ndim != 2:
        raise ValueError(f"`{name}` is rows of equal length, not an array of {array.ndim} dimensions.")
    return array


def pairs(x: ArrayLike, y: ArrayLike, *, names: tuple[str, str] = ("x", "y")) -> tuple[Floats, Floats, int]:
    """Two paired vectors without the pairs that miss a side, and how many those were.

    Raises:
        ValueError: The sequences differ in length, or hold something that is no number or infinite.

    >>> pairs([1, 2, None], [3, 4, 5])
    (array([1., 2.]), array([3., 4.]), 1)
    """
    first, second = vector(x, name=names[0]), vector(y, name=names[1])
    if len(first) != len(second):
        raise ValueError(f"`{names[0]}` and `{names[1]}` are paired, but have {len(first)} and {len(second)} values.")
    both = ~(np.isnan(first) | np.isnan(second))
    return first[both], second[both], int(len(both) - both.sum())


def constant(values: Floats) -> bool:
    """Whether values differ by no more than the rounding of sums that made them.

    >>> constant(np.array([0.3, 0.1 + 0.2]))
    True
    """
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max()) if values.size else True


def _floats(values: ArrayLike, name: str) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"`{name}` holds something that is no number, or rows of different length: {error}.") from None
    if np.isinf(array).any():
        raise ValueError(f"`{name}` holds an infinite value; only finite numbers and missing ones have a place.")
    return array
