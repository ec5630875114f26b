"""The kappa of two columns of verdicts, with the interval that `compute_metrics` gives the kappa of a judge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._imagined_units import table_shapes
from deemster.stats import confusion_tables as tables
from deemster.stats.bootstrap_intervals import expanded_percentile_interval
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.confidence_interval import Interval
from deemster.stats.nan_arithmetic import Floats, float_or_none


def smoothed_kappa(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    units: NDArray[np.intp],
    *,
    confidence: float,
    seed: int,
    replicates: int = 2000,
) -> tuple[float | None, Interval | None]:
    """Cohen's kappa of pairs of verdicts in units, and its interval by the Bayesian bootstrap with imagined units.

    Undefined (None) without a pair, and where both sides have one verdict throughout; the interval for a single unit.

    Args:
        first: Whether each pair passes on the one side.
        second: Whether it passes on the other.
        units: The unit of each pair.
        confidence: The level of the interval.
        seed: The seed of the draws.
        replicates: How many draws there are.

    >>> passed = np.arange(40) < 30
    >>> value, interval = smoothed_kappa(passed, passed, np.arange(40), confidence=0.95, seed=0)
    >>> value, round(interval.low, 1), interval.high
    (1.0, 0.8, 1.0)
    """
    if not len(first):
        return None, None

    codes = np.where(first, 0, 2) + np.where(second, 0, 1)
    _, rows = np.unique(units, return_inverse=True)
    groups = int(rows.max()) + 1
    cells = np.bincount(4 * rows + codes, minlength=4 * groups).reshape(groups, 4).astype(np.float64)
    value = float_or_none(_kappa(cells.sum(axis=0)[:, None])[0])
    if value is None or groups < 2:
        return value, None

    # The weights of units that are alike add up to one gamma draw.
    kinds, counts = np.unique(cells, axis=0, return_counts=True)
    rng = np.random.default_rng(seed)
    sums = kinds.T @ rng.standard_gamma(counts[:, None], (len(counts), replicates))
    imagined = len(first) / groups * imagined_weights(table_shapes(2), replicates, rng)
    both = np.stack([_kappa(sums), _kappa(sums + imagined)])
    ends = expanded_percentile_interval(both, units=groups, confidence=confidence)
    return value, Interval(float(ends.lower[1]), float(np.nanmax(ends.upper)))


def _kappa(cells: Floats) -> Floats:
    return tables.kappa(cells.T.reshape(-1, 2, 2), "binary")
