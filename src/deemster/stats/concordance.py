"""Lin's concordance correlation, and Bland and Altman's limits of agreement."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import constant, pairs
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.student_distribution import t_quantile
from deemster.stats.systematic_bias import rounding_limit


class Concordance(msgspec.Struct, frozen=True, kw_only=True):
    """Lin's concordance: how close pairs lie to the line of equality.

    Attributes:
        value: 1 where all pairs are equal; at most the correlation in size.
        n: Pairs.
        pearson: How close pairs lie to any line.
        location_and_scale: What that line loses to the line of equality (C_b, at most 1).
        interval: By Fisher's z with Lin's variance; None below 5 pairs, at ±1 and without correlation.
        missing: Pairs left out for want of a side.
    """

    value: float | None = None
    n: int
    pearson: float | None = None
    location_and_scale: float | None = None
    interval: ConfidenceInterval | None = None
    missing: int


class LimitsOfAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Bland and Altman's limits between which most differences lie.

    Attributes:
        value: The mean difference x - y.
        n: Pairs.
        sd: Standard deviation of the differences.
        lower: value - z·sd.
        upper: value + z·sd.
        interval: The interval of the mean difference.
        lower_interval: The interval of the lower limit.
        upper_interval: The interval of the upper limit.
        missing: Pairs left out for want of a side.
    """

    value: float | None = None
    n: int
    sd: float | None = None
    lower: float | None = None
    upper: float | None = None
    interval: ConfidenceInterval | None = None
    lower_interval: ConfidenceInterval | None = None
    upper_interval: ConfidenceInterval | None = None
    missing: int


def concordance(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> Concordance:
    """Lin's concordance correlation: 2·s_xy/(s_x² + s_y² + (x̄-ȳ)²), with 1/n moments.

    A judge that is always half a point too high correlates fully but does not concord. 1 is equality, 0 no relation.
    One constant side gives 0, being no relation. Undefined (None) below two pairs, and where all values are one.

    Args:
        x: Numbers; a pair with None or NaN on a side is left out and counted as missing.
        y: Numbers paired with them.
        confidence: The level of the interval.

    Reference: L. I. Lin, A concordance correlation coefficient to evaluate reproducibility, Biometrics 45 (1989).

    Raises:
        ValueError: The sequences differ in length, a value is no finite number, or the level is not in (0, 1).

    >>> round(concordance([0.5, 0.6, 0.7, 0.8], [0.6, 0.7, 0.8, 0.9]).value, 4)
    0.7143
    """
    z = normal_quantile(confidence)
    first, second, missing = pairs(x, y)
    n = len(first)
    if n < 2 or constant(np.concatenate([first, second])):
        return Concordance(n=n, missing=missing)
    a, b = first - first.mean(), second - second.mean()
    shift = float(first.mean() - second.mean())
    covariance, spread_a, spread_b = float(a @ b) / n, float(a @ a) / n, float(b @ b) / n
    value = 2 * covariance / (spread_a + spread_b + shift * shift)
    if constant(first) or constant(second):
        return Concordance(value=0.0, n=n, missing=missing)
    scale = math.sqrt(spread_a * spread_b)
    r = max(-1.0, min(1.0, covariance / scale))
    interval = None
    if n >= 5 and abs(value) < 1 - 1e-12 and r:
        u = shift * shift / scale
        rest = 1 - value * value
        variance = (
            (1 - r * r) * value**2 / (rest * r * r)
            + 2 * value**3 * (1 - value) * u / (r * rest**2)
            - value**4 * u * u / (2 * r * r * rest**2)
        ) / (n - 2)
        half, centre = z * math.sqrt(max(0.0, variance)), math.atanh(value)
        interval = ConfidenceInterval(math.tanh(centre - half), math.tanh(centre + half), confidence, "fisher-z")
    return Concordance(
        value=value,
        n=n,
        pearson=r,
        location_and_scale=2 * scale / (spread_a + spread_b + shift * shift),
        interval=interval,
        missing=missing,
    )


def limits_of_agreement(
    x: ArrayLike, y: ArrayLike, *, agreement: float = 0.95, confidence: float = 0.95
) -> LimitsOfAgreement:
    """Bland and Altman's limits: mean difference ± z·sd, within which a share ``agreement`` of differences lies.

    The variance of a limit is sd²·(1/n + z²/(2(n-1))), its interval Student's with n - 1 degrees of freedom. All but
    the mean is undefined (None) below two pairs; the mean as well without one. Without spread (an sd up to
    1e-12·max(1, largest absolute value) is rounding) both limits are the mean, and there are no intervals.

    Args:
        x: Numbers; a pair with None or NaN on a side is left out and counted as missing.
        y: Numbers paired with them; differences are x - y.
        agreement: The share of differences between the limits.
        confidence: The level of the intervals.

    Reference: J. M. Bland, D. G. Altman, Statistical methods for assessing agreement between two methods of clinical
    measurement, Lancet 327 (1986).

    Raises:
        ValueError: The sequences differ in length, a value is no finite number, or a level is not in (0, 1).

    >>> result = limits_of_agreement([0.9, 0.7, 0.8, 0.6], [0.7, 0.6, 0.8, 0.5])
    >>> round(result.lower, 4), round(result.upper, 4)
    (-0.06, 0.26)
    """
    check_confidence(confidence)
    z = normal_quantile(agreement)
    first, second, missing = pairs(x, y)
    n = len(first)
    differences = first - second
    mean = math.fsum(differences) / n if n else None
    if mean is None or n < 2:
        return LimitsOfAgreement(value=mean, n=n, missing=missing)
    sd = math.sqrt(math.fsum(np.square(differences - mean)) / (n - 1))
    # A standard deviation within rounding errors counts as 0.
    sd = sd if sd > rounding_limit(first, second) else 0.0
    t = t_quantile(confidence, n - 1)

    def around(centre: float, variance: float) -> ConfidenceInterval | None:
        half = t * sd * math.sqrt(variance)
        return ConfidenceInterval(centre - half, centre + half, confidence, "t") if half > 0 else None

    limit = 1 / n + z * z / (2 * (n - 1))
    return LimitsOfAgreement(
        value=mean,
        n=n,
        sd=sd,
        lower=mean - z * sd,
        upper=mean + z * sd,
        interval=around(mean, 1 / n),
        lower_interval=around(mean - z * sd, limit),
        upper_interval=around(mean + z * sd, limit),
        missing=missing,
    )
