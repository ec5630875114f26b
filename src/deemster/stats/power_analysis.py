"""Power analysis: samples, repetitions and labels that a question needs, and what a set of samples can show."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from deemster.stats.bounded_mean import ENOUGH_DIFFERENT
from deemster.stats.confidence_interval import normal_quantile
from deemster.stats.empirical_likelihood import furthest_mean
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import certifiable_margin, check_margin, flip_p_values
from deemster.stats.student_distribution import t_quantile

Outcome: TypeAlias = Literal["pass", "fail"]

# Standard errors whose square is still a number.
_FARTHEST = 1e150
# With more flips than this, the normal approximation is as good as going through all counts.
_MANY_FLIPS = 150
_MOST_SAMPLES = 10_000_000


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


class RepetitionSplit(msgspec.Struct, frozen=True, kw_only=True):
    """So many samples with so many repetitions, and what they cost in calls."""

    repetitions: int
    samples: int
    cost: float


class LabelSize(msgspec.Struct, frozen=True, kw_only=True):
    """How many human labels an interval needs.

    Attributes:
        value: With the help of the judge.
        alone: Without it.
        half_width: Half the width of the interval.
        correlation: Of the judge's scores with people's.
        samples: All samples, labelled or not; None where there is no end of them.
    """

    value: int
    alone: int
    half_width: float
    correlation: float
    samples: int | None


class PairedNoise(msgspec.Struct, frozen=True, kw_only=True):
    """How the marks of two runs on the same samples differ without any true difference: by flips, or by a spread.

    Attributes:
        flip_rate: The share of samples whose mark changes from run to run, where marks are pass or fail.
        sd: The standard deviation over samples of the difference of scores, otherwise.
        breaking: With `sd`, how a drop comes: 0 where all scores fall alike, 1 where some samples lose everything and
            the others nothing, and in between where a unit has several samples.

    Raises:
        ValueError: Not exactly one of flip rate and standard deviation is given, one is negative, or the flip rate is
            above 1.
    """

    flip_rate: float | None = None
    sd: float | None = None
    breaking: float = 0.0

    def __post_init__(self) -> None:
        is_one = (self.flip_rate is None) != (self.sd is None)
        if not is_one or not 0 <= (self.sd or 0.0) < math.inf or not 0 <= (self.flip_rate or 0.0) <= 1:
            raise ValueError("Either a flip rate from 0 to 1 or a standard deviation of at least 0 is given.")


def gate_power(
    n: int, noise: PairedNoise, *, outcome: Outcome, drop: float = 0.0, margin: float = 0.0, confidence: float = 0.95
) -> float:
    """The chance that a margin check passes or fails, by the gate's own rule, if the true drop is known.

    A check passes where the lower bound of ``paired_difference`` lies above -margin, and fails where the upper bound
    lies below. Pass/fail marks go on flipping as they do without any change, half each way, and the drop comes on top:
    newly failing flip_rate/2 + drop, newly passing flip_rate/2. (Where that is more than all samples, all flip.) All
    counts of flips are gone through; from 150 expected flips on, the normal approximation is taken. Scores differ by a
    normal law with the variance sd² + breaking·drop·(1 - drop). It is defined for every n from 1 on.

    Args:
        n: How many samples both runs have.
        noise: How the two runs differ where nothing has changed.
        outcome: "pass" or "fail".
        drop: By how much the second run is worse in truth.
        margin: The drop that would still be acceptable.
        confidence: The one-sided confidence of the gate.

    Raises:
        ValueError: There is no sample, the drop or the margin lies outside [0, 1), or the level outside (0, 1).

    >>> round(gate_power(200, PairedNoise(flip_rate=0.02), outcome="pass", margin=0.05), 3)
    0.983
    """
    if n < 1:
        raise ValueError(f"There is at least one sample, not {n!r}.")
    check_margin(margin)
    check_margin(drop)

    if noise.flip_rate is not None:
        flips = min(1.0, noise.flip_rate + drop)
        return _flip_power(n, flips, drop, margin, outcome=outcome, confidence=confidence)

    variance = (noise.sd or 0.0) ** 2 + noise.breaking * drop * (1 - drop)
    if n * variance < ENOUGH_DIFFERENT * noise.breaking and drop:
        # Few units carry the change: the interval imagines one more unit, which loses nothing but gains everything.
        variance, drop = variance + 1 / n, max(0.0, drop - 1 / n)
    return _score_power(n, math.sqrt(variance), drop, margin, outcome=outcome, confidence=confidence)


def detectable_drop(n: int, noise: PairedNoise, *, confidence: float = 0.95, power: float = 0.8) -> float | None:
    """The smallest true drop whose two-sided interval lies below 0 with the given power, by the rule of comparisons.

    Undefined (None) where so few samples cannot show even a total loss.

    Raises:
        ValueError: As ``gate_power``, or the power is outside (0, 1).

    >>> round(detectable_drop(100, PairedNoise(flip_rate=0.1)), 3)
    0.132
    """
    _reach(0.5, power)
    one_sided = (1 + confidence) / 2
    return _smallest(lambda drop: gate_power(n, noise, outcome="fail", drop=drop, confidence=one_sided), power)


def certain_margin(n: int, noise: PairedNoise, *, confidence: float = 0.95, power: float = 0.8) -> float | None:
    """The smallest margin that the gate passes with the given power if the true drop is 0.

    It is never below ``certifiable_margin``, what the gate passes if nothing flips at all. Undefined (None) where so
    few samples pass no margin below 1.

    Raises:
        ValueError: As ``gate_power``, or the power is outside (0, 1).

    >>> round(certain_margin(100, PairedNoise(flip_rate=0.1)), 3)
    0.095
    """
    _reach(0.5, power)
    return _smallest(lambda margin: gate_power(n, noise, outcome="pass", margin=margin, confidence=confidence), power)


def samples_to_detect(drop: float, noise: PairedNoise, *, confidence: float = 0.95, power: float = 0.8) -> int | None:
    """How many samples show a drop: their two-sided interval lies below 0 with the given power.

    Undefined (None) where ten million samples are too few.

    Raises:
        ValueError: As ``gate_power``, the drop is 0, or the power is outside (0, 1).

    >>> samples_to_detect(0.05, PairedNoise(flip_rate=0.1))
    459
    """
    _reach(0.5, power)
    if not 0 < drop < 1:
        raise ValueError(f"A drop to be shown lies strictly between 0 and 1, not at {drop!r}.")
    one_sided = (1 + confidence) / 2
    return fewest_samples(lambda n: gate_power(n, noise, outcome="fail", drop=drop, confidence=one_sided) >= power)


def samples_to_certify(
    margin: float, noise: PairedNoise, *, confidence: float = 0.95, power: float = 0.8
) -> int | None:
    """How many samples certify a margin with the given power if the true drop is 0.

    A flip rate of 0 means that nothing flips: 180 samples then certify a margin of 0.02. Undefined (None) where ten
    million samples are too few.

    Raises:
        ValueError: As ``gate_power``, the margin is 0, or the power is outside (0, 1).

    >>> samples_to_certify(0.02, PairedNoise(flip_rate=0.0)), samples_to_certify(0.05, PairedNoise(flip_rate=0.1))
    (180, 258)
    """
    _reach(0.5, power)
    if not 0 < margin < 1:
        raise ValueError(f"A margin to be certified lies strictly between 0 and 1, not at {margin!r}.")
    return fewest_samples(lambda n: gate_power(n, noise, outcome="pass", margin=margin, confidence=confidence) >= power)


def repetition_splits(
    difference: float,
    *,
    between: float,
    within: float,
    sample_cost: float = 0.0,
    fewest: int = 1,
    most: int = 20,
    level: float = 0.05,
    power: float = 0.8,
) -> tuple[RepetitionSplit, ...]:
    """How many samples show a difference with 1, 2, ... repetitions, cheapest first.

    n(K) = ``sample_size`` for ω² and σ² on both sides; the cost is n(K)·(c + K), where making and keeping one sample
    costs as much as c calls. Repetitions average out σ², never ω²; where making a sample costs nothing, one repetition
    is the cheapest.

    Reference: E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024), section 4.

    Args:
        difference: The difference to be shown.
        between: ω², the variance over samples of the difference that endless repetitions would show.
        within: σ², the variance of single marks of one sample.
        sample_cost: c, what one sample costs, in calls.
        fewest: So many samples are there at least, whatever the formula says.
        most: The most repetitions that are looked at.
        level: The level of the two-sided test.
        power: The chance to see the difference.

    Raises:
        ValueError: As ``sample_size``, the cost is negative, or there is no repetition.

    >>> best = repetition_splits(0.05, between=0.05, within=0.1, sample_cost=10)[0]
    >>> best.repetitions, best.samples, best.cost
    (6, 262, 4192)
    """
    if not 0 <= sample_cost < math.inf or most < 1:
        raise ValueError("A sample costs at least 0 calls, and there is at least one repetition.")
    splits = []
    for count in range(1, most + 1):
        size = sample_size(
            between, difference, within=(within, within), repetitions=(count, count), level=level, power=power
        )
        samples = max(fewest, size.value)
        splits.append(RepetitionSplit(repetitions=count, samples=samples, cost=samples * (sample_cost + count)))
    return tuple(sorted(splits, key=lambda split: (split.cost, split.repetitions)))


def label_size(
    half_width: float, *, correlation: float, sd: float = 0.5, samples: int | None = None, confidence: float = 0.95
) -> LabelSize:
    """How many human labels give a mean an interval of a given half-width, with a judge's help and without.

    Labels alone need z²σ²/h². With a judge that scores all N samples, of which n are labelled, the variance of the best
    prediction-powered mean is σ²/n·(1 - ρ²(N - n)/N). A judge without correlation helps nothing; with ρ = 0.7 and
    endless samples half of the labels are enough. It is defined for every correlation: all samples at most.

    Reference: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, PPI++: efficient prediction-powered inference,
    arXiv:2311.01453 (2023).

    Args:
        half_width: h, half the width of the interval.
        correlation: ρ, of the judge's scores with people's.
        sd: σ, the standard deviation of people's scores; at most 0.5 for pass or fail, sqrt(p(1 - p)).
        samples: N, all samples that the judge scores; endless where None.
        confidence: The level of the interval.

    Raises:
        ValueError: The half-width or the standard deviation is not above 0, the correlation outside [-1, 1], there is
            no sample, or the level outside (0, 1).

    >>> label_size(0.03, correlation=0.7).value, label_size(0.03, correlation=0.7).alone
    (545, 1068)
    """
    if not 0 < half_width < math.inf or not 0 < sd < math.inf:
        raise ValueError("A half-width and a standard deviation are above 0.")
    if not -1 <= correlation <= 1:
        raise ValueError(f"A correlation lies in [-1, 1], not at {correlation!r}.")
    if samples is not None and samples < 1:
        raise ValueError(f"There is at least one sample, not {samples!r}.")
    needed = (normal_quantile(confidence) * sd / half_width) ** 2
    shared = correlation**2
    # n = needed·(1 - ρ² + ρ²·n/N), solved for n.
    helped = needed * (1 - shared) / (1 if samples is None else max(1e-9, 1 - needed * shared / samples))
    if samples is not None and not helped <= samples:
        helped = samples
    alone = max(2, math.ceil(round(needed, 9)))
    value = max(2, math.ceil(round(helped, 9)))
    return LabelSize(
        value=min(value, alone), alone=alone, half_width=half_width, correlation=correlation, samples=samples
    )


def _flip_power(n: int, flips: float, drop: float, margin: float, *, outcome: Outcome, confidence: float) -> float:
    alpha = 1 - confidence
    worse, better = (flips + drop) / 2, (flips - drop) / 2
    if n * flips > _MANY_FLIPS:
        error = math.sqrt((flips - drop**2) / n)
        distance = (margin - drop) / error if outcome == "pass" else (drop - margin) / error
        return NormalDist().cdf(distance - t_quantile(1 - 2 * alpha, n - 1))
    lost, gained = (grid.ravel() for grid in np.meshgrid(_likely(n, worse), _likely(n, better), indexing="ij"))
    possible = lost + gained <= n
    lost, gained = lost[possible], gained[possible]
    chances = np.exp(_log_multinomial(n, (lost, worse), (gained, better)))
    side: Literal["above", "below"] = "above" if outcome == "pass" else "below"
    decided = flip_p_values(lost, gained, n=n, mean=-margin, side=side) <= alpha
    return min(1.0, float(chances[decided].sum()))


def _likely(n: int, rate: float) -> Floats:
    """The counts that a binomial law gives with a chance that is not negligible."""
    middle, spread = n * rate, 6 * math.sqrt(n * rate) + 8
    return (
        np.arange(max(0, math.floor(middle - spread)), min(n, math.ceil(middle + spread)) + 1.0)
        if rate
        else np.zeros(1)
    )


def _log_multinomial(n: int, *parts: tuple[Floats, float]) -> Floats:
    """The log-chance of counts with rates, the rest of n having the rest of the chance."""
    from scipy.special import gammaln, xlogy  # noqa: PLC0415 - scipy takes a tenth of a second to load

    rest = n - sum(count for count, _ in parts)
    left = max(0.0, 1 - sum(rate for _, rate in parts))
    logs = gammaln(n + 1) - gammaln(rest + 1) + xlogy(rest, left)
    for count, rate in parts:
        logs = logs - gammaln(count + 1) + xlogy(count, rate)
    return np.asarray(logs, dtype=np.float64)


def _score_power(n: int, sd: float, drop: float, margin: float, *, outcome: Outcome, confidence: float) -> float:
    """The chance for normal differences of scores.

    Where t applies, its noncentral law; otherwise the bound lies as far from the mean as that of n normal quantiles.
    """
    from scipy.special import chdtri, nctdtr, ndtri  # noqa: PLC0415 - scipy takes a tenth of a second to load

    distance = margin - drop if outcome == "pass" else drop - margin
    error = sd / math.sqrt(n)
    floor = (1 - drop) * (certifiable_margin(n, confidence=confidence) or 1.0) if outcome == "pass" else 0.0
    # (Σ|d|)²/Σd² of normal units is about 2/π of their number; a fifth more makes sure that t applies.
    if error and 2 / math.pi * n >= 1.2 * ENOUGH_DIFFERENT:
        t = t_quantile(2 * confidence - 1, n - 1)
        chance = 1 - float(nctdtr(n - 1, distance / error, t))
        return min(chance, NormalDist().cdf((distance - floor) / error))
    side = -1.0 if outcome == "pass" else 1.0
    typical = np.clip(sd * ndtri((np.arange(n) + 0.5) / n), -1, 1)
    bound = furthest_mean(
        np.append(typical, side),
        np.ones(n + 1),
        np.ones(n + 1),
        bound=side,
        limit=float(chdtri(1, 2 * (1 - confidence))),
    )
    reach = distance - abs(bound)
    return NormalDist().cdf(reach / error) if error else float(reach > 0)


def _smallest(chance: Callable[[float], float], power: float) -> float | None:
    """The smallest value in (0, 1) whose chance reaches the power, to five digits."""
    low, high = 0.0, 1 - 1e-9
    if chance(high) < power:
        return None
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return high


def fewest_samples(is_enough: Callable[[int], bool], *, above: int = 0) -> int | None:
    """The fewest samples that are enough, found by doubling and halving; None beyond ten million.

    Args:
        is_enough: Whether so many are enough.
        above: So many are not enough.
    """
    high = max(1, 2 * above)
    while not is_enough(high):
        high *= 2
        if high > _MOST_SAMPLES:
            return None
    low = max(above, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


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
