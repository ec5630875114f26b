"""The mean difference of paired units: interval, margins, and what the comparison can show at all."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import finite_vector
from deemster.stats.beta_distribution import beta_quantile
from deemster.stats.bounded_mean import ENOUGH_DIFFERENT, SKEWNESS_WEIGHT, BoundedUnits, bounded_units, unbend_t
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.empirical_likelihood import furthest_mean, likelihood_ratios
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.student_distribution import t_quantile


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean difference, second minus first, of `n` paired units.

    Attributes:
        value: Σu/Σs.
        n: How many units: samples, or clusters of samples.
        samples: Σs, the samples in all units.
        better: Units whose total is above 0.
        worse: Units whose total is below 0.
        standard_error: The standard error of the value; None below two units.
        effect: The standardised mean difference, value/(error·√n); None without spread.
        interval: The two-sided interval.
        p_value: Against no difference, of the interval itself: the smallest level at which it leaves out 0.
        lower_bound: The one-sided lower bound of the same confidence: an end of the two-sided interval of twice the α,
            and never closer to the value than without any spread.
        upper_bound: The one-sided upper bound of the same confidence: the other end of that interval.
        certifiable: The smallest margin that these data certify: how far the lower bound lies below 0, or 0.
        certifiable_unchanged: The same if no unit had changed.
        detectable: The smallest drop whose two-sided interval would lie below 0 with the given power, if as many units
            lose everything and the others go on as they did; None where there are too few units for any drop.
        margin: The drop that would still be acceptable, where one was given.
        p_within: Against a drop of the margin or more: at most α exactly where the lower bound lies above -margin.
        p_beyond: Against a drop of at most the margin: at most α exactly where the upper bound lies below -margin.
    """

    value: float | None = None
    n: int
    samples: float
    better: int
    worse: int
    standard_error: float | None = None
    effect: float | None = None
    interval: ConfidenceInterval | None = None
    p_value: float | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    certifiable: float | None = None
    certifiable_unchanged: float | None = None
    detectable: float | None = None
    margin: float | None = None
    p_within: float | None = None
    p_beyond: float | None = None


def paired_difference(
    totals: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    margin: float | None = None,
    confidence: float = 0.95,
    power: float = 0.8,
) -> PairedDifference:
    """The mean difference of two runs on the same units, with intervals and tests that hold where little changed.

    The interval is that of ``bounded_mean`` for differences from -1 to 1. Student's t applies where 20 units or more
    changed, (Σ|d|)²/Σd² of them for deviations d from the median: the number of changed units where all change by the
    same, and (Σd²)²/Σd⁴ where units differ in size. Otherwise it is empirical likelihood with one imagined unit at -1
    for the lower end and one at +1 for the upper: 180 unchanged units certify a margin of 0.02.

    Two things keep the level of t. On the side of the longer tail it is lengthened to t + a(1 + 2t²), with
    `a = |γ|/(4√n)` for the skewness γ. And the one-sided lower bound is never closer to the value than that of as many
    units without any spread: scores that all move a little do not exclude a rare large drop better than scores that do
    not move. The p-values are the exact duals of the bounds. Undefined (None) without units.

    References: A. B. Owen, Biometrika 75 (1988); J. Chen, A. M. Variyath, B. Abraham, Journal of Computational and
    Graphical Statistics 17 (2008); N. J. Johnson, JASA 73 (1978).

    Args:
        totals: The sum of the differences of each unit.
        sizes: How many samples each unit has; 1 where not given.
        margin: The drop that would still be acceptable.
        confidence: The level of the interval, and of each one-sided bound.
        power: The chance with which ``detectable`` would be shown.

    Raises:
        ValueError: Totals and sizes differ in number, a size is not above 0, a difference lies outside [-1, 1], the
            margin is outside [0, 1), or a level is outside (0, 1).

    >>> result = paired_difference([-1.0] * 3 + [0.0] * 97, margin=0.05)
    >>> round(result.lower_bound, 4), round(result.p_within, 4), round(result.certifiable_unchanged, 4)
    (-0.0799, 0.3097, 0.0356)
    """
    check_confidence(confidence)
    check_margin(margin)
    u = finite_vector(totals, name="differences")
    units = bounded_units(u, sizes, low=-1.0, high=1.0, strict=True)
    if units is None:
        return PairedDifference(n=0, samples=0.0, better=0, worse=0, margin=margin)
    spread = None if units.error is None else units.error * math.sqrt(units.n)
    return PairedDifference(
        value=units.mean,
        n=units.n,
        samples=units.size,
        better=int(np.count_nonzero(u > 0)),
        worse=int(np.count_nonzero(u < 0)),
        standard_error=units.error,
        effect=units.mean / spread if spread else None,
        interval=units.interval(confidence),
        p_value=units.two_sided_p(0.0),
        certifiable_unchanged=certifiable_margin(units.n, sizes=sizes, confidence=confidence),
        detectable=_detectable_drop(units, confidence, power),
        margin=margin,
        **_one_sided(units, sizes, margin, confidence),
    )


def certifiable_margin(n: int, *, sizes: ArrayLike | None = None, confidence: float = 0.95) -> float | None:
    """The smallest margin that so many units certify if none of them changes: about 3.6/n for units of one size.

    It is how far the one-sided lower bound of ``paired_difference`` lies below 0. Undefined (None) without units, and
    for a confidence of at most one half.

    Args:
        n: How many units: samples, or clusters of samples.
        sizes: How many samples each unit has; equal where not given.
        confidence: The level of the one-sided bound.

    Raises:
        ValueError: The sizes are not n, one is not above 0, or the level is outside (0, 1).

    >>> [round(certifiable_margin(n), 4) for n in (20, 75, 180)]
    [0.163, 0.0472, 0.02]
    """
    check_confidence(confidence)
    if sizes is not None and (np.shape(sizes) != (n,) or (n and finite_vector(sizes).min() <= 0)):
        raise ValueError(f"Each of the {n} units has a size above 0.")
    if n < 1 or confidence <= 0.5:
        return None
    kinds, counts = _size_kinds(n, sizes)
    return _unchanged_margin(tuple(kinds.tolist()), tuple(counts.tolist()), confidence)


@lru_cache
def _unchanged_margin(kinds: tuple[float, ...], numbers: tuple[float, ...], confidence: float) -> float:
    """The margin that units of these sizes certify if none changes; metrics and cohorts ask for the same ones."""
    counts = np.array(numbers)
    average = float(counts @ kinds / counts.sum())
    totals, spans = np.append(np.zeros(len(kinds)), -average), np.append(kinds, average)
    limit = max(0.0, NormalDist().inv_cdf(confidence)) ** 2
    return -furthest_mean(totals, spans, np.append(counts, 1.0), bound=-1.0, limit=limit)


def flip_p_values(
    worse: ArrayLike, better: ArrayLike, *, n: int, mean: float, side: Literal["above", "below"]
) -> Floats:
    """The p-values of ``paired_difference`` for many counts of samples that newly fail and newly pass.

    Args:
        worse: How many of n samples newly fail, one number for each case.
        better: How many newly pass.
        n: How many samples there are.
        mean: The difference in question, such as -margin.
        side: What is to be shown: that the true difference lies "above" it or "below" it.

    >>> flip_p_values([3, 0], [0, 0], n=100, mean=-0.05, side="above").round(4)
    array([0.3097, 0.0125])
    """
    from scipy.special import stdtr  # noqa: PLC0415 - scipy takes a tenth of a second to load

    lost, gained = np.asarray(worse, dtype=np.float64), np.asarray(better, dtype=np.float64)
    sign = 1.0 if side == "above" else -1.0
    kept = n - lost - gained
    answer = np.empty(len(lost))
    many = np.minimum(*(_effective_flips(lost, gained, kept, place) for place in ((n - 1) // 2, n // 2)))
    many = many >= ENOUGH_DIFFERENT
    if many.any():
        value = (gained[many] - lost[many]) / n
        error = np.sqrt((lost[many] + gained[many] - n * np.square(value)) / (n - 1) / n)
        third = gained[many] * (1 - value) ** 3 - lost[many] * (1 + value) ** 3 - kept[many] * value**3
        second = lost[many] + gained[many] - n * np.square(value)
        bends = SKEWNESS_WEIGHT * third / n / (second / n) ** 1.5 / (6 * math.sqrt(n))
        answer[many] = stdtr(n - 1, -unbend_t(sign * (value - mean) / error, sign * bends))
    if not many.all():
        # One more unit at the end of the range on the side of the bound.
        counts = np.column_stack([lost, gained, kept, np.ones(len(lost))])[~many]
        values = np.broadcast_to([-1.0, 1.0, 0.0, -sign], counts.shape)
        answer[~many] = _likelihood_p_values(values, counts, mean, sign)
    if side == "above":
        # As many units without any spread.
        balance, places = np.unique(gained - lost, return_inverse=True)
        same = np.column_stack([balance / n, np.full(len(balance), -1.0)])
        floor = _likelihood_p_values(same, np.broadcast_to([float(n), 1.0], same.shape), mean, sign)
        answer = np.maximum(answer, floor[places])
    return answer


def _likelihood_p_values(values: Floats, counts: Floats, mean: float, sign: float) -> Floats:
    """The one-sided p-values of units of size 1, one row for each case, the imagined unit among them."""
    from scipy.special import ndtr  # noqa: PLC0415 - scipy takes a tenth of a second to load

    ratios = likelihood_ratios(values - mean, counts)
    beyond = sign * ((counts * values).sum(axis=1) / counts.sum(axis=1) - mean)
    return np.asarray(ndtr(-np.copysign(np.sqrt(ratios), beyond)), dtype=np.float64)


def _effective_flips(lost: Floats, gained: Floats, kept: Floats, place: int) -> Floats:
    """``effective_changes`` of flips, for the median at a place."""
    median = np.where(place < lost, -1.0, np.where(place < lost + kept, 0.0, 1.0))
    parts = ((lost, np.abs(-1 - median)), (kept, np.abs(median)), (gained, np.abs(1 - median)))
    total, squares = (sum(count * away**power for count, away in parts) for power in (1, 2))
    return np.asarray(np.divide(np.square(total), squares, out=np.zeros(len(lost)), where=squares > 0))


@lru_cache
def fewest_flips(confidence: float = 0.95) -> int:
    """How many units must turn from 1 to 0, and none back, before the two-sided interval lies below 0.

    >>> fewest_flips(), fewest_flips(0.9)
    (6, 5)
    """
    flips = np.arange(2.0, 200.0)
    counts = np.column_stack([flips, np.ones(len(flips))])
    ratios = likelihood_ratios(np.broadcast_to([-1.0, 1.0], counts.shape), counts)
    return int(flips[np.argmax(ratios > normal_quantile(confidence) ** 2)])


def check_margin(margin: float | None) -> None:
    """Check the drop that would still be acceptable.

    Raises:
        ValueError: It is outside [0, 1).
    """
    if margin is not None and not 0 <= margin < 1:
        raise ValueError(f"A margin is a drop of at least 0 and below 1, not {margin!r}.")


def _one_sided(
    units: BoundedUnits, sizes: ArrayLike | None, margin: float | None, confidence: float
) -> dict[str, float | None]:
    """The one-sided bounds, what they certify, and the p-values of a margin."""
    rules = units, _without_spread(units, sizes)
    answer: dict[str, float | None] = {}
    if confidence > 0.5:
        level = 2 * confidence - 1
        lower = min(rule.interval(level).lower for rule in rules)
        answer = {
            "lower_bound": lower,
            "upper_bound": units.interval(level).upper,
            "certifiable": max(0.0, -lower),
        }
    if margin is not None:
        answer["p_within"] = max(rule.p_value(-margin, side="above") for rule in rules)
        answer["p_beyond"] = units.p_value(-margin, side="below")
    return answer


def _without_spread(units: BoundedUnits, sizes: ArrayLike | None) -> BoundedUnits:
    """As many units of the same sizes, all of which have the mean value."""
    kinds, counts = _size_kinds(units.n, sizes)
    same = np.array([kinds * units.mean, kinds, counts])
    return msgspec.structs.replace(units, kinds=same, unusual=0.0, error=0.0, bend=0.0)


def _size_kinds(n: int, sizes: ArrayLike | None) -> tuple[Floats, Floats]:
    """Each size that occurs, and how often it does."""
    if sizes is None:
        return np.ones(1), np.array([float(n)])
    kinds, counts = np.unique(np.asarray(sizes, dtype=np.float64), return_counts=True)
    return kinds, counts.astype(np.float64)


def _detectable_drop(units: BoundedUnits, confidence: float, power: float) -> float | None:
    """The drop that these units would show.

    A drop d counts as a share d of units that lose everything, on top of the observed spread s: d is as many standard
    errors sqrt((s² + d(1 - d))/n) as the power asks for. Where few units changed, the unit that the interval imagines
    counts too, and ``fewest_flips`` of the units must fall.
    """
    if not 0 < power < 1:
        raise ValueError(f"The power lies strictly between 0 and 1, not at {power!r}.")
    by_flips = imagined = 0.0
    if units.kinds is not None:
        needed = fewest_flips(confidence)
        if units.n < needed:
            return None
        by_flips, imagined = beta_quantile(power, needed, units.n - needed + 1), 1 / units.n
    freedom = max(1, units.n - 1)
    reach = t_quantile(confidence, freedom) + math.copysign(t_quantile(abs(2 * power - 1), freedom), power - 0.5)
    share = math.copysign(reach**2 / units.n, reach)
    if share <= 0:
        return by_flips
    spread = 4 * (1 + share) * (reach**2 * (units.error or 0.0) ** 2 + share * imagined)
    by_spread = (share + math.sqrt(share**2 + spread)) / (2 * (1 + share)) + imagined
    return min(1.0, max(by_flips, by_spread))
