"""The formats in which a report is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from deemster.report._csv_report import csv_rows
from deemster.report._report_page import html_page
from deemster.report.github_summary import github_job_summary
from deemster.report.pull_request_comment import pull_request_comment

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def _junit(report: Report, *, samples_fail: bool = False) -> Iterable[bytes]:
    from deemster.report.junit_xml import junit_pieces  # noqa: PLC0415 - its XML library loads an HTTP client

    return junit_pieces(report, samples_fail=samples_fail)


def _csv(report: Report) -> Iterable[bytes]:
    return (row.encode() for row in csv_rows(report))


FORMATS: dict[str, Callable[[Report], Iterable[bytes]]] = {
    "json": lambda report: report.pieces(),
    "md": lambda report: (report.to_markdown().encode(),),
    "csv": _csv,
    "html": lambda report: (html_page(report).encode(),),
    "junit": _junit,
    "junit-samples": lambda report: _junit(report, samples_fail=True),
    "github": lambda report: (github_job_summary(report).encode(),),
    "pr-comment": lambda report: (pull_request_comment(report).encode(),),
}
