"""RMSE, MAE, Pearson, bias and concordance of paired scores from sums, for replicates too.

Every feature of an item is summed over the items of a replicate, and the same formulas are asked. Leading axes are
stacks; undefined is NaN inside arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deemster.stats.nan_arithmetic import DUST, Floats, quotient
from deemster.stats.rank_correlation import Dominance, kendall_influence, spearman_influence


class ScoreScale(NamedTuple):
    """Where two sets of scores lie: the first mean minus the second, and the largest absolute score, at least 1."""

    shift: float
    largest: float


def score_scale(x: Floats, t: Floats) -> ScoreScale:
    """Where two sets of scores lie.

    >>> score_scale(np.array([0.5, 1.0]), np.array([0.0, 1.0]))
    ScoreScale(shift=0.25, largest=1.0)
    """
    largest = float(max(1.0, np.abs(x).max(initial=0.0), np.abs(t).max(initial=0.0)))
    return ScoreScale(known_mean(x) - known_mean(t), largest)


def known_mean(values: Floats) -> float:
    """The mean of what is not NaN; 0 where nothing is.

    >>> known_mean(np.array([0.5, np.nan, 1.0]))
    0.75
    """
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else 0.0


def true_features(t: Floats, *, mean: float | None = None) -> Floats:
    """What each item adds on the side of the truth, ``[3, items]``: a count, and sums about the mean of the data.

    Args:
        t: The true scores.
        mean: The mean of the data, where the items are not the data.

    >>> true_features(np.array([0.0, 1.0]))
    array([[ 1.  ,  1.  ],
           [-0.5 ,  0.5 ],
           [ 0.25,  0.25]])
    """
    # About the mean, so that differences of sums keep their digits.
    centred = t - (known_mean(t) if mean is None else mean)
    return np.array([np.ones(len(t)), centred, centred * centred])


def predicted_features(x: Floats, t: Floats, *, mean: float | None = None, counts: Dominance | None = None) -> Floats:
    """What each item adds on the side of the predictions, ``[4, items]``: sums and the distance to the truth.

    Args:
        x: The predicted scores.
        t: The true scores.
        mean: The mean of the data's predicted scores, where the items are not the data.
        counts: ``dominance(x, t)`` adds two features: the influence of each item on Spearman's and Kendall's
            correlation.

    >>> predicted_features(np.array([1.0, 0.0]), np.array([1.0, 1.0]))[2:]
    array([[0., 1.],
           [0., 1.]])
    """
    centred, difference = x - (known_mean(x) if mean is None else mean), x - t
    rows = [centred, centred * centred, np.abs(difference), difference * difference]
    if counts is not None:
        rows += [spearman_influence(x, t), kendall_influence(counts)]
    return np.array(rows)


def difference_sums(sums: Floats, shift: float) -> tuple[Floats, Floats, Floats]:
    """How many pairs, and the sums of predicted - true and of its square.

    Args:
        sums: Summed ``true_features`` and the first four ``predicted_features``, ``[7, ...]``.
        shift: The mean of the predicted minus the mean of the true scores.
    """
    n, t, _, x, _, _, squares = sums
    return n, shift * n + (x - t), squares


def score_statistics(sums: Floats, scale: ScoreScale, *, z: float) -> dict[str, Floats]:
    """Errors, Pearson's correlation, bias, concordance and limits of agreement of paired scores.

    Args:
        sums: Summed ``true_features`` and the first four ``predicted_features``, ``[7, ...]``.
        scale: Where the scores lie.
        z: Normal quantile of the limits of agreement.

    >>> x, t = np.array([0.9, 0.7, 0.8]), np.array([0.7, 0.6, 0.8])
    >>> sums = np.concatenate([true_features(t), predicted_features(x, t)]).sum(axis=1, keepdims=True)
    >>> score_statistics(sums, score_scale(x, t), z=1.96)["mean"].round(4)
    array([0.1])
    """
    n, t, tt, x, xx, distance, squares = sums
    _, d, _ = difference_sums(sums, scale.shift)
    # The sum of products follows from the squares of both sides and of their difference.
    xt = (xx + tt + scale.shift * (2 * (x - t) + n * scale.shift) - squares) / 2
    variance_x, variance_t, variance_d = _variances(n, x, xx), _variances(n, t, tt), _variances(n, d, squares)
    covariance = np.where((variance_x > 0) & (variance_t > 0), n * xt - x * t, 0.0)
    root = np.where(n > 2.5, np.sqrt(variance_x) * np.sqrt(variance_t), 0.0)
    mean = quotient(d, n)
    # The divisor is n - 1; below two items, but for rounding of weights, there is no standard deviation.
    deviation = np.sqrt(quotient(variance_d, np.where(n > 1.5, n * (n - 1), 0.0)))
    deviation = np.where(deviation <= 1e-12 * scale.largest, 0.0, deviation)
    return {
        "rmse": np.sqrt(quotient(squares, n)),
        "mae": quotient(distance, n),
        "pearson": np.clip(quotient(covariance, root), -1, 1),
        "mean": mean,
        "deviation": deviation,
        "effect_size": quotient(mean, deviation),
        "concordance": quotient(2 * covariance, variance_x + variance_t + d * d),
        "lower": mean - z * deviation,
        "upper": mean + z * deviation,
    }


def expand_correlation(value: float | None, influence: Floats, n: Floats) -> Floats:
    """A rank correlation of replicates to first order: its value plus the mean influence of the items drawn.

    >>> expand_correlation(0.9, np.array([0.0, 1.0]), np.array([4.0, 4.0]))
    array([0.9, 1. ])
    """
    return np.clip((np.nan if value is None else value) + quotient(influence, n), -1, 1)


def _variances(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """n² times the variance; what rounding leaves of a constant is 0."""
    found = n * squares - sums * sums
    return np.where(found > DUST * n * squares, found, 0.0)
