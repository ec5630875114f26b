"""The interval of a mean of values with known bounds: Student's t, or empirical likelihood where few values differ."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.empirical_likelihood import furthest_mean, likelihood_ratios
from deemster.stats.means import Mean
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.student_distribution import t_cdf, t_quantile

# From so many values that differ from the usual one, Student's t holds its level.
ENOUGH_DIFFERENT = 20
# Where few units carry a change, their skewness is mostly measured too small.
SKEWNESS_WEIGHT = 1.5


def bounded_mean(
    totals: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    strict: bool = False,
    confidence: float = 0.95,
) -> Mean:
    """A mean of values between two bounds, with an interval that holds its level where nearly all values are equal.

    The estimate is Σu/Σs over units with the total u and the size s. Where 20 units or more differ from the most common
    value, the interval is Student's, with the standard error sqrt(G/(G-1)·Σ(u - s·mean)²)/Σs and G - 1 degrees of
    freedom, cut to the bounds. Otherwise each end comes from the empirical likelihood of the units and one imagined
    unit of average size that lies at the bound on its side: the end solves 2·Σlog(1 + λ(u - s·μ)) = χ². So the width is
    never 0, not even where all values are equal; with 0 of n it reaches up to about 4/n. Undefined (None) without
    units.

    References: A. B. Owen, Empirical likelihood ratio confidence intervals for a single functional, Biometrika 75
    (1988); J. Chen, A. M. Variyath, B. Abraham, Adjusted empirical likelihood and its properties, Journal of
    Computational and Graphical Statistics 17 (2008).

    Args:
        totals: The sum of the values of each unit.
        sizes: How many values each unit has; 1 where not given.
        low: The least possible value.
        high: The greatest possible value.
        strict: Take Student's t only where 20 units of equal weight carry the change, and correct it for skewness.
        confidence: The level of the interval.

    Raises:
        ValueError: Totals and sizes differ in number, a value is not finite or outside the bounds, or the level is not
            in (0, 1).

    >>> interval = bounded_mean([1.0] * 30).interval
    >>> round(interval.lower, 4), interval.upper
    (0.8655, 1.0)
    """
    check_confidence(confidence)
    units = bounded_units(totals, sizes, low=low, high=high, strict=strict)
    if units is None:
        return Mean(n=0)
    return Mean(value=units.mean, n=units.n, standard_error=units.error, interval=units.interval(confidence))


class BoundedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """What the interval of ``bounded_mean`` and its tests need to know of units.

    Attributes:
        mean: Σu/Σs.
        n: How many units.
        size: Σs.
        error: The standard error of the mean; None below two units.
        unusual: How many units differ from the usual value; where ``strict``, how many units of equal weight that is.
        low: The least possible value.
        high: The greatest possible value.
        kinds: Total, size and number of each kind of unit, in rows; None where Student's t applies.
        bend: How much the skewness of the units lengthens the t of the longer tail; 0 for plain t.
    """

    mean: float
    n: int
    size: float
    error: float | None
    unusual: float
    low: float
    high: float
    kinds: Floats | None
    bend: float = 0.0

    def interval(self, confidence: float) -> ConfidenceInterval:
        """The interval at a level between 0 and 1."""
        if self.kinds is None and self.error is not None:
            t = t_quantile(confidence, self.n - 1)
            lower, upper = (self.mean - sign * bend_t(t, sign * self.bend) * self.error for sign in (1.0, -1.0))
            method = "skewness-adjusted student" if self.bend else "student"
            return ConfidenceInterval(max(self.low, lower), min(self.high, upper), confidence, method)
        limit = normal_quantile(confidence) ** 2
        lower = furthest_mean(*self._extended(self.low), bound=self.low, limit=limit)
        upper = furthest_mean(*self._extended(self.high), bound=self.high, limit=limit)
        return ConfidenceInterval(min(lower, self.mean), max(upper, self.mean), confidence, "empirical likelihood")

    def p_value(self, mean: float, *, side: Literal["above", "below"]) -> float:
        """The one-sided p-value against a true mean on the other side of ``mean``.

        It is at most α where the interval of the level 1 - 2α lies wholly above, or below, ``mean``.

        Args:
            mean: The mean in question.
            side: What is to be shown: that the true mean lies "above" it or "below" it.
        """
        sign = 1.0 if side == "above" else -1.0
        if self.kinds is None and self.error is not None:
            if not self.low <= mean <= self.high:
                return float(sign * (self.mean - mean) < 0)
            distance = self.mean - mean
            t = math.copysign(math.inf, distance) if self.error == 0 and distance else distance / (self.error or 1.0)
            return t_cdf(-float(unbend_t(np.array([sign * t]), np.array([sign * self.bend]))[0]), self.n - 1)
        u, s, counts = self._extended(self.low if side == "above" else self.high)
        ratio = likelihood_ratios((u - s * mean)[None], counts[None])[0]
        beyond = sign * (float(counts @ u / (counts @ s)) - mean)
        return math.erfc(math.copysign(math.sqrt(ratio / 2), beyond)) / 2

    def two_sided_p(self, mean: float) -> float:
        """The p-value of the interval itself: the smallest level 1 - confidence at which it leaves out ``mean``."""
        if self.mean == mean:
            return 1.0
        return min(1.0, 2 * self.p_value(mean, side="above" if self.mean > mean else "below"))

    def _extended(self, bound: float) -> tuple[Floats, Floats, Floats]:
        """Total, size and number of each kind, with one more unit of average size at a bound."""
        size = self.size / self.n
        u, s, counts = np.zeros((3, 0)) if self.kinds is None else self.kinds
        return np.append(u, bound * size), np.append(s, size), np.append(counts, 1.0)


def bounded_units(
    totals: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    strict: bool = False,
    likelihood: bool = False,
) -> BoundedUnits | None:
    """Sum up units for the interval of ``bounded_mean``; None without units.

    Args:
        totals: The sum of the values of each unit.
        sizes: How many values each unit has; 1 where not given.
        low: The least possible value.
        high: The greatest possible value.
        strict: Take Student's t only where 20 units of equal weight carry the change, and correct it for skewness.
        likelihood: Never take Student's t.

    Raises:
        ValueError: Totals and sizes differ in number, a size is not above 0, or a value is not finite or outside the
            bounds.
    """
    u = finite_vector(totals)
    # One size for all: numbers of a million units take much room.
    s = np.ones(1) if sizes is None else finite_vector(sizes)
    if sizes is not None and len(s) != len(u):
        raise ValueError(f"Each total has a size; there are {len(u)} totals and {len(s)} sizes.")
    if not len(u):
        return None
    if s.min() <= 0:
        raise ValueError(f"A unit has a size above 0, not {s.min()}.")
    values = u if sizes is None else u / s
    slack = 1e-9 * max(1.0, abs(low), abs(high))
    if values.min() < low - slack or values.max() > high + slack:
        raise ValueError(f"A value lies outside the bounds, {low} to {high}.")
    size = float(len(u)) if sizes is None else math.fsum(s.data)
    mean, error = _mean_and_error(u, s, size)
    unusual = effective_changes(u, s) if strict else count_unusual(values, slack=slack)
    kinds = None
    if likelihood or error is None or unusual < ENOUGH_DIFFERENT:
        # One sort of complex numbers is many times quicker than a sort of rows; sizes of 1 need no sort at all.
        distinct, counts = np.unique(u if sizes is None else u + 1j * s, return_counts=True)
        kinds = np.array([distinct.real, np.ones(len(distinct)) if sizes is None else distinct.imag, counts])
    return BoundedUnits(
        mean=mean,
        n=len(u),
        size=size,
        error=error,
        unusual=unusual,
        low=low,
        high=high,
        kinds=kinds,
        bend=_bend(u - s * mean) if strict and kinds is None else 0.0,
    )


def effective_changes(totals: Floats, sizes: Floats) -> float:
    """How many units of equal weight carry a change: (Σ|d|)²/Σd², d the deviation of a unit from the median value.

    It is the number of changed units where all change by the same, and less where a few change by more than the rest.
    Where units differ in size, the few large ones count for more: it is (Σd²)²/Σd⁴. An even number of units has two
    medians; the smaller result counts.

    >>> effective_changes(np.array([-1.0, -1.0, 0.0, 0.0, 0.0]), np.ones(5))
    2.0
    """
    values, n = totals / sizes, len(totals)
    is_one_size = sizes.min() == sizes.max()
    found = []
    middle = [(n - 1) // 2, n // 2]
    for median in sorted({*np.partition(values, middle)[middle].tolist()}):
        away = totals - sizes * median
        np.abs(away, out=away)
        weights = away if is_one_size else np.square(away)
        squares = float(np.square(weights).sum())
        found.append(float(weights.sum()) ** 2 / squares if squares > 0 else 0.0)
    # A sum that should be a whole number must not miss it by its last digit.
    return round(min(found), 9)


def _bend(deviations: Floats) -> float:
    """1.5·γ/(6√n), γ the skewness of deviations from the mean; 0 without spread."""
    squares = float(np.square(deviations).mean())
    skewness = float((deviations * deviations * deviations).mean()) / squares**1.5 if squares > 0 else 0.0
    return SKEWNESS_WEIGHT * skewness / (6 * math.sqrt(len(deviations)))


def bend_t(t: float, bend: float) -> float:
    """How far a one-sided bound lies from the mean, in standard errors: t + a(1 + 2t²) for a = -bend, at least t.

    The units have their long tail on the side of the bound where the skewness is negative. Student's t then misses more
    often than it should, by the first term of its Edgeworth expansion, for which a is |γ|/(6√n). The other side is left
    as it is.

    References: N. J. Johnson, Modified t tests and confidence intervals for asymmetrical populations, JASA 73 (1978);
    P. Hall, On the removal of skewness by transformation, JRSS B 54 (1992).
    """
    return t + max(0.0, -bend) * (1 + 2 * t * abs(t))


def unbend_t(distances: Floats, bends: Floats) -> Floats:
    """The t whose ``bend_t`` is each of some distances.

    >>> unbend_t(np.array([bend_t(1.7, -0.02)]), np.array([-0.02])).round(12)
    array([1.7])
    """
    a = np.maximum(0.0, -bends)
    rest = distances - a
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(rest), rest, 2 * rest / (1 + np.sqrt(1 + 8 * a * np.abs(rest))))


def _mean_and_error(totals: Floats, sizes: Floats, size: float) -> tuple[float, float | None]:
    """The mean and its standard error; there is none below two units."""
    count = len(totals)
    mean = math.fsum(totals.data) / size
    if count < 2:
        return mean, None
    squares = totals - sizes * mean
    squares *= squares
    return mean, math.sqrt(count / (count - 1) * math.fsum(squares.data)) / size


def count_unusual(values: Floats, *, slack: float = 1e-9) -> int:
    """How many values differ from the most common one.

    >>> count_unusual(np.array([0.5, 0.5, 1.0]))
    1
    """
    ordered = values.round(12)
    ordered.sort()
    last = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)
    usual = ordered[last[np.diff(last, prepend=-1).argmax()]]
    first_usual, after = np.searchsorted(ordered, [usual - slack, usual + slack])
    return len(ordered) - int(after - first_usual)
