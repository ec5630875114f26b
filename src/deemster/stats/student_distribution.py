"""Student's t distribution, without the fifth of a second that scipy takes to load."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from deemster.stats.beta_distribution import beta_cdf

# The error after a step of Newton's method is about the square of the step.
_LAST_STEP = 1e-9
# From so many degrees on, the quantile is a series in 1/degrees.
_SERIES_DEGREES = 1000
_MOST_STEPS = 100


@lru_cache(maxsize=4096)
def t_quantile(confidence: float, degrees: float) -> float:
    """The two-sided quantile of Student's t distribution: the t with P(-t < T < t) = confidence.

    Newton's method on the continued fraction of the incomplete beta function; from 1,000 degrees on, the expansion of
    Cornish and Fisher. NaN where no such t exists.

    References: M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 26.5.8, 26.7.1 and 26.7.5;
    G. W. Hill, Algorithm 395: Student's t-distribution, Communications of the ACM 13 (1970).

    Args:
        confidence: The probability between -t and t, at least 0.
        degrees: The degrees of freedom, whole or not.

    >>> round(t_quantile(0.95, 2), 4)
    4.3027
    """
    if not (0 <= confidence <= 1 and degrees > 0):
        return math.nan
    if confidence == 0:
        return 0.0
    if confidence == 1:
        return math.inf
    if confidence < 0.5:
        return _quantile_near_centre(confidence, degrees)
    if degrees >= _SERIES_DEGREES:
        return _quantile_by_series(confidence, degrees)
    return _quantile_in_tail(1 - confidence, degrees)


def t_cdf(t: float, degrees: float) -> float:
    """P(T < t) of Student's t distribution.

    >>> round(t_cdf(-4.3027, 2), 4)
    0.025
    """
    if not math.isfinite(t):
        return math.nan if math.isnan(t) else float(t > 0)
    tail = _tail_probability(abs(t), degrees) / 2
    return tail if t < 0 else 1 - tail


def _quantile_by_series(confidence: float, degrees: float) -> float:
    z = -NormalDist().inv_cdf((1 - confidence) / 2)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return math.fsum(term / degrees**power for power, term in enumerate(terms))


def _quantile_near_centre(confidence: float, degrees: float) -> float:
    """Newton's method from 0: the probability between -t and t is concave in t, so that no step goes too far."""
    t = 0.0

    for _ in range(_MOST_STEPS):
        step = (confidence - _central_probability(t, degrees)) / (2 * _density(t, degrees))
        t += step
        if abs(step) <= _LAST_STEP * t:
            break

    return t


def _quantile_in_tail(tails: float, degrees: float) -> float:
    """Newton's method on the logarithms of t and of the probability beyond ±t, which is concave in them."""
    t = _quantile_by_series(1 - tails, degrees)

    for _ in range(_MOST_STEPS):
        beyond = _tail_probability(t, degrees)
        step = math.log(beyond / tails) * beyond / (2 * t * _density(t, degrees))
        t *= math.exp(step)
        if abs(step) <= _LAST_STEP:
            break

    return t


def _central_probability(t: float, degrees: float) -> float:
    """P(-t < T < t)."""
    if degrees >= _SERIES_DEGREES:
        return math.erf(_normal_deviate(t, degrees) / math.sqrt(2))
    return beta_cdf(t * t / (degrees + t * t), 0.5, degrees / 2)


def _tail_probability(t: float, degrees: float) -> float:
    """P(T < -t or t < T)."""
    if degrees >= _SERIES_DEGREES:
        return math.erfc(_normal_deviate(t, degrees) / math.sqrt(2))
    if t < 1:
        return 1 - _central_probability(t, degrees)
    return beta_cdf(degrees / (degrees + t * t), degrees / 2, 0.5)


def _normal_deviate(t: float, degrees: float) -> float:
    """The normal deviate with the same tail, by the series of Hill."""
    a = degrees - 0.5
    b = 48 * a**2
    w = math.sqrt(a * math.log1p(t * t / degrees))
    third = (4 * w**7 + 33 * w**5 + 240 * w**3 + 855 * w) / (10 * b * (b + 0.8 * w**4 + 100))
    return w + (w**3 + 3 * w) / b - third


def _density(t: float, degrees: float) -> float:
    half = degrees / 2
    kernel = math.lgamma(half + 0.5) - math.lgamma(half) - (half + 0.5) * math.log1p(t * t / degrees)
    return math.exp(kernel) / math.sqrt(degrees * math.pi)
