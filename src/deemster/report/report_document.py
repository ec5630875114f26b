"""The report of a run: `Report`, with every number and the facts behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from deemster.errors import plural
from deemster.gate import GateDecision
from deemster.models.budget import BudgetEntry
from deemster.report._csv_report import csv_rows
from deemster.report._report_dataframe import report_arrow, report_dataframe
from deemster.report._report_page import html_page, notebook_html
from deemster.report.failing_samples import ExecutedSample, failing_samples
from deemster.report.github_summary import github_job_summary
from deemster.report.methods_paragraph import methods_paragraph
from deemster.report.pull_request_comment import pull_request_comment
from deemster.report.report_entries import DatasetEntry, ExecutionEntry, FailureEntry, PrivacyEntry, RunEntry
from deemster.report.report_sections import report_sections
from deemster.results import Aggregate, Cohort, Cost, HistogramBin, Precision, SampleEntry, Totals
from deemster.results.attack_success import AdversarialSummary
from deemster.results.metric_summary import PanelSummary, RunMetricSummary
from deemster.results.run_summary import cohort_label
from deemster.results.usage_and_cost import RunUsage
from deemster.stats import Interval
from deemster.text.number_format import format_number
from deemster.text.rendered import Forms, RenderedRecord
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCHEMA = "deemster.report.v1"


class Report(RenderedRecord, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The report of a run: the numbers, and the facts they rest on.

    The fields are those of `deemster.report.v1`, in its order; `failure_list` is its `failures`, every mark without a
    score. `samples`, `executions` and `failure_list` may be read any number of times. `macro_f1_metrics` are the
    metrics that macro-F1 rests on, those that apply to a sample; None in a report of an older version: all. `panels`
    has the metrics of which a score lacks the vote of a judge, or may lack it.
    """

    long_fields: ClassVar[frozenset[str]] = frozenset({"samples", "executions", "failure_list"})
    optional_fields: ClassVar[frozenset[str]] = frozenset({"panels"})

    schema_version: str
    tool_version: str
    run: RunEntry
    privacy: PrivacyEntry
    dataset: DatasetEntry
    totals: Totals
    macro_f1: float | None
    macro_f1_interval: Interval | None
    macro_f1_metrics: tuple[str, ...] | None = None
    pass_rate: float | None
    pass_rate_interval: Interval | None
    metric_order: tuple[str, ...]
    metrics: dict[str, RunMetricSummary]
    histograms: dict[str, tuple[HistogramBin, ...]]
    cohort_list: tuple[Cohort, ...] = msgspec.field(name="cohorts")
    aggregate: Aggregate | None = None
    precision: Precision | None = None
    samples: Sequence[SampleEntry]
    executions: Sequence[ExecutionEntry]
    failure_list: Sequence[FailureEntry] = msgspec.field(name="failures")
    usage: RunUsage
    cost: Cost | None = None
    budget: BudgetEntry | None = None
    gate: GateDecision | None = None
    adversarial: AdversarialSummary | None = None
    panels: dict[str, PanelSummary] | None = None

    @property
    def cohorts(self) -> dict[str, Cohort]:
        """The cohorts by label; samples without tags are `(untagged)`."""
        # Not the label of the document: one of an older version gives it to the tag `(untagged)` too.
        return {cohort_label(cohort.name): cohort for cohort in self.cohort_list}

    def failures(self) -> list[ExecutedSample]:
        """The samples that did not pass in every repetition, each with what was said and why it failed."""
        return list(failing_samples(self))

    def to_dataframe(self, form: Literal["marks", "samples"] = "marks") -> pd.DataFrame:
        """The report as a pandas table.

        Args:
            form: `marks` for a row for each mark; `samples` for a row for each sample, with a column for each metric.

        Raises:
            ReportError: There is no such form.
            MissingExtraError: pandas is not installed.
        """
        return report_dataframe(self, form)

    def to_arrow(self, form: Literal["marks", "samples"] = "marks") -> pa.Table:
        """The report as a table of Arrow, which Polars (`polars.from_arrow`) and DuckDB read without a copy.

        Args:
            form: As of `to_dataframe`.

        Raises:
            ReportError: There is no such form.
            MissingExtraError: pyarrow is not installed.
        """
        return report_arrow(self, form)

    def _repr_html_(self) -> str:
        return notebook_html(self)

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return report_sections(self)

    def to_csv(self) -> str:
        """Every mark as a line of CSV."""
        return "".join(csv_rows(self))

    def to_html(self) -> str:
        """The report as one HTML page that loads nothing."""
        return html_page(self)

    def forms(self) -> Forms:
        """By the name of a format, what makes the bytes of a file."""
        return {
            **super().forms(),
            "csv": lambda: (row.encode() for row in csv_rows(self)),
            "junit": lambda: _junit(self),
            "junit-samples": lambda: _junit(self, samples_fail=True),
            "github": lambda: (github_job_summary(self).encode(),),
            "methods": lambda: (methods_paragraph(self).encode(),),
            "pr-comment": lambda: (pull_request_comment(self).encode(),),
        }

    def __repr__(self) -> str:
        totals = self.totals
        part = "" if self.run.part is None else f" (a part of {self.run.part.of:,})"
        return (
            f"<Report {self.run.id}: {plural(totals.samples, 'sample')}{part}, {plural(totals.metrics, 'metric')}, "
            f"mean pass-rate {format_number(self.macro_f1)}, {totals.unscored} unscored>"
        )


def _junit(report: Report, *, samples_fail: bool = False) -> Iterable[bytes]:
    from deemster.report.junit_xml import junit_pieces  # noqa: PLC0415 - its XML library loads an HTTP client

    return junit_pieces(report, samples_fail=samples_fail)
