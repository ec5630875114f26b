"""A report as a table of pandas or Arrow: marks, or samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deemster.errors import MissingExtraError, ReportError, did_you_mean
from deemster.formats.dataframe import dataframe
from deemster.report.failing_samples import detail_notes, executed_samples, quoted_text
from deemster.report.report_entries import NOT_APPLICABLE, MarkEntry, ScoreEntry

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from deemster.report.report_document import Report

FORMS = ("marks", "samples")


def report_dataframe(report: Report, form: str) -> pd.DataFrame:
    """The report as a table: a row for each mark, or a row for each sample.

    Raises:
        ReportError: There is no such form.
        MissingExtraError: pandas is not installed.
    """
    return dataframe(_rows(report, form), of="A report")


def report_arrow(report: Report, form: str) -> pa.Table:
    """The same table as one of Arrow, which Polars and DuckDB read without a copy.

    Raises:
        ReportError: There is no such form.
        MissingExtraError: pyarrow is not installed.
    """
    rows = list(_rows(report, form))
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional extra, loaded where it is used
    except ImportError:
        raise MissingExtraError("A report as a table of Arrow", extra="parquet") from None
    return pa.Table.from_pylist(rows)


def _rows(report: Report, form: str) -> Iterator[dict[str, Any]]:
    if form not in FORMS:
        raise ReportError(f"A report has no table {form!r}. {did_you_mean(form, FORMS)}")
    return _mark_rows(report) if form == "marks" else _sample_rows(report)


def _mark_rows(report: Report) -> Iterator[dict[str, Any]]:
    for _, sample, executions in executed_samples(report):
        for execution in executions:
            for name in report.metric_order:
                row = {
                    "sample_id": sample.id,
                    "repetition": execution.repetition,
                    "tags": list(sample.tags),
                    "metric": name,
                }
                yield row | _mark_cells(execution.marks.get(name))


def _mark_cells(mark: MarkEntry | None) -> dict[str, Any]:
    """The cells of a mark; None for a metric that does not apply."""
    cells = dict.fromkeys(("score", "threshold", "success", "cause", "message", "reason"))
    if mark is None:
        return cells | {"cause": NOT_APPLICABLE}
    if not isinstance(mark, ScoreEntry):
        return cells | {"cause": mark.unscored.cause, "message": mark.unscored.message}
    reason = next((text for label, text in detail_notes(mark.details) if label == "reason"), None)
    return cells | {
        "score": mark.score,
        "threshold": mark.threshold,
        "success": mark.success,
        "reason": reason,
    }


def _sample_rows(report: Report) -> Iterator[dict[str, Any]]:
    for _, sample, executions in executed_samples(report):
        yield {
            "sample_id": sample.id,
            "tags": list(sample.tags),
            "repetitions": sample.repetitions,
            "passed": sample.passed,
            "pass_rate": sample.pass_rate,
            "input": None if sample.input is None else quoted_text(sample.input),
            "expected_output": sample.expected_output,
            "output": executions[0].output if executions else None,
            **{name: sample.metrics[name].mean for name in report.metric_order},
        }
