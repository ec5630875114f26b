"""The bootstrap of any statistic, on resampled rows or on resampled sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.errors import plural
from deemster.stats._label_codes import cluster_codes
from deemster.stats.bootstrap_intervals import Ends, bca_interval, percentile_interval
from deemster.stats.bootstrap_resampling import drawn_seed, resample_blocks
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.nan_arithmetic import Floats

Method: TypeAlias = Literal["percentile", "bca"]


class Bootstrap(msgspec.Struct, frozen=True, kw_only=True):
    """A statistic of `n` units with its bootstrap interval, and everything that is needed to draw it again.

    Attributes:
        value: The statistic of the data itself.
        n: How many units were resampled.
        unit: What was resampled: "item" or "cluster".
        interval: Its `method` is the one that was used.
        standard_error: The standard deviation of the defined replicates.
        n_resamples: How many replicates were drawn.
        n_defined: In how many the statistic is defined.
        seed: The seed of the draws.
        note: Why there is no interval, or another one than was asked for.
        distribution: The replicates, in order, where they were to be kept.
    """

    value: float | None
    n: int
    unit: str
    interval: ConfidenceInterval | None
    standard_error: float | None
    n_resamples: int
    n_defined: int
    seed: int
    note: str | None = None
    distribution: tuple[float | None, ...] | None = None


def bootstrap(
    statistic: Callable[..., Any],
    *data: ArrayLike,
    table: ArrayLike | None = None,
    method: Method = "percentile",
    clusters: Sequence[Hashable] | NDArray[np.generic] | None = None,
    seed: int | None = None,
    n_resamples: int = 1000,
    confidence: float = 0.95,
    keep: bool = False,
) -> Bootstrap:
    """A statistic with its bootstrap interval, in one of two forms.

    ``bootstrap(f, x, y)``: ``f`` is called with the resampled rows of every array and gives a number, None where it is
    undefined, or a result that has one of the two as ``value``, as ``cohen_kappa`` does. ``bootstrap(f, table=T)``: row
    i of T holds what unit i adds to the sums a statistic is made of; ``f`` takes sums [replicates, columns] and gives
    [replicates] numbers, NaN where undefined. All sums come from one matrix product, so this form is some hundred times
    faster. A statistic that divides by the number of items must have that number as a column of ones: with clusters it
    differs between replicates.

    Replicate after replicate draws n of n units with replacement from ``default_rng(seed)``; with ``clusters`` whole
    clusters. Both forms draw the same units. Undefined: the value where ``f`` says so; the interval also where more
    than half of the replicates are. A single unit gives an interval without width, and ``note`` says so.

    References: B. Efron, R. J. Tibshirani, An introduction to the bootstrap (1993); C. A. Field, A. H. Welsh,
    Bootstrapping clustered data, JRSS B 69 (2007).

    Args:
        statistic: See above.
        data: Arrays whose first axis are the items.
        table: What each item adds to the sums, [items, columns].
        method: "percentile" or "bca".
        clusters: The cluster of each item.
        seed: The seed of the draws; None draws a fresh one, which the result names.
        n_resamples: How many replicates are drawn.
        confidence: The level of the interval.
        keep: Whether the result holds the replicates.

    Raises:
        ValueError: There is no item, no replicate, not exactly one form, arrays of different length, an unknown method,
            or a level outside (0, 1).

    >>> result = bootstrap(lambda s: s[:, 0] / s[:, 1], table=[[1, 1], [0, 1], [1, 1], [1, 1]], seed=7)
    >>> result.value, result.interval.lower, result.interval.upper
    (0.75, 0.25, 1.0)
    """
    check_confidence(confidence)
    if method not in ("percentile", "bca"):
        raise ValueError(f'The method is "percentile" or "bca", not {method!r}.')
    form = _form(statistic, data, table, clusters)
    seed = drawn_seed(seed)
    blocks = resample_blocks(form.units, n_resamples, seed, dtype=form.dtype)
    replicates = np.concatenate([form.replicates(counts) for counts in blocks])
    unit = "item" if clusters is None else "cluster"
    result = _result(form, replicates, method, confidence, unit=unit, seed=seed)
    if not keep:
        return result
    return msgspec.structs.replace(result, distribution=tuple(_number(value) for value in replicates.tolist()))


class _Sums:
    """The table form: statistics of sums over units."""

    dtype = np.float64

    def __init__(
        self,
        statistic: Callable[..., Any],
        table: ArrayLike,
        clusters: Sequence[Hashable] | NDArray[np.generic] | None,
    ) -> None:
        rows = np.asarray(table, dtype=np.float64)
        if rows.ndim != 2 or not rows.size:
            raise ValueError(f"A table of sums has rows of items and columns of sums; its shape is {rows.shape}.")
        if not np.isfinite(rows).all():
            raise ValueError("A table of sums holds finite numbers only.")
        if clusters is not None:
            codes, count = cluster_codes(clusters, len(rows))
            by_cluster = np.zeros((count, rows.shape[1]))
            np.add.at(by_cluster, codes, rows)
            rows = by_cluster
        self._statistic, self._rows = statistic, rows
        self._total = rows.sum(axis=0)
        self.units = len(rows)

    def estimate(self) -> float:
        return float(self._values(self._total[None])[0])

    def replicates(self, counts: NDArray[Any]) -> Floats:
        return self._values(counts.T @ self._rows)

    def jackknife(self) -> Floats:
        return self._values(self._total - self._rows) if self.units > 1 else np.array([])

    def _values(self, sums: Floats) -> Floats:
        # A statistic of sums is undefined where it divides 0 by 0.
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.asarray(self._statistic(sums), dtype=np.float64)
        if values.shape != sums.shape[:1]:
            raise ValueError(
                f"A statistic of sums [{len(sums)}, {sums.shape[1]}] gives {plural(len(sums), 'number')}; "
                f"this one gave the shape {values.shape}."
            )
        return values


class _Rows:
    """The plain form: the statistic is called on the rows of every replicate."""

    dtype = np.uint8

    def __init__(
        self,
        statistic: Callable[..., Any],
        data: list[NDArray[Any]],
        clusters: Sequence[Hashable] | NDArray[np.generic] | None,
    ) -> None:
        lengths = {len(array) if array.ndim else 0 for array in data}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"The arrays of a bootstrap have one length, above 0; there are {sorted(lengths)}.")
        self._statistic, self._data = statistic, data
        n = lengths.pop()
        self._codes, self.units = (np.arange(n), n) if clusters is None else cluster_codes(clusters, n)
        self._order = np.argsort(self._codes, kind="stable")

    def estimate(self) -> float:
        return self._value(np.ones(self.units, dtype=np.int64))

    def replicates(self, counts: NDArray[Any]) -> Floats:
        return self._each(counts.T)

    def jackknife(self) -> Floats:
        if self.units == 1:
            return np.array([])
        return self._each(1 - row for row in np.eye(self.units, dtype=np.int64))

    def _each(self, counts: NDArray[Any] | Iterator[NDArray[Any]]) -> Floats:
        return np.fromiter((self._value(row) for row in counts), dtype=np.float64)

    def _value(self, counts: NDArray[Any]) -> float:
        rows = np.repeat(self._order, counts[self._codes[self._order]])
        found = self._statistic(*(array[rows] for array in self._data))
        value = getattr(found, "value", found)
        return math.nan if value is None else float(value)


def _form(
    statistic: Callable[..., Any],
    data: tuple[ArrayLike, ...],
    table: ArrayLike | None,
    clusters: Sequence[Hashable] | NDArray[np.generic] | None,
) -> _Rows | _Sums:
    if (table is None) == (not data):
        raise ValueError("A bootstrap takes either data arrays or a table of sums.")
    if table is not None:
        return _Sums(statistic, table, clusters)
    return _Rows(statistic, [np.asarray(array) for array in data], clusters)


def _result(
    form: _Rows | _Sums, replicates: Floats, method: Method, confidence: float, *, unit: str, seed: int
) -> Bootstrap:
    estimate = form.estimate()
    if method == "bca":
        ends = bca_interval(estimate, replicates, form.jackknife(), confidence)
    else:
        ends = percentile_interval(replicates, confidence)
    known = replicates[np.isfinite(replicates)]
    interval = None
    if math.isfinite(estimate) and not math.isnan(ends.lower):
        used = "percentile" if ends.fallback else method
        interval = ConfidenceInterval(float(ends.lower), float(ends.upper), confidence, method=used)
    return Bootstrap(
        value=_number(estimate),
        n=form.units,
        unit=unit,
        interval=interval,
        standard_error=float(np.std(known, ddof=1)) if known.size > 1 else None,
        n_resamples=replicates.size,
        n_defined=known.size,
        seed=seed,
        note=_note(estimate, ends, form.units, replicates.size),
    )


def _note(estimate: float, ends: Ends, units: int, replicates: int) -> str | None:
    if not math.isfinite(estimate):
        return "The statistic is undefined on the data."
    if 2 * ends.defined < replicates:
        return f"More than half of the replicates are undefined ({replicates - ends.defined} of {replicates})."
    if units == 1:
        return "There is a single unit to draw from, so the interval has no width and means nothing."
    if ends.fallback:
        return "BCa is undefined (an infinite correction); the percentile interval stands in."
    return None


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
