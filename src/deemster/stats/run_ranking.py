"""The ranks of several runs that the intervals of all pairs leave open, at a level at which all hold together."""

from __future__ import annotations

from collections.abc import Mapping

from deemster.stats.confidence_interval import shared_confidence


def pair_confidence(runs: int, confidence: float) -> float:
    """The level of the interval of each pair of K runs, at which all pairs hold together with a given confidence.

    >>> round(pair_confidence(3, 0.95), 4)
    0.9833
    """
    return shared_confidence(runs * (runs - 1) // 2, confidence)


def rank_ranges(
    runs: int, intervals: Mapping[tuple[int, int], tuple[float, float] | None]
) -> tuple[tuple[int, int], ...]:
    """The best and the worst rank of each run that the intervals of all pairs leave open.

    A run is certainly behind as many others as lie wholly above it. Ranks 1 to K mean that nothing is known.

    Reference: M. Mogstad, J. Romano, A. Shaikh, D. Wilhelm, Inference for ranks with applications to mobility across
    neighbourhoods and academic achievement across countries, Review of Economic Studies 91 (2024).

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
