"""The figures of a rubric's criteria, as reports show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from deemster.results import CriterionSummary
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import DataText, MetricName, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report

_HEAD = ("metric", "criterion", "mean value", "95% interval", "judged", "abstained", "failed", "agreement")
_SPARE = ("agreement", "95% interval", "failed")


def criteria_sections(report: Report) -> Iterator[TextSection]:
    """The figures of every criterion, in the order of the metrics; nothing where no metric has any."""
    criteria_by_metric = {name: report.metrics[name].criteria or {} for name in report.metric_order}
    rows: list[TextLine] = [
        (MetricName(name), DataText(criterion), *row)
        for name, criteria in criteria_by_metric.items()
        for criterion, row in criteria_table(criteria)
    ]
    if not rows:
        return

    plots = criteria_plots([figures for criteria in criteria_by_metric.values() for figures in criteria.values()])
    yield TextSection(
        ("Criteria",),
        [("The mean value of a criterion that is met or not is the share that met it.",)],
        TextTable(_HEAD, rows, _SPARE, plots),
        key="criteria",
    )


def criteria_plots(criteria: Sequence[CriterionSummary]) -> list[PlotColumn]:
    """The mean value of each criterion with its interval."""
    cells = [IntervalCell(figures.mean, figures.mean_interval) for figures in criteria]
    return drawn_columns(PlotColumn("mean value", cells, "95% interval"))


def criteria_table(criteria: Mapping[str, CriterionSummary]) -> Iterator[tuple[str, TextLine]]:
    """Each criterion with the cells of its row: mean, interval, judged, abstained, failed, agreement."""
    for name, figures in criteria.items():
        counts = (figures.n_judged, figures.n_abstained, figures.n_failed)
        yield (
            name,
            (
                format_number(figures.mean),
                format_interval(figures.mean_interval),
                *map(str, counts),
                format_number(figures.mean_agreement),
            ),
        )
