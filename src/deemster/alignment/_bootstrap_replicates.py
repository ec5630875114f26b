"""Bootstrap of every alignment statistic: replicates on shared draws, jackknife, percentile and BCa."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._contingency_counts import ContingencyCounts
from deemster.alignment._labelled_votes import Floats
from deemster.alignment._score_statistics import STRIP, ScoreSums
from deemster.alignment._verdict_statistics import Key, Values
from deemster.alignment.result_models import BootstrapResult
from deemster.errors import InputError
from deemster.stats.bootstrap_intervals import acceleration, corrected_interval, percentile_interval
from deemster.stats.bootstrap_resampling import BLOCK_BYTES, drawn_seed, resample_blocks
from deemster.stats.confidence_interval import ConfidenceInterval

Method: TypeAlias = Literal["percentile", "bca"]
# From counts, sums and draws to statistics: one function for the data, for replicates and for the jackknife.
Compute: TypeAlias = Callable[[Floats, Floats, NDArray[Any] | None], Values]
# Statistics whose intervals are computed together: their replicates stay in the processor's cache.
_CHUNK = 64


class BootstrapOptions(NamedTuple):
    """How many replicates are drawn, the level of their intervals, and the seed of the draws."""

    replicates: int
    confidence: float
    seed: int


def check_bootstrap_options(*, n_bootstrap: int, confidence: float, seed: int | None) -> BootstrapOptions:
    """Check the arguments of a bootstrap; a seed is drawn where none is given.

    Raises:
        InputError: One of them is not as described.

    >>> check_bootstrap_options(n_bootstrap=1000, confidence=0.95, seed=7)
    BootstrapOptions(replicates=1000, confidence=0.95, seed=7)
    """
    replicates = _whole_number(n_bootstrap)
    if replicates is None or replicates < 1:
        raise InputError(f"`n_bootstrap` is a whole number from 1 on, not {n_bootstrap!r:.60}.")
    if not isinstance(confidence, (int, float, np.number)) or not 0 < confidence < 1:
        raise InputError(f"`confidence` lies strictly between 0 and 1, not {confidence!r:.60}.")
    checked_seed = drawn_seed() if seed is None else _whole_number(seed)
    if checked_seed is None or checked_seed < 0:
        raise InputError(f"`seed` is a whole number from 0 on, not {seed!r:.60}.")
    return BootstrapOptions(replicates, float(confidence), checked_seed)


def _whole_number(value: object) -> int | None:
    """A whole number of any type; None for everything else, True and False included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def replicate_statistics(
    layout: ContingencyCounts,
    scores: ScoreSums,
    compute: Compute,
    *,
    n: int,
    seed: int,
    block_bytes: int = BLOCK_BYTES,
) -> Values:
    """Compute every statistic in every replicate.

    Args:
        layout: Counts of verdicts.
        scores: Sums of scores.
        compute: From counts and sums to statistics.
        n: How many replicates.
        seed: The seed of the draws.
        block_bytes: About the most that the counts of one block take; it changes no result.
    """
    patterns, units = layout.patterns_by_unit.shape
    dtype = layout.patterns_by_unit.dtype
    # Draws, counts by pattern and cells of one replicate.
    replicate_bytes = dtype.itemsize * (units + patterns) + 8 * layout.cells_by_pattern.shape[0]
    # Whole strips, so that products are cut at the same replicates in blocks of every size.
    width = max(1, block_bytes // (replicate_bytes * STRIP)) * STRIP
    found: Values = {}
    start = 0
    for draws in resample_blocks(units, n, seed, dtype=dtype, block_bytes=width * units * dtype.itemsize):
        stop = start + draws.shape[1]
        values = compute(layout.count_draws(draws), scores.sum_draws(draws), draws)
        _keep_block(found, values, n, slice(start, stop))
        start = stop
    return found


def jackknife_statistics(layout: ContingencyCounts, scores: ScoreSums, compute: Compute) -> Values:
    """Compute every statistic without one unit at a time.

    Args:
        layout: Counts of verdicts.
        scores: Sums of scores.
        compute: From counts and sums to statistics.
    """
    patterns, sums = layout.pattern_totals(), scores.totals()
    by_unit = layout.patterns_by_unit.tocsc()
    units = by_unit.shape[1]
    width = max(1, BLOCK_BYTES // (8 * max(patterns.size, units, 1)))
    found: Values = {}
    for start in range(0, units, width):
        stop = min(start + width, units)
        counts = layout.count_cells(patterns - by_unit[:, start:stop].toarray())
        draws = np.ones((units, stop - start), dtype=np.uint8)
        draws[np.arange(start, stop), np.arange(stop - start)] = 0
        values = compute(counts, sums - scores.features[:, start:stop], draws)
        _keep_block(found, values, units, slice(start, stop))
    return found


def _keep_block(found: Values, values: Values, n: int, block: slice) -> None:
    for key, row in values.items():
        if key not in found:
            found[key] = np.full(n, np.nan)
        found[key][block] = row


def bootstrap_results(
    estimates: dict[Key, float],
    replicates: Values,
    jackknife: Values | None,
    *,
    confidence: float,
    expanded: frozenset[Key],
) -> dict[Key, BootstrapResult]:
    """Compute the interval of every statistic.

    Args:
        estimates: The statistics of the data themselves; NaN is undefined.
        replicates: The replicates of each.
        jackknife: Each without one unit at a time, for BCa intervals; None for percentile intervals.
        confidence: The level of the interval.
        expanded: Statistics whose replicates are first-order expansions.
    """
    found = {}
    keys = list(replicates)
    for start in range(0, len(keys), _CHUNK):
        chosen = keys[start : start + _CHUNK]
        values = np.array([replicates[key] for key in chosen])
        centre = np.array([estimates[key] for key in chosen])
        if jackknife is None:
            ends = percentile_interval(values, confidence)
        else:
            accelerations = acceleration(np.array([jackknife[key] for key in chosen]))
            ends = corrected_interval(centre, values, accelerations, confidence)
        errors = _standard_deviations(values, ends.defined)
        columns = (centre, ends.lower, ends.upper, ends.defined, errors, ends.fallback)
        for key, *row, fallback in zip(chosen, *(column.tolist() for column in columns), strict=True):
            method = "percentile" if jackknife is None or fallback else "bca"
            method += " (linear)" if key in expanded else ""
            found[key] = _bootstrap_result(row, method=method, confidence=confidence)
    return found


def _bootstrap_result(row: Sequence[Any], *, method: str, confidence: float) -> BootstrapResult:
    """A result from the estimate, the ends, the number of defined replicates and their standard deviation."""
    value, lower, upper, defined, error = row
    known = not (math.isnan(value) or math.isnan(lower))
    return BootstrapResult(
        estimate=None if math.isnan(value) else value,
        ci=ConfidenceInterval(lower, upper, confidence, method) if known else None,
        standard_error=error if known and defined > 1 else None,
        n_bootstrap=defined,
    )


def _standard_deviations(values: Floats, defined: NDArray[np.int64]) -> Floats:
    """Standard deviations of what is defined in each row."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    mean = filled.sum(axis=1) / np.maximum(defined, 1)
    filled -= mean[:, None]
    filled[~known] = 0.0
    found: Floats = np.sqrt(np.einsum("ij,ij->i", filled, filled) / np.maximum(defined - 1, 1))
    return found


def stack_replicates(statistic: Callable[[Floats], Floats], *, units: int, replicates: int, seed: int) -> Floats:
    """Compute a stack of statistics ``[statistics, 1 + replicates]``: the data themselves first, then every replicate.

    Args:
        statistic: From how often each unit is drawn, ``[units, b]``, to values ``[statistics, b]``.
        units: How many units there are to draw from.
        replicates: How many times they are drawn; 0 gives the data alone.
        seed: The seed of the draws.
    """
    parts = [statistic(np.ones((units, 1)))]
    if replicates:
        parts.extend(map(statistic, resample_blocks(units, replicates, seed, dtype=np.float64)))
    return np.concatenate(parts, axis=1)


def percentile_results(values: Floats, *, confidence: float) -> tuple[BootstrapResult, ...]:
    """The percentile interval of each row of `stack_replicates`."""
    ends = percentile_interval(values[:, 1:], confidence)
    results = []
    for place, row in enumerate(values):
        known = row[1:][~np.isnan(row[1:])]
        error = float(known.std(ddof=1)) if len(known) > 1 else math.nan
        found = (float(row[0]), float(ends.lower[place]), float(ends.upper[place]), len(known), error)
        results.append(_bootstrap_result(found, method="percentile", confidence=confidence))
    return tuple(results)
