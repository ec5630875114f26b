"""Systematic bias: whether predicted scores lie above true ones (t test, effect size)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import cluster_codes
from deemster.stats._number_arrays import pairs, vector
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.interpretation import interpret_effect_size
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.student_distribution import t_cdf, t_quantile

Direction = Literal["positive", "negative", "none"]
# A bias this small has no direction.
INDIFFERENCE = 0.001
SIGNIFICANCE = 0.05


class BiasResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far predicted scores lie above (positive) or below (negative) true ones.

    Attributes:
        mean_bias: The mean of predicted minus true. None without a pair.
        std_bias: The standard deviation of the differences. None below two pairs.
        is_significant: Whether the p-value is below 0.05.
        p_value: The p-value of no bias (t test). None below two pairs or clusters, and where all differences are equal.
        direction: The sign of a bias beyond ±0.001.
        effect_size: The mean in standard deviations (Cohen's d). None below two pairs, and where all differences are
            equal.
        ci: The interval of the mean bias. None where the p-value is.
        n_samples: Pairs of scores.
    """

    mean_bias: float | None
    std_bias: float | None
    is_significant: bool
    p_value: float | None
    direction: Direction
    effect_size: float | None
    ci: ConfidenceInterval | None
    n_samples: int

    # Where users of autorubric look for it.
    interpret_effect_size = staticmethod(interpret_effect_size)


def systematic_bias(
    predicted: ArrayLike,
    true: ArrayLike,
    *,
    paired: bool = True,
    clusters: Sequence[Hashable] | NDArray[np.generic] | None = None,
    confidence: float = 0.95,
) -> BiasResult:
    """The mean of predicted - true with a t test, effect size and t interval.

    Paired: t = mean/(sd/√n) with n - 1 degrees of freedom, d = mean/sd. With clusters the error is CR2, with the
    degrees of freedom of Bell and McCaffrey, since items of one cluster are not independent. Unpaired: Welch's t, sd =
    √((s²+s²)/2). An sd up to 1e-12·max(1, largest absolute score) is rounding: it is given as 0, and p, d and interval
    are None. Undefined (None): all without values; all but the mean with one; p and interval with one cluster. A
    direction is named beyond ±0.001; significant is p < 0.05.

    Args:
        predicted: Scores of the judge; None or NaN is missing.
        true: Scores of the truth, paired with them unless ``paired`` is off.
        paired: Whether the two go together item by item.
        clusters: The cluster of each pair; only for pairs without gaps.
        confidence: The level of the interval.

    References: B. L. Welch, The generalization of Student's problem, Biometrika 34 (1947); R. M. Bell, D. F. McCaffrey,
    Bias reduction in standard errors for linear regression with multi-stage samples, Survey Methodology 28 (2002).

    Raises:
        ValueError: Paired sequences or their clusters differ in length, clusters are given for scores that are not
            paired, a value is no finite number, or the level is not in (0, 1).

    >>> result = systematic_bias([0.9, 0.7, 0.8, 0.6], [0.7, 0.6, 0.8, 0.5])
    >>> round(result.mean_bias, 4), round(result.p_value, 4), result.direction
    (0.1, 0.0917, 'positive')
    """
    check_confidence(confidence)
    if paired:
        first, second, _ = pairs(predicted, true, names=("predicted", "true"))
        if clusters is not None and len(clusters) != len(first):
            raise ValueError(f"Each pair has one cluster; there are {len(first)} pairs and {len(clusters)} clusters.")
        return _paired(first, second, clusters, confidence)
    if clusters is not None:
        raise ValueError("Clusters belong to paired scores; these are not paired.")
    first, second = (vector(side, name=name) for side, name in ((predicted, "predicted"), (true, "true")))
    return _welch(first[~np.isnan(first)], second[~np.isnan(second)], confidence)


def _paired(
    first: Floats, second: Floats, clusters: Sequence[Hashable] | NDArray[np.generic] | None, confidence: float
) -> BiasResult:
    n = len(first)
    if n == 0:
        return _result(None, None, n=0)
    differences = first - second
    mean = math.fsum(differences) / n
    if n == 1:
        return _result(mean, None, n=1)
    spread = math.sqrt(math.fsum(np.square(differences - mean)) / (n - 1))
    if spread <= rounding_limit(first, second):
        return _result(mean, 0.0, n=n)
    error, freedom = spread / math.sqrt(n), n - 1.0
    if clusters is not None:
        robust = clustered_error(differences, clusters)
        if robust is None:
            return _result(mean, spread, n=n)
        error, freedom = robust
    return _result(mean, spread, n=n, error=error, freedom=freedom, confidence=confidence)


def clustered_error(values: Floats, clusters: Sequence[Hashable] | NDArray[np.generic]) -> tuple[float, float] | None:
    """The standard error of a mean whose values come in clusters, and its degrees of freedom; None below two clusters.

    With S_c the sum of the deviations from the mean in cluster c and h_c the share of all values that lie in c, CR2 is
    sqrt(Σ S_c²/(1 - h_c))/n. Its degrees of freedom are one less than the clusters where these are of equal size, and
    fewer where they are not. One value per cluster gives s/sqrt(n).

    >>> error, freedom = clustered_error(np.array([1.0, 1, 1, 0, 0, 0, 1, 1, 0]), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    >>> round(error, 4), round(freedom, 4)
    (0.294, 2.0)
    """
    n = values.size
    codes, count = cluster_codes(clusters, n)
    if count < 2:
        return None
    deviations = values - math.fsum(values) / n
    squared_sums = np.square(np.bincount(codes, weights=deviations, minlength=count))
    sizes = np.bincount(codes, minlength=count).astype(np.float64)
    error = math.sqrt(float((squared_sums / (1 - sizes / n)).sum())) / n
    # An error below this share of the largest value is rounding.
    is_rounding = error <= 1e-12 * float(np.abs(values).max())
    return 0.0 if is_rounding else error, _bell_mccaffrey(sizes)


def _bell_mccaffrey(sizes: NDArray[np.float64]) -> float:
    """The degrees of freedom of a mean's CR2 error, for values that are in truth independent.

    With M the covariance of the adjusted residual sums, they are (tr M)²/tr M².

    >>> [round(_bell_mccaffrey(np.array(sizes)), 4) for sizes in ([5.0, 5.0, 5.0, 5.0], [17.0, 1.0, 1.0, 1.0])]
    [3.0, 1.2405]
    """
    share = sizes / sizes.sum()
    adjusted = np.square(share) / (1 - share)
    return float(1 / (np.square(share).sum() + adjusted.sum() ** 2 - np.square(adjusted).sum()))


def _welch(first: Floats, second: Floats, confidence: float) -> BiasResult:
    n = len(first) + len(second)
    if not len(first) or not len(second):
        return _result(None, None, n=n)
    mean = math.fsum(first) / len(first) - math.fsum(second) / len(second)
    if len(first) < 2 or len(second) < 2:
        return _result(mean, None, n=n)
    variances = float(np.var(first, ddof=1)), float(np.var(second, ddof=1))
    spread = math.sqrt(sum(variances) / 2)
    if spread <= rounding_limit(first, second):
        return _result(mean, 0.0, n=n)
    a, b = variances[0] / len(first), variances[1] / len(second)
    freedom = (a + b) ** 2 / (a * a / (len(first) - 1) + b * b / (len(second) - 1))
    return _result(mean, spread, n=n, error=math.sqrt(a + b), freedom=freedom, confidence=confidence)


def rounding_limit(first: Floats, second: Floats) -> float:
    """Up to where a standard deviation of differences is what rounding leaves of none: 1e-12·max(1, largest value).

    >>> rounding_limit(np.array([0.5]), np.array([-40.0]))
    4e-11
    """
    return 1e-12 * max(1.0, float(np.abs(first).max()), float(np.abs(second).max()))


def _result(
    mean: float | None,
    spread: float | None,
    *,
    n: int,
    error: float | None = None,
    freedom: float = 0.0,
    confidence: float = 0.95,
) -> BiasResult:
    direction: Direction = "none"
    if mean is not None and abs(mean) > INDIFFERENCE:
        direction = "positive" if mean > 0 else "negative"
    p_value = effect = interval = None
    if mean is not None and spread:
        effect = mean / spread
    if mean is not None and spread and error:
        p_value = 2 * t_cdf(-abs(mean) / error, freedom)
        half = t_quantile(confidence, freedom) * error
        interval = ConfidenceInterval(mean - half, mean + half, confidence, "t")
    return BiasResult(
        mean_bias=mean,
        std_bias=spread,
        is_significant=p_value is not None and p_value < SIGNIFICANCE,
        p_value=p_value,
        direction=direction,
        effect_size=effect,
        ci=interval,
        n_samples=n,
    )
