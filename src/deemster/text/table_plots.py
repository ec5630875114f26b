"""Columns of small drawings in tables: intervals, bars and histograms, all rows on one scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

Ends: TypeAlias = tuple[float, float]
_UNIT: Ends = (0.0, 1.0)
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)


class IntervalCell(NamedTuple):
    """A value as a dot, and the ends around it as a line; a part that is None is not drawn."""

    value: float | None
    ends: Ends | None


class BarCell(NamedTuple):
    """A value as a bar that begins at the lower end of the scale."""

    value: float | None


class HistogramCell(NamedTuple):
    """Counts as bars beside each other; the highest is as high as the row."""

    counts: tuple[int, ...]


PlotCell: TypeAlias = IntervalCell | BarCell | HistogramCell


class PlotColumn(NamedTuple):
    """A column of drawings. A terminal and a page draw it; Markdown, which has the numbers, does not.

    Attributes:
        name: What is drawn.
        cells: The drawing of each row.
        beside: The column with the same numbers, after which a terminal draws.
        scale: What the left and the right end stand for.
        line: Where a line is drawn through all rows, such as a margin; None for no line.
    """

    name: str
    cells: Sequence[PlotCell]
    beside: str
    scale: Ends = _UNIT
    line: float | None = None

    @property
    def axis(self) -> str:
        """The ends of the scale, in words."""
        low, high = self.scale
        return f"{format_tick(low, signed=low < 0)} to {format_tick(high, signed=low < 0)}"


def drawn_columns(*columns: PlotColumn) -> list[PlotColumn]:
    """The columns in which there is something to draw."""
    return [column for column in columns if any(map(_is_drawn, column.cells))]


def drawn_changes(name: str, cells: Sequence[IntervalCell], *, beside: str) -> list[PlotColumn]:
    """Changes with their intervals, on one scale with 0 in its middle; nothing where no change is known.

    Args:
        name: What is drawn.
        cells: The change of each row.
        beside: The column with the same numbers.
    """
    scale = scale_around_zero(end for cell in cells for end in cell.ends or (cell.value,))
    return drawn_columns(PlotColumn(name, cells, beside, scale))


def _is_drawn(cell: PlotCell) -> bool:
    return any(cell.counts) if isinstance(cell, HistogramCell) else any(part is not None for part in cell)


def format_tick(value: float, *, signed: bool = False) -> str:
    """The label of a place on a scale.

    >>> format_tick(0.5), format_tick(-0.2, signed=True), format_tick(1.0, signed=True), format_tick(0.0, signed=True)
    ('0.5', '-0.2', '+1', '0')
    """
    return f"{value:+.4g}" if signed and value else f"{abs(value):.4g}" if not value else f"{value:.4g}"


def scale_around_zero(values: Iterable[float | None]) -> Ends:
    """A scale with 0 in its middle that holds all values, or all up to -1 and 1.

    >>> scale_around_zero([-0.03, 0.012, None]), scale_around_zero([0.31]), scale_around_zero([])
    ((-0.03, 0.03), (-0.4, 0.4), (-0.01, 0.01))
    """
    reach = max((abs(value) for value in values if value is not None), default=0.0)
    step = next((size for size in _STEPS if reach / size <= 4), _STEPS[-1])
    limit = round(min(1.0, step * max(1, math.ceil(round(reach / step, 9)))), 9)
    return -limit, limit


def scale_up_to_one(values: Iterable[float | None]) -> Ends:
    """A scale from 0 to 1, or from -1 where a value is below 0.

    >>> scale_up_to_one([0.3, None]), scale_up_to_one([-0.1, 0.9])
    ((0.0, 1.0), (-1.0, 1.0))
    """
    return (-1.0, 1.0) if any(value is not None and value < 0 for value in values) else _UNIT


def place_on_scale(value: float, scale: Ends) -> float:
    """Where a value stands on a scale, 0 at its lower and 1 at its upper end; the ends where it is beyond them.

    >>> place_on_scale(0.0, (-0.2, 0.2)), place_on_scale(3.0, (0.0, 1.0))
    (0.5, 1.0)
    """
    low, high = scale
    return max(0.0, min(1.0, (value - low) / (high - low)))
