"""Sections of text and tables, before a renderer makes Markdown, HTML or terminal output of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, Self, TypeAlias, TypeVar

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


class DiffText(WholeText):
    """A unified diff; it is a line of its own."""

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


T = TypeVar("T")
# The heading of a column, and the cell that it shows of an entry.
Column: TypeAlias = tuple[str, Callable[[T], str]]


def table_of(
    entries: Iterable[T], columns: Sequence[Column[T]], *, spare: TextLine = (), plots: Sequence[PlotColumn] = ()
) -> TextTable:
    """A table with a row for each entry."""
    head = tuple(heading for heading, _ in columns)
    rows = [tuple(cell(entry) for _, cell in columns) for entry in entries]
    return TextTable(head, rows, spare, plots)


class TextField(NamedTuple):
    """A line with a label in front; an empty label goes on with the line before."""

    label: str
    line: TextLine


class TextDetail(NamedTuple):
    """One thing described at length: a title, and labelled lines that a page folds away."""

    title: TextLine
    fields: Sequence[TextField]


class Figure(NamedTuple):
    """A plot with a caption, and a table that says the same.

    Attributes:
        caption: What it shows.
        svg: The drawing; text from data in it is escaped. Empty where a shaded table is the drawing.
        table: The same in numbers; None where the page has them elsewhere.
        is_square: Whether both axes have one scale, so that it is drawn about as high as wide.
    """

    caption: str
    svg: str
    table: TextTable | None = None
    is_square: bool = False


class TextSection(NamedTuple):
    """One part of what is shown.

    Attributes:
        title: The heading.
        lines: Paragraphs under the heading.
        table: The table after them.
        details: What is described at length, after the table.
        after: Lines at the end.
        key: The name by which a layout selects and places it.
        figures: Its plots, which only a page shows.
        folds: Whether a page folds the table away, as it is long and seldom read.
        is_short: Whether a terminal gives every row and every labelled text one line, and cuts what is longer.
    """

    title: TextLine
    lines: Sequence[TextLine] = ()
    table: TextTable | None = None
    after: Sequence[TextLine] = ()
    details: Sequence[TextDetail] = ()
    key: str = ""
    figures: Sequence[Figure] = ()
    folds: bool = False
    is_short: bool = False


def in_order(sections: Iterable[TextSection], keys: Sequence[str]) -> list[TextSection]:
    """Sections in the order of a page; those that it does not name come last, as they stood."""
    places = {key: place for place, key in enumerate(keys)}
    return sorted(sections, key=lambda section: places.get(section.key, len(keys)))


def without_keys(sections: Iterable[TextSection], keys: Collection[str]) -> list[TextSection]:
    """What is left where a short form leaves out some sections: also those that it has never heard of."""
    return [section for section in sections if section.key not in keys]


def with_keys(sections: Iterable[TextSection], keys: Sequence[str]) -> list[TextSection]:
    """The sections that a short layout names, as they stood."""
    return [section for section in sections if section.key in keys]


def join_parts(parts: Sequence[TextLine], *, more: int = 0) -> TextLine:
    """Parts of a sentence as people list them.

    Args:
        parts: The parts.
        more: How many others there are.

    >>> "".join(join_parts([("q1",), ("q2",)])), "".join(join_parts([("q1",), ("q2",)], more=3))
    ('q1 and q2', 'q1, q2 and 3 more')
    """
    listed = [*parts, (f"{more:,} more",)] if more > 0 else parts
    joints = ["", *([", "] * (len(listed) - 2)), " and "]
    return tuple(word for joint, part in zip(joints, listed, strict=False) for word in (joint, *part))


def join_names(names: Iterable[str]) -> TextLine:
    """Names as people list them."""
    return join_parts([(DataText(name),) for name in names])


_NUMERIC = frozenset("0123456789.,+-<% ")


def is_numeric_cell(cell: str) -> bool:
    """Whether a cell of a table holds a number, an interval, or `n/a`.

    >>> is_numeric_cell("0.5000 - 0.7000"), is_numeric_cell("-0.1 to +0.1"), is_numeric_cell(DataText("7"))
    (True, True, False)
    """
    return not isinstance(cell, DataText) and (cell == "n/a" or not set(cell.replace(" to ", "")) - _NUMERIC)
