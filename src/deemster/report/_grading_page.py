"""A grading as an HTML page: the score, criteria, judges, the lowest items, and the agreement with people."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.agreement.agreement_page import agreement_parts
from deemster.agreement.metrics_result import MetricsResult
from deemster.errors import plural
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.report.grading_sections import grading_sections
from deemster.report.grading_summary import GradingSummary, score_histogram
from deemster.text.html_page import PageHead, Tile, rate_tile, render_page
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import HistogramCell, PlotColumn, drawn_columns
from deemster.text.text_sections import (
    DataText,
    MetricName,
    PassageText,
    TextDetail,
    TextField,
    TextLine,
    TextSection,
    TextTable,
    in_order,
)

if TYPE_CHECKING:
    from deemster.report.grading_result import Grading

_ORDER = ("scores", "criteria", "judges", "lowest")
# So many of the lowest items are shown.
_LOWEST = 20


def grading_page(grading: Grading, *, reasons: bool) -> str:
    """A grading as a page; text from data is escaped and stands inside code elements.

    Args:
        grading: The grading.
        reasons: Whether the judges' reasons are shown, which may quote what was graded.
    """
    headline, *sections = grading_sections(grading)
    parts = in_order([*sections, *_scores(grading), *_lowest(grading, reasons=reasons)], _ORDER)
    if isinstance(grading.agreement, MetricsResult):
        parts += agreement_parts(grading.agreement)
    name = grading.dataset.name or "grading"
    figures = grading.figures
    head = PageHead(headline, tiles=[*_tiles(figures)], question="What to look at", findings=[*_findings(figures)])
    return render_page(f"deemster grading: {name}", head, parts)


def _tiles(figures: GradingSummary) -> Iterator[Tile]:
    between = figures.mean_score_interval
    yield rate_tile(
        "mean score",
        figures.mean_score,
        between,
        shown=format_number(figures.mean_score),
        about="" if between is None else f"95% interval {format_interval(between)}",
    )
    yield Tile("items", f"{figures.n:,}", f"{figures.n_failed:,} could not be graded")
    yield Tile("failed verdicts", f"{sum(each.n_failed for each in figures.criteria.values()):,}")
    if figures.failed_fatal:
        yield Tile("failed a fatal criterion", f"{figures.failed_fatal:,}", f"of {plural(figures.n, 'item')}")
    if figures.cost_usd is not None:
        yield Tile("cost", f"{float(figures.cost_usd):.4f} USD", plural(figures.calls, "call"))


def _findings(figures: GradingSummary) -> Iterator[TextLine]:
    known = {name: each for name, each in figures.criteria.items() if each.mean is not None}
    if len(known) > 1:
        name, lowest = min(known.items(), key=lambda pair: pair[1].mean or 0.0)
        numbers = f": {format_number(lowest.mean)} ({format_interval(lowest.mean_interval)})."
        yield ("The lowest mean value is that of ", MetricName(name), numbers)
    judged = {name: each for name, each in known.items() if each.mean_agreement is not None}
    if len(figures.judges) > 1 and judged:
        name, least = min(judged.items(), key=lambda pair: pair[1].mean_agreement or 0.0)
        yield ("Judges agree least on ", MetricName(name), f": {format_number(least.mean_agreement)}.")


def _scores(grading: Grading) -> Iterator[TextSection]:
    bars = score_histogram(grading)
    if bars is None:
        return
    counts = tuple(bar.count for bar in bars)
    plots = drawn_columns(PlotColumn("scores", [HistogramCell(counts)], "0.9"))
    head = ("scores of", *(f"{bar.low:.1f}" for bar in bars))
    lines: list[TextLine] = [("Scores from each number up to the next; the last column holds 1 too.",)]
    table = TextTable(head, [("items", *map(str, counts))], plots=plots)
    yield TextSection(("Scores",), lines, table, key="scores")


def _lowest(grading: Grading, *, reasons: bool) -> Iterator[TextSection]:
    """The items with the lowest scores, each with its verdicts and the judges' reasons."""
    scored = ((item.score, place, item) for place, item in enumerate(grading.items) if item.score is not None)
    lowest = heapq.nsmallest(_LOWEST, scored, key=lambda each: each[:2])
    if lowest:
        details = [_describe_item(item, reasons=reasons) for *_, item in lowest]
        title = f"The {plural(len(lowest), 'item')} with the lowest score"
        yield TextSection((title,), details=details, key="lowest")


def _describe_item(item: ItemGrading, *, reasons: bool) -> TextDetail:
    fields = [field for each in item.criteria for field in _describe_criterion(each, reasons=reasons)]
    return TextDetail((DataText(item.id), f", {format_number(item.score)}"), fields)


def _describe_criterion(graded: CriterionGrading, *, reasons: bool) -> Iterator[TextField]:
    worth = "" if graded.value is None else f" (worth {graded.value:.4g})"
    yield TextField(DataText(graded.criterion), (DataText(graded.verdict or "no verdict"), worth))
    for vote in graded.votes if reasons else ():
        if vote.reason is not None:
            yield TextField("", (DataText(vote.judge), ": ", PassageText(vote.reason)))
