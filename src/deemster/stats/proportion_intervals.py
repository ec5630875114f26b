"""Confidence intervals of proportions: Wilson, Clopper-Pearson, Newcombe, Tango, clustered Wilson; limits of counts."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.beta_distribution import beta_quantile
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.find_root import find_root
from deemster.stats.means import Mean


class Proportion(msgspec.Struct, frozen=True, kw_only=True):
    """A share of `n` trials with its interval."""

    value: float | None = None
    n: float
    interval: ConfidenceInterval | None = None


class ProportionDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The first share minus the second, with both shares, both counts and the interval of the difference."""

    value: float | None = None
    n: tuple[float, float]
    shares: tuple[float | None, float | None]
    interval: ConfidenceInterval | None = None


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> Proportion:
    """A share with Wilson's score interval.

    Centre (p + z²/2n)/(1 + z²/n), half-width z·sqrt(p(1-p)/n + z²/4n²)/(1 + z²/n). The ends are exactly 0 and 1 where
    nothing or everything succeeded, and the width is never 0. Undefined (value and interval None) for n = 0. ``n`` may
    be an effective size and so fractional.

    Reference: E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Raises:
        ValueError: A count is negative, or there are more successes than trials, or the level is not in (0, 1).

    >>> interval = wilson(3, 5).interval
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.2307, 0.8824)
    """
    successes, n = _counts(successes, n)
    z = normal_quantile(confidence)
    if n == 0:
        return Proportion(n=n)
    lower, upper = _wilson_ends(successes, n, z)
    return Proportion(
        value=successes / n, n=n, interval=ConfidenceInterval(lower, upper, confidence=confidence, method="wilson")
    )


def clopper_pearson(successes: int, n: int, *, confidence: float = 0.95) -> Proportion:
    """A share with the exact interval of Clopper and Pearson.

    The ends are the beta quantiles B(α/2; x, n-x+1) and B(1-α/2; x+1, n-x), exactly 0 and 1 where nothing or everything
    succeeded. It covers at least at its level, so it is wider than Wilson's. Undefined (value and interval None) for
    n = 0.

    Reference: C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).

    Raises:
        ValueError: A count is negative or no whole number, or there are more successes than trials, or the level is not
            in (0, 1).

    >>> interval = clopper_pearson(3, 5).interval
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.1466, 0.9473)
    """
    successes, n = _whole(*_counts(successes, n))
    check_confidence(confidence)
    if n == 0:
        return Proportion(n=n)
    tail = (1 - confidence) / 2
    lower = 0.0 if successes == 0 else beta_quantile(tail, successes, n - successes + 1)
    upper = 1.0 if successes == n else beta_quantile(1 - tail, successes + 1, n - successes)
    return Proportion(
        value=successes / n, n=n, interval=ConfidenceInterval(lower, upper, confidence, method="clopper-pearson")
    )


def newcombe(x1: float, n1: float, x2: float, n2: float, *, confidence: float = 0.95) -> ProportionDifference:
    """The difference x1/n1 - x2/n2 of two independent shares, with Newcombe's hybrid score interval.

    With l, u the Wilson ends of each share and d = p1 - p2: from d - sqrt((p1-l1)² + (u2-p2)²) to
    d + sqrt((u1-p1)² + (p2-l2)²). The ends stay within [-1, 1]. Undefined (value and interval None) where a sample is
    empty. For paired data it is the wrong tool: see ``mcnemar`` and ``sign_flip``.

    Reference: R. G. Newcombe, Interval estimation for the difference between independent proportions, Statistics in
    Medicine 17 (1998), method 10.

    Raises:
        ValueError: A count is negative, or there are more successes than trials, or the level is not in (0, 1).

    >>> result = newcombe(56, 70, 48, 80)
    >>> round(result.value, 4), round(result.interval.lower, 4), round(result.interval.upper, 4)
    (0.2, 0.0524, 0.3339)
    """
    x1, n1 = _counts(x1, n1)
    x2, n2 = _counts(x2, n2)
    z = normal_quantile(confidence)
    first, second = (x1 / n1 if n1 else None), (x2 / n2 if n2 else None)
    if first is None or second is None:
        return ProportionDifference(n=(n1, n2), shares=(first, second))
    (low1, high1), (low2, high2) = _wilson_ends(x1, n1, z), _wilson_ends(x2, n2, z)
    value = first - second
    lower = value - math.hypot(first - low1, high2 - second)
    upper = value + math.hypot(high1 - first, second - low2)
    interval = ConfidenceInterval(max(-1.0, lower), min(1.0, upper), confidence=confidence, method="newcombe")
    return ProportionDifference(value=value, n=(n1, n2), shares=(first, second), interval=interval)


def tango(newly_passing: int, newly_failing: int, n: int, *, confidence: float = 0.95) -> Mean:
    """The difference of two pass-rates of the same samples, with Tango's score interval.

    d = (c - b)/n for c newly passing and b newly failing samples. The ends solve (c - b - nΔ)² = z²·n(2q + Δ(1 - Δ)),
    where q is the likeliest share of newly failing samples if the true difference is Δ: with B = (2n - c + b)Δ - b - c,
    q = (sqrt(B² + 8n·b·Δ(1 - Δ)) - B)/4n. The ends stay within [-1, 1], and the width is never 0. Undefined (value and
    interval None) for n = 0. ``paired_difference`` has the interval for scores, repetitions and clusters.

    Reference: T. Tango, Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17 (1998).

    Args:
        newly_passing: Samples that only the second passes.
        newly_failing: Samples that only the first passes.
        n: All samples.
        confidence: The level of the interval.

    Raises:
        ValueError: A count is negative or no whole number, more samples changed than there are, or the level is not in
            (0, 1).

    >>> result = tango(1, 7, 21)
    >>> round(result.value, 4), round(result.interval.lower, 4), round(result.interval.upper, 4)
    (-0.2857, -0.5172, -0.026)
    """
    gained, lost, n = _whole(newly_passing, newly_failing, n)
    z = normal_quantile(confidence)
    if min(gained, lost) < 0 or gained + lost > n:
        raise ValueError(f"Of {n} samples, {gained} and {lost} cannot have changed.")
    if n == 0:
        return Mean(n=0)
    value = (gained - lost) / n
    upper = _tango_end(gained, lost, n, z)
    lower = -_tango_end(lost, gained, n, z)
    error = math.sqrt(gained + lost - (gained - lost) ** 2 / n) / n
    interval = ConfidenceInterval(lower, upper, confidence, method="tango")
    return Mean(value=value, n=n, standard_error=error, interval=interval)


def _tango_end(gained: int, lost: int, n: int, z: float) -> float:
    """The upper end; the lower one is the upper one of the samples with both counts exchanged, times -1."""

    def excess(delta: float) -> float:
        middle = (2 * n - gained + lost) * delta - gained - lost
        root = math.sqrt(max(0.0, middle * middle + 8 * n * lost * delta * (1 - delta)))
        # The smaller of the two forms loses digits.
        share = 2 * lost * delta * (1 - delta) / (root + middle) if middle > 0 else (root - middle) / (4 * n)
        return (n * delta - gained + lost) - z * math.sqrt(max(0.0, n * (2 * share + delta * (1 - delta))))

    # Where nothing or everything changed, the value itself solves the equation too; the end lies about z²/n further.
    start = (gained - lost) / n + 1e-3 * z * z / n
    return 1.0 if gained == n or start >= 1 else find_root(excess, start, 1.0)


def clustered_wilson(passed: ArrayLike, *, marks: int, confidence: float = 0.95) -> Proportion:
    """The share of passed marks with Wilson's interval, where marks come in clusters of equal size.

    The marks of one cluster are not independent, so the interval is that of as many marks as they are worth, given as
    ``n``. With two clusters that pass all and two that fail all added, q and s² are mean and variance (divisor count -
    1) of the clusters' shares; they are worth q(1-q)N/s² marks, within [N, all marks]. One mark per cluster gives N.
    Undefined (value and interval None) without a mark.

    Args:
        passed: How many marks passed in each cluster.
        marks: Marks per cluster.
        confidence: The level of the interval.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> found = clustered_wilson([5, 5, 5, 4, 3, 5, 5, 0, 2, 5], marks=5)
    >>> round(found.n, 2), round(found.interval.lower, 4), round(found.interval.upper, 4)
    (11.87, 0.4956, 0.9275)
    """
    shares = np.asarray(passed, dtype=np.int64)
    every = len(shares) * marks
    if every == 0:
        return Proportion(n=0)
    passes = int(shares.sum())
    clusters, count = len(shares), len(shares) + 4
    total = passes + 2 * marks
    squares = int(shares @ shares) + 2 * marks * marks
    # Whole numbers to the last division, so that the order of the clusters cannot change a digit.
    spread = count * (count * squares - total * total)
    size = total * (count * marks - total) * clusters * (count - 1) / spread
    size = min(max(size, float(clusters)), float(every))
    successes = size if passes == every else passes / every * size
    return msgspec.structs.replace(wilson(successes, size, confidence=confidence), value=passes / every)


def weighted_wilson(shares: ArrayLike, weights: ArrayLike, *, most: float, confidence: float = 0.95) -> Proportion:
    """The weighted mean of clusters' shares, with Wilson's interval.

    It is ``clustered_wilson`` for clusters that do not count alike. With the weights w scaled to a mean of 1 and two
    clusters of weight 1 that pass all and two that fail all added, q is the weighted mean of the shares y and s² the
    sum of (w(y - q))² over count - 1. The interval is that of q(1-q)N/s² marks, at least (sum of w)²/(sum of w²) and at
    most ``most``, given as ``n``. Undefined (value and interval None) without a cluster.

    Reference for the lower bound: L. Kish, Survey Sampling (1965), the effective size of a weighted sample.

    Args:
        shares: The share of marks that passed in each cluster.
        weights: The weight of each cluster, above 0.
        most: How many independent marks they are worth at most.
        confidence: The level of the interval.

    Raises:
        ValueError: The level is not strictly between 0 and 1.

    >>> shares = [1, 1, 1, 0.8, 0.6, 1, 1, 0, 0.4, 1]
    >>> interval = weighted_wilson(shares, [1] * 10, most=50).interval
    >>> round(interval.lower, 4), round(interval.upper, 4)
    (0.4956, 0.9275)
    """
    values, given = np.asarray(shares, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    clusters = len(values)
    if not clusters:
        return Proportion(n=0)
    # Exactly rounded sums, so that the order of the clusters cannot change a digit.
    scaled = given * (clusters / math.fsum(given.tolist()))
    total = math.fsum((scaled * values).tolist())
    count = clusters + 4
    mean = (total + 2) / count
    squares = [*np.square(scaled * (values - mean)).tolist(), *[(1 - mean) ** 2] * 2, *[mean**2] * 2]
    size = mean * (1 - mean) * clusters * (count - 1) / math.fsum(squares)
    least = clusters**2 / math.fsum(np.square(scaled).tolist())
    size = min(max(size, least), most)
    share = 1.0 if (values == 1).all() else 0.0 if (values == 0).all() else min(1.0, total / clusters)
    return msgspec.structs.replace(wilson(share * size, size, confidence=confidence), value=share)


def _wilson_ends(successes: float, n: float, z: float) -> tuple[float, float]:
    share = successes / n
    scale = 1 + z * z / n
    centre = (share + z * z / (2 * n)) / scale
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / scale
    lower = 0.0 if successes == 0 else max(0.0, centre - half)
    upper = 1.0 if successes == n else min(1.0, centre + half)
    return lower, upper


def _counts(successes: float, n: float) -> tuple[float, float]:
    """The two counts, checked, as plain numbers."""
    if not 0 <= successes <= n < math.inf:
        raise ValueError(f"There are between 0 and n = {n} successes, not {successes}.")
    return _plain(successes), _plain(n)


def _plain(count: float) -> float:
    return int(count) if isinstance(count, int | np.integer) else float(count)


def _whole(*counts: float) -> tuple[int, ...]:
    for count in counts:
        if count != int(count):
            raise ValueError(f"An exact interval needs whole counts, not {count!r}.")
    return tuple(map(int, counts))
