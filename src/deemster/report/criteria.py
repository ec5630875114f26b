"""What a report says to people about the criteria of metrics that judge by several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deemster.report.document import Report
from deemster.report.sections import Data, Line, MetricName, Section, Table, decimals, span
from deemster.summary import CriterionFigures

_HEAD = ("metric", "criterion", "mean value", "95% interval", "judged", "abstained", "failed", "agreement")


def criteria_sections(report: Report) -> list[Section]:
    """The figures of every criterion, in the order of the metrics; nothing where no metric has any."""
    rows: list[Line] = [
        (MetricName(name), Data(criterion), *row)
        for name in report.metric_order
        for criterion, row in criteria_table(report.metrics[name].criteria or {})
    ]
    if not rows:
        return []
    lines: list[Line] = [("The mean value of a criterion that is met or not is the share that met it.",)]
    return [Section(("Criteria",), lines, Table(_HEAD, rows, ("agreement", "95% interval", "failed")))]


def criteria_table(criteria: Mapping[str, CriterionFigures]) -> Iterator[tuple[str, Line]]:
    """Each criterion with the cells of its row: mean, interval, judged, abstained, failed, agreement."""
    for name, figures in criteria.items():
        counts = (figures.n_judged, figures.n_abstained, figures.n_failed)
        yield (
            name,
            (decimals(figures.mean), span(figures.mean_interval), *map(str, counts), decimals(figures.mean_agreement)),
        )
