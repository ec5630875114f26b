"""Effects of the factors of a grid on paired samples: of each factor on average, and where one depends on another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.confidence_interval import shared_confidence
from deemster.stats.means import unit_sums
from deemster.stats.nan_arithmetic import Floats
from deemster.stats.paired_difference import PairedDifference, paired_difference

Levels = Mapping[str, str]


class FactorContrast(msgspec.Struct, frozen=True, kw_only=True):
    """One level of a factor against another, on average over the other factors.

    Attributes:
        factor: The factor.
        first: One level.
        second: The other.
        paired: The second minus the first, over the combinations of other levels that have both; None where none has.
        missing: The combinations of other levels that lack one of the two.
    """

    factor: str
    first: str
    second: str
    paired: PairedDifference | None
    missing: tuple[Levels, ...]


class InteractionContrast(msgspec.Struct, frozen=True, kw_only=True):
    """How the difference of two levels of a factor differs between two levels of another factor.

    Attributes:
        factors: Both factors.
        levels: Of the first factor the two levels, second minus first.
        within: Of the second factor the two levels, at which the difference is taken: at the second minus at the first.
        paired: The difference of differences, halved, since it may be as large as 2.
    """

    factors: tuple[str, str]
    levels: tuple[str, str]
    within: tuple[str, str]
    paired: PairedDifference


class FactorEffects(msgspec.Struct, frozen=True, kw_only=True):
    """All effects of a grid.

    Attributes:
        mains: Of every factor, every two levels; their intervals hold together.
        interactions: Of every two factors, every two levels of each; their intervals hold together.
    """

    mains: tuple[FactorContrast, ...]
    interactions: tuple[InteractionContrast, ...]


class Grid:
    """Cells of a grid of factors; some may be missing.

    Args:
        cells: For each cell, its level of every factor.
    """

    def __init__(self, cells: Sequence[Levels]) -> None:
        names = list(cells[0]) if cells else []
        self.levels = {name: list(dict.fromkeys(cell[name] for cell in cells)) for name in names}
        self.varied = [name for name, levels in self.levels.items() if len(levels) > 1]
        self._columns = {self._key(cell): column for column, cell in enumerate(cells)}

    def _key(self, cell: Levels) -> tuple[str, ...]:
        return tuple(cell[name] for name in self.levels)

    def column(self, cell: Levels) -> int | None:
        """The place of a cell; None where it is missing."""
        return self._columns.get(self._key(cell))

    def others(self, *factors: str) -> Iterator[dict[str, str]]:
        """Every combination of the levels of all other factors."""
        names = [name for name in self.levels if name not in factors]
        for values in product(*(self.levels[name] for name in names)):
            yield dict(zip(names, values, strict=True))


def factor_effects(
    values: ArrayLike,
    cells: Sequence[Levels],
    *,
    clusters: NDArray[np.int64] | None = None,
    confidence: float = 0.95,
) -> FactorEffects:
    """The effects of the factors of a grid, from the values of the same samples in every cell.

    The effect of a factor is, for each sample, the difference of two of its levels, averaged over the combinations of
    the other factors' levels that have both; its interval is that of ``paired_difference`` over samples or clusters. An
    interaction is the difference of two such differences, at two levels of another factor, averaged over the rest. By
    Bonferroni's inequality all main effects hold together with the given confidence, and so do all interactions. A grid
    without factors of two levels has no effects.

    References: D. R. Cox, Planning of experiments (1958), chapter 6; O. J. Dunn, JASA 56 (1961).

    Args:
        values: The value of each sample, a row, in each cell, a column; from 0 to 1.
        cells: For each column, its level of every factor.
        clusters: The number of each sample's cluster; None where samples stand alone.
        confidence: The level at which the intervals of all main effects hold together, and those of all interactions.

    Raises:
        ValueError: There are other columns than cells, a value lies outside [0, 1], or the level outside (0, 1).

    >>> cells = [{"prompt": "a", "chat": "x"}, {"prompt": "b", "chat": "x"}]
    >>> effects = factor_effects([[0.0, 1.0]] * 9 + [[0.0, 0.0]], cells)
    >>> effects.mains[0].paired.value, effects.interactions
    (0.9, ())
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != len(cells):
        raise ValueError(f"Every cell has a column; there are {len(cells)} cells and values of shape {table.shape}.")
    if table.size and not (table.min() >= 0 and table.max() <= 1):
        raise ValueError("Values lie from 0 to 1.")

    units = _Units(table, clusters)
    grid = Grid(cells)
    return FactorEffects(mains=_mains(units, grid, confidence), interactions=_interactions(units, grid, confidence))


class _Units:
    """The values of samples, summed up over the units that are independent."""

    def __init__(self, table: Floats, clusters: NDArray[np.int64] | None) -> None:
        self._table = table
        self._clusters = clusters

    def compare(self, weights: Mapping[int, float], confidence: float) -> PairedDifference:
        """The mean of a weighted sum of columns."""
        totals = sum(weight * self._table[:, column] for column, weight in weights.items())
        # Shares of repetitions that cancel out leave a last digit.
        totals = np.where(np.abs(totals) < 1e-12, 0.0, totals)
        if self._clusters is None:
            return paired_difference(totals, confidence=confidence)
        return paired_difference(*unit_sums(totals, self._clusters), confidence=confidence)


def _mains(units: _Units, grid: Grid, confidence: float) -> tuple[FactorContrast, ...]:
    pairs = [(factor, *two) for factor in grid.varied for two in combinations(grid.levels[factor], 2)]
    level = shared_confidence(len(pairs), confidence)

    contrasts = []
    for factor, first, second in pairs:
        matched: list[tuple[int, int]] = []
        missing: list[Levels] = []
        for other in grid.others(factor):
            low = grid.column({**other, factor: first})
            high = grid.column({**other, factor: second})
            if low is None or high is None:
                missing.append(other)
            else:
                matched.append((low, high))

        weights: dict[int, float] = {}
        for low, high in matched:
            weights |= {high: 1 / len(matched), low: -1 / len(matched)}
        contrasts.append(
            FactorContrast(
                factor=factor,
                first=first,
                second=second,
                paired=units.compare(weights, level) if matched else None,
                missing=tuple(missing),
            )
        )
    return tuple(contrasts)


def _interactions(units: _Units, grid: Grid, confidence: float) -> tuple[InteractionContrast, ...]:
    squares = []
    for one, other in combinations(grid.varied, 2):
        for levels, within in product(combinations(grid.levels[one], 2), combinations(grid.levels[other], 2)):
            weights = _square_weights(grid, (one, other), levels, within)
            if weights:
                squares.append(((one, other), levels, within, weights))

    level = shared_confidence(len(squares), confidence)
    return tuple(
        InteractionContrast(factors=factors, levels=levels, within=within, paired=units.compare(weights, level))
        for factors, levels, within, weights in squares
    )


def _square_weights(
    grid: Grid, factors: tuple[str, str], levels: tuple[str, str], within: tuple[str, str]
) -> dict[int, float]:
    """The weights of the four corners, averaged over the combinations of other levels that have all four."""
    squares: list[dict[int, float]] = []
    for other in grid.others(*factors):
        square: dict[int, float] = {}
        for high, up in product((0, 1), repeat=2):
            column = grid.column({**other, factors[0]: levels[high], factors[1]: within[up]})
            if column is not None:
                square[column] = 0.5 if high == up else -0.5
        if len(square) == 4:
            squares.append(square)

    return {column: weight / len(squares) for square in squares for column, weight in square.items()}
