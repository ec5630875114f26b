"""The section of the numbers that labels of people correct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.results.metric_summary import CorrectedMean, CorrectedPassRate
from deemster.stats import Interval
from deemster.text.number_format import format_interval, format_number
from deemster.text.text_sections import DataText, MetricName, SentenceText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def corrected_sections(report: Report) -> Iterator[TextSection]:
    """The numbers that labels of people correct, beside those of the judge."""
    corrected = {
        name: figures.pass_rate_corrected
        for name, figures in report.metrics.items()
        if figures.pass_rate_corrected is not None
    }
    if not corrected:
        return

    rows: list[TextLine] = []
    for name, rate in corrected.items():
        figures = report.metrics[name]
        rows.append(_corrected_row(name, "pass-rate", figures.pass_rate, rate, labels=rate.labels))
        if rate.mean is not None:
            rows.append(_corrected_row(name, "mean", figures.mean, rate.mean, labels=rate.labels))

    source = ", ".join(dict.fromkeys(rate.source for rate in corrected.values() if rate.source))
    yield TextSection(
        ("Corrected for the errors of judges",),
        [("What people would have found, by their labels of ", DataText(source), ".")],
        TextTable(("metric", "number", "by the judge", "corrected", "95% interval", "labels"), rows),
        [(MetricName(name), ": ", SentenceText(rate.note)) for name, rate in corrected.items() if rate.note],
        key="corrected",
    )


def _corrected_row(
    name: str, number: str, by_judge: float | None, corrected: CorrectedPassRate | CorrectedMean, *, labels: int
) -> TextLine:
    interval = "n/a"
    if corrected.low is not None and corrected.high is not None:
        interval = format_interval(Interval(corrected.low, corrected.high))
    return (MetricName(name), number, format_number(by_judge), format_number(corrected.value), interval, str(labels))
