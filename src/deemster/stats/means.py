"""Means with standard errors and t intervals, independent or clustered; exact sums; quantiles."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import cluster_codes
from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, t_quantile


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


# A spread below this share of the largest value counts as none: it is rounding.
_ROUNDING = 1e-12


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of `n` values with its standard error and interval."""

    value: float | None
    n: int
    standard_error: float | None
    interval: ConfidenceInterval | None


class ClusteredMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of `n` values in `clusters` clusters; `standard_error` is CR2, the others stand beside it."""

    value: float | None
    n: int
    clusters: int
    standard_error: float | None = None
    degrees_of_freedom: float | None = None
    independent: float | None = None
    cr0: float | None = None
    miller: float | None = None
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
        return Mean(value=mean, n=n, standard_error=None, interval=None)
    interval = None
    if spread:
        half = t_quantile(confidence, n - 1) * spread / math.sqrt(n)
        interval = ConfidenceInterval(mean - half, mean + half, confidence, method="student")
    return Mean(value=mean, n=n, standard_error=spread / math.sqrt(n), interval=interval)


def clustered_mean(
    values: ArrayLike, clusters: Sequence[Hashable] | NDArray[np.generic], *, confidence: float = 0.95
) -> ClusteredMean:
    """A mean whose values come in clusters, with a cluster-robust standard error and a t interval.

    With e the deviations from the mean, S_c their sum in cluster c of G and h_c the share of all values that lie in c:
    CR0 = sqrt(Σ S_c²)/n, CR2 = sqrt(Σ S_c²/(1 - h_c))/n. The interval is mean ± t·CR2 with the degrees of freedom of
    Bell and McCaffrey, which are G - 1 for clusters of equal size and fewer for unequal ones. ``miller`` is
    sqrt(s²/n + Σ_c Σ_{i≠j} e_i·e_j/n²), Miller's form; ``independent`` is s/sqrt(n), what the error would be without
    clusters. One value per cluster makes CR2 equal to ``independent``. Undefined: everything without values, the errors
    below two clusters (``independent`` below two values), the interval also without spread.

    References: R. M. Bell, D. F. McCaffrey, Bias reduction in standard errors for linear regression with multi-stage
    samples, Survey Methodology 28 (2002); E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024).

    Args:
        values: The values.
        clusters: The cluster of each value.
        confidence: The level of the interval.

    Raises:
        ValueError: Values and clusters differ in number, a value is not finite, or the level is not in (0, 1).

    >>> result = clustered_mean([1, 1, 1, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> round(result.value, 4), round(result.standard_error, 4), round(result.independent, 4)
    (0.5556, 0.294, 0.1757)
    """
    check_confidence(confidence)
    array = finite_vector(values)
    codes, count = cluster_codes(clusters, array.size)
    mean = exact_mean(array)
    if mean is None or array.size < 2:
        return ClusteredMean(value=mean, n=array.size, clusters=count)
    n, deviations = array.size, array - mean
    floor = _ROUNDING * float(np.abs(array).max())
    squares = float(np.square(deviations).sum())
    independent = _drop_rounding(math.sqrt(squares / (n * (n - 1))), floor)
    if count < 2:
        return ClusteredMean(value=mean, n=n, clusters=count, independent=independent)
    squared_sums = np.square(np.bincount(codes, weights=deviations, minlength=count))
    between = float(squared_sums.sum())
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    cr0 = _drop_rounding(math.sqrt(between) / n, floor)
    error = _drop_rounding(math.sqrt(float((squared_sums / (1 - sizes / n)).sum())) / n, floor)
    freedom = _bell_mccaffrey(sizes)
    half = t_quantile(confidence, freedom) * error
    return ClusteredMean(
        value=mean,
        n=n,
        clusters=count,
        standard_error=error,
        degrees_of_freedom=freedom,
        independent=independent,
        cr0=cr0,
        miller=_drop_rounding(math.sqrt(max(0.0, squares / (n * (n - 1)) + (between - squares) / n**2)), floor),
        interval=ConfidenceInterval(mean - half, mean + half, confidence, "cluster-robust t") if error else None,
    )


def _bell_mccaffrey(sizes: NDArray[np.float64]) -> float:
    """The degrees of freedom of a mean's CR2 error, for values that are in truth independent.

    With M the covariance of the adjusted residual sums, they are (tr M)²/tr M².

    >>> [round(_bell_mccaffrey(np.array(sizes)), 4) for sizes in ([5.0, 5.0, 5.0, 5.0], [17.0, 1.0, 1.0, 1.0])]
    [3.0, 1.2405]
    """
    share = sizes / sizes.sum()
    adjusted = np.square(share) / (1 - share)
    return float(1 / (np.square(share).sum() + adjusted.sum() ** 2 - np.square(adjusted).sum()))


def _drop_rounding(error: float, floor: float) -> float:
    return 0.0 if error <= floor else error
