"""The sections of what an aggregator made of the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.report.row_limit import MOST_ROWS, more_line
from deemster.results import Aggregate
from deemster.text.number_format import format_interval, format_number
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def aggregate_sections(report: Report) -> Iterator[TextSection]:
    """What an aggregator made of the metrics: by cohort, then by sample."""
    if report.aggregate is not None:
        yield _by_cohort(report, report.aggregate)
        yield _by_sample(report, report.aggregate)


def _by_cohort(report: Report, aggregate: Aggregate) -> TextSection:
    cohort_rows: list[TextLine] = [
        (
            DataText(cohort.label),
            str(cohort.samples),
            format_number(cohort.aggregate.success_rate),
            format_interval(cohort.aggregate.interval),
            format_number(cohort.aggregate.mean_score),
        )
        for cohort in report.cohort_list
        if cohort.aggregate is not None
    ]
    mean = f"Mean score: {aggregate.mean_score:.4f}, 95% interval {format_interval(aggregate.mean_score_interval)}."
    return TextSection(
        (f"Aggregate success-rate: {aggregate.success_rate:.4f}",),
        [
            ("95% interval ", format_interval(aggregate.interval), "."),
            (mean,),
            ("Aggregator: ", DataText(aggregate.aggregator), "."),
        ],
        TextTable(("cohort", "samples", "success-rate", "95% interval", "mean score"), cohort_rows, ("samples",)),
        key="aggregate",
    )


def _by_sample(report: Report, aggregate: Aggregate) -> TextSection:
    sample_rows = _aggregated_samples(report)
    n_samples = report.totals.samples if aggregate.samples is None else aggregate.samples
    return TextSection(
        ("Aggregate by sample",),
        table=TextTable(("sample", "aggregate", "score"), sample_rows),
        after=more_line(n_samples, sample_rows),
        key="aggregate-samples",
        folds=True,
    )


def _aggregated_samples(report: Report) -> list[TextLine]:
    """The first samples whose aggregate did not succeed in every repetition, then others, as far as there is room."""
    rows: dict[str, list[TextLine]] = {"fail": [], "pass": []}
    for entry in report.samples:
        if entry.aggregate is not None:
            status = "pass" if entry.aggregate.success else "fail"
            if len(rows[status]) < MOST_ROWS:
                rows[status].append((DataText(entry.id), status, format_number(entry.aggregate.score)))
    return [*rows["fail"], *rows["pass"]][:MOST_ROWS]
