"""Brier score and expected calibration error of stated probabilities, with the reliability curve."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.proportion_intervals import wilson


class Brier(msgspec.Struct, frozen=True, kw_only=True):
    """A Brier score over `n` items.

    Attributes:
        value: The mean squared error; 0 is best.
        n: How many items.
        reference: What stating the observed frequencies for every item would give.
        skill: 1 - value/reference: 1 is perfect, 0 no better than the frequencies.
    """

    value: float | None = None
    n: int
    reference: float | None = None
    skill: float | None = None


class CalibrationBin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One point of a reliability curve.

    Attributes:
        lower: Its lowest probability.
        upper: Its highest probability, which only the last bin includes.
        n_samples: Probabilities in it.
        mean_probability: Their mean. None in an empty bin.
        observed_share: The share that came true. None in an empty bin.
        ci: The interval of the observed share. None in an empty bin.
    """

    lower: float
    upper: float
    n_samples: int
    mean_probability: float | None
    observed_share: float | None
    ci: ConfidenceInterval | None


class CalibrationError(msgspec.Struct, frozen=True, kw_only=True):
    """How far stated probabilities are from what happened, on average over the bins.

    Attributes:
        value: The expected calibration error.
        n: How many items.
        largest: The gap of the worst bin.
        bins: The reliability curve, empty bins included.
    """

    value: float | None
    n: int
    largest: float | None
    bins: tuple[CalibrationBin, ...]


def brier(outcomes: ArrayLike, probabilities: ArrayLike) -> Brier:
    """The Brier score of stated probabilities.

    For yes or no the mean of (p - y)², within [0, 1]; for several classes the mean of Σ_k (p_k - y_k)², within [0, 2].
    0 means certain and right, the upper end certain and wrong. Undefined (None) without items; the skill also where all
    outcomes are equal.

    Reference: G. W. Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78
    (1950).

    Args:
        outcomes: 0 or 1 for each item; with several classes the place of the one that came true.
        probabilities: The probability of a 1 for each item; with several classes a row for each item, which sums to 1.

    Raises:
        ValueError: Lengths differ, a probability is outside [0, 1], a row does not sum to 1, or an outcome is no class.

    >>> round(brier([1, 0, 1], [0.9, 0.2, 0.6]).value, 6)
    0.07
    """
    truth, stated = _check_stated(outcomes, probabilities)
    n = truth.size
    if not n:
        return Brier(n=0)
    if stated.ndim == 1:
        happened = truth.astype(np.float64)
        value = float(np.square(stated - happened).mean())
        reference = float(np.square(happened.mean() - happened).mean())
    else:
        happened = np.eye(stated.shape[1])[truth]
        value = float(np.square(stated - happened).sum(axis=1).mean())
        reference = float(np.square(happened.mean(axis=0) - happened).sum(axis=1).mean())
    same = int(truth.min()) == int(truth.max())
    return Brier(value=value, n=n, reference=reference, skill=None if same else 1 - value / reference)


def calibration_error(
    outcomes: ArrayLike, probabilities: ArrayLike, *, bins: int = 10, confidence: float = 0.95
) -> CalibrationError:
    """The expected calibration error over bins of equal width, with the reliability curve.

    `Σ_b n_b/n·|mean p in b - share of 1 in b|`. 0: stated probabilities come true; 1: certain and always wrong. Several
    classes are judged by the most probable one: its probability, and whether it came true. Each bin has the share with
    Wilson's interval. What rounding left of a bin's lower end lies in that bin: 1 - 0.9 falls into the second of ten.
    Undefined (None) without items.

    Reference: M. P. Naeini, G. F. Cooper, M. Hauskrecht, Obtaining well calibrated probabilities using Bayesian
    binning, AAAI (2015).

    Args:
        outcomes: 0 or 1 for each item; with several classes the place of the one that came true.
        probabilities: The probability of a 1 for each item; with several classes a row for each item, which sums to 1.
        bins: How many bins.
        confidence: The level of the bins' intervals.

    Raises:
        ValueError: As ``brier``; or there is no bin, or the level is not in (0, 1).

    >>> result = calibration_error([1, 0, 1, 1], [0.9, 0.2, 0.6, 0.95], bins=2)
    >>> round(result.value, 4), [entry.n_samples for entry in result.bins]
    (0.1875, [1, 3])
    """
    if bins < 1:
        raise ValueError(f"There is at least one bin, not {bins!r}.")
    truth, stated = _check_stated(outcomes, probabilities)
    if stated.ndim == 2:
        top = stated.argmax(axis=1) if stated.size else np.zeros(0, dtype=np.int64)
        truth, stated = (top == truth).astype(np.int64), stated.max(axis=1, initial=0.0)
    n = truth.size
    places = np.minimum(np.floor(np.round(stated * bins, 10)).astype(np.int64), bins - 1)
    counts = np.bincount(places, minlength=bins).tolist()
    stated_sums = np.bincount(places, weights=stated, minlength=bins).tolist()
    hits = np.bincount(places, weights=truth, minlength=bins).tolist()
    curve, gaps = [], []
    for place, (count, total, hit) in enumerate(zip(counts, stated_sums, hits, strict=True)):
        share = wilson(hit, count, confidence=confidence)
        mean = total / count if count else None
        curve.append(
            CalibrationBin(
                lower=place / bins,
                upper=(place + 1) / bins,
                n_samples=count,
                mean_probability=mean,
                observed_share=share.value,
                ci=share.interval,
            )
        )
        if mean is not None and share.value is not None:
            gaps.append((count, abs(mean - share.value)))
    return CalibrationError(
        value=sum(count * gap for count, gap in gaps) / n if n else None,
        n=n,
        largest=max((gap for _, gap in gaps), default=None),
        bins=tuple(curve),
    )


def _check_stated(outcomes: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    truth, stated = np.asarray(outcomes), np.asarray(probabilities, dtype=np.float64)
    if truth.ndim != 1 or stated.ndim not in (1, 2) or len(stated) != truth.size:
        raise ValueError(
            f"Each outcome has one probability, or one row of them; there are {truth.shape} and {stated.shape}."
        )
    if not ((stated >= 0) & (stated <= 1)).all():
        raise ValueError("A probability lies in [0, 1].")
    classes = 2 if stated.ndim == 1 else stated.shape[1]
    if not np.isin(truth, np.arange(classes)).all():
        raise ValueError(f"An outcome is one of 0 to {classes - 1}.")
    if stated.ndim == 2 and not np.allclose(stated.sum(axis=1), 1, rtol=0, atol=1e-6):
        raise ValueError("The probabilities of one item sum to 1.")
    return truth.astype(np.int64), stated
