"""What repetitions say: how often one of several passes, or all do; how much a result varies by itself."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.results.metric_summary import Clusters, mean_share_interval
from deemster.stats.confidence_interval import Interval, normal_quantile
from deemster.stats.pass_at_k import chances_of_all

# The upper 95 % bound of a rate is 3/R if nothing was seen in R trials ("rule of three").
_UNSEEN = 3

# The difference that repeated runs should be able to show, where nobody says another.
DELTA = 0.05


class RunPrecision(msgspec.Struct, frozen=True, kw_only=True):
    """How finely the pass rates of two whole runs on these samples can be told apart."""

    resolution: float
    resolvable: bool
    required_repetitions: int


class RepeatedPasses(msgspec.Struct, frozen=True, kw_only=True):
    """How often k repetitions of a sample pass: unbiased estimates, averaged over samples.

    Attributes:
        k: How many repetitions count together.
        pass_at_k: The chance that at least one of them passes.
        pass_at_k_interval: Its 95 % interval by Wilson, clustered by sample.
        pass_hat_k: The chance that all of them pass, pass^k.
        pass_hat_k_interval: Its interval.
    """

    k: int
    pass_at_k: float
    pass_at_k_interval: Interval | None
    pass_hat_k: float
    pass_hat_k_interval: Interval | None


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """How finely the pass rates of one sample in two runs can be told apart, and those of the whole run.

    `repeated` has the passes of 2, 3, ... repetitions together, to all of them.
    """

    within_sample_variance: float
    resolution: float
    target_delta: float
    resolvable: bool
    required_repetitions: int
    unstable: int
    run: RunPrecision
    repeated: tuple[RepeatedPasses, ...] = ()


def within_sample_variance(passed: ArrayLike, *, repetitions: int) -> float | None:
    """Mean over samples of p(1 - p)·R/(R - 1), at most 0.25. Undefined (None) below two repetitions.

    The factor is there because p(1 - p) of R draws is too small on average.

    Args:
        passed: In how many repetitions each sample passed.
        repetitions: How many there were.

    >>> within_sample_variance([5, 5, 3, 0], repetitions=5)
    0.075
    """
    counts = np.asarray(passed, dtype=np.int64)
    if repetitions < 2 or not counts.size:
        return None
    products = int((counts * (repetitions - counts)).sum())
    return min(0.25, products / (repetitions * (repetitions - 1) * counts.size))


def resolution(variance: float, repetitions: int) -> float:
    """The smallest difference between two runs that is not noise: min(1, z·sqrt(2v/R)), or min(1, 3/R) where v is 0.

    Raises:
        ValueError: The variance is negative or there is no repetition.

    >>> round(resolution(0.25, 30), 4)
    0.253
    """
    if variance < 0 or repetitions < 1:
        raise ValueError("A variance is at least 0, and there is at least one repetition.")
    if variance == 0:
        return min(1.0, _UNSEEN / repetitions)
    return min(1.0, normal_quantile() * math.sqrt(2 * variance / repetitions))


def required_repetitions(variance: float, delta: float, *, samples: int = 1) -> int:
    """Repetitions that resolve a difference: ceil(2z²v/(N·d²)), or ceil(3/(N·d)) where v is 0.

    Args:
        variance: The within-sample variance.
        delta: The difference to be seen.
        samples: 1 for one sample's pass rate; the number of samples for the run's.

    Raises:
        ValueError: The difference is outside (0, 1], or the variance is negative.

    >>> required_repetitions(0.25, 0.05), required_repetitions(0.0, 0.05)
    (769, 60)
    """
    if not 0 < delta <= 1:
        raise ValueError(f"A difference to be seen lies in (0, 1], not {delta!r}.")
    if variance < 0:
        raise ValueError("A variance is at least 0.")
    needed = _UNSEEN / delta if variance == 0 else 2 * normal_quantile() ** 2 * variance / delta**2
    return max(1, math.ceil(round(needed / samples, 9)))


def repeated_passes(
    passed: NDArray[np.int64], *, repetitions: int, k: int, clusters: Clusters = None
) -> RepeatedPasses:
    """How often k repetitions of a sample pass, at least one of them and all of them.

    Of a sample that c of n repetitions pass, pass@k is 1 - C(n-c, k)/C(n, k), and pass^k is C(c, k)/C(n, k).

    References: M. Chen et al., arXiv:2107.03374 (2021); S. Yao et al., arXiv:2406.12045 (2024).

    Args:
        passed: In how many repetitions each sample passed.
        repetitions: How many there were.
        k: How many count together.
        clusters: The cluster of each sample.

    >>> found = repeated_passes(np.array([3, 1, 0]), repetitions=3, k=3)
    >>> round(found.pass_at_k, 4), round(found.pass_hat_k, 4)
    (0.6667, 0.3333)
    """
    at_least_one = 1 - chances_of_all(repetitions - passed, repetitions, k)
    all_of_them = chances_of_all(passed, repetitions, k)
    # So many draws of k repetitions have none in common.
    draws = repetitions / k
    return RepeatedPasses(
        k=k,
        pass_at_k=math.fsum(at_least_one.tolist()) / len(passed),
        pass_at_k_interval=mean_share_interval(at_least_one, draws, clusters),
        pass_hat_k=math.fsum(all_of_them.tolist()) / len(passed),
        pass_hat_k_interval=mean_share_interval(all_of_them, draws, clusters),
    )


def repetition_precision(
    passed: ArrayLike, *, repetitions: int, delta: float, clusters: Clusters = None
) -> Precision | None:
    """How finely this run resolves, per sample and as a whole. Undefined (None) below two repetitions.

    Args:
        passed: In how many repetitions each sample passed.
        repetitions: How many there were.
        delta: The difference that two runs should be able to show.
        clusters: The cluster of each sample.

    Raises:
        ValueError: The difference is outside (0, 1].
    """
    counts = np.asarray(passed, dtype=np.int64)
    variance = within_sample_variance(counts, repetitions=repetitions)
    if variance is None:
        return None
    one, whole = resolution(variance, repetitions), resolution(variance, repetitions * counts.size)
    return Precision(
        within_sample_variance=variance,
        resolution=one,
        target_delta=delta,
        resolvable=one <= delta,
        required_repetitions=required_repetitions(variance, delta),
        unstable=int(np.count_nonzero((counts > 0) & (counts < repetitions))),
        run=RunPrecision(
            resolution=whole,
            resolvable=whole <= delta,
            required_repetitions=required_repetitions(variance, delta, samples=counts.size),
        ),
        repeated=tuple(
            repeated_passes(counts, repetitions=repetitions, k=k, clusters=clusters) for k in range(2, repetitions + 1)
        ),
    )
