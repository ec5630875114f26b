"""Statistics on shared draws: one formula for the data and for every replicate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from deemster.alignment._labelled_votes import Codes, Floats, Panel, Places
from deemster.alignment._verdict_classes import Classes
from deemster.alignment.metrics_result import BootstrapResult, ConfidenceInterval
from deemster.stats.agreement_from_sums import alpha
from deemster.stats.bootstrap_intervals import percentile_interval
from deemster.stats.bootstrap_resampling import resample_blocks


def number(value: Any) -> float | None:
    """A plain float, or None for NaN.

    >>> number(np.float64(0.5)), number(float("nan"))
    (0.5, None)
    """
    return None if np.isnan(value) else float(value)


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is defined; None where nothing is.

    >>> mean([0.5, None, 1.0])
    0.75
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def alpha_of(coincidences: Floats, units: Floats, classes: Classes) -> Floats:
    """The alpha that fits the kind of criterion: ordinal on a scale, else nominal."""
    return alpha(coincidences, "ordinal" if classes.kind == "ordinal" else "nominal", units=units)


def class_counts(votes: Codes, size: int) -> Floats:
    """How many votes of each row fall on each class; -1 is no vote.

    >>> class_counts(np.array([[0, 1, 1], [-1, 0, -1]]), 2)
    array([[1., 2.],
           [1., 0.]])
    """
    return np.stack([(votes == place).sum(axis=1, dtype=np.float64) for place in range(size)], axis=1)


def units_of(whole: Panel) -> Places:
    """The unit that a bootstrap draws with each item: itself, or its cluster."""
    return np.arange(len(whole.ids)) if whole.clusters is None else whole.clusters


def one_hot(cells: Any, units: Places, *, size: int, n_units: int) -> Any:
    """How often each cell occurs in each unit, as a sparse matrix [cells, units]; a negative cell is none."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - scipy takes a tenth of a second to load

    held = cells >= 0
    where = (cells[held].astype(np.intp), units[held])
    return csr_array((np.ones(int(held.sum())), where), shape=(size, n_units))


def replicated(statistic: Callable[[Floats], Floats], *, units: int, replicates: int, seed: int) -> Floats:
    """A stack of statistics [statistics, 1 + replicates]: of the data itself first, then of every replicate.

    Args:
        statistic: From how often each unit is drawn, [units, b], to values [statistics, b].
        units: How many units there are to draw from.
        replicates: How many times they are drawn; 0 gives the data alone.
        seed: Of the draws.
    """
    parts = [statistic(np.ones((units, 1)))]
    if replicates:
        parts.extend(map(statistic, resample_blocks(units, replicates, seed, dtype=np.float64)))
    return np.concatenate(parts, axis=1)


def resampled(values: Floats, *, confidence: float) -> tuple[BootstrapResult, ...]:
    """The percentile interval of each row of `replicated`."""
    ends = percentile_interval(values[:, 1:], confidence)
    results = []
    for place, row in enumerate(values):
        known = row[1:][~np.isnan(row[1:])]
        lower, upper = float(ends.lower[place]), float(ends.upper[place])
        held = not (np.isnan(lower) or np.isnan(row[0]))
        results.append(
            BootstrapResult(
                estimate=number(row[0]),
                ci=ConfidenceInterval(lower, upper, confidence, "percentile") if held else None,
                standard_error=float(known.std(ddof=1)) if held and len(known) > 1 else None,
                n_bootstrap=len(known),
            )
        )
    return tuple(results)
