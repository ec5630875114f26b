"""Tables of a result of agreement: columns by field, numbers with their intervals, and plots of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from deemster.agreement.result_models import (
    BootstrapResult,
    bootstrap_at,
    interval_of,
    value_at,
)
from deemster.stats.confidence_interval import ConfidenceInterval, Interval, interval_ends
from deemster.text.number_format import format_number, format_percent
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_up_to_one
from deemster.text.text_sections import DataText, TextLine, TextTable

if TYPE_CHECKING:
    from deemster.agreement.metrics_result import MetricsResult

# A column of a table: the field that it shows, or how a cell of it is written.
Column: TypeAlias = tuple[str, str | Callable[[Any], str]]


def percent_column(field: str) -> Callable[[Any], str]:
    """A column of shares as percentages."""
    return lambda part: format_percent(value_at(part, field))


def interval_column(name: str) -> Callable[[Any], str]:
    """A column of the intervals of a number."""
    return lambda part: format_ends(interval_of(part.intervals, name))


def table_of(
    parts: Iterable[Any], columns: Sequence[Column], *, spare: TextLine = (), plots: Sequence[PlotColumn] = ()
) -> TextTable:
    """A row for each part of a result."""
    rows = [tuple(_cell(part, column) for _, column in columns) for part in parts]
    return TextTable(tuple(name for name, _ in columns), rows, spare, plots)


def _cell(part: Any, column: str | Callable[[Any], str]) -> str:
    return column(part) if callable(column) else cell_text(value_at(part, column))


def cell_text(value: str | float | ConfidenceInterval | None) -> str:
    """A field of a result as the text of a cell."""
    if isinstance(value, str):
        return DataText(value)
    if isinstance(value, ConfidenceInterval):
        return format_ends(value)
    return f"{value:,}" if isinstance(value, int) else format_number(value)


def format_ends(ci: ConfidenceInterval | None) -> str:
    """The ends of an interval as text."""
    return format_span(interval_ends(ci))


def format_signed(value: float | None) -> str:
    """A difference with its sign."""
    text = format_number(value)
    return text if value is None or text.startswith("-") else f"+{text}"


def format_span(ends: Interval | None) -> str:
    """Two ends as text."""
    return "n/a" if ends is None else f"{format_number(ends.low)} to {format_number(ends.high)}"


def table_with_intervals(entries: Sequence[tuple[str, str]], result: MetricsResult) -> TextTable:
    """Numbers by name and field, with their intervals where there are any."""
    rows: list[TextLine] = []
    for name, field in entries:
        value = value_at(result, field)
        rows.append((name, format_percent(value) if field.endswith("accuracy") else format_number(value)))
    resamples = [bootstrap_at(result, field) for _, field in entries]
    if not any(resamples):
        return TextTable(("number", "value"), rows)

    drawn = [(*row, *_drawn(resample)) for row, resample in zip(rows, resamples, strict=True)]
    head = ("number", "value", "interval", "standard error", "replicates")
    return TextTable(head, drawn, ("replicates", "standard error"))


def _drawn(found: BootstrapResult | None) -> TextLine:
    """What replicates tell of a number: its interval, its standard error, and in how many it was defined."""
    if found is None:
        return "n/a", "n/a", "n/a"
    return format_ends(found.ci), format_number(found.standard_error), f"{found.n_bootstrap:,}"


def table_with_plots(entries: Sequence[tuple[str, str]], result: MetricsResult) -> TextTable:
    """Numbers that are at most 1, with their intervals as numbers and drawn on one scale."""
    resamples = [bootstrap_at(result, field) for _, field in entries]
    drawn = [(None, None) if resample is None else (resample.estimate, resample.ci) for resample in resamples]
    return table_with_intervals(entries, result)._replace(plots=interval_plots("agreement", drawn))


def interval_plots(name: str, numbers: Sequence[tuple[float | None, ConfidenceInterval | None]]) -> list[PlotColumn]:
    """Numbers that are at most 1, such as kappas, with their intervals."""
    cells = [IntervalCell(value, interval_ends(ci)) for value, ci in numbers]
    scale = scale_up_to_one(end for cell in cells for end in cell.ends or (cell.value,))
    return drawn_columns(PlotColumn(name, cells, "interval", scale))
