"""Plain text in columns, for terminals of a hundred columns."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deemster.errors import visible

WIDTH = 100
_GAP = "  "
_INDENT = "  "


class Row(NamedTuple):
    """A line of a table: its name, its numbers, and what must be said about them."""

    name: str
    cells: Sequence[str]
    remark: str = ""


def number(value: float | None, *, places: int = 4) -> str:
    """A number with so many decimals, or `n/a`.

    >>> number(0.5), number(None), number(-0.00001)
    ('0.5000', 'n/a', '0.0000')
    """
    if value is None:
        return "n/a"
    text = f"{value:.{places}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def percent(value: float | None) -> str:
    """A share as a percentage, or `n/a`.

    >>> percent(0.8182), percent(None)
    ('81.8 %', 'n/a')
    """
    return "n/a" if value is None else f"{number(value * 100, places=1)} %"


def p_shown(value: float) -> str:
    """A p value with four decimals, never as a bare zero.

    >>> p_shown(0.0133), p_shown(1e-9)
    ('p = 0.0133', 'p < 0.0001')
    """
    return "p < 0.0001" if value < 0.0001 else f"p = {number(value)}"


def facts(entries: Sequence[tuple[str, str, str]]) -> list[str]:
    """Lines of a name, a value and a remark, in columns."""
    names = max((len(name) for name, _, _ in entries), default=0)
    values = max((len(value) for _, value, _ in entries), default=0)
    return [
        f"{_INDENT}{name:<{names}}{_GAP}{value:>{values}}{_GAP}{visible(remark)}".rstrip()
        for name, value, remark in entries
    ]


def table(head: Sequence[str], rows: Sequence[Row]) -> list[str]:
    """Rows under their head, numbers to the right; a name that has no room stands on a line of its own."""
    head = [visible(title) for title in head]
    rows = [row._replace(cells=[visible(text) for text in row.cells]) for row in rows]
    names = [visible(row.name, limit=WIDTH - len(_INDENT)) for row in rows]
    widths = [
        max(_width(text) for text in (title, *(row.cells[place] for row in rows)))
        for place, title in enumerate(head[1:])
    ]
    room = WIDTH - len(_INDENT) - sum(len(_GAP) + width for width in widths)
    first = max([_width(head[0]), *(width for width in map(_width, names) if width <= room)])
    lines = [_line(head[0], head[1:], first, widths)]
    for name, row in zip(names, rows, strict=True):
        if _width(name) > first:
            lines.append(_INDENT + name)
            name = ""  # noqa: PLW2901 - the name has been said
        lines.append(_line(name, row.cells, first, widths))
        if row.remark:
            lines.extend(wrapped(row.remark, indent=_INDENT * 2))
    return lines


def wrapped(text: str, *, indent: str = _INDENT) -> list[str]:
    """A sentence on as many lines as it needs; text from data in it is made harmless."""
    following = indent + _INDENT
    return textwrap.wrap(
        visible(text), WIDTH, initial_indent=indent, subsequent_indent=following, break_on_hyphens=False
    )


def block(title: str, lines: Iterator[str] | Sequence[str]) -> list[str]:
    """Lines under a title, after an empty line."""
    return ["", title, *lines]


def _line(name: str, cells: Sequence[str], first: int, widths: Sequence[int]) -> str:
    padded = [name + " " * (first - _width(name))]
    padded += [" " * (width - _width(text)) + text for text, width in zip(cells, widths, strict=True)]
    return (_INDENT + _GAP.join(padded)).rstrip()


def _width(text: str) -> int:
    """How many columns a terminal gives a text: two for wide characters, none for marks upon others."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def criteria_counted(count: int) -> str:
    """A number of criteria in words.

    >>> criteria_counted(1), criteria_counted(3)
    ('1 criterion', '3 criteria')
    """
    return "1 criterion" if count == 1 else f"{count:,} criteria"
