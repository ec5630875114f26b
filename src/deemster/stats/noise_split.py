"""Splits the noise of a comparison of repeated runs: the system's own variation, and the choice of samples."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import matrix
from deemster.stats.nan_arithmetic import Floats


class NoiseSplit(msgspec.Struct, frozen=True, kw_only=True):
    """Where the variance of a mean difference comes from.

    Attributes:
        n: Samples with a mark on both sides.
        repetitions: Marks of a sample on each side: the harmonic mean.
        standard_error: The standard error of the mean difference as it was measured.
        within: The variance of single marks of one sample, before and after.
        between: The variance over samples of the difference that endless repetitions would show.
        share_within: The part of the squared standard error that comes from ``within``.
        error_twice_repetitions: The standard error to expect with twice the repetitions on both sides.
        error_twice_samples: The same with twice the samples instead.
        error_endless_repetitions: The least error that more repetitions alone could reach.
    """

    n: int
    repetitions: tuple[float, float]
    standard_error: float
    within: tuple[float, float]
    between: float
    share_within: float | None
    error_twice_repetitions: float
    error_twice_samples: float
    error_endless_repetitions: float


def noise_split(before: ArrayLike, after: ArrayLike) -> NoiseSplit | None:
    """How much of the noise of a paired comparison is the systems' own, and how much the choice of samples.

    The variance of a sample's difference of means is ω² + σ_A²/K_A + σ_B²/K_B. σ² is pooled over samples,
    Σ(x - mean)²/Σ(K - 1); ω² is what remains of the observed variance, at least 0. The expected errors are
    sqrt((ω² + σ_A²/K_A + σ_B²/K_B)/n) for other K and n. Undefined (None) below two samples, and where a side has no
    sample with two marks.

    Reference: E. Miller, Adding error bars to evals, arXiv:2411.00640 (2024), section 4.

    Args:
        before: A row for each sample, with a mark for each repetition of the first run; None or NaN if it is missing.
        after: The same of the second run.

    Raises:
        ValueError: The rows are not equally many, differ in length on a side, or hold something that is no number.

    >>> split = noise_split([[1, 1], [0, 1], [1, 1], [0, 0]], [[1, 0], [0, 1], [1, 1], [0, 1]])
    >>> split.within, round(split.share_within, 3), round(split.standard_error, 3)
    ((0.125, 0.375), 1.0, 0.204)
    """
    first, second = matrix(before, name="before"), matrix(after, name="after")
    if len(first) != len(second):
        raise ValueError(f"Both sides have a row for each sample, not {len(first)} and {len(second)} rows.")
    marks = [(~np.isnan(side)).sum(axis=1) for side in (first, second)]
    both = (marks[0] > 0) & (marks[1] > 0)
    n = int(both.sum())
    if n < 2 or any(not (counts[both] > 1).any() for counts in marks):
        return None
    means, variances, repetitions = zip(
        *(_within(side[both], counts[both]) for side, counts in zip((first, second), marks, strict=True)), strict=True
    )
    own = sum(variance / count for variance, count in zip(variances, repetitions, strict=True))
    observed = float(np.var(means[1] - means[0], ddof=1))
    between = max(0.0, observed - own)
    return NoiseSplit(
        n=n,
        repetitions=(repetitions[0], repetitions[1]),
        standard_error=math.sqrt(observed / n),
        within=(variances[0], variances[1]),
        between=between,
        share_within=min(1.0, own / observed) if observed else None,
        error_twice_repetitions=math.sqrt((between + own / 2) / n),
        error_twice_samples=math.sqrt((between + own) / (2 * n)),
        error_endless_repetitions=math.sqrt(between / n),
    )


def _within(marks: Floats, counts: np.ndarray) -> tuple[Floats, float, float]:
    """The mean of each sample, the pooled variance of single marks, and the harmonic mean of the counts."""
    means = np.nansum(marks, axis=1) / counts
    squares = float(np.nansum(np.square(marks - means[:, None])))
    return means, squares / float((counts - 1).sum()), len(counts) / float((1 / counts).sum())
