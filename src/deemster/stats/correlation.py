"""Correlation of two sets of numbers: Pearson, Spearman, Kendall."""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import constant, pairs
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.rank_correlation import Dominance, centred_ranks, dominance, kendall_influence
from deemster.stats.student_distribution import t_cdf, t_quantile

Method = Literal["pearson", "spearman", "kendall"]
# Below this many pairs the variance of Fisher's z has no meaning for one of the three.
SMALLEST_FOR_INTERVAL = 5
# The exact distribution of Kendall's tau is used up to here, as the field's libraries do.
LARGEST_EXACT = 33
# Up to here the p-value of Spearman's is that of all orders.
LARGEST_EXACT_SPEARMAN = 9


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    """A coefficient from -1 to 1, the pairs it rests on, and how sure it is."""

    value: float | None
    n: int
    p_value: float | None
    interval: ConfidenceInterval | None
    missing: int
    method: Method


def fisher_interval(
    value: float | None, n: int, *, method: Method, confidence: float = 0.95
) -> ConfidenceInterval | None:
    """The interval of a correlation on Fisher's scale: tanh(atanh(r) ± z·√v).

    v is 1/(n-3) for Pearson, (1 + r²/2)/(n-3) for Spearman and 0.437/(n-4) for Kendall without ties. Undefined (None)
    below 5 pairs and at ±1. ``kendall`` has an interval that knows ties.

    Reference: E. C. Fieller, H. O. Hartley, E. S. Pearson, Tests for rank correlation coefficients, Biometrika 44
    (1957); D. G. Bonett, T. A. Wright, Sample size requirements for estimating correlations, Psychometrika 65 (2000).

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> interval = fisher_interval(0.6, 30, method="pearson")
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.3058, 0.7896)
    """
    check_confidence(confidence)
    if value is None or n < SMALLEST_FOR_INTERVAL or abs(value) >= 1:
        return None
    if method == "kendall":
        variance = 0.437 / (n - 4)
    else:
        variance = (1 + value * value / 2 if method == "spearman" else 1.0) / (n - 3)
    half = normal_quantile(confidence) * math.sqrt(variance)
    centre = math.atanh(value)
    return ConfidenceInterval(math.tanh(centre - half), math.tanh(centre + half), confidence, "fisher-z")


def pearson(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> Correlation:
    """Pearson's product-moment correlation: Σ(x-x̄)(y-ȳ)/√(Σ(x-x̄)²·Σ(y-ȳ)²).

    ±1 is a straight line, 0 no linear relation. The p-value is exact for normal data, where
    r·√((n-2)/(1-r²)) is Student's t with n - 2 degrees of freedom if there is no relation. Undefined (None) below 3
    pairs or where a side is constant.

    Args:
        x: Numbers; a pair with None or NaN on a side is left out and counted as missing.
        y: Numbers paired with them.
        confidence: The level of the interval (see ``fisher_interval``).

    Reference: K. Pearson, Note on regression and inheritance in the case of two parents, Proceedings of the Royal
    Society of London 58 (1895).

    Raises:
        ValueError: The sequences differ in length, or hold something that is no number or infinite.

    >>> round(pearson([1, 2, 2, 3, 4, 4, 5, 5, 3, 1], [1, 1, 2, 3, 3, 4, 5, 4, 3, 2]).value, 6)
    0.905822
    """
    first, second, missing = pairs(x, y)
    n = len(first)
    if n < 3 or constant(first) or constant(second):
        return _correlation(None, None, n=n, missing=missing, method="pearson", confidence=confidence)
    # Scaled to 1, so that squares of very large and very small numbers exist.
    a, b = _scaled(first), _scaled(second)
    value = _snapped(float(a @ b) / math.sqrt(float(a @ a) * float(b @ b)))
    p_value = _linear_tail(value, n)
    return _correlation(value, p_value, n=n, missing=missing, method="pearson", confidence=confidence)


def spearman(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> Correlation:
    """Spearman's rank correlation: Pearson's correlation of the ranks, ties at their mid-ranks.

    ±1 is a monotone relation. Up to 9 pairs the p-value is exact, over all orders of the second side, ties included;
    beyond, r·√((n-2)/(1-r²)) is taken for Student's t with n - 2 degrees of freedom. Undefined (None) below 3 pairs or
    where a side is constant.

    Args:
        x: Numbers; a pair with None or NaN on a side is left out and counted as missing.
        y: Numbers paired with them.
        confidence: The level of the interval (see ``fisher_interval``).

    Reference: C. Spearman, The proof and measurement of association between two things, American Journal of
    Psychology 15 (1904).

    Raises:
        ValueError: The sequences differ in length, or hold something that is no number or infinite.

    >>> round(spearman([1, 2, 2, 3, 4, 4, 5, 5, 3, 1], [1, 1, 2, 3, 3, 4, 5, 4, 3, 2]).value, 6)
    0.918257
    """
    first, second, missing = pairs(x, y)
    n = len(first)
    a, b = centred_ranks(first).astype(np.float64), centred_ranks(second).astype(np.float64)
    if n < 3 or not a.any() or not b.any():
        return _correlation(None, None, n=n, missing=missing, method="spearman", confidence=confidence)
    value = _snapped(float(a @ b) / math.sqrt(float(a @ a) * float(b @ b)))
    if n <= LARGEST_EXACT_SPEARMAN:
        p_value = _permutation_tail(centred_ranks(first).tolist(), centred_ranks(second).tolist())
    else:
        p_value = _linear_tail(value, n)
    return _correlation(value, p_value, n=n, missing=missing, method="spearman", confidence=confidence)


def kendall(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95, counts: Dominance | None = None) -> Correlation:
    """Kendall's tau-b: (C - D)/√((C+D+T_x)(C+D+T_y)) over all pairs of items, in O(n log n).

    C, D are the concordant and discordant pairs, T_x, T_y those tied on one side only. ±1 is a monotone relation. The
    p-value is exact without ties up to 33 items (and beyond where at most one pair is out of order), else normal with
    the tie-corrected variance. The interval is tanh(atanh(τ) ± t·s/(1-τ²)), with s² = ΣIF²/(n(n-1)) from the influence
    of each item, which knows ties, and Student's t with n - 1 degrees of freedom. Undefined (None) below 3 pairs or
    where a side is constant; the interval also below 5 pairs, at ±1 and where every item has the same influence.

    Args:
        x: Numbers; a pair with None or NaN on a side is left out and counted as missing.
        y: Numbers paired with them.
        confidence: The level of the interval.
        counts: ``dominance`` of the pairs, where it is there already.

    Reference: M. G. Kendall, Rank Correlation Methods (1970).

    Raises:
        ValueError: The sequences differ in length, hold something that is no number or infinite, or are not those that
            were counted.

    >>> round(kendall([12, 2, 1, 12, 2], [1, 4, 7, 1, 0]).value, 6)
    -0.471405
    """
    check_confidence(confidence)
    first, second, missing = pairs(x, y)
    n = len(first)
    counts = dominance(first, second) if counts is None else counts
    if len(counts.ties) != n:
        raise ValueError(f"There are {n} pairs, but the counts are of {len(counts.ties)} items.")
    # Every pair of items is counted from both its ends.
    concordant, discordant = int(counts.concordant.sum()) // 2, int(counts.discordant.sum()) // 2
    every = n * (n - 1) // 2
    untied = every - int(counts.x_ties.sum()) // 2, every - int(counts.y_ties.sum()) // 2
    if n < 3 or not untied[0] or not untied[1]:
        return _correlation(None, None, n=n, missing=missing, method="kendall", confidence=confidence)
    value = _snapped((concordant - discordant) / math.sqrt(untied[0] * untied[1]))
    fewer = min(discordant, every - discordant)
    if untied == (every, every) and (n <= LARGEST_EXACT or fewer <= 1):
        p_value = _inversions_tail(n, fewer)
    else:
        variance = _tied_variance(counts.x_ties, counts.y_ties)
        p_value = math.erfc(abs(concordant - discordant) / math.sqrt(2 * variance))
    interval = None
    if n >= SMALLEST_FOR_INTERVAL and abs(value) < 1:
        influence = kendall_influence(counts)
        error = math.sqrt(float(influence @ influence) / (n * (n - 1)))
        half = t_quantile(confidence, n - 1) * error / (1 - value * value)
        centre = math.atanh(value)
        # What rounding leaves of an influence of 0 is no width.
        if half > 1e-12:
            interval = ConfidenceInterval(math.tanh(centre - half), math.tanh(centre + half), confidence, "influence")
    return Correlation(value=value, n=n, p_value=p_value, interval=interval, missing=missing, method="kendall")


def _scaled(values: Floats) -> Floats:
    shrunk = values / np.abs(values).max()
    centred = shrunk - shrunk.mean()
    return np.asarray(centred / np.abs(centred).max())


def _linear_tail(value: float, n: int) -> float:
    """The p-value of n pairs, of which r·√((n-2)/(1-r²)) is Student's t with n - 2 degrees of freedom."""
    rest = (1 + value) * (1 - value)
    return 2 * t_cdf(-abs(value) * math.sqrt((n - 2) / rest), n - 2) if rest > 0 else 0.0


def _snapped(value: float) -> float:
    """A coefficient within ±1, at ±1 where only the last digits of a quotient keep it off."""
    return math.copysign(1.0, value) if abs(value) > 1 - 1e-15 else value


def _correlation(
    value: float | None, p_value: float | None, *, n: int, missing: int, method: Method, confidence: float
) -> Correlation:
    interval = fisher_interval(value, n, method=method, confidence=confidence)
    return Correlation(value=value, n=n, p_value=p_value, interval=interval, missing=missing, method=method)


def _permutation_tail(first: list[int], second: list[int]) -> float:
    """The share of all orders of the second side whose sum of products is at least as far from 0 as this one.

    >>> _permutation_tail([-1, 0, 1], [-1, 0, 1])
    0.3333333333333333
    """
    observed = abs(sum(a * b for a, b in zip(first, second, strict=True)))
    # By the set of those already placed: how many orders lead to each sum.
    ways: dict[int, Counter[int]] = {0: Counter({0: 1})}
    for a in first:
        following: dict[int, Counter[int]] = {}
        for placed, sums in ways.items():
            for place, b in enumerate(second):
                if not placed >> place & 1:
                    found = following.setdefault(placed | 1 << place, Counter())
                    for total, count in sums.items():
                        found[total + a * b] += count
        ways = following
    (sums,) = ways.values()
    return sum(count for total, count in sums.items() if abs(total) >= observed) / sums.total()


def _inversions_tail(n: int, fewer: int) -> float:
    """Twice the chance that a random order of n has at most so many pairs out of order."""
    if 4 * fewer >= n * (n - 1):
        return 1.0
    if fewer <= 1:
        return min(1.0, 2 * (n if fewer else 1) / math.factorial(n)) if n <= 170 else 0.0
    # The last of j items stands behind 0 to j-1 larger ones: each count is a window of the counts before it.
    ways = [1] + [0] * fewer
    for j in range(2, n + 1):
        running, before = 0, ways
        ways = []
        for k in range(fewer + 1):
            running += before[k] - (before[k - j] if k >= j else 0)
            ways.append(running)
    return min(1.0, 2 * sum(ways) / math.factorial(n))


def _tied_variance(first: ArrayLike, second: ArrayLike) -> float:
    """The variance of C - D where there is no relation, given how many others share the value of each item."""
    t, u = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n = len(t)
    two = [float(g.sum()) for g in (t, u)]
    three = [float((g * (g - 1)).sum()) for g in (t, u)]
    slopes = [float((g * (2 * g + 7)).sum()) for g in (t, u)]
    m = n * (n - 1)
    return (m * (2 * n + 5) - sum(slopes)) / 18 + two[0] * two[1] / (2 * m) + three[0] * three[1] / (9 * m * (n - 2))
