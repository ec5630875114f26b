"""The scores of a metric against the lengths of outputs, as points that a plot can show."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.errors import InputError
from deemster.view.opened_run import OpenedRun, mean_lengths

_POINTS = 2000


def draw_points(positions: NDArray[np.int64], *, seed: int) -> NDArray[np.int64]:
    """All of some samples where a plot can show them, else 2,000 drawn at random; in order.

    Args:
        positions: Their positions.
        seed: The seed of the draw.
    """
    if len(positions) <= _POINTS:
        return positions
    return np.sort(np.random.default_rng(seed).choice(positions, _POINTS, replace=False))


def score_points(run: OpenedRun, metric: str, *, seed: int = 0) -> dict[str, Any]:
    """The scores of a metric against the lengths of the outputs: of every sample, or of 2,000 drawn at random.

    Args:
        run: The run.
        metric: The metric.
        seed: The seed of the draw.

    Raises:
        InputError: The run has no such metric.
        StoreError: The store fails.
    """
    if metric not in run.names:
        raise InputError(f"The run has no metric {metric!r:.100}.")
    scores = run.mean_scores(run.names.index(metric))
    lengths = mean_lengths(run.table)
    known = np.flatnonzero(~np.isnan(scores) & ~np.isnan(lengths))
    drawn = draw_points(known, seed=seed)
    points = zip(drawn.tolist(), lengths[drawn].tolist(), scores[drawn].tolist(), strict=True)
    return {
        "metric": metric,
        "total": len(known),
        "seed": seed,
        "points": [(length, score, position) for position, length, score in points],
    }
