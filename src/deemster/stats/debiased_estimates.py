"""Prediction-powered means (PPI++) and the Rogan-Gladen rate: estimates from a judge that errs."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._number_arrays import finite_vector
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence, normal_quantile
from deemster.stats.proportion_intervals import newcombe


class PpiMean(msgspec.Struct, frozen=True, kw_only=True):
    """A prediction-powered mean.

    Attributes:
        value: The estimate.
        n: How many labelled items.
        n_unlabelled: How many items have only a prediction.
        lam: The weight of the predictions: 0 ignores them, 1 trusts them fully.
        standard_error: The standard error of the estimate.
        interval: By the normal approximation, None without spread or below two labels; with bounds, inside them.
        classical: The mean of the labels alone.
        classical_error: Its standard error.
    """

    value: float | None
    n: int
    n_unlabelled: int
    lam: float | None = None
    standard_error: float | None = None
    interval: ConfidenceInterval | None = None
    classical: float | None = None
    classical_error: float | None = None


class CorrectedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate corrected for the errors of the judge that counted it.

    Attributes:
        value: The corrected rate, cut to [0, 1].
        n: How many items the judge counted.
        unclipped: The corrected rate before cutting.
        out_of_range: Whether it had to be cut: the judge's rate contradicts its measured errors.
        interval: Cut to [0, 1]; None where nothing of it would be left.
        note: Why a part is missing or doubtful.
    """

    value: float | None
    n: int
    unclipped: float | None = None
    out_of_range: bool = False
    interval: ConfidenceInterval | None = None
    note: str | None = None


def ppi_mean(
    truth: ArrayLike,
    predicted: ArrayLike,
    unlabelled: ArrayLike,
    *,
    lam: float | None = None,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> PpiMean:
    """The mean true score of a collection, from labels for some items and predictions for all (PPI++).

    With Y, Ŷ on the n labelled and Û on the N other items: θ = mean Y + λ(mean Û - mean Ŷ), se² = λ²·var(Û)/N +
    var(Y - λŶ)/n (1/n moments). The best λ is cov(Y, Ŷ)/((1 + n/N)·var(Ŷ∪Û)), kept in [0, 1], var(Ŷ∪Û) with divisor
    n + N - 1. Predictions that tell nothing give λ = 0 and the plain mean; perfect ones nearly the precision of n + N
    labels. Labelled items must be drawn at random. Undefined: everything without labels; errors and interval below two
    labels; the interval also without spread.

    The normal interval of the published form misses the truth too often where labels are few and one answer is rare.
    With bounds, the errors Y - λŶ have the interval of ``bounded_mean``, and both ends are joined with the error of the
    predictions by squares.

    Reference: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, PPI++: efficient prediction-powered inference,
    arXiv:2311.01453 (2023).

    Args:
        truth: The true scores of the labelled items.
        predicted: The judge's scores of the same items.
        unlabelled: The judge's scores of the items without label.
        lam: A fixed weight, 1 being the first form of PPI; the best one where None.
        bounds: The least and the greatest possible score; None for the published interval.
        confidence: The level of the interval.

    Raises:
        ValueError: Labels and predictions differ in number, a score or the weight is not finite, or the level is not in
            (0, 1).

    >>> result = ppi_mean([1, 0, 1, 1, 0, 1, 0, 1, 1, 1], [1, 0, 1, 0, 0, 1, 1, 1, 1, 1], [1] * 65 + [0] * 35)
    >>> round(result.lam, 4), round(result.value, 4)
    (0.4382, 0.6781)
    """
    check_confidence(confidence)
    y = finite_vector(truth, name="true scores")
    known = finite_vector(predicted, name="predictions")
    others = finite_vector(unlabelled, name="unlabelled predictions")
    if known.size != y.size:
        raise ValueError(f"Each label has one prediction; there are {y.size} labels and {known.size} predictions.")
    if lam is not None and not math.isfinite(lam):
        raise ValueError(f"A fixed weight of the predictions is a finite number, not {lam!r}.")
    if not y.size:
        return PpiMean(value=None, n=0, n_unlabelled=others.size)
    weight = _best_weight(y, known, others) if lam is None else float(lam)
    result = _estimate_mean(y, known, others, weight, confidence, method="ppi++" if lam is None else "ppi")
    return (
        result if bounds is None else _with_bounds(result, y - (result.lam or 0.0) * known, others, bounds, confidence)
    )


def _with_bounds(
    result: PpiMean,
    errors: NDArray[np.float64],
    others: NDArray[np.float64],
    bounds: tuple[float, float],
    confidence: float,
) -> PpiMean:
    """The estimate with an interval that stays inside bounds, and has a width however few labels there are."""
    low, high = bounds
    weight = result.lam or 0.0
    mean = bounded_mean(errors, low=low - weight * high, high=high - weight * low, confidence=confidence)
    if result.value is None or mean.value is None or mean.interval is None:
        return result
    half = normal_quantile(confidence) * weight * math.sqrt(float(np.var(others)) / others.size) if others.size else 0.0
    lower = result.value - math.hypot(mean.value - mean.interval.lower, half)
    upper = result.value + math.hypot(mean.interval.upper - mean.value, half)
    interval = ConfidenceInterval(max(low, lower), min(high, upper), confidence, "bounded ppi++")
    return msgspec.structs.replace(result, value=min(high, max(low, result.value)), interval=interval)


def rogan_gladen(
    rate: float,
    *,
    n: int,
    sensitivity: float,
    positives: int,
    specificity: float,
    negatives: int,
    confidence: float = 0.95,
) -> CorrectedRate:
    """The true rate behind the rate that a judge of known errors counted.

    θ = (p + sp - 1)/(se + sp - 1), cut to [0, 1]. The interval (Lang, Reiczigel) takes p over n + z² after adding z²/2,
    se and sp over m + 2 after adding 1, and is θ + 2z²(θ·se(1-se)/m₁ - (1-θ)sp(1-sp)/m₀) ± z·sqrt(p(1-p)/n +
    (1-θ)²sp(1-sp)/m₀ + θ²se(1-se)/m₁)/(se + sp - 1) in those. A perfect judge leaves the rate as it is. Undefined
    (None): a judge that the labels do not tell from chance, where Newcombe's interval of se - (1 - sp) reaches 0; the
    interval also where the judge's rate contradicts its errors so far that no part of it lies between 0 and 1. Labelled
    items must be drawn at random.

    References: W. J. Rogan, B. Gladen, American Journal of Epidemiology 107 (1978); Z. Lang, J. Reiczigel, Confidence
    limits for prevalence of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine
    113 (2014).

    Args:
        rate: The share that the judge calls positive.
        n: How many items the rate is of.
        sensitivity: The share of truly positive items that the judge calls positive.
        positives: How many labelled positive items the sensitivity is of.
        specificity: The share of truly negative items that the judge calls negative.
        negatives: How many labelled negative items the specificity is of.
        confidence: The level of the interval.

    Raises:
        ValueError: A share is outside [0, 1], a count below 1, or the level outside (0, 1).

    >>> result = rogan_gladen(0.62, n=1000, sensitivity=0.9, positives=120, specificity=0.8, negatives=80)
    >>> round(result.value, 4), round(result.interval.lower, 4), round(result.interval.upper, 4)
    (0.6, 0.5157, 0.6808)
    """
    _check_rates(rate=rate, sensitivity=sensitivity, specificity=specificity)
    _check_sizes(n=n, positives=positives, negatives=negatives)
    interval = _lang_reiczigel((rate, n), (sensitivity, positives), (specificity, negatives), confidence=confidence)
    gain = sensitivity + specificity - 1
    hits, alarms = sensitivity * positives, (1 - specificity) * negatives
    information = newcombe(hits, positives, alarms, negatives, confidence=confidence).interval
    if information is None or information.lower <= 0:
        why = f"sensitivity + specificity - 1 is {gain:.4f}, and its interval reaches 0"
        return CorrectedRate(value=None, n=n, note=f"These labels do not tell the judge from chance: {why}.")
    unclipped = (rate + specificity - 1) / gain
    outside = not -1e-12 <= unclipped <= 1 + 1e-12
    note = None
    if outside:
        note = "The judge's rate contradicts its measured errors; the corrected rate was cut to [0, 1]."
    if interval is None:
        note = "There is no interval: the judge's rate contradicts its errors, or too few labels tell it from chance."
    value = min(1.0, max(0.0, unclipped))
    return CorrectedRate(value=value, n=n, unclipped=unclipped, out_of_range=outside, interval=interval, note=note)


def _check_rates(**rates: float) -> None:
    for name, share in rates.items():
        if not 0 <= share <= 1:
            raise ValueError(f"The {name} lies in [0, 1], not at {share!r}.")


def _check_sizes(**sizes: int) -> None:
    for name, count in sizes.items():
        if not 1 <= count < math.inf:
            raise ValueError(f"There is at least one item to count; {name} is {count!r}.")


def _lang_reiczigel(
    rate: tuple[float, int], sensitivity: tuple[float, int], specificity: tuple[float, int], *, confidence: float
) -> ConfidenceInterval | None:
    z = normal_quantile(confidence)
    p, n = (rate[0] * rate[1] + z * z / 2) / (rate[1] + z * z), rate[1] + z * z
    se, positives = (sensitivity[0] * sensitivity[1] + 1) / (sensitivity[1] + 2), sensitivity[1] + 2
    sp, negatives = (specificity[0] * specificity[1] + 1) / (specificity[1] + 2), specificity[1] + 2
    gain = se + sp - 1
    if gain <= 0:
        return None
    theta = (p + sp - 1) / gain
    miss, alarm = se * (1 - se) / positives, sp * (1 - sp) / negatives
    centre = theta + 2 * z * z * (theta * miss - (1 - theta) * alarm)
    half = z * math.sqrt(p * (1 - p) / n + (1 - theta) ** 2 * alarm + theta**2 * miss) / gain
    lower, upper = max(0.0, centre - half), min(1.0, centre + half)
    return ConfidenceInterval(lower, upper, confidence, method="lang-reiczigel") if lower < upper else None


def _best_weight(y: NDArray[np.float64], known: NDArray[np.float64], others: NDArray[np.float64]) -> float:
    if y.size < 2 or not others.size:
        return 0.0
    spread = float(np.var(np.concatenate([known, others]), ddof=1))
    if spread == 0:
        return 0.0
    shared = float(np.mean((y - y.mean()) * (known - known.mean())))
    return min(1.0, max(0.0, shared / ((1 + y.size / others.size) * spread)))


def _estimate_mean(
    y: NDArray[np.float64],
    known: NDArray[np.float64],
    others: NDArray[np.float64],
    weight: float,
    confidence: float,
    *,
    method: str,
) -> PpiMean:
    n, more = y.size, others.size
    shift = spread = 0.0
    if more:
        shift, spread = weight * float(others.mean() - known.mean()), weight**2 * float(np.var(others)) / more
    else:
        weight = 0.0
    value = float(y.mean()) + shift
    error = classical_error = interval = None
    if n >= 2:
        error = math.sqrt(float(np.var(y - weight * known)) / n + spread)
        classical_error = math.sqrt(float(np.var(y)) / n)
        half = normal_quantile(confidence) * error
        interval = ConfidenceInterval(value - half, value + half, confidence, method) if error else None
    return PpiMean(
        value=value,
        n=n,
        n_unlabelled=more,
        lam=weight,
        standard_error=error,
        interval=interval,
        classical=float(y.mean()),
        classical_error=classical_error,
    )
