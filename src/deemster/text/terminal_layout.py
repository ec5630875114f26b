"""Prints sections on a terminal as text and rich tables."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from deemster.text._text_plots import draw_cell
from deemster.text.escaping import SENTENCE_LIMIT, escape_terminal_line, split_indent
from deemster.text.table_plots import BarCell, PlotColumn
from deemster.text.text_sections import (
    AddedText,
    DataText,
    PassageText,
    RemovedText,
    SentenceText,
    TextDetail,
    TextLine,
    TextSection,
    TextTable,
    WholeText,
    is_numeric_cell,
)

# The least width of a column that may be folded, and what stands between two columns.
_FOLDED = 24
_GAP = 3
# The longest text of a sample, output or judge that is printed.
_PASSAGE = 600
# How wide a plot is drawn: in a table, the widest that fits, or below it; the most rows that are drawn there.
_PLOT_WIDTHS = (21, 11)
_WIDEST_PLOT = 41
_MOST_PLOT_ROWS = 12
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
        # A title is one line, also for `head -1`; a terminal folds it.
        if section.title:
            console.print(_text(section.title, style="bold" if level else "bold underline"), soft_wrap=True)
        for line in section.lines:
            console.print(_text(line, style="bold yellow" if line[0].startswith("Warning:") else ""))
        if section.table is not None:
            print_table = _print_short_table if section.is_short else _print_table
            print_table(section.table, console)
        for detail in section.details:
            print_detail = _print_short_detail if section.is_short else _print_detail
            print_detail(detail, console)
        for line in section.after:
            console.print(_text(line))


def list_text(content: TextTable, *, width: int | None = None) -> str:
    r"""A plain list of what there is, for eyes and for tools such as `cut`: no rules, two spaces between columns.

    Args:
        content: The table.
        width: How wide it may be; spare columns go where there is no room, and a line below names them. None for as
            wide as it is.

    >>> list_text(TextTable(("run", "done"), [("first", "3"), ("2", "10 of 20")]))
    'run    done\nfirst  3\n2      10 of 20\n'
    """
    every = _columns(content)
    columns = every
    for name in content.spare:
        if width is not None and sum(column.widest() + 2 for column in columns) - 2 > width:
            columns = [column for column in columns if column.name != name]
    cells = [[column.name, *column.cells] for column in columns]
    widths = [column.widest() for column in columns]
    lines = [
        "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*cells, strict=True)
    ]
    missing = [column.name for column in every if column not in columns]
    if missing:
        lines.append(f"No room for: {', '.join(missing)}.")
    return "".join(f"{line}\n" for line in lines)


def plain_text(parts: Sequence[TextSection], *, width: int = 100) -> str:
    """Sections as plain text, without colour.

    Args:
        parts: The sections.
        width: How many columns it may have.
    """
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        print_sections(parts, console)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _print_detail(detail: TextDetail, console: Console) -> None:
    if detail.title:
        console.print(_text(detail.title, style="bold"))
    for field in detail.fields:
        # Two colons at the start of a line are a command in a CI log.
        label = f"{_shown(field.label).rstrip(':')}: " if field.label else "  "
        whole = field.line[0] if len(field.line) == 1 and isinstance(field.line[0], WholeText) else ""
        if "\n" in whole.rstrip():
            # A text of several lines stands below its label, so that its indentation is seen.
            if field.label:
                console.print(Padding(Text(label.rstrip(), style="dim"), (0, 0, 0, 2), expand=False))
            console.print(Padding(_cell(whole), (0, 0, 0, 4), expand=False))
            continue
        line = Text.assemble((label, "dim"), *(_cell(part) for part in field.line))
        console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _print_short_detail(detail: TextDetail, console: Console) -> None:
    """Print a title and labelled texts in a line each; labels are as wide as the longest."""
    _print_cut(_text(detail.title, style="bold"), console)
    widest = max((len(field.label) for field in detail.fields), default=0)

    for field in detail.fields:
        label = f"  {field.label}{' ' * (widest - len(field.label))}  "
        _print_cut(Text.assemble((label, "dim"), *(_cell(part) for part in field.line)), console)


def _print_cut(line: Text, console: Console) -> None:
    console.print(line, no_wrap=True, overflow="ellipsis")


def _print_short_table(content: TextTable, console: Console) -> None:
    """Print a table with a line for each row: names are cut, and a plot that has no room beside them is left out."""
    columns = _fitting(_columns(content), content.spare, console.width)
    plain = console.options.ascii_only or console.is_dumb_terminal
    layouts = (_with_plots(columns, content, width=width, plain=plain) for width in _PLOT_WIDTHS)
    columns = next((layout for layout in layouts if _least_width(layout) <= console.width), columns)

    first, *others = columns
    room = max(1, console.width - _GAP - _least_width(others)) if others else console.width
    table = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for column in (first, *others):
        table.add_column(Text(_shown(column.name)), justify="right" if column.numbers else "left", no_wrap=True)
    for row in zip(*(column.cells for column in (first, *others)), strict=True):
        cells = [_cell(part) for part in row]
        cells[0].truncate(room, overflow="ellipsis")
        table.add_row(*cells)
    console.print(table)


def _print_table(content: TextTable, console: Console) -> None:
    """Print a table; without room for all columns, without spare ones; without room for these, row by row.

    Plots take the room that is left beside the numbers. Where there is none, they stand below the table.
    """
    every = _columns(content)
    columns = _fitting(every, content.spare, console.width)
    plain = console.options.ascii_only or console.is_dumb_terminal
    if _least_width(columns) > console.width:
        _print_rows(every, console)
        _print_plots(content, console, plain=plain)
        return
    layouts = (_with_plots(columns, content, width=width, plain=plain) for width in _PLOT_WIDTHS)
    layout = next((each for each in layouts if _least_width(each) < console.width), columns)
    console.print(_table(layout))
    missing = [column.name for column in every if column not in columns]
    if missing:
        console.print(_text((f"No room for: {', '.join(map(_shown, missing))}.",), style="dim"))
    if layout is columns:
        _print_plots(content, console, plain=plain)


def _with_plots(columns: list[_Column], content: TextTable, *, width: int, plain: bool) -> list[_Column]:
    """The columns of a table with those of its plots, each after the one that has its numbers."""
    layout = list(columns)
    for plot in content.plots:
        names = [column.name for column in layout]
        place = names.index(plot.beside) + 1 if plot.beside in names else len(layout)
        cells = [draw_cell(cell, plot, width=width, plain=plain) for cell in plot.cells]
        layout.insert(place, _Column(_plot_head(plot), cells, numbers=False, folds=False))
    return layout


def _plot_head(plot: PlotColumn) -> str:
    return plot.name if isinstance(plot.cells[0], BarCell) else plot.axis


def _print_plots(content: TextTable, console: Console, *, plain: bool) -> None:
    """Print the plots of a table below it, each row with its name; nothing without room, or with too many rows."""
    names = [_shown(row[0]) for row in content.rows]
    room = min(_WIDEST_PLOT, console.width - max(map(cell_len, names), default=0) - _GAP - 1)
    # An odd number of cells has one in its middle.
    room -= 1 - room % 2
    if len(names) > _MOST_PLOT_ROWS or room < _PLOT_WIDTHS[-1]:
        return
    for plot in content.plots:
        cells = [draw_cell(cell, plot, width=room, plain=plain) for cell in plot.cells]
        first = _Column(content.head[0], [row[0] for row in content.rows], numbers=False, folds=False)
        console.print()
        console.print(_table([first, _Column(f"{plot.name}, {plot.axis}", cells, numbers=False, folds=False)]))


def _print_rows(columns: list[_Column], console: Console) -> None:
    """Print each row as its first cell, then the name and the value of every other cell."""
    for place in range(len(columns[0].cells)):
        console.print(_cell(columns[0].cells[place]))
        values = [
            f"{_shown(column.name)} {_shown(column.cells[place])}" for column in columns[1:] if column.cells[place]
        ]
        for line in _packed(values, console.width - 2):
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def _packed(values: Sequence[str], width: int) -> list[str]:
    """Values in lines of at most a width, with commas between them: a number stays in one line with its name."""
    lines: list[str] = []
    for value in values:
        if lines and cell_len(lines[-1]) + cell_len(value) + 3 <= width:
            lines[-1] += f", {value}"
        else:
            lines[-1:] = [*(f"{line}," for line in lines[-1:]), value]
    return lines


class _Column(NamedTuple):
    """A column that is going to be shown."""

    name: str
    cells: list[str]
    numbers: bool
    folds: bool

    def widest(self) -> int:
        return max(cell_len(_shown(cell)) for cell in (self.name, *self.cells))

    def least_width(self) -> int:
        return min(self.widest(), _FOLDED) if self.folds else self.widest()


def _columns(content: TextTable) -> list[_Column]:
    columns = []
    for place, name in enumerate(content.head):
        cells = [row[place] for row in content.rows]
        numbers = all(map(is_numeric_cell, cells))
        longest = max((len(cell) for cell in cells), default=0)
        columns.append(_Column(name, cells, numbers, folds=not numbers and longest > _FOLDED))
    return columns


def _fitting(columns: list[_Column], spare: TextLine, width: int) -> list[_Column]:
    """The columns of a table, without the spare ones that have no room."""
    for name in spare:
        # A table that fits to the last cell is drawn one cell too wide when its columns are folded.
        if _least_width(columns) >= width:
            columns = [column for column in columns if column.name != name]
    return columns


def _least_width(columns: list[_Column]) -> int:
    return sum(column.least_width() for column in columns) + _GAP * (len(columns) - 1)


def _text(line: TextLine, *, style: str = "") -> Text:
    return Text.assemble(*(_cell(part) for part in line), style=style)


def _table(columns: list[_Column]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.numbers else "left"
        least = column.least_width()
        table.add_column(
            Text(_shown(column.name)), justify=justify, no_wrap=not column.folds, min_width=least, overflow="fold"
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(_cell(part) for part in row))
    return table


def _shown(part: str) -> str:
    if isinstance(part, RemovedText):
        return f"[-{escape_terminal_line(part, limit=_PASSAGE)}-]"
    if isinstance(part, AddedText):
        return f"{{+{escape_terminal_line(part, limit=_PASSAGE)}+}}"
    if isinstance(part, WholeText):
        return "\n".join(map(_whole_line, part.splitlines()))
    if isinstance(part, PassageText):
        return escape_terminal_line(part, limit=_PASSAGE)
    if isinstance(part, SentenceText):
        return escape_terminal_line(part, limit=SENTENCE_LIMIT)
    return escape_terminal_line(part) if isinstance(part, DataText) else part


def _whole_line(line: str) -> str:
    """A line of a text that is shown whole; it keeps its indentation."""
    indent, text = split_indent(line)
    return indent + escape_terminal_line(text, limit=None)


def _cell(part: str) -> Text:
    if isinstance(part, (RemovedText, AddedText)):
        return Text(_shown(part), style="red" if isinstance(part, RemovedText) else "green")
    return Text(_shown(part), style="" if isinstance(part, DataText) else _STYLES.get(part, ""))
