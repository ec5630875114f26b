"""Power analysis: the sample size for a difference, and the detectable difference of a sample."""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

# Standard errors whose square is still a number.
_FARTHEST = 1e150


class SampleSize(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples show a difference. `value` is the whole number, `exact` what the formula gives."""

    value: int
    exact: float
    difference: float
    power: float
    level: float


class DetectableDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest difference that `n` samples show."""

    value: float
    n: int
    power: float
    level: float


def sample_size(
    variance: float,
    difference: float,
    *,
    within: tuple[float, float] = (0.0, 0.0),
    repetitions: tuple[int, int] = (1, 1),
    design_effect: float = 1.0,
    level: float = 0.05,
    power: float = 0.8,
) -> SampleSize:
    """Samples that show a mean difference with a given power.

    n = (z_{level/2} + z_{1-power})²·(ω² + σ_A²/K_A + σ_B²/K_B)·D/δ²: ω² the variance over samples of the difference of
    expected scores, σ² the variances within a sample and K the repetitions of the two systems, D the design effect of
    clusters. Half the difference takes four times the samples. For a single system ω² is its own variance. It is
    defined for every variance: 1 where nothing varies.

    Reference: E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024), section 5.

    Args:
        variance: ω².
        difference: δ, the difference to be shown.
        within: σ_A² and σ_B².
        repetitions: K_A and K_B.
        design_effect: How many clustered samples are worth one independent one; 1 without clusters.
        level: The level of the two-sided test.
        power: The chance to see the difference.

    Raises:
        ValueError: A variance is negative, the difference not above 0 or too small, a repetition below 1, or a level
            outside (0, 1).

    >>> sample_size(1 / 9, 0.03).value
    969
    """
    if not 0 < difference < math.inf:
        raise ValueError(f"A difference to be shown is above 0, not {difference!r}.")
    total = _total_variance(variance, within, repetitions, design_effect)
    reach = _reach(level, power) / difference
    if reach > _FARTHEST:
        raise ValueError(f"A difference of {difference!r} takes more samples than can be counted.")
    exact = reach**2 * total
    # A sum that should be a whole number must not be pushed to the next one by its last digit.
    value = max(1, math.ceil(round(exact, 9)))
    return SampleSize(value=value, exact=exact, difference=difference, power=power, level=level)


def detectable_difference(
    variance: float,
    n: int,
    *,
    within: tuple[float, float] = (0.0, 0.0),
    repetitions: tuple[int, int] = (1, 1),
    design_effect: float = 1.0,
    level: float = 0.05,
    power: float = 0.8,
) -> DetectableDifference:
    """The smallest mean difference that a number of samples shows with a given power.

    δ = (z_{level/2} + z_{1-power})·sqrt((ω² + σ_A²/K_A + σ_B²/K_B)·D/n), the other side of ``sample_size``. It is 0
    where nothing varies and never undefined.

    Reference: E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024), section 5.

    Args:
        variance: ω², the variance over samples of the difference of expected scores.
        n: How many samples.
        within: The variances within a sample, of the two systems.
        repetitions: How often each of the two is run on a sample.
        design_effect: How many clustered samples are worth one independent one; 1 without clusters.
        level: The level of the two-sided test.
        power: The chance to see the difference.

    Raises:
        ValueError: A variance is negative, there is no sample or repetition, or a level is outside (0, 1).

    >>> round(detectable_difference(1 / 9, 198).value, 6)
    0.066367
    """
    if not 1 <= n < math.inf:
        raise ValueError(f"There is at least one sample, not {n!r}.")
    total = _total_variance(variance, within, repetitions, design_effect)
    return DetectableDifference(value=_reach(level, power) * math.sqrt(total / n), n=n, power=power, level=level)


def _reach(level: float, power: float) -> float:
    """How many standard errors away a difference must lie."""
    for name, share in (("level", level), ("power", power)):
        if not 0 < share < 1:
            raise ValueError(f"The {name} lies strictly between 0 and 1, not at {share!r}.")
    return NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(power)


def _total_variance(
    variance: float, within: tuple[float, float], repetitions: tuple[int, int], design_effect: float
) -> float:
    if not all(0 <= part < math.inf for part in (variance, *within)):
        raise ValueError(f"A variance is finite and at least 0; given: {variance!r} and within a sample {within!r}.")
    if min(repetitions) < 1:
        raise ValueError(f"There is at least one repetition, not {min(repetitions)!r}.")
    if not 0 < design_effect < math.inf:
        raise ValueError(f"A design effect is above 0, not {design_effect!r}.")
    inner = sum(part / count for part, count in zip(within, repetitions, strict=True))
    return (variance + inner) * design_effect
