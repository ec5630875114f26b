"""Empirical likelihood of a mean: how unlikely a mean is, and the furthest mean that is likely enough."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from deemster.stats.find_root import find_root
from deemster.stats.nan_arithmetic import DUST, Floats

# Newton's steps until the multiplier is exact; halving alone would need no more.
_STEPS = 100


def likelihood_ratios(deviations: Floats, counts: Floats) -> Floats:
    """Twice the log of how much likelier data are without the condition that their deviations have the mean 0.

    It is 2·Σn·log(1 + λy), where λ solves Σn·y/(1 + λy) = 0. It is 0 where the mean is 0 already, and infinite where
    all deviations lie on one side of 0.

    Reference: A. B. Owen, Empirical likelihood, Chapman & Hall (2001), section 2.9.

    Args:
        deviations: A row of deviations for each problem.
        counts: How often each of them occurs; 0 leaves one out.

    >>> likelihood_ratios(np.array([[-1.0, 1.0], [1.0, 2.0]]), np.array([[5.0, 1.0], [1.0, 1.0]])).round(4)
    array([2.911,   inf])
    """
    largest = np.where(counts > 0, np.abs(deviations), 0.0).max(axis=1, keepdims=True)
    # A deviation of 0 has no influence, and rounding errors must have none.
    deviations = np.where((counts > 0) & (np.abs(deviations) > DUST * largest), deviations, 0.0)
    lowest, highest = deviations.min(axis=1), deviations.max(axis=1)
    answer = np.where((lowest == 0) & (highest == 0), 0.0, np.inf)
    inside = np.flatnonzero((lowest < 0) & (highest > 0))
    if not inside.size:
        return answer
    y, n = deviations[inside], counts[inside]
    # No weight exceeds 1, which bounds the multiplier.
    furthest = 1 / n.sum(axis=1) - 1
    low, high = furthest / highest[inside], furthest / lowest[inside]
    multiplier = np.zeros(len(inside))
    for _ in range(_STEPS):
        shares = y / (1 + multiplier[:, None] * y)
        slope = (n * shares).sum(axis=1)
        low, high = np.where(slope > 0, multiplier, low), np.where(slope < 0, multiplier, high)
        following = multiplier + slope / (n * np.square(shares)).sum(axis=1)
        following = np.where((low < following) & (following < high), following, (low + high) / 2)
        following = np.where(slope == 0, multiplier, following)
        settled = np.abs(following - multiplier) <= 1e-15 * (high - low) + 1e-15 * np.abs(multiplier)
        multiplier = following
        if settled.all():
            break
    answer[inside] = np.maximum(0.0, 2 * (n * np.log1p(multiplier[:, None] * y)).sum(axis=1))
    return answer


def furthest_mean(totals: Floats, sizes: Floats, counts: Floats, *, bound: float, limit: float) -> float:
    """The mean furthest towards a bound whose likelihood ratio is at most ``limit``.

    For a slope m, the weights n/(τ + u - s·m) have the least Σw(u - s·m) of all weights as likely as they are. One τ
    has the likelihood of the limit; the mean under its weights is the next m, until it no longer changes. It is the
    bound itself where all units lie there.

    Reference: W. Dinkelbach, On nonlinear fractional programming, Management Science 13 (1967).

    Args:
        totals: The sum u of each kind of unit.
        sizes: The size s of each kind.
        counts: How many units of each kind there are.
        bound: The end of the range, at which at least one unit lies.
        limit: A quantile of chi-squared with one degree of freedom.

    >>> round(furthest_mean(np.array([0.0, -1.0]), np.ones(2), np.array([180.0, 1.0]), bound=-1, limit=2.7055), 4)
    -0.02
    """
    return _furthest_mean(totals.tobytes(), sizes.tobytes(), counts.tobytes(), bound, limit)


@lru_cache(maxsize=1024)
def _furthest_mean(all_totals: bytes, all_sizes: bytes, all_counts: bytes, bound: float, limit: float) -> float:
    """The same from the bytes of the arrays: metrics and cohorts in which nothing changed ask for the same ends."""
    totals, sizes, counts = map(np.frombuffer, (all_totals, all_sizes, all_counts))
    middle = float(counts @ totals / (counts @ sizes))
    if abs(middle - bound) <= 1e-12 * max(1.0, abs(bound)):
        return bound
    side = 1.0 if bound < middle else -1.0
    mean = middle
    for _ in range(_STEPS):
        deviations = side * (totals - sizes * mean)
        weights = counts / (1 + (deviations - deviations.min()) / _shift(deviations, counts, limit))
        previous, mean = mean, float(weights @ totals / (weights @ sizes))
        # With units of one size the weights do not depend on the mean.
        if sizes.min() == sizes.max() or abs(mean - previous) <= 1e-14 * abs(bound - middle):
            break
    return mean


def _shift(deviations: Floats, counts: Floats, limit: float) -> float:
    """The distance τ from the least deviation at which weights n/(τ + y) have the likelihood of the limit."""
    above, total = deviations - deviations.min(), float(counts.sum())

    def excess(logarithm: float) -> float:
        scaled = 1 + above * math.exp(-logarithm)
        return 2 * float(counts @ np.log(scaled)) + 2 * total * math.log(float((counts / scaled).sum()) / total) - limit

    low = high = math.log(float(above.max()))
    while excess(low) <= 0:
        low -= 4
    while excess(high) >= 0:
        high += 4
    return math.exp(find_root(excess, low, high))
