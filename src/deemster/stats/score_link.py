"""Links the scores of two judges of the same outputs: which pass mark of the new one gives the old pass-rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.stats.confidence_interval import Interval, normal_quantile
from deemster.stats.correlation import spearman
from deemster.stats.means import unit_sums
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import PairedDifference, paired_difference
from deemster.stats.rank_correlation import spearman_influence

_Rows: TypeAlias = NDArray[np.intp]
# So many outputs must pass under the old judge, and fail, for its pass mark to be linked.
FEWEST_OF_A_KIND = 5
_MOST_DECIMALS = 12
# How often units are permuted, and what numbers differ by that are equal.
_DRAWS = 999
_ROUNDING = 1e-12
# A pass mark is rounded where that moves it by at most this share of its interval.
_SLIGHT = 1 / 20


class ScoreLink(msgspec.Struct, frozen=True, kw_only=True):
    """The pass mark of the new scores that stands for one of the old scores.

    Attributes:
        mark: The pass mark of the new scores.
        interval: The pass marks under which the pass-rates may be the same.
        left: What is left of the difference of the pass-rates under this mark: new minus old.
        passed: For each pair, whether the new score passes under this mark.
    """

    mark: float
    interval: Interval
    left: PairedDifference
    passed: NDArray[np.bool_]


def link_pass_mark(old_passed: NDArray[np.bool_], new: Floats, units: _Rows, *, confidence: float) -> ScoreLink | None:
    """Find the pass mark of new scores that gives the old pass-rate: the equipercentile link at the old pass mark.

    The mark lies between the two new scores where the pass-rates are closest. Its interval holds every mark under which
    they do not differ by McNemar's score test, by units: |Σu| <= z·√Σu² for the differences u. A bootstrap of the mark
    has no width where scores have few steps. Undefined (None) where fewer than five
    outputs pass under the old judge, or fewer than five fail: the interval of such a mark covers 80 % at 50 outputs.

    References: M. J. Kolen, R. L. Brennan, Test Equating, Scaling, and Linking (2014), chapter 2; Q. McNemar,
    Psychometrika 12 (1947).

    Args:
        old_passed: For each pair, whether the old score passes.
        new: The new score of each pair; higher is better.
        units: The unit of each pair.
        confidence: The level of the interval.

    >>> old = np.arange(100) / 100
    >>> link = link_pass_mark(old >= 0.7, old**2, np.arange(100), confidence=0.95)
    >>> link.mark, [round(end, 2) for end in link.interval]
    (0.48, [0.44, 0.53])
    """
    z = normal_quantile(confidence)
    n_passed = int(np.count_nonzero(old_passed))
    if min(n_passed, len(new) - n_passed) < FEWEST_OF_A_KIND:
        return None

    steps = np.unique(new)
    passing = len(new) - np.searchsorted(np.sort(new), steps)
    cut = int(np.argmin(np.abs(passing - n_passed)))

    def left(at: int) -> Floats:
        return np.asarray((new >= steps[at]).astype(np.float64) - old_passed)

    def holds(at: int) -> bool:
        totals, _ = unit_sums(left(at), units)
        return abs(float(totals.sum())) <= z * math.sqrt(float(np.square(totals).sum()))

    top = len(steps) - 1
    first = _first(holds, cut)
    last = top - _first(lambda below: holds(top - below), top - cut)
    interval = Interval(float(steps[max(0, first - 1)]), float(steps[last]))
    mark = _short_mark(
        float(steps[max(0, cut - 1)]), float(steps[cut]), slight=_SLIGHT * (interval.high - interval.low)
    )
    passed = new >= mark
    remaining = unit_sums(passed.astype(np.float64) - old_passed, units)
    return ScoreLink(
        mark=mark, interval=interval, left=paired_difference(*remaining, confidence=confidence), passed=passed
    )


def _first(holds: Callable[[int], bool], known: int) -> int:
    """The first place from which on something holds, up to a place where it does."""
    low, high = -1, known
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _short_mark(below: float, upto: float, *, slight: float) -> float:
    """The shortest number above one score and up to the next, or no more than slightly away from their middle.

    >>> _short_mark(0.61, 0.63, slight=0.0), _short_mark(0.5, 0.75, slight=0.0), _short_mark(0.617, 0.619, slight=0.004)
    (0.62, 0.6, 0.62)
    """
    middle = (below + upto) / 2
    for decimals in range(1, _MOST_DECIMALS):
        mark = round(middle, decimals)
        if below < mark <= upto or abs(mark - middle) <= slight:
            return mark
    return upto


def spearman_interval(old: Floats, new: Floats, units: _Rows, *, confidence: float) -> tuple[float, Interval] | None:
    """Spearman's correlation of pairs in units, with its interval on Fisher's scale: tanh(atanh ρ ± z·s).

    s is the larger of the error that the influence of each unit on ρ gives, and √((1 + ρ²/2)/(G - 3)) for G units, so
    that it is not 0 where all ranks agree; there ρ is taken as 1 - 1/G. Undefined (None) below five units, or where all
    scores of a side are equal.

    Reference: D. G. Bonett, T. A. Wright, Psychometrika 65 (2000).

    >>> rho, interval = spearman_interval(np.arange(30.0), np.arange(30.0), np.arange(30), confidence=0.95)
    >>> round(rho, 2), round(interval.low, 2), round(interval.high, 2)
    (1.0, 0.92, 1.0)
    """
    value = spearman(old, new).value
    influence, _ = unit_sums(spearman_influence(old, new), units)
    groups = len(influence)
    if value is None or groups < 5:
        return None

    rho = math.copysign(min(abs(value), 1 - 1 / groups), value)
    measured = math.sqrt(float(np.square(influence).sum())) / len(old) / (1 - rho**2)
    error = max(measured, math.sqrt((1 + rho**2 / 2) / (groups - 3)))
    reach = normal_quantile(confidence) * error
    ends = Interval(math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach))
    return value, Interval(min(ends.low, value), max(ends.high, value))


def permuted_group_tests(values: Floats, members: Floats, *, seed: int) -> list[float]:
    """For each group, the p-value that its mean differs from the others' by chance: units are permuted.

    p = (hits + 1)/(draws + 1), of 999 draws. A hit is a permutation in which the mean of
    the group lies at least as far from the mean of all units as it does.

    Args:
        values: The mean value of each unit.
        members: How many values of each unit each group has, units x groups.
        seed: The seed of the permutations.

    >>> values = np.repeat([0.0, 1.0], 20)
    >>> permuted_group_tests(values, np.stack([values, np.tile([0.0, 1.0], 20)], axis=1), seed=0)
    [0.001, 1.0]
    """
    sizes = members.sum(axis=0)
    mean = float(values.mean())
    apart = np.abs(values @ members / sizes - mean) - _ROUNDING

    # Only what is not 0 need be put somewhere.
    moved = values[values != 0]
    rng = np.random.default_rng(seed)
    hits = np.zeros(len(sizes))
    for _ in range(_DRAWS):
        places = rng.choice(len(values), len(moved), replace=False)
        hits += np.abs(moved @ members[places] / sizes - mean) >= apart
    return [float(p) for p in (hits + 1) / (_DRAWS + 1)]
