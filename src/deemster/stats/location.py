"""Mean, spread and quantiles whose digits do not depend on the order of the values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


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
    return math.sqrt(math.fsum(np.square(array - mean).data) / (array.size - 1))


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
