"""Draws the plots of a table as text: intervals as a dot on a line, bars, histograms as blocks of several heights."""

from __future__ import annotations

from deemster.text.table_plots import BarCell, Ends, HistogramCell, IntervalCell, PlotCell, PlotColumn, place_on_scale

# Eighths of a cell: from the left for bars, from below for histograms.
_EIGHTHS_ACROSS = " ▏▎▍▌▋▊▉█"
_EIGHTHS_UP = " ▁▂▃▄▅▆▇█"
_LEVELS = " .:-=+*#"


def draw_cell(cell: PlotCell, column: PlotColumn, *, width: int, plain: bool) -> str:
    """One drawing as text of a width; a histogram has a character for each count.

    Args:
        cell: What is drawn.
        column: Its column, for the scale.
        width: How many characters an interval or a bar may take.
        plain: Whether only ASCII can be shown.

    >>> column = PlotColumn("rate", [], "rate")
    >>> draw_cell(IntervalCell(0.5, (0.25, 1.0)), column, width=9, plain=True)
    '  |-o---|'
    >>> draw_cell(HistogramCell((0, 1, 8)), column, width=9, plain=False)
    ' ▁█'
    """
    if isinstance(cell, HistogramCell):
        return _draw_histogram(cell, plain=plain)
    if isinstance(cell, BarCell):
        return _draw_bar(cell, column.scale, width=width, plain=plain)
    return _draw_interval(cell, column, width=width, plain=plain)


def _draw_interval(cell: IntervalCell, column: PlotColumn, *, width: int, plain: bool) -> str:
    line, left, right, dot, through, crossed = "-||o:+" if plain else "─├┤●┊┼"
    cells = [" "] * width

    def put(value: float, sign: str) -> int:
        place = round(place_on_scale(value, column.scale) * (width - 1))
        cells[place] = sign
        return place

    lines = [0.0] if column.scale[0] < 0 else []
    marks = [put(value, through) for value in [*lines, column.line] if value is not None]
    if cell.ends is not None:
        low, high = (put(end, line) for end in cell.ends)
        cells[low : high + 1] = line * (high + 1 - low)
        for mark in marks:
            cells[mark] = crossed if low < mark < high else cells[mark]
        cells[low], cells[high] = left, right
    if cell.value is not None:
        put(cell.value, dot)
    return "".join(cells).rstrip()


def _draw_bar(cell: BarCell, scale: Ends, *, width: int, plain: bool) -> str:
    if cell.value is None:
        return ""
    share = place_on_scale(cell.value, scale)
    if plain:
        return "#" * round(share * width)
    whole, eighths = divmod(round(share * width * 8), 8)
    return _EIGHTHS_ACROSS[-1] * whole + (_EIGHTHS_ACROSS[eighths] if eighths else "")


def _draw_histogram(cell: HistogramCell, *, plain: bool) -> str:
    levels = _LEVELS if plain else _EIGHTHS_UP
    most = max(cell.counts, default=0)
    # A count above 0 is always seen.
    heights = (0 if not count else max(1, round(count / most * (len(levels) - 1))) for count in cell.counts)
    return "".join(levels[height] for height in heights)
