"""The interval of a mean of values with known bounds: Student's t, or empirical likelihood where few values differ."""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, t_quantile
from deemster.stats.empirical_likelihood import furthest_mean, likelihood_ratios
from deemster.stats.means import Mean
from deemster.stats.nan_arithmetic import Floats

# From so many values that differ from the usual one, Student's t holds its level.
ENOUGH_DIFFERENT = 20


def bounded_mean(
    totals: ArrayLike,
    sizes: ArrayLike | None = None,
    *,
    low: float = 0.0,
    high: float = 1.0,
    usual: float | None = None,
    confidence: float = 0.95,
) -> Mean:
    """A mean of values between two bounds, with an interval that holds its level where nearly all values are equal.

    The estimate is Σu/Σs over units with the total u and the size s. Where 20 units or more differ from the usual
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
        usual: The value that units are counted as different from; the most common one where not given.
        confidence: The level of the interval.

    Raises:
        ValueError: Totals and sizes differ in number, a value is not finite or outside the bounds, or the level is not
            in (0, 1).

    >>> interval = bounded_mean([1.0] * 30).interval
    >>> round(interval.lower, 4), interval.upper
    (0.8655, 1.0)
    """
    check_confidence(confidence)
    units = bounded_units(totals, sizes, low=low, high=high, usual=usual)
    if units is None:
        return Mean(value=None, n=0, standard_error=None, interval=None)
    return Mean(value=units.mean, n=units.n, standard_error=units.error, interval=units.interval(confidence))


class BoundedUnits(msgspec.Struct, frozen=True, kw_only=True):
    """What the interval of ``bounded_mean`` and its tests need to know of units.

    Attributes:
        mean: Σu/Σs.
        n: How many units.
        size: Σs.
        error: The standard error of the mean; None below two units.
        unusual: How many units differ from the usual value.
        low: The least possible value.
        high: The greatest possible value.
        kinds: Total, size and number of each kind of unit, in rows; None where Student's t applies.
    """

    mean: float
    n: int
    size: float
    error: float | None
    unusual: int
    low: float
    high: float
    kinds: Floats | None

    def interval(self, confidence: float) -> ConfidenceInterval:
        """The interval at a level between 0 and 1."""
        from scipy.special import chdtri  # noqa: PLC0415 - scipy takes a tenth of a second to load

        if self.kinds is None and self.error is not None:
            half = t_quantile(confidence, self.n - 1) * self.error
            ends = max(self.low, self.mean - half), min(self.high, self.mean + half)
            return ConfidenceInterval(*ends, confidence, "student")
        limit = float(chdtri(1, 1 - confidence))
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
        from scipy.special import ndtr, stdtr  # noqa: PLC0415 - scipy takes a tenth of a second to load

        sign = 1.0 if side == "above" else -1.0
        if self.kinds is None and self.error is not None:
            if not self.low <= mean <= self.high:
                return float(sign * (self.mean - mean) < 0)
            distance = self.mean - mean
            t = math.copysign(math.inf, distance) if self.error == 0 and distance else distance / (self.error or 1.0)
            return float(stdtr(self.n - 1, -sign * t))
        u, s, counts = self._extended(self.low if side == "above" else self.high)
        ratio = likelihood_ratios((u - s * mean)[None], counts[None])[0]
        beyond = sign * (float(counts @ u / (counts @ s)) - mean)
        return float(ndtr(-math.copysign(math.sqrt(ratio), beyond)))

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
    usual: float | None = None,
) -> BoundedUnits | None:
    """Sum up units for the interval of ``bounded_mean``; None without units.

    Raises:
        ValueError: Totals and sizes differ in number, a size is not above 0, or a value is not finite or outside the
            bounds.
    """
    u = finite_vector(totals)
    s = np.ones(len(u)) if sizes is None else finite_vector(sizes)
    if len(s) != len(u):
        raise ValueError(f"Each total has a size; there are {len(u)} totals and {len(s)} sizes.")
    if not len(u):
        return None
    if s.min() <= 0:
        raise ValueError(f"A unit has a size above 0, not {s.min()}.")
    values = u if sizes is None else u / s
    slack = 1e-9 * max(1.0, abs(low), abs(high))
    if values.min() < low - slack or values.max() > high + slack:
        raise ValueError(f"A value lies outside the bounds, {low} to {high}.")
    mean, error = _mean_and_error(u, s)
    unusual = count_unusual(values, usual=usual, slack=slack)
    kinds = None
    if error is None or unusual < ENOUGH_DIFFERENT:
        # One sort of complex numbers is many times quicker than a sort of rows.
        distinct, counts = np.unique(u + 1j * s, return_counts=True)
        kinds = np.array([distinct.real, distinct.imag, counts])
    return BoundedUnits(
        mean=mean,
        n=len(u),
        size=math.fsum(s.data),
        error=error,
        unusual=unusual,
        low=low,
        high=high,
        kinds=kinds,
    )


def _mean_and_error(totals: Floats, sizes: Floats) -> tuple[float, float | None]:
    """The mean and its standard error; there is none below two units."""
    count, size = len(totals), math.fsum(sizes.data)
    mean = math.fsum(totals.data) / size
    if count < 2:
        return mean, None
    return mean, math.sqrt(count / (count - 1) * math.fsum(np.square(totals - sizes * mean).data)) / size


def count_unusual(values: Floats, *, usual: float | None = None, slack: float = 1e-9) -> int:
    """How many values differ from the usual one: the most common value, where none is given.

    >>> count_unusual(np.array([0.5, 0.5, 1.0]))
    1
    """
    if usual is None:
        distinct, frequency = np.unique(values.round(12), return_counts=True)
        usual = float(distinct[frequency.argmax()])
    return int((np.abs(values - usual) > slack).sum())
