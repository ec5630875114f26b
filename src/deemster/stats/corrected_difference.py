"""The difference of two systems that one judge scored, each corrected by its own labels (prediction-powered)."""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._number_arrays import finite_vector
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.debiased_estimates import best_prediction_weight, item_weights, reach_by_unit

FEWEST_LABELS = 2


class LabelledSide(NamedTuple):
    """One of two systems: what the judge says of every item, and what people say of some.

    Attributes:
        predicted: The judge's score of each item, in [0, 1].
        places: The places of the labelled items among them.
        truth: The true score of each labelled item.
        judged: The judge's score of just that output of each labelled item that people saw.
        weights: What each labelled item counts, 1/probability of being drawn; all alike where None.
    """

    predicted: ArrayLike
    places: ArrayLike
    truth: ArrayLike
    judged: ArrayLike
    weights: ArrayLike | None = None


class CorrectedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two mean scores, second minus first, corrected by labels on both.

    Attributes:
        value: The corrected difference.
        interval: Its interval; None below two labels on a side.
        naive: The difference of the judge's mean scores.
        labels: How many labels each side has.
        weights: The weight of the judge's scores on each side: 0 ignores them, 1 trusts them fully.
        error_difference: How much more the judge underrates the second system than the first.
        error_interval: Its interval.
        is_error_different: Whether the judge errs otherwise on one system than on the other, beyond chance.
    """

    value: float | None = None
    interval: ConfidenceInterval | None = None
    naive: float | None = None
    labels: tuple[int, int]
    weights: tuple[float, float] | None = None
    error_difference: float | None = None
    error_interval: ConfidenceInterval | None = None
    is_error_different: bool = False


class _Side(NamedTuple):
    """One side as arrays."""

    predicted: NDArray[np.float64]
    places: NDArray[np.int64]
    truth: NDArray[np.float64]
    judged: NDArray[np.float64]
    shares: NDArray[np.float64]

    def errors(self, weight: float) -> NDArray[np.float64]:
        """What is left of each true score after a part of the judge's."""
        return np.asarray(self.truth - weight * self.judged)


def corrected_difference(
    first: LabelledSide, second: LabelledSide, *, units: ArrayLike | None = None, confidence: float = 0.95
) -> CorrectedDifference:
    """The true difference of two systems on the same items, where a judge scored all and people labelled some.

    Each side is a prediction-powered mean with its own labels: λ·mean(f) + mean(Y - λf). One calibration for both would
    only stretch the difference; labels on both sides can turn its sign. The judge's scores are paired by item. So are
    the labels where both sides have the same ones; otherwise the errors of the two sides are independent parts. The
    parts are joined by squares. The errors Y - λf are bounded, and have the interval of ``bounded_mean``.

    The judge's error on one system differs from its error on the other where the interval of mean(Y - f) of the second
    minus that of the first leaves out 0: then the naive difference says as much about the judge as about the systems.
    Labelled items must be drawn at random, with known probabilities. With units, both intervals are t intervals.

    Reference: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, PPI++: efficient prediction-powered inference,
    arXiv:2311.01453 (2023).

    Args:
        first: The system before.
        second: The system now, on the same items in the same order.
        units: The unit of each item, such as its document; None where each stands alone.
        confidence: The level of the intervals.

    Raises:
        ValueError: The numbers of items or labels differ, a score is not in [0, 1], or the level is not in (0, 1).

    >>> same = [1, 0] * 40
    >>> before = LabelledSide(same, range(40), same[:40], same[:40])
    >>> now = LabelledSide([1] * 80, range(40), same[:40], [1] * 40)
    >>> found = corrected_difference(before, now)
    >>> abs(round(found.value, 4)), found.naive, found.is_error_different
    (0.0, 0.5, True)
    """
    check_confidence(confidence)
    sides = _read(first), _read(second)
    if sides[0].predicted.size != sides[1].predicted.size:
        raise ValueError("Both sides have the same items; their numbers of scores differ.")
    labels = sides[0].truth.size, sides[1].truth.size
    naive = float((sides[1].predicted - sides[0].predicted).mean()) if sides[0].predicted.size else None
    if naive is None or min(labels) < FEWEST_LABELS:
        return CorrectedDifference(naive=naive, labels=labels)
    weights = tuple(best_prediction_weight(one.truth, one.judged, one.predicted, one.shares) for one in sides)
    moved = weights[1] * sides[1].predicted - weights[0] * sides[0].predicted
    groups = None if units is None else np.unique(np.asarray(units), return_inverse=True)[1]
    errors, below, above = _reach(sides, (weights[0], weights[1]), moved, groups, confidence)
    value = float(moved.mean()) + errors
    whole, less, more = _reach(sides, (1.0, 1.0), np.zeros(moved.size), groups, confidence)
    interval = ConfidenceInterval(max(-1.0, value - below), min(1.0, value + above), confidence, "bounded ppi++")
    return CorrectedDifference(
        value=min(1.0, max(-1.0, value)),
        interval=interval,
        naive=naive,
        labels=labels,
        weights=(weights[0], weights[1]),
        error_difference=whole,
        error_interval=ConfidenceInterval(whole - less, whole + more, confidence, "bounded mean"),
        is_error_different=whole - less > 0 or whole + more < 0,
    )


def _read(side: LabelledSide) -> _Side:
    predicted = finite_vector(side.predicted, name="predictions")
    truth, judged = finite_vector(side.truth, name="true scores"), finite_vector(side.judged, name="scores")
    places = np.asarray(side.places, dtype=np.int64)
    if not truth.size == judged.size == places.size:
        raise ValueError(f"Each of the {truth.size} labels has a place and a score.")
    for scores in (predicted, truth, judged):
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise ValueError("A score lies in [0, 1].")
    return _Side(predicted, places, truth, judged, item_weights(side.weights, truth.size))


def _error_difference(
    sides: tuple[_Side, _Side], weights: tuple[float, float], confidence: float
) -> tuple[float, float, float]:
    """The mean error of the second side minus that of the first, and how far its interval reaches down and up."""
    before, after = (side.errors(weight) for side, weight in zip(sides, weights, strict=True))
    first, second = sides
    if np.array_equal(first.places, second.places) and np.array_equal(first.shares, second.shares):
        return _bounded(after - before, first.shares, (-1 - weights[1], 1 + weights[0]), confidence)
    old = _bounded(before, first.shares, (-weights[0], 1.0), confidence)
    new = _bounded(after, second.shares, (-weights[1], 1.0), confidence)
    return new[0] - old[0], math.hypot(new[1], old[2]), math.hypot(new[2], old[1])


def _reach(
    sides: tuple[_Side, _Side],
    weights: tuple[float, float],
    moved: NDArray[np.float64],
    units: NDArray[np.intp] | None,
    confidence: float,
) -> tuple[float, float, float]:
    """The mean error of the second side minus that of the first, and how far the interval reaches down and up.

    Where units are groups of items, it is a t interval by the influence of each unit.
    """
    errors, below, above = _error_difference(sides, weights, confidence)
    if units is None:
        half = normal_quantile(confidence) * math.sqrt(float(np.var(moved)) / moved.size)
        return errors, math.hypot(below, half), math.hypot(above, half)
    influence = (moved - moved.mean()) / moved.size
    for sign, side, weight in zip((-1, 1), sides, weights, strict=True):
        left = side.errors(weight)
        away = side.shares * (left - np.average(left, weights=side.shares)) / side.shares.sum()
        np.add.at(influence, side.places, sign * away)
    # A single unit says nothing of how far others lie: the whole range.
    _, half = reach_by_unit(influence, units, confidence=confidence) or (0.0, 2.0)
    return errors, half, half


def _bounded(
    errors: NDArray[np.float64], shares: NDArray[np.float64], bounds: tuple[float, float], confidence: float
) -> tuple[float, float, float]:
    sizes = None if shares.min() == shares.max() else shares
    mean = bounded_mean(errors * shares, sizes, low=bounds[0], high=bounds[1], confidence=confidence)
    if mean.value is None or mean.interval is None:
        raise AssertionError("there are labels, and so a mean")
    return mean.value, mean.value - mean.interval.lower, mean.interval.upper - mean.value
