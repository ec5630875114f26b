"""Sections of text and tables, before a renderer makes Markdown, HTML or terminal output of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeAlias

from deemster.text.table_plots import PlotColumn


class DataText(str):
    """Text that came from data. Every renderer escapes it."""

    __slots__ = ()


class MetricName(DataText):
    """The name of a metric: text from data that is mostly a plain word."""

    __slots__ = ()


class SentenceText(DataText):
    """A sentence that this package wrote and read back from a file, where a user may have changed it."""

    __slots__ = ()


class PassageText(DataText):
    """Longer text from data: it is cut later than other text."""

    __slots__ = ()


class ShadedNumber(str):
    """A number of a table that a page shades, so that high and low ones are seen at once.

    Args:
        text: The number as it is shown.
        share: How strongly, 0 to 1; None for not at all.
        is_rate: Whether low is bad and high is good, as of a pass-rate; otherwise only high ones are shaded.
    """

    __slots__ = ("is_rate", "share")

    share: float | None
    is_rate: bool

    def __new__(cls, text: str, share: float | None, *, is_rate: bool = False) -> Self:
        """Make the text, which knows its share."""
        number = super().__new__(cls, text)
        number.share, number.is_rate = share, is_rate
        return number


class WholeText(PassageText):
    """Text from data that is shown whole, with its lines."""

    __slots__ = ()


class RemovedText(PassageText):
    """What was expected and is missing."""

    __slots__ = ()


class AddedText(PassageText):
    """What is there and was not expected."""

    __slots__ = ()


TextLine: TypeAlias = tuple[str, ...]


class TextTable(NamedTuple):
    """A table.

    Attributes:
        head: The names of the columns.
        rows: The cells, row by row.
        spare: Columns that a narrow terminal leaves out, in this order.
        plots: Columns of drawings, which a terminal and a page show beside the numbers.
    """

    head: TextLine
    rows: Sequence[TextLine]
    spare: TextLine = ()
    plots: Sequence[PlotColumn] = ()


class TextField(NamedTuple):
    """A line with a label in front; an empty label goes on with the line before."""

    label: str
    line: TextLine


class TextDetail(NamedTuple):
    """One thing described at length: a title, and labelled lines that a page folds away."""

    title: TextLine
    fields: Sequence[TextField]


class TextSection(NamedTuple):
    """One part of a report.

    Attributes:
        title: The heading.
        lines: Paragraphs under the heading.
        table: The table after them.
        details: What is described at length, after the table.
        after: Lines at the end.
    """

    title: TextLine
    lines: Sequence[TextLine] = ()
    table: TextTable | None = None
    after: Sequence[TextLine] = ()
    details: Sequence[TextDetail] = ()


_NUMERIC = frozenset("0123456789.,+-<% ")


def is_numeric_cell(cell: str) -> bool:
    """Whether a cell of a table holds a number, an interval, or `n/a`.

    >>> is_numeric_cell("0.5000 - 0.7000"), is_numeric_cell("-0.1 to +0.1"), is_numeric_cell(DataText("7"))
    (True, True, False)
    """
    return not isinstance(cell, DataText) and (cell == "n/a" or not set(cell.replace(" to ", "")) - _NUMERIC)
