"""Prediction-powered means (PPI++): the mean true score of many items, from labels for some and a judge for all."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._number_arrays import finite_vector
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.student_distribution import t_quantile


class PpiMean(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction-powered mean.

    Attributes:
        value: The estimate.
        n: How many labelled items.
        n_unlabelled: How many items have only a prediction.
        lam: The weight of the predictions: 0 ignores them, 1 trusts them fully.
        standard_error: The standard error of the estimate.
        interval: By the normal approximation, None without spread or below two labels; with bounds, inside them.
        classical: The mean of the labels alone.
        classical_error: Its standard error.
    """

    value: float | None = None
    n: int
    n_unlabelled: int
    lam: float | None = None
    standard_error: float | None = None
    interval: ConfidenceInterval | None = None
    classical: float | None = None
    classical_error: float | None = None


def ppi_mean(
    truth: ArrayLike,
    predicted: ArrayLike,
    unlabelled: ArrayLike,
    *,
    lam: float | None = None,
    weights: ArrayLike | None = None,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> PpiMean:
    """The mean true score of a collection, from labels for some items and predictions for all (PPI++).

    With Y, Ŷ on the n labelled and Û on the N other items: θ = mean Y + λ(mean Û - mean Ŷ), se² = λ²·var(Û)/N + var(Y -
    λŶ)/n (1/n moments). The best λ is cov(Y, Ŷ)/((1 + n/N)·var(Ŷ∪Û)), kept in [0, 1], var(Ŷ∪Û) with divisor n + N - 1;
    with unequal weights, where Û has the labelled items too, it is cov(Y, Ŷ)/var(Ŷ∪Û). Predictions that tell nothing
    give λ = 0 and the plain mean; perfect ones nearly the precision of n + N labels. Labelled items must be drawn at
    random, with equal probabilities or weighted by 1/probability; then Û are the predictions of all items, since the
    others alone are no random draw. Undefined: everything without labels; errors and interval below two labels; the
    interval also without spread. With bounds, the errors Y - λŶ have the interval of ``bounded_mean``, which holds its
    level with few labels, joined with that of Û by squares.

    Reference: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, PPI++: efficient prediction-powered inference,
    arXiv:2311.01453 (2023).

    Args:
        truth: The true scores of the labelled items.
        predicted: The judge's scores of the same items.
        unlabelled: The judge's scores of the items without label.
        lam: A fixed weight, 1 being the first form of PPI; the best one where None.
        weights: What each labelled item counts: 1/probability of being drawn, on any scale; all alike where None.
        bounds: The least and the greatest possible score; None for the published interval.
        confidence: The level of the interval.

    Raises:
        ValueError: Labels, predictions and weights differ in number, a score or weight is not finite, a weight of an
            item is not above 0, or the level is not in (0, 1).

    >>> result = ppi_mean([1, 0, 1, 1, 0, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 1, 1, 1, 1, 1], [1] * 65 + [0] * 35)
    >>> round(result.lam, 4), round(result.value, 4)
    (0.4382, 0.6781)
    """
    check_confidence(confidence)
    y = finite_vector(truth, name="true scores")
    known = finite_vector(predicted, name="predictions")
    others = finite_vector(unlabelled, name="unlabelled predictions")
    if known.size != y.size:
        raise ValueError(f"Each label has one prediction; there are {y.size} labels and {known.size} predictions.")
    if lam is not None and not math.isfinite(lam):
        raise ValueError(f"A fixed weight of the predictions is a finite number, not {lam!r}.")
    if not y.size:
        return PpiMean(n=0, n_unlabelled=others.size)
    shares = item_weights(weights, y.size)
    weight = best_prediction_weight(y, known, others, shares) if lam is None else float(lam)
    method = "ppi++" if lam is None else "ppi"
    result = _estimate_mean(y, known, others, shares, weight=weight, confidence=confidence, method=method)
    if bounds is None:
        return result
    return _with_bounds(result, y - (result.lam or 0.0) * known, others, shares, bounds=bounds, confidence=confidence)


def unit_values(values: ArrayLike, units: ArrayLike) -> NDArray[np.float64]:
    """A value for each unit, whose mean is that of all items, and whose variance is that of units that count by size.

    Args:
        values: The value of each item.
        units: The number of the unit that each item belongs to.

    >>> unit_values([1, 1, 0, 0.5], [0, 0, 0, 7]).tolist()
    [0.6875, 0.5625]
    """
    items, numbers = finite_vector(values, name="values"), np.unique(np.asarray(units), return_inverse=True)[1]
    sizes = np.bincount(numbers)
    mean = items.mean() if items.size else 0.0
    return np.asarray(mean + np.bincount(numbers, weights=items - mean) * len(sizes) / max(1, items.size))


def reach_by_unit(
    influence: NDArray[np.float64], units: NDArray[np.intp], *, confidence: float
) -> tuple[float, float] | None:
    """Standard error and half the t interval of an estimate whose units are groups of items; None for a single unit.

    Args:
        influence: How far each item moves the estimate from its value.
        units: The number of each item's unit.
        confidence: The level of the interval.
    """
    moved = np.bincount(np.unique(units, return_inverse=True)[1], weights=influence)
    count = len(moved)
    if count < 2:
        return None
    error = math.sqrt(count / (count - 1) * float(np.square(moved).sum()))
    return error, t_quantile(confidence, count - 1) * error


def item_weights(weights: ArrayLike | None, size: int) -> NDArray[np.float64]:
    """The weights of labelled items, scaled to a mean of 1.

    Args:
        weights: The weights on any scale; all alike where None.
        size: How many items there are.

    Raises:
        ValueError: There are more or fewer weights, or one is not a finite number above 0.
    """
    if weights is None:
        return np.ones(size)
    found = finite_vector(weights, name="weights")
    if found.size != size:
        raise ValueError(f"Each label has one weight; there are {size} labels and {found.size} weights.")
    if size and found.min() <= 0:
        raise ValueError(f"The weight of an item lies above 0, not at {found.min()!r}.")
    return np.ones(size) if not size or found.min() == found.max() else found / found.mean()


def _with_bounds(
    result: PpiMean,
    errors: NDArray[np.float64],
    others: NDArray[np.float64],
    shares: NDArray[np.float64],
    *,
    bounds: tuple[float, float],
    confidence: float,
) -> PpiMean:
    """The estimate with an interval that stays inside bounds, and has a width however few labels there are."""
    low, high = bounds
    weight = result.lam or 0.0
    sizes = None if shares.min() == shares.max() else shares
    least, most = low - weight * high, high - weight * low
    mean = bounded_mean(errors * shares, sizes, low=least, high=most, confidence=confidence)
    if result.value is None or mean.value is None or mean.interval is None:
        return result
    half = normal_quantile(confidence) * weight * math.sqrt(float(np.var(others)) / others.size) if others.size else 0.0
    lower = result.value - math.hypot(mean.value - mean.interval.lower, half)
    upper = result.value + math.hypot(mean.interval.upper - mean.value, half)
    interval = ConfidenceInterval(max(low, lower), min(high, upper), confidence, "bounded ppi++")
    return msgspec.structs.replace(result, value=min(high, max(low, result.value)), interval=interval)


def best_prediction_weight(
    y: NDArray[np.float64], known: NDArray[np.float64], others: NDArray[np.float64], shares: NDArray[np.float64]
) -> float:
    """The λ of ``ppi_mean`` that makes the estimate most precise, kept in [0, 1].

    Args:
        y: The true scores of the labelled items.
        known: The predictions for them.
        others: The predictions for other items; for all items where weights differ.
        shares: The weights of the labelled items, with a mean of 1.
    """
    if y.size < 2 or not others.size:
        return 0.0
    both = np.concatenate([known, others])
    counts = np.concatenate([shares, np.ones(others.size)])
    spread = float(np.average(np.square(both - np.average(both, weights=counts)), weights=counts))
    spread *= both.size / (both.size - 1)
    if spread == 0:
        return 0.0
    centred = (y - np.average(y, weights=shares)) * (known - np.average(known, weights=shares))
    # Where the others are all items, the labelled ones among them, the best weight is the regression's.
    is_apart = bool(shares.min() == shares.max())
    shrinking = 1 + y.size / others.size if is_apart else 1.0
    return min(1.0, max(0.0, float(np.average(centred, weights=shares)) / (shrinking * spread)))


def _estimate_mean(
    y: NDArray[np.float64],
    known: NDArray[np.float64],
    others: NDArray[np.float64],
    shares: NDArray[np.float64],
    *,
    weight: float,
    confidence: float,
    method: str,
) -> PpiMean:
    n, more = y.size, others.size
    labelled = float(np.average(y, weights=shares))
    shift = spread = 0.0
    if more:
        shift = weight * float(others.mean() - np.average(known, weights=shares))
        spread = weight**2 * float(np.var(others)) / more
    else:
        weight = 0.0
    value = labelled + shift
    error = classical_error = interval = None
    if n >= 2:
        error = math.sqrt(_error_of_mean(y - weight * known, shares) ** 2 + spread)
        classical_error = _error_of_mean(y, shares)
        half = normal_quantile(confidence) * error
        interval = ConfidenceInterval(value - half, value + half, confidence, method) if error else None
    return PpiMean(
        value=value,
        n=n,
        n_unlabelled=more,
        lam=weight,
        standard_error=error,
        interval=interval,
        classical=labelled,
        classical_error=classical_error,
    )


def _error_of_mean(values: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """The standard error of a weighted mean, 1/n moments."""
    away = shares * (values - np.average(values, weights=shares))
    return math.sqrt(float(np.square(away).sum())) / float(shares.sum())
