"""A report on a terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from deemster.report.document import Report
from deemster.report.escape import terminal_line as harmless
from deemster.report.sections import Data, Line, Section, Table, sections

_NUMERIC = frozenset("0123456789.,-% ")
_STYLES = {"pass": "green", "fail": "bold red", "inconclusive": "yellow", "skipped": "dim"}


def show(report: Report, console: Console) -> None:
    """Print the report as tables."""
    for level, section in enumerate(sections(report)):
        if level:
            console.print()
        console.print(_rendered(section, level))


def _rendered(section: Section, level: int) -> RenderableType:
    parts: list[RenderableType] = [_text(section.title, style="bold" if level else "bold underline")]
    for line in section.lines:
        text = _text(line)
        text.stylize("bold yellow" if text.plain.startswith("Warning:") else "")
        parts.append(text)
    if section.table is not None:
        parts.append(_table(section.table))
    parts.extend(_text(line) for line in section.after)
    return Group(*parts)


def _text(line: Line, *, style: str = "") -> Text:
    return Text("".join(harmless(part) if isinstance(part, Data) else part for part in line), style=style)


def _table(content: Table) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, name in enumerate(content.head):
        cells = [row[place] for row in content.rows]
        numbers = all(not isinstance(cell, Data) and (cell == "n/a" or not set(cell) - _NUMERIC) for cell in cells)
        table.add_column(name, justify="right" if numbers else "left", no_wrap=numbers, overflow="fold")
    for row in content.rows:
        table.add_row(*(_cell(part) for part in row))
    return table


def _cell(part: str) -> Text:
    if isinstance(part, Data):
        return Text(harmless(part))
    return Text(part, style=_STYLES.get(part, ""))
