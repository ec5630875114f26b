"""The distribution of scores: moments, histogram, earth mover's distance, Kolmogorov-Smirnov test."""

from __future__ import annotations

import math
import warnings
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import constant, vector
from deemster.stats.interpretation import interpret_emd
from deemster.stats.means import exact_mean, exact_stdev, quantile
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.systematic_bias import SIGNIFICANCE

# On a scale of width 1, means closer than this show no direction.
INDIFFERENCE = 0.01
_BLOCK = 1 << 20


class EarthMovers(msgspec.Struct, frozen=True, kw_only=True):
    """The earth mover's distance of two sets of scores, with the shift of mean and spread; in units of the scale."""

    emd: float | None = None
    mean_diff: float | None = None
    std_diff: float | None = None
    bias_direction: Literal["higher", "lower", "none"]
    bias_magnitude: float | None = None
    interpretation: str

    # Where users of autorubric look for it.
    interpret_emd = staticmethod(interpret_emd)
    n: tuple[int, int]


class KolmogorovSmirnov(msgspec.Struct, frozen=True, kw_only=True):
    """The largest distance of two distribution functions, and its test."""

    statistic: float | None = None
    p_value: float | None = None
    is_significant: bool
    n: int | tuple[int, int]
    method: str


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """Where scores lie and how they are spread; ``histogram`` is counts and bin edges."""

    n: int
    missing: int
    mean: float | None
    std: float | None
    variance: float | None
    min: float | None
    max: float | None
    median: float | None
    q25: float | None
    q75: float | None
    iqr: float | None
    skewness: float | None
    kurtosis: float | None
    histogram: tuple[tuple[int, ...], tuple[float, ...]] | None


def earth_movers_distance(
    a: ArrayLike, b: ArrayLike, *, scale: tuple[float, float] | Literal["data"] = (0, 1)
) -> EarthMovers:
    """How far one set of scores must be moved to become the other: ∫|F_a - F_b|, by the width of the scale.

    0 is the same distribution, 1 all at opposite ends. ``scale="data"`` divides by the joint range of the scores; where
    that is 0, so is the distance. Undefined (None) where a side is empty. ``bias_direction`` says where a lies beyond
    ±0.01 of b's mean.

    Args:
        a: Scores; None or NaN is missing.
        b: Scores, in any number and order.
        scale: The ends of the scale.

    Reference: Y. Rubner, C. Tomasi, L. J. Guibas, The earth mover's distance as a metric for image retrieval,
    International Journal of Computer Vision 40 (2000).

    Raises:
        ValueError: A score is no finite number or off the scale, or the scale has no width.

    >>> result = earth_movers_distance([0.8, 0.7, 0.9], [0.7, 0.6, 0.8])
    >>> round(result.emd, 4), result.bias_direction, result.interpretation
    (0.1, 'higher', 'moderate differences')
    """
    first, second = _known_scores(a, "a"), _known_scores(b, "b")
    sizes = len(first), len(second)
    ends = _scale_ends(first, second, scale)
    if not len(first) or not len(second):
        return EarthMovers(bias_direction="none", interpretation=interpret_emd(None), n=sizes)
    width = (ends[1] - ends[0]) or 1.0
    every = np.sort(np.concatenate([first, second]))
    below = [np.searchsorted(np.sort(side), every[:-1], side="right") / len(side) for side in (first, second)]
    distance = float(np.abs(below[0] - below[1]) @ np.diff(every)) / width
    shift = float(first.mean() - second.mean()) / width
    direction: Literal["higher", "lower", "none"] = "none"
    if abs(shift) > INDIFFERENCE:
        direction = "higher" if shift > 0 else "lower"
    return EarthMovers(
        emd=distance,
        mean_diff=shift,
        std_diff=float(first.std() - second.std()) / width,
        bias_direction=direction,
        bias_magnitude=abs(shift),
        interpretation=interpret_emd(distance),
        n=sizes,
    )


def ks_test(a: ArrayLike, b: ArrayLike | None = None, *, resamples: int = 9999, seed: int = 0) -> KolmogorovSmirnov:
    """The Kolmogorov-Smirnov test: the largest distance of two distribution functions.

    Two samples: whether they come from one distribution (exact up to 10,000 values). One sample: whether it is normal
    with its own mean and standard deviation; as these are fitted, p comes from ``resamples`` normal samples,
    (1 + how many lie as far off)/(1 + resamples). Undefined (None) where a side is empty, and for one sample below
    three values or without spread. Significant is p < 0.05.

    Args:
        a: Scores; None or NaN is missing.
        b: The other sample, if there is one.
        resamples: How many normal samples are drawn.
        seed: Where their draws begin.

    Reference: H. W. Lilliefors, On the Kolmogorov-Smirnov test for normality with mean and variance unknown, JASA 62
    (1967).

    Raises:
        ValueError: A score is no finite number, or there is no resample.

    >>> result = ks_test([0.1, 0.2, 0.3, 0.4], [0.6, 0.7, 0.8, 0.9])
    >>> result.statistic, round(result.p_value, 4), result.is_significant
    (1.0, 0.0286, True)
    """
    first = _known_scores(a, "a")
    if b is None:
        return _normality(first, resamples, seed)
    second = _known_scores(b, "b")
    sizes = len(first), len(second)
    if not len(first) or not len(second):
        return KolmogorovSmirnov(is_significant=False, n=sizes, method="two-sample")
    from scipy.stats import ks_2samp  # noqa: PLC0415 - scipy.stats takes most of a second to load

    with warnings.catch_warnings():
        # Where its exact sum rounds to a little above 1, scipy takes the asymptotic value and says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        found = ks_2samp(first, second)
    p_value = float(found.pvalue)
    return KolmogorovSmirnov(
        statistic=float(found.statistic),
        p_value=p_value,
        is_significant=p_value < SIGNIFICANCE,
        n=sizes,
        method="two-sample",
    )


def score_distribution(x: ArrayLike, *, bins: int = 10) -> Distribution:
    """Where scores lie: mean, spread, quartiles, shape and a histogram.

    Standard deviation and variance divide by n - 1. Skewness is m3/m2^1.5 and kurtosis m4/m2² - 3 with 1/n moments, 0
    and 0 for a normal. Undefined (None): all without scores, std and variance below 2, skewness below 3, kurtosis below
    4, both for scores without spread.

    Args:
        x: Scores; None or NaN is missing.
        bins: How many bins of equal width the histogram has.

    Reference: D. N. Joanes, C. A. Gill, Comparing measures of sample skewness and kurtosis, The Statistician 47 (1998).

    Raises:
        ValueError: A score is no finite number, or there is no bin.

    >>> result = score_distribution([0.2, 0.4, 0.4, 0.9], bins=2)
    >>> round(result.mean, 4), round(result.skewness, 4), result.histogram[0]
    (0.475, 0.7969, (3, 1))
    """
    if bins < 1:
        raise ValueError(f"A histogram has at least one bin, not {bins}.")
    every = vector(x)
    scores = np.sort(every[~np.isnan(every)])
    n = len(scores)
    spread = exact_stdev(scores)
    q25, q75 = quantile(scores, 0.25), quantile(scores, 0.75)
    skewness, kurtosis = _shape(scores)
    histogram = None
    if n:
        # Scores that differ by rounding leave no room for bins between them; around one score there is room.
        counts, edges = np.histogram(scores[:1].repeat(n) if constant(scores) else scores, bins=bins)
        histogram = tuple(counts.tolist()), tuple(edges.tolist())
    return Distribution(
        n=n,
        missing=len(every) - n,
        mean=exact_mean(scores),
        std=spread,
        variance=None if spread is None else spread * spread,
        min=float(scores[0]) if n else None,
        max=float(scores[-1]) if n else None,
        median=quantile(scores, 0.5),
        q25=q25,
        q75=q75,
        iqr=None if q25 is None or q75 is None else q75 - q25,
        skewness=skewness,
        kurtosis=kurtosis,
        histogram=histogram,
    )


def _known_scores(values: ArrayLike, name: str) -> Floats:
    array = vector(values, name=name)
    return array[~np.isnan(array)]


def _scale_ends(first: Floats, second: Floats, scale: tuple[float, float] | str) -> tuple[float, float]:
    every = np.concatenate([first, second])
    low, high = (float(every.min()), float(every.max())) if len(every) else (0.0, 0.0)
    if scale == "data":
        return low, high
    if isinstance(scale, str) or len(scale) != 2 or not -math.inf < scale[0] < scale[1] < math.inf:
        raise ValueError(f'A scale is its two ends, the lower first, or "data", not {scale!r}.')
    if len(every) and not scale[0] <= low <= high <= scale[1]:
        off = low if low < scale[0] else high
        raise ValueError(f'The score {off} is off the scale from {scale[0]} to {scale[1]}; give `scale`, or "data".')
    return float(scale[0]), float(scale[1])


def _shape(scores: Floats) -> tuple[float | None, float | None]:
    if len(scores) < 3 or constant(scores):
        return None, None
    # Scaled to 1, so that fourth powers of small spreads exist.
    about = scores - scores.mean()
    about = about / np.abs(about).max()
    second, third, fourth = (float(np.mean(about**power)) for power in (2, 3, 4))
    return third / second**1.5, fourth / second**2 - 3 if len(scores) >= 4 else None


def _normality(scores: Floats, resamples: int, seed: int) -> KolmogorovSmirnov:
    if resamples < 1:
        raise ValueError(f"The test draws at least one normal sample, not {resamples}.")
    n = len(scores)
    if n < 3 or constant(scores):
        return KolmogorovSmirnov(is_significant=False, n=n, method="normal, fitted")
    statistic = float(_distance(scores[None, :])[0])
    draws = np.random.default_rng(seed)
    as_far, done = 0, 0
    # In blocks: memory must not grow with resamples × scores.
    rows = max(1, _BLOCK // n)
    while done < resamples:
        size = min(rows, resamples - done)
        as_far += int((_distance(draws.standard_normal((size, n))) >= statistic - 1e-12).sum())
        done += size
    p_value = (1 + as_far) / (1 + resamples)
    return KolmogorovSmirnov(
        statistic=statistic, p_value=p_value, is_significant=p_value < SIGNIFICANCE, n=n, method="normal, fitted"
    )


def _distance(samples: Floats) -> Floats:
    """The distance of each row's distribution from the normal with its mean and standard deviation (n - 1)."""
    from scipy.special import ndtr  # noqa: PLC0415 - scipy takes a tenth of a second to load

    n = samples.shape[1]
    ordered = np.sort(samples, axis=1)
    centred = ordered - ordered.mean(axis=1, keepdims=True)
    expected = ndtr(centred / ordered.std(axis=1, ddof=1, keepdims=True))
    steps = np.arange(1, n + 1) / n
    return np.asarray(np.maximum(steps - expected, expected - (steps - 1 / n)).max(axis=1))
