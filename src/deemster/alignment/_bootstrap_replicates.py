"""Bootstrap replicates of every statistic on shared draws, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._joint_counts import Cells
from deemster.alignment._labelled_votes import Floats
from deemster.alignment._result_parts import BootstrapResult
from deemster.alignment._score_statistics import STRIP, Moments
from deemster.alignment._table_measures import Key, Sheet
from deemster.stats.bootstrap_intervals import acceleration, corrected_interval, percentile_interval
from deemster.stats.bootstrap_resampling import BLOCK_BYTES, resample_blocks
from deemster.stats.proportion_intervals import ConfidenceInterval

Method: TypeAlias = Literal["percentile", "bca"]
# Sums and draws in, statistics out; the same for the data, for replicates and for what is left without a unit.
Measure: TypeAlias = Callable[[Floats, Floats, NDArray[Any] | None], Sheet]
# Statistics whose intervals are computed together: their replicates stay in the processor's cache.
_CHUNK = 64


def replicates_of(
    cells: Cells, moments: Moments, measure: Measure, *, n: int, seed: int, block_bytes: int = BLOCK_BYTES
) -> dict[Key, Floats]:
    """Every statistic in every replicate.

    Args:
        cells: Counts of verdicts.
        moments: Sums of scores.
        measure: Statistics of both.
        n: How many replicates.
        seed: Of the draws.
        block_bytes: About the most that the counts of one block take; it changes no result.
    """
    units = cells.units.shape[1]
    size = cells.units.dtype.itemsize
    # Draws, counts by pattern and cells of one replicate.
    each = size * (units + cells.units.shape[0]) + 8 * cells.sums.shape[0]
    # Whole strips, so that products are cut at the same replicates whatever the size of a block.
    width = max(1, block_bytes // (each * STRIP)) * STRIP
    found: dict[Key, Floats] = {}
    start = 0
    for drawn in resample_blocks(units, n, seed, dtype=cells.units.dtype, block_bytes=width * units * size):
        stop = start + drawn.shape[1]
        for key, values in measure(cells.counted(drawn), moments.summed(drawn), drawn).items():
            if key not in found:
                found[key] = np.full(n, np.nan)
            found[key][start:stop] = values
        start = stop
    return found


def left_out(cells: Cells, moments: Moments, measure: Measure) -> dict[Key, Floats]:
    """Every statistic without one unit at a time.

    Args:
        cells: Counts of verdicts.
        moments: Sums of scores.
        measure: Statistics of both.
    """
    patterns, sums = cells.totals(), moments.totals()
    by_unit = cells.units.tocsc()
    units = by_unit.shape[1]
    width = max(1, BLOCK_BYTES // (8 * max(patterns.size, units, 1)))
    found: dict[Key, Floats] = {}
    for start in range(0, units, width):
        stop = min(start + width, units)
        counts = cells.summed(patterns - by_unit[:, start:stop].toarray())
        drawn = np.ones((units, stop - start), dtype=np.uint8)
        drawn[np.arange(start, stop), np.arange(stop - start)] = 0
        for key, values in measure(counts, sums - moments.features[:, start:stop], drawn).items():
            if key not in found:
                found[key] = np.full(units, np.nan)
            found[key][start:stop] = values
    return found


def results_of(
    estimates: dict[Key, float],
    replicates: dict[Key, Floats],
    without: dict[Key, Floats] | None,
    *,
    confidence: float,
    linear: frozenset[Key],
) -> dict[Key, BootstrapResult]:
    """Intervals of every statistic.

    Args:
        estimates: The numbers themselves; NaN is undefined.
        replicates: Of each.
        without: Each without one unit at a time: asks for BCa intervals; None for percentile ones.
        confidence: The level.
        linear: Statistics whose replicates are first-order expansions.
    """
    found = {}
    keys = list(replicates)
    for start in range(0, len(keys), _CHUNK):
        chosen = keys[start : start + _CHUNK]
        values = np.array([replicates[key] for key in chosen])
        centre = np.array([estimates[key] for key in chosen])
        if without is None:
            ends = percentile_interval(values, confidence)
        else:
            speed = acceleration(np.array([without[key] for key in chosen]))
            ends = corrected_interval(centre, values, speed, confidence)
        error = _deviations(values, ends.defined)
        columns = (centre, ends.lower, ends.upper, ends.defined, ends.fallback, error)
        for key, *row in zip(chosen, *(column.tolist() for column in columns), strict=True):
            method = "percentile" if without is None or row[4] else "bca"
            found[key] = _result(row, f"{method} (linear)" if key in linear else method, confidence)
    return found


def _result(row: list[Any], method: str, confidence: float) -> BootstrapResult:
    value, lower, upper, defined, _, error = row
    known = not (math.isnan(value) or math.isnan(lower))
    return BootstrapResult(
        estimate=None if math.isnan(value) else value,
        ci=ConfidenceInterval(lower, upper, confidence, method) if known else None,
        standard_error=error if known and defined > 1 else None,
        n_bootstrap=defined,
    )


def _deviations(values: Floats, defined: NDArray[np.int64]) -> Floats:
    """Standard deviations of what is defined in each row."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=1) / np.maximum(defined, 1)
    filled -= mean[:, None]
    filled[~known] = 0.0
    found: Floats = np.sqrt(np.einsum("ij,ij->i", filled, filled) / np.maximum(defined - 1, 1))
    return found
