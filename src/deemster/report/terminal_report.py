"""Prints sections on a terminal as text and rich tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from deemster.report._escaping import escape_terminal_line
from deemster.report.text_sections import DataText, TextLine, TextSection, TextTable

_NUMERIC = frozenset("0123456789.,-% ")
# The least width of a column that may be folded, and what stands between two columns.
_FOLDED = 24
_GAP = 3
_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow", "skipped": "dim"}


def print_sections(parts: Sequence[TextSection], console: Console) -> None:
    """Print sections as text and tables; on a narrow terminal with fewer columns, never with half a number.

    Args:
        parts: The sections; the title of the first is the heading of the whole.
        console: Where they are printed.
    """
    for level, section in enumerate(parts):
        if level:
            console.print()
        console.print(_text(section.title, style="bold" if level else "bold underline"))
        for line in section.lines:
            console.print(_text(line, style="bold yellow" if line[0].startswith("Warning:") else ""))
        if section.table is not None:
            _print_table(section.table, console)
        for line in section.after:
            console.print(_text(line))


def _print_table(content: TextTable, console: Console) -> None:
    width = console.width
    columns = _fitting(content, width)
    # Rather a line that the terminal wraps than a number that is cut.
    console.width = max(width, _least_width(columns))
    console.print(_table(columns), crop=False)
    console.width = width


class _Column(NamedTuple):
    """A column that is going to be shown."""

    name: str
    cells: list[str]
    numbers: bool
    folds: bool

    def least_width(self) -> int:
        widest = max(cell_len(_shown(cell)) for cell in (self.name, *self.cells))
        return min(widest, _FOLDED) if self.folds else widest


def _fitting(content: TextTable, width: int) -> list[_Column]:
    """The columns of a table, without the spare ones that have no room."""
    columns = []
    for place, name in enumerate(content.head):
        cells = [row[place] for row in content.rows]
        numbers = all(not isinstance(cell, DataText) and (cell == "n/a" or not set(cell) - _NUMERIC) for cell in cells)
        longest = max((len(cell) for cell in cells), default=0)
        columns.append(_Column(name, cells, numbers, folds=not numbers and longest > _FOLDED))
    for name in content.spare:
        # A table that fits to the last cell is drawn one cell too wide when its columns are folded.
        if _least_width(columns) >= width:
            columns = [column for column in columns if column.name != name]
    return columns


def _least_width(columns: list[_Column]) -> int:
    return sum(column.least_width() for column in columns) + _GAP * (len(columns) - 1)


def _text(line: TextLine, *, style: str = "") -> Text:
    return Text("".join(map(_shown, line)), style=style)


def _table(columns: list[_Column]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.numbers else "left"
        least = column.least_width()
        table.add_column(column.name, justify=justify, no_wrap=not column.folds, min_width=least, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(_cell(part) for part in row))
    return table


def _shown(part: str) -> str:
    return escape_terminal_line(part) if isinstance(part, DataText) else part


def _cell(part: str) -> Text:
    return Text(_shown(part), style="" if isinstance(part, DataText) else _STYLES.get(part, ""))
