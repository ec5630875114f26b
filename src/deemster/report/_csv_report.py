"""Renders a report as CSV: one line for each mark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.records.marks import failed_votes
from deemster.report.failing_samples import executed_samples
from deemster.report.report_entries import NOT_APPLICABLE, MarkEntry, ScoreEntry
from deemster.results import SampleEntry
from deemster.text.escaping import csv_line, escape_csv_cell
from deemster.text.indented_json import json_number

if TYPE_CHECKING:
    from deemster.report.report_document import Report

COLUMNS = (
    "sample_id",
    "row_hash",
    "repetition",
    "tags",
    "metric",
    "score",
    "threshold",
    "success",
    "cause",
    "message",
)
AGGREGATE = ("aggregate_success", "aggregate_score")
PANELS = "failed_votes"


def csv_rows(report: Report) -> Iterator[str]:
    """The lines of the table, the header first, each with its line end."""
    has_panels = bool(report.panels)
    yield csv_line([*COLUMNS, *((PANELS,) if has_panels else ()), *(AGGREGATE if report.aggregate is not None else ())])
    nothing = [] if report.aggregate is None else [""] * len(AGGREGATE)
    for _, sample, executions in executed_samples(report):
        whole = [_truth(sample.aggregate.success), json_number(sample.aggregate.score)] if sample.aggregate else nothing
        for execution in executions:
            for name in report.metric_order:
                mark = execution.marks.get(name)
                votes = [_failed_votes(mark)] if has_panels else []
                yield csv_line([*_cells(sample, execution.repetition, name, mark), *votes, *whole])


def _cells(sample: SampleEntry, repetition: int, metric: str, mark: MarkEntry | None) -> list[str]:
    tags = json.dumps(sample.tags, ensure_ascii=False)
    row = [
        escape_csv_cell(sample.id),
        escape_csv_cell(sample.row_hash or ""),
        str(repetition),
        escape_csv_cell(tags),
        escape_csv_cell(metric),
    ]
    if mark is None:
        return [*row, "", "", "", NOT_APPLICABLE, ""]
    if isinstance(mark, ScoreEntry):
        return [*row, json_number(mark.score), json_number(mark.threshold), _truth(mark.success), "", ""]
    return [*row, "", "", "", mark.unscored.cause, escape_csv_cell(mark.unscored.message or "")]


def _failed_votes(mark: MarkEntry | None) -> str:
    """How many judges behind a score gave no vote; empty where no panel gave it, or its votes are left out."""
    if not isinstance(mark, ScoreEntry) or not mark.details.get("votes"):
        return ""
    return str(len(list(failed_votes(mark.details))))


def _truth(value: bool) -> str:  # noqa: FBT001 - the value itself is what is written
    return "true" if value else "false"
