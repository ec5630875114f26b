"""Bootstrap of every statistic of agreement: replicates on shared draws, imagined units, jackknife, intervals."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._contingency_counts import ContingencyCounts
from deemster.agreement._criterion_columns import Floats
from deemster.agreement._panel_errors import PanelErrors
from deemster.agreement._score_statistics import STRIP, ScoreSums
from deemster.agreement._verdict_statistics import Values
from deemster.agreement.result_models import BootstrapResult
from deemster.errors import InputError, did_you_mean, visible
from deemster.stats.bootstrap_intervals import (
    Ends,
    acceleration,
    corrected_interval,
    expanded_percentile_interval,
    percentile_interval,
)
from deemster.stats.bootstrap_resampling import (
    BLOCK_BYTES,
    bayesian_weight_blocks,
    imagined_weights,
    resample_blocks,
)
from deemster.stats.confidence_interval import ConfidenceInterval

_Key = TypeVar("_Key", bound=Hashable)
Method: TypeAlias = Literal["smoothed", "percentile", "bca"]
METHODS: tuple[Method, ...] = get_args(Method)
# From counts, sums, draws and the weights of imagined items to statistics, of the data, of replicates and of the
# jackknife. Without draws it leaves out what counts and sums do not give; with imagined items the replicates
# come twice, without what is imagined and then with it.
Compute: TypeAlias = Callable[[Floats, Floats, NDArray[Any] | None, Floats | None], Values]
# Statistics whose intervals are computed together: their replicates stay in the processor's cache.
_CHUNK = 64
# Two ways of summing the same numbers differ by less.
_ROUNDING = 1e-12


class BootstrapSettings(NamedTuple):
    """How numbers of agreement get their intervals.

    Attributes:
        method: "smoothed", "percentile" or "bca".
        replicates: How many replicates are drawn. With 0 there are no intervals, and then no answer to whether the
            judge can be trusted.
        confidence: The level of all intervals.
        seed: The seed of the draws.
    """

    method: Method = "smoothed"
    replicates: int = 1000
    confidence: float = 0.95
    seed: int = 0

    def checked(self) -> Self:
        """The settings as plain numbers.

        Raises:
            InputError: One of them is not as described.

        >>> BootstrapSettings(replicates=100, seed=7).checked()
        BootstrapSettings(method='smoothed', replicates=100, confidence=0.95, seed=7)
        """
        if self.method not in METHODS:
            name = visible(str(self.method), limit=60)
            raise InputError(f"`method` of a bootstrap has no {name!r}. {did_you_mean(name, METHODS)}")
        if not isinstance(self.confidence, (int, float, np.number)) or not 0 < self.confidence < 1:
            raise InputError(f"`confidence` lies strictly between 0 and 1, not {self.confidence!r:.60}.")

        replicates = _whole_number("replicates", self.replicates)
        seed = _whole_number("seed", self.seed)
        return self._replace(replicates=replicates, confidence=float(self.confidence), seed=seed)


SMOOTHED: Final = BootstrapSettings()


def _whole_number(name: str, value: object) -> int:
    """A whole number from 0 on, of any type but True and False.

    Raises:
        InputError: It is none.
    """
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if number < 0:
        raise InputError(f"`{name}` is a whole number from 0 on, not {value!r:.60}.")
    return number


def replicate_statistics(
    layout: ContingencyCounts,
    scores: ScoreSums,
    panel: PanelErrors | None,
    compute: Compute,
    *,
    n: int,
    seed: int,
    method: Method = "smoothed",
    block_bytes: int = BLOCK_BYTES,
) -> Values:
    """Compute every statistic in every replicate, ``[1, n]``; a second row has the imagined units too.

    Args:
        layout: Counts of verdicts.
        scores: Sums of scores.
        panel: The errors of the panel.
        compute: From counts and sums to statistics.
        n: How many replicates.
        seed: The seed of the draws.
        method: What is drawn: weights and imagined units for "smoothed", whole units otherwise.
        block_bytes: About the most that the counts of one block take; it changes no result.
    """
    patterns, units = layout.patterns_by_unit.shape
    smoothed = method == "smoothed"
    dtype = np.dtype(np.float32) if smoothed else layout.patterns_by_unit.dtype
    # Draws, counts by pattern and cells of one replicate.
    replicate_bytes = dtype.itemsize * (units + patterns) + (16 if smoothed else 8) * layout.cells_by_pattern.shape[0]
    # Whole strips, so that products are cut at the same replicates in blocks of every size.
    width = max(1, block_bytes // (replicate_bytes * STRIP)) * STRIP
    draw = bayesian_weight_blocks if smoothed else resample_blocks
    rng, item_rng = np.random.default_rng((seed, 1)), np.random.default_rng((seed, 2))
    panel_rng = np.random.default_rng((seed, 3)) if smoothed else None
    found: Values = {}
    weights = layout.imagined.draw(n if smoothed else 0, rng)
    start = 0
    for draws in draw(units, n, seed, dtype=dtype, block_bytes=width * units * dtype.itemsize):
        block = slice(start, start + draws.shape[1])
        start = block.stop
        cells = items = None
        if smoothed:
            cells = weights[:, block]
            items = scores.imagined.size * imagined_weights(scores.imagined.shapes, draws.shape[1], item_rng)
        counts, sums = layout.count_draws(draws, cells), scores.sum_draws(draws, items)
        if panel is not None:
            _keep_block(found, panel.replicates(draws, panel_rng), n, block)
        # Many draws take much memory, and then nobody asks for them again.
        kept = draws if scores.ranked else None
        del draws
        _keep_block(found, compute(counts, sums, kept, items), n, block)
    return found


def jackknife_statistics(
    layout: ContingencyCounts, scores: ScoreSums, panel: PanelErrors | None, compute: Compute
) -> Values:
    """Compute every statistic without one unit at a time, ``[1, units]``.

    Args:
        layout: Counts of verdicts.
        scores: Sums of scores.
        panel: The errors of the panel.
        compute: From counts and sums to statistics.
    """
    patterns, sums = layout.pattern_totals(), scores.totals()
    units = layout.patterns_by_unit.shape[1]
    width = max(1, BLOCK_BYTES // (8 * max(patterns.size, units, 1)))
    found: Values = {}
    for start in range(0, units, width):
        stop = min(start + width, units)
        counts = layout.count_cells(patterns - layout.patterns_by_unit.dense_columns(start, stop))
        draws = np.ones((units, stop - start), dtype=np.uint8)
        draws[np.arange(start, stop), np.arange(stop - start)] = 0
        others = sums - scores.features[:, start:stop]
        _keep_block(found, compute(counts, others, draws, None), units, slice(start, stop))
        if panel is not None:
            without = panel.statistics(panel.totals() - panel.products[:, start:stop])
            _keep_block(found, without, units, slice(start, stop))
    return found


def _keep_block(found: Values, values: Values, n: int, block: slice) -> None:
    for key, row in values.items():
        rows = row.reshape(-1, block.stop - block.start)
        if rows.shape[1] == n:
            found[key] = rows
            continue
        if key not in found:
            found[key] = np.full((len(rows), n), np.nan)
        found[key][:, block] = rows


def bootstrap_results(
    estimates: Mapping[_Key, float],
    replicates: Mapping[_Key, Floats],
    jackknife: Mapping[_Key, Floats] | None,
    *,
    method: Method,
    units: int,
    confidence: float,
    expanded: Collection[_Key] = (),
) -> dict[_Key, BootstrapResult]:
    """Compute the interval of every statistic.

    With imagined units, an interval holds two: the expanded percentile interval of the replicates with them and that of
    the replicates without. The first has a width where nothing went wrong in the sample; the second does not let
    imagined disagreement hide a good judge, or imagined agreement a bad one.

    Args:
        estimates: The statistics of the data themselves; NaN is undefined.
        replicates: The replicates of each, ``[1, n]``; a second row has the imagined units too.
        jackknife: Each without one unit at a time, for BCa intervals; None for other intervals.
        method: What was asked for: of a single unit there is no BCa interval.
        units: How many units were resampled.
        confidence: The level of the interval.
        expanded: Statistics whose replicates are first-order expansions.
    """
    results: dict[_Key, BootstrapResult] = {}
    keys = list(replicates)
    for start in range(0, len(keys), _CHUNK):
        chosen = keys[start : start + _CHUNK]
        every = np.array([replicates[key] for key in chosen])
        values = every[:, 0]
        centre = np.array([estimates[key] for key in chosen])
        if every.shape[1] > 1:
            called, ends = "smoothed", _joint_ends(every, units, confidence)
        elif jackknife is None:
            called, ends = "percentile", percentile_interval(values, confidence)
        else:
            accelerations = acceleration(np.array([jackknife[key][0] for key in chosen]))
            called, ends = "bca", corrected_interval(centre, values, accelerations, confidence)
        errors = _standard_deviations(values, ends.defined)
        columns = (centre, ends.lower, ends.upper, ends.defined, errors, ends.fallback)
        for key, *row, fallback in zip(chosen, *(column.tolist() for column in columns), strict=True):
            name = ("percentile" if fallback else called) + (" (linear)" if key in expanded else "")
            results[key] = _bootstrap_result(row, method=name, confidence=confidence, as_drawn=method == "percentile")
    return results


def _joint_ends(replicates: Floats, units: int, confidence: float) -> Ends:
    """The ends of the smallest interval that holds those of both rows of replicates, ``[statistics, 2, n]``."""
    ends = expanded_percentile_interval(replicates, units=units, confidence=confidence)
    lower, upper = np.fmin.reduce(ends.lower, axis=1), np.fmax.reduce(ends.upper, axis=1)
    return Ends(lower, upper, ends.defined.min(axis=1), ends.fallback[:, 0])


def _bootstrap_result(row: Sequence[Any], *, method: str, confidence: float, as_drawn: bool) -> BootstrapResult:
    """A result from the estimate, the ends, the number of defined replicates and their standard deviation.

    Replicates that are alike but for rounding say nothing about how far the number may be off, so they give no
    interval; the plain percentile method gives the ends as they are drawn, as other tools do.
    """
    value, lower, upper, defined, error = row
    rounding = _ROUNDING * max(1.0, abs(lower), abs(upper))
    known = not (math.isnan(value) or math.isnan(lower)) and (as_drawn or upper - lower > rounding)
    # Rounding must not put an end outside the range of the statistic.
    lower, upper = (float(round(end)) if known and abs(end - round(end)) <= rounding else end for end in (lower, upper))
    return BootstrapResult(
        estimate=None if math.isnan(value) else value,
        ci=ConfidenceInterval(lower, upper, confidence, method) if known else None,
        standard_error=error if known and defined > 1 else None,
        n_bootstrap=defined,
    )


def _standard_deviations(values: Floats, defined: NDArray[np.int64]) -> Floats:
    """Standard deviations of what is defined in each row."""
    known = np.isfinite(values)
    mean = np.sum(values, axis=1, where=known) / np.maximum(defined, 1)
    deviations = np.where(known, values - mean[:, None], 0.0)
    # Not einsum: its order of additions depends on where a row begins in memory.
    found: Floats = np.sqrt(np.square(deviations).sum(axis=1) / np.maximum(defined - 1, 1))
    return found


def smoothed_results(
    statistic: Callable[[Floats, np.random.Generator | None], Floats], *, units: int, drawing: BootstrapSettings
) -> tuple[BootstrapResult, ...]:
    """The statistics of a stack, each with its smoothed interval; without replicates there are no intervals.

    Args:
        statistic: From the weights of the units, ``[units, b]``, to values ``[statistics, b]``; the generator draws the
            weights of imagined units, and is None for real units alone.
        units: How many units there are.
        drawing: How weights are drawn.
    """
    estimates = dict(enumerate(statistic(np.ones((units, 1)), None)[:, 0].tolist()))
    if not drawing.replicates:
        bare = (None if math.isnan(value) else value for value in estimates.values())
        return tuple(BootstrapResult(estimate=value, ci=None, standard_error=None, n_bootstrap=0) for value in bare)
    rng = np.random.default_rng((drawing.seed, 1))
    blocks = [
        np.stack([statistic(weights, None), statistic(weights, rng)], axis=1)
        for weights in bayesian_weight_blocks(units, drawing.replicates, drawing.seed)
    ]
    replicated = dict(enumerate(np.concatenate(blocks, axis=-1)))
    intervals = bootstrap_results(
        estimates, replicated, None, method="smoothed", units=units, confidence=drawing.confidence
    )
    return tuple(intervals.values())
