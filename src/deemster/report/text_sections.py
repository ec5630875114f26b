"""Sections of text and tables, before a renderer makes Markdown, HTML or terminal output of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from deemster.results import Interval


class DataText(str):
    """Text that came from data. Every renderer escapes it."""

    __slots__ = ()


class MetricName(DataText):
    """The name of a metric: text from data that is mostly a plain word."""

    __slots__ = ()


class SentenceText(DataText):
    """A sentence that this package wrote and read back from a file, where a user may have changed it."""

    __slots__ = ()


TextLine: TypeAlias = tuple[str, ...]


class TextTable(NamedTuple):
    """A table.

    Attributes:
        head: The names of the columns.
        rows: The cells, row by row.
        spare: Columns that a narrow terminal leaves out, in this order.
    """

    head: TextLine
    rows: Sequence[TextLine]
    spare: TextLine = ()


class TextSection(NamedTuple):
    """One part of a report.

    Attributes:
        title: The heading.
        lines: Paragraphs under the heading.
        table: The table after them.
        after: Lines after the table.
    """

    title: TextLine
    lines: Sequence[TextLine] = ()
    table: TextTable | None = None
    after: Sequence[TextLine] = ()


def format_number(value: float | None) -> str:
    """A number with four decimals, or `n/a` where it is undefined."""
    return "n/a" if value is None else f"{value:.4f}"


def format_interval(interval: Interval | None) -> str:
    """An interval as its two ends, or `n/a`."""
    return "n/a" if interval is None else f"{interval[0]:.4f} - {interval[1]:.4f}"
