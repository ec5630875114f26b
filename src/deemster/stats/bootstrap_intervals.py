"""Percentile, expanded percentile and BCa bootstrap intervals, for one row of replicates or a stack of them."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.confidence_interval import check_confidence
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.student_distribution import t_quantile

# Two ways of summing the same numbers differ by less; a true difference of two statistics is larger.
_ROUNDING = 1e-12
_CACHED = 2**15


class Ends(NamedTuple):
    """Interval ends for a stack of statistics, all of the shape of the stack.

    Attributes:
        lower: Lower ends, NaN where undefined.
        upper: Upper ends, NaN where undefined.
        defined: How many replicates are defined.
        fallback: Where BCa was asked for and percentile ends are given.
    """

    lower: Floats
    upper: Floats
    defined: NDArray[np.int64]
    fallback: NDArray[np.bool_]


def percentile_interval(replicates: ArrayLike, confidence: float = 0.95) -> Ends:
    """The middle part of the replicates: their linear quantiles at (1 ∓ confidence)/2.

    NaN replicates are left out. Undefined (NaN) where more than half of them are NaN.

    Reference: B. Efron, R. J. Tibshirani, An introduction to the bootstrap (1993), chapter 13.

    Args:
        replicates: One row of replicates, or a stack [..., replicates].
        confidence: The level of the interval.

    Raises:
        ValueError: There is no replicate, or the level is not strictly between 0 and 1.

    >>> ends = percentile_interval([[3.0, 1.0, 2.0, 5.0, 4.0], [1.0, np.nan, np.nan, np.nan, 2.0]], 0.5)
    >>> ends.lower, ends.upper, ends.defined
    (array([ 2., nan]), array([ 4., nan]), array([5, 2]))
    """
    return _middle_part(replicates, (1 - check_confidence(confidence)) / 2)


def expanded_percentile_interval(replicates: ArrayLike, *, units: int, confidence: float = 0.95) -> Ends:
    """The percentile interval at wider levels, which make up for few units.

    The levels are Φ(∓ sqrt(G/(G - 1))·t), with t the quantile of Student's t for G - 1 degrees of freedom. For many
    units this is the percentile interval. NaN replicates are left out. Undefined (NaN) for a single unit, and where
    more than half of the replicates are NaN.

    Reference: T. C. Hesterberg, What teachers should know about the bootstrap, The American Statistician 69 (2015).

    Args:
        replicates: One row of replicates, or a stack [..., replicates].
        units: How many units were resampled.
        confidence: The level of the interval.

    Raises:
        ValueError: There is no replicate, or the level is not strictly between 0 and 1.

    >>> ends = expanded_percentile_interval(np.arange(1001.0), units=20)
    >>> round(float(ends.lower), 1), round(float(ends.upper), 1)
    (15.9, 984.1)
    """
    check_confidence(confidence)
    if units < 2:
        missing = np.full(np.shape(replicates)[:-1], np.nan)
        return Ends(missing, missing, np.zeros(missing.shape, dtype=np.int64), np.zeros(missing.shape, dtype=bool))
    return _middle_part(
        replicates, NormalDist().cdf(-math.sqrt(units / (units - 1)) * t_quantile(confidence, units - 1))
    )


def _middle_part(replicates: ArrayLike, tail: float) -> Ends:
    ordered, defined = _sort_defined(replicates)
    enough = 2 * defined >= ordered.shape[-1]
    lower = _quantiles(ordered, defined, np.full(defined.shape, tail))
    upper = _quantiles(ordered, defined, np.full(defined.shape, 1 - tail))
    return Ends(
        np.where(enough, lower, np.nan), np.where(enough, upper, np.nan), defined, np.zeros(defined.shape, dtype=bool)
    )


def acceleration(jackknife: ArrayLike, *, weights: ArrayLike | None = None) -> Floats:
    """How fast the standard error of a statistic changes with its value, from leaving out one unit at a time.

    With u the mean of the jackknife values minus each: Σu³/(6·(Σu²)^1.5). 0 where nothing changes. NaN values are left
    out.

    Reference: B. Efron, Better bootstrap confidence intervals, JASA 82 (1987).

    Args:
        jackknife: One row of values, each without one unit, or a stack [..., units].
        weights: How many units each value stands for, where equal units were left out together.

    >>> round(float(acceleration([1.0, 2.0, 6.0])), 4)
    -0.0573
    """
    values = np.asarray(jackknife, dtype=np.float64)
    flat = values.reshape(math.prod(values.shape[:-1]), values.shape[-1])
    share = np.ones(flat.shape[1]) if weights is None else np.asarray(weights, dtype=np.float64)
    # A few rows at a time stay in the processor's cache, which is worth a factor of three.
    step = max(1, _CACHED // max(1, flat.shape[1]))
    parts = [_accelerations(flat[start : start + step], share) for start in range(0, len(flat), step)]
    return np.asarray(np.concatenate([np.empty(0), *parts]).reshape(values.shape[:-1]))


def _accelerations(values: Floats, share: Floats) -> Floats:
    known = np.isfinite(values)
    if not known.all():
        values, share = np.where(known, values, 0.0), share * known
    mean = (values * share).sum(axis=-1) / np.maximum(share.sum(axis=-1), 1)
    shift = mean[:, None] - values
    if not known.all():
        shift[~known] = 0.0
    # Differences within rounding errors count as none.
    floor = _ROUNDING * np.maximum(np.abs(mean), np.abs(values).max(axis=-1, initial=0.0))
    shift[np.abs(shift) <= floor[:, None]] = 0.0
    products = shift * shift
    products *= share
    squares = products.sum(axis=-1)
    products *= shift
    nothing = np.zeros(squares.shape)
    return np.asarray(np.divide(products.sum(axis=-1), 6 * squares**1.5, out=nothing, where=squares > 0))


def bca_interval(
    estimate: ArrayLike,
    replicates: ArrayLike,
    jackknife: ArrayLike,
    confidence: float = 0.95,
    *,
    weights: ArrayLike | None = None,
) -> Ends:
    """The bias-corrected and accelerated interval.

    z0 = Φ⁻¹(share of replicates below the estimate plus half the ties), a the ``acceleration``; the ends are the linear
    quantiles of the replicates at Φ(z0 + (z0 ∓ z)/(1 - a(z0 ∓ z))). With z0 = a = 0 it is the percentile interval. An
    infinite z0 (all replicates on one side), or a correction that runs over its pole, falls back to the percentile
    interval, and ``fallback`` says so. NaN replicates are left out. Undefined (NaN) where more than half of them are,
    or the estimate is.

    Reference: B. Efron, Better bootstrap confidence intervals, JASA 82 (1987).

    Args:
        estimate: The statistic of the data, or a stack of them.
        replicates: One row of replicates, or a stack [..., replicates].
        jackknife: The statistic without one unit at a time, or a stack [..., units].
        confidence: The level of the interval.
        weights: How many units each jackknife value stands for.

    Raises:
        ValueError: There is no replicate, or the level is not strictly between 0 and 1.

    >>> ends = bca_interval(3.0, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0, 3.0, 4.0], 0.5)
    >>> round(float(ends.lower), 4), round(float(ends.upper), 4)
    (1.6834, 4.0006)
    """
    return corrected_interval(estimate, replicates, acceleration(jackknife, weights=weights), confidence)


def corrected_interval(
    estimate: ArrayLike, replicates: ArrayLike, accelerations: ArrayLike, confidence: float = 0.95
) -> Ends:
    """``bca_interval`` for accelerations that are known.

    Raises:
        ValueError: There is no replicate, or the level is not strictly between 0 and 1.

    >>> ends = corrected_interval(3.0, [1.0, 2.0, 3.0, 4.0, 5.0], 0.0, 0.5)
    >>> float(ends.lower), float(ends.upper)
    (2.0, 4.0)
    """
    from scipy.special import ndtr, ndtri  # noqa: PLC0415 - scipy takes a tenth of a second to load

    tail = (1 - check_confidence(confidence)) / 2
    ordered, defined = _sort_defined(replicates)
    centre = np.asarray(estimate, dtype=np.float64)
    enough = (2 * defined >= ordered.shape[-1]) & np.isfinite(centre)
    bias = ndtri(_share_below(ordered, defined, centre))
    speed = np.asarray(accelerations, dtype=np.float64)
    usable = np.isfinite(bias) & np.isfinite(speed)
    levels = []
    for end in (tail, 1 - tail):
        shifted = np.where(usable, bias, 0.0) + ndtri(end)
        room = 1 - np.where(usable, speed, 0.0) * shifted
        usable &= room > 0
        levels.append(ndtr(np.where(usable, bias, 0.0) + shifted / np.where(room > 0, room, 1.0)))
    lower = _quantiles(ordered, defined, np.where(usable, levels[0], tail))
    upper = _quantiles(ordered, defined, np.where(usable, levels[1], 1 - tail))
    return Ends(np.where(enough, lower, np.nan), np.where(enough, upper, np.nan), defined, enough & ~usable)


def _sort_defined(replicates: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
    values = np.asarray(replicates, dtype=np.float64)
    if not values.ndim or not values.shape[-1]:
        raise ValueError("An interval needs at least one replicate.")
    known = np.isfinite(values)
    # NaN is sorted behind every number, so the defined replicates are the first of each row.
    ordered = np.sort(values if known.all() else np.where(known, values, np.nan), axis=-1)
    return ordered, np.asarray(np.count_nonzero(known, axis=-1))


def _quantiles(ordered: Floats, defined: NDArray[np.int64], share: Floats) -> Floats:
    """The linear quantile of the defined part of each sorted row; NaN where a row has none."""
    last = np.maximum(defined - 1, 0)
    rank = share * last
    below = np.minimum(np.floor(rank).astype(np.int64), last)
    low = np.take_along_axis(ordered, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(ordered, np.minimum(below + 1, last)[..., None], axis=-1)[..., 0]
    return np.asarray(low + (high - low) * (rank - below))


def _share_below(ordered: Floats, defined: NDArray[np.int64], centre: Floats) -> Floats:
    """The share of defined replicates below the estimate, ties half; NaN where there is none."""
    last = np.take_along_axis(ordered, np.maximum(defined - 1, 0)[..., None], axis=-1)[..., 0]
    slack = _ROUNDING * np.maximum(np.abs(centre), np.maximum(np.abs(ordered[..., 0]), np.abs(last)))
    below = (ordered < (centre - slack)[..., None]).sum(axis=-1)
    up_to = (ordered <= (centre + slack)[..., None]).sum(axis=-1)
    return np.where(defined > 0, (below + up_to) / (2 * np.maximum(defined, 1)), np.nan)
