"""Draws plots as SVG: the cells of a table, scatter plots, curves and lines over time.

Places across are percentages and heights are pixels, so a plot is as wide as its page and its letters keep their size.
"""

from __future__ import annotations

from collections.abc import Iterable

from deemster.errors import visible
from deemster.text.escaping import escape_markup
from deemster.text.number_format import format_change, format_number
from deemster.text.table_plots import (
    BarCell,
    Ends,
    HistogramCell,
    IntervalCell,
    PlotCell,
    PlotColumn,
    format_tick,
    place_on_scale,
)

# Pixels: the height of a row and the width of a cell where no style sheet says otherwise, the height of a plot, and the
# room for labels above and below it.
_ROW = 22
_CELL_WIDTH = 200
_HEIGHT = 260
_TOP = 10
_BELOW = 40
# Percent of the width: the room for labels at the left, and what is left free at the right.
_LEFT = 10.0
_RIGHT = 3.0
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
# The scale of shares, with room for circles at 0 and 1.
_SHARES: Ends = (-0.04, 1.04)


def cell_drawing(cell: PlotCell, column: PlotColumn) -> str:
    """The drawing of one row of a table."""
    if isinstance(cell, HistogramCell):
        parts, told = _histogram(cell), ", ".join(map(str, cell.counts))
    elif isinstance(cell, BarCell):
        parts, told = _bar(cell, column.scale), format_number(cell.value)
    else:
        parts, told = _interval(cell, column), _describe_interval(cell, signed=column.scale[0] < 0)
    return (
        f'<svg role="img" width="{_CELL_WIDTH}" height="{_ROW}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape_markup(f'{column.name}: {told}')}</title>{''.join(parts)}</svg>"
    )


def axis_drawing(column: PlotColumn) -> str:
    """The labels of the scale of a column, for its head."""
    low, high = column.scale
    signed = low < 0
    ticks = ((low, "start"), ((low + high) / 2, "middle"), (high, "end"))
    labels = (
        _text(_percent(place_on_scale(tick, column.scale)), 12, format_tick(tick, signed=signed), anchor)
        for tick, anchor in ticks
    )
    box = f'display="block" width="{_CELL_WIDTH}" height="16" xmlns="http://www.w3.org/2000/svg"'
    return f'<svg aria-hidden="true" {box}>{"".join(labels)}</svg>'


def _describe_interval(cell: IntervalCell, *, signed: bool) -> str:
    form = format_change if signed else format_number
    return (
        form(cell.value) if cell.ends is None else f"{form(cell.value)}, {form(cell.ends[0])} to {form(cell.ends[1])}"
    )


def _interval(cell: IntervalCell, column: PlotColumn) -> Iterable[str]:
    low, middle = column.scale[0], _ROW / 2
    for place in (0.0, 0.5, 1.0):
        yield _line(place, 0, place, _ROW, "zero" if low < 0 and place == 0.5 else "grid")
    if column.line is not None:
        at = place_on_scale(column.line, column.scale)
        yield _line(at, 0, at, _ROW, "margin")
    yield f'<g class="{_direction(cell) if low < 0 else "plain"}">'
    if cell.ends is not None:
        left, right = (place_on_scale(end, column.scale) for end in cell.ends)
        yield _line(left, middle, right, middle, "bar")
        for end in (left, right):
            yield _line(end, middle - 4, end, middle + 4, "bar")
    if cell.value is not None:
        yield _circle(place_on_scale(cell.value, column.scale), middle, 4.5, "dot")
    yield "</g>"


def _direction(cell: IntervalCell) -> str:
    """Whether the whole interval of a difference lies below or above 0."""
    if cell.ends is None or cell.ends[0] <= 0 <= cell.ends[1]:
        return "same"
    return "worse" if cell.ends[1] < 0 else "better"


def _bar(cell: BarCell, scale: Ends) -> Iterable[str]:
    if cell.value is not None:
        yield _rect(0.0, 5, place_on_scale(cell.value, scale), _ROW - 10)


def _histogram(cell: HistogramCell) -> Iterable[str]:
    most, step = max(cell.counts, default=0), 1 / max(1, len(cell.counts))
    yield _line(0.0, _ROW - 0.5, 1.0, _ROW - 0.5, "grid")
    for place, count in enumerate(cell.counts):
        if count:
            height = max(1.5, count / most * (_ROW - 3))
            yield _rect(place * step + step / 12, _ROW - 0.5 - height, step * 10 / 12, height)


class PlotArea:
    """A plot with two axes, to which points, lines and bands are added.

    Args:
        across: The scale across.
        up: The scale upwards.
        height: How high it is, in pixels.
    """

    def __init__(self, *, across: Ends = _SHARES, up: Ends = _SHARES, height: int = _HEIGHT) -> None:
        self._across, self._up, self._height = across, up, height
        self._parts: list[str] = []

    def add_grid(self, ticks: Iterable[tuple[float, str]]) -> None:
        """Add lines with labels.

        Args:
            ticks: Places across, each with its label.
        """
        left, right = _LEFT / 100, 1 - _RIGHT / 100
        for height in _TICKS:
            y = self._y(height)
            self._parts.append(_line(left, y, right, y, "grid"))
            self._parts.append(_text(f"{_LEFT - 1:.4g}%", y + 4, f"{height:.2f}", "end"))
        for value, label in ticks:
            x = self._x(value)
            self._parts.append(_line(x, self._y(self._up[0]), x, self._y(self._up[0]) + 4, "axis"))
            self._parts.append(_text(_percent(x), self._height - _BELOW + 18, label, "middle"))

    def add_names(self, across: str, up: str) -> None:
        """Add what the axes show."""
        self._parts.append(_text(_percent((1 + (_LEFT - _RIGHT) / 100) / 2), self._height - 4, across, "middle"))
        self._parts.append(_text(f"{_LEFT:.4g}%", _TOP + 2, up, "start"))

    def add_line(self, start: tuple[float, float], stop: tuple[float, float], kind: str) -> None:
        """Add a line between two points."""
        self._parts.append(_line(self._x(start[0]), self._y(start[1]), self._x(stop[0]), self._y(stop[1]), kind))

    def add_band(self, across: Ends, up: Ends) -> None:
        """Add a shaded part, such as control limits."""
        left, right = map(self._x, across)
        top, bottom = self._y(up[1]), self._y(up[0])
        self._parts.append(_rect(left, top, right - left, bottom - top, "band"))

    def add_interval(self, at: float, ends: Ends, kind: str) -> None:
        """Add an upright line from one end of an interval to the other."""
        x = self._x(at)
        self._parts.append(_line(x, self._y(ends[0]), x, self._y(ends[1]), kind))

    def add_point(self, at: tuple[float, float], *, radius: float, kind: str, told: str = "") -> None:
        """Add a circle.

        Args:
            at: Where.
            radius: How large it is, in pixels.
            kind: Its class.
            told: What a reader sees who points at it.
        """
        self._parts.append(_circle(self._x(at[0]), self._y(at[1]), radius, kind, told))

    def draw(self, name: str, title: str, description: str) -> str:
        """The whole drawing.

        Args:
            name: What its ids begin with; once in a page.
            title: What it shows.
            description: What is to be seen.
        """
        return (
            f'<svg role="img" aria-labelledby="{name}-title {name}-about" width="100%" height="{self._height}" '
            f'xmlns="http://www.w3.org/2000/svg">\n<title id="{name}-title">{escape_markup(title)}</title>'
            f'<desc id="{name}-about">{escape_markup(description, limit=400)}</desc>\n'
            f"{chr(10).join(self._parts)}\n</svg>"
        )

    def _x(self, value: float) -> float:
        """Where a value stands across, as a share of the width."""
        return (_LEFT + place_on_scale(value, self._across) * (100 - _LEFT - _RIGHT)) / 100

    def _y(self, value: float) -> float:
        """Where a value stands upwards, in pixels."""
        room = self._height - _BELOW - 2 * _TOP
        return _TOP + _TOP + room * (1 - place_on_scale(value, self._up))


def square_plot(across: str, up: str) -> PlotArea:
    """An empty plot of two shares against each other, with its diagonal."""
    area = PlotArea(height=380)
    area.add_grid([(tick, f"{tick:.2f}") for tick in _TICKS])
    area.add_names(across, up)
    area.add_line((0.0, 0.0), (1.0, 1.0), "zero")
    return area


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    places = f'x1="{_percent(x1)}" y1="{y1:.1f}" x2="{_percent(x2)}" y2="{y2:.1f}"'
    faint = ' stroke-opacity="0.3"' if kind == "grid" else ""
    return f'<line class="{kind}" {places} stroke="currentColor"{faint}/>'


def _circle(x: float, y: float, radius: float, kind: str, told: str = "") -> str:
    place = f'class="{kind}" cx="{_percent(x)}" cy="{y:.1f}" r="{radius:.1f}" fill="currentColor"'
    return f"<circle {place}><title>{escape_markup(told)}</title></circle>" if told else f"<circle {place}/>"


def _rect(x: float, y: float, width: float, height: float, kind: str = "block") -> str:
    places = f'x="{_percent(x)}" y="{y:.1f}" width="{_percent(width)}" height="{height:.1f}"'
    return f'<rect class="{kind}" {places} fill="currentColor"/>'


def _text(x: str, y: float, words: str, anchor: str) -> str:
    shown = escape_markup(visible(words, limit=60))
    return f'<text x="{x}" y="{y:.1f}" text-anchor="{anchor}" font-size="12">{shown}</text>'
