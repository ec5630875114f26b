"""The interval of a mean of values with known bounds: Student's t, or empirical likelihood where few values differ."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, t_quantile
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
    u = finite_vector(totals)
    s = np.ones(len(u)) if sizes is None else finite_vector(sizes)
    if len(s) != len(u):
        raise ValueError(f"Each total has a size; there are {len(u)} totals and {len(s)} sizes.")
    if not len(u):
        return Mean(value=None, n=0, standard_error=None, interval=None)
    values = u / s
    slack = 1e-9 * max(1.0, abs(low), abs(high))
    if values.min() < low - slack or values.max() > high + slack:
        raise ValueError(f"A value lies outside the bounds, {low} to {high}.")
    mean, error = _mean_and_error(u, s)
    if error is not None and count_unusual(values, usual=usual, slack=slack) >= ENOUGH_DIFFERENT:
        half = t_quantile(confidence, len(u) - 1) * error
        interval = ConfidenceInterval(max(low, mean - half), min(high, mean + half), confidence, "student")
    else:
        ends = _likelihood_end(u, s, low, confidence), _likelihood_end(u, s, high, confidence)
        interval = ConfidenceInterval(min(ends[0], mean), max(ends[1], mean), confidence, "empirical likelihood")
    return Mean(value=mean, n=len(u), standard_error=error, interval=interval)


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


def _likelihood_end(totals: Floats, sizes: Floats, bound: float, confidence: float) -> float:
    """The end of the interval on the side of a bound, where one more unit lies at that bound."""
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy takes a tenth of a second to load
    from scipy.special import chdtri  # noqa: PLC0415

    size = float(sizes.mean())
    units, counts = np.unique(np.column_stack([totals, sizes]), axis=0, return_counts=True)
    u, s = np.append(units[:, 0], bound * size), np.append(units[:, 1], size)
    many = np.append(counts, 1).astype(np.float64)
    middle = float(many @ u / (many @ s))
    limit = float(chdtri(1, 1 - confidence))
    # All units lie at the bound.
    if abs(middle - bound) <= 1e-12 * max(1.0, abs(bound)):
        return bound

    def excess(position: float) -> float:
        return _likelihood_ratio(u - s * (middle + position * (bound - middle)), many) - limit

    # At the bound itself no weights of the units have this mean.
    furthest = 1 - 1e-9
    if excess(furthest) <= 0:
        return bound
    return middle + float(brentq(excess, 0.0, furthest, xtol=1e-10)) * (bound - middle)


def _likelihood_ratio(deviations: Floats, counts: Floats) -> float:
    """Twice the log of how much likelier the data are without the condition that deviations have the mean 0."""
    from scipy.optimize import brentq  # noqa: PLC0415 - scipy takes a tenth of a second to load

    lowest, highest = float(deviations.min()), float(deviations.max())
    if lowest >= 0 or highest <= 0:
        return 0.0 if lowest == highest == 0 else math.inf
    total = counts.sum()
    # No weight exceeds 1, which bounds the multiplier.
    ends = (1 / total - 1) / highest, (1 / total - 1) / lowest

    def balance(multiplier: float) -> float:
        return float(counts @ (deviations / (1 + multiplier * deviations)))

    if balance(ends[0]) <= 0 or balance(ends[1]) >= 0:
        multiplier = ends[0] if balance(ends[0]) <= 0 else ends[1]
    else:
        multiplier = brentq(balance, *ends, xtol=1e-14)
    return 2 * float(counts @ np.log1p(multiplier * deviations))
