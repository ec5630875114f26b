"""Ranks several runs on the same samples, with intervals that hold for all comparisons together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import cluster_codes
from deemster.stats._number_arrays import matrix
from deemster.stats.confidence_interval import check_confidence
from deemster.stats.means import exact_mean
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import PairedDifference, paired_difference


class RankedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs.

    Attributes:
        value: Its mean over all samples that it has a score of.
        n: How many those are.
        against_first: Its difference to the first run, on the samples that both have; None for the first run itself.
        best_rank: The best rank, from 1, that the comparisons with all other runs leave open.
        worst_rank: The worst one.
    """

    value: float | None
    n: int
    against_first: PairedDifference | None
    best_rank: int
    worst_rank: int


def rank_runs(
    scores: ArrayLike,
    *,
    clusters: Sequence[Hashable] | NDArray[np.generic] | None = None,
    confidence: float = 0.95,
) -> tuple[RankedRun, ...]:
    """Compare several runs with the first and with each other, so that all statements hold at once.

    All K(K - 1)/2 pairs of K runs are compared by ``paired_difference`` at the level 1 - α/(K(K - 1)/2): a run is
    certainly behind as many others as lie wholly above it. By Bonferroni's inequality all intervals, and all ranges of
    ranks, hold together with the given confidence. Ranks 1 to K mean that nothing is known. Undefined (None): the mean
    of a run without a score.

    Reference: M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, Inference for ranks with applications to mobility across
    neighbourhoods and academic achievement across countries, Review of Economic Studies 91 (2024).

    Args:
        scores: A row for each run, with a score from 0 to 1 for each sample; None or NaN where there is none.
        clusters: The cluster of each sample, where samples belong together.
        confidence: The level at which all intervals, and all ranks, hold together.

    Raises:
        ValueError: The rows differ in length, a score lies outside [0, 1], clusters are not one for each sample, or the
            level is outside (0, 1).

    >>> ranked = rank_runs([[0.0] * 30, [1.0] * 30, [0.0] * 30])
    >>> [(run.best_rank, run.worst_rank) for run in ranked]
    [(2, 3), (1, 1), (2, 3)]
    """
    check_confidence(confidence)
    table = matrix(scores, name="scores")
    runs, samples = table.shape
    codes = np.arange(samples) if clusters is None else cluster_codes(clusters, samples)[0]
    level = pair_confidence(runs, confidence)
    ends: dict[tuple[int, int], tuple[float, float] | None] = {}
    for first, second in combinations(range(runs), 2):
        interval = _compare(table[first], table[second], codes, level).interval
        ends[first, second] = None if interval is None else (interval.lower, interval.upper)
    ranks = rank_ranges(runs, ends)
    return tuple(
        RankedRun(
            value=exact_mean(row[~np.isnan(row)]),
            n=int((~np.isnan(row)).sum()),
            against_first=_compare(table[0], row, codes, level) if place else None,
            best_rank=ranks[place][0],
            worst_rank=ranks[place][1],
        )
        for place, row in enumerate(table)
    )


def pair_confidence(runs: int, confidence: float) -> float:
    """The level of the interval of each pair of runs, at which all pairs hold together with a given confidence.

    >>> round(pair_confidence(3, 0.95), 4)
    0.9833
    """
    return 1 - (1 - confidence) / max(1, runs * (runs - 1) // 2)


def rank_ranges(
    runs: int, intervals: Mapping[tuple[int, int], tuple[float, float] | None]
) -> tuple[tuple[int, int], ...]:
    """The best and the worst rank of each run that the intervals of all pairs leave open.

    Args:
        runs: How many runs there are.
        intervals: Of the second minus the first of each pair; None where there is none.

    >>> rank_ranges(3, {(0, 1): (0.1, 0.3), (0, 2): (-0.1, 0.2), (1, 2): None})
    ((2, 3), (1, 2), (1, 3))
    """
    better, worse = [0] * runs, [0] * runs
    for (first, second), interval in intervals.items():
        if interval is None or interval[0] <= 0 <= interval[1]:
            continue
        ahead, behind = (second, first) if interval[0] > 0 else (first, second)
        better[behind] += 1
        worse[ahead] += 1
    return tuple((1 + better[place], runs - worse[place]) for place in range(runs))


def _compare(first: Floats, second: Floats, codes: NDArray[np.generic], confidence: float) -> PairedDifference:
    """The difference on the samples that both have, summed over each cluster."""
    differences = second - first
    both = ~np.isnan(differences)
    _, units = np.unique(codes[both], return_inverse=True)
    return paired_difference(np.bincount(units, differences[both]), np.bincount(units), confidence=confidence)
