"""The comparison of two runs as a document: JSON, Markdown, HTML, tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from deemster.errors import plural
from deemster.report._report_json import json_pieces
from deemster.report.report_entries import ExecutionEntry
from deemster.report.text_sections import (
    DataText,
    MetricName,
    SentenceText,
    TextLine,
    TextSection,
    TextTable,
    format_interval,
    format_number,
)
from deemster.results.comparison import Comparison, Difference


class ComparedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample that changed, with what was asked and what both runs answered.

    Attributes:
        id: Its id in the candidate, or in the baseline where it was removed.
        status: How it changed.
        tags: Its tags.
        input: What the target received.
        expected_output: What should come out.
        baseline: Its first repetition in the baseline that shows the change.
        candidate: The same in the candidate.
    """

    id: str
    status: str
    tags: tuple[str, ...] = ()
    input: Any = None
    expected_output: Any = None
    baseline: ExecutionEntry | None = None
    candidate: ExecutionEntry | None = None


class ComparisonReport(Comparison, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The comparison of two runs.

    The fields are those of `deemster.comparison.v1`, in its order. `changes` lists every sample that did not stay as it
    was; `examples` shows the first of them with the question and both answers.
    """

    examples: tuple[ComparedSample, ...] = ()

    def pieces(self) -> Iterator[bytes]:
        """The canonical JSON of the comparison, in pieces."""
        return json_pieces(
            (name, iter(self.changes) if name == "changes" else getattr(self, name)) for name in self.__struct_fields__
        )

    def to_json(self) -> str:
        """The comparison as canonical JSON: the same runs are the same bytes."""
        return b"".join(self.pieces()).decode()


def comparison_sections(comparison: ComparisonReport) -> list[TextSection]:
    """What a comparison says to people, in order."""
    return [
        _headline(comparison),
        _metrics(comparison),
        _origins(comparison),
        _cohorts(comparison),
        _statuses(comparison),
    ]


def _headline(comparison: ComparisonReport) -> TextSection:
    macro, counts = comparison.macro_f1, comparison.samples
    lines: list[TextLine] = [("Warning: ", DataText(warning)) for warning in comparison.warnings]
    for name, run in (("Baseline", comparison.baseline), ("Candidate", comparison.candidate)):
        lines.append(
            (f"{name}: ", DataText(run.label or run.id), *((" of ", DataText(run.target)) if run.target else ()), ".")
        )
    joined = f"{plural(counts.paired, 'sample')} in both, {counts.added:,} added, {counts.removed:,} removed."
    lines.append((joined,))
    if macro.difference is not None:
        change = (
            f"Macro-F1 {format_number(macro.baseline)} to {format_number(macro.candidate)}: {macro.difference:+.4f}"
        )
        lines.append((change, f", {comparison.confidence:.0%} interval {format_interval(macro.interval)}."))
    return TextSection(("deemster comparison",), lines)


def _metrics(comparison: ComparisonReport) -> TextSection:
    head = ("metric", "before", "now", "change", "interval", "p", "newly failing", "newly passing")
    rows = []
    for name, metric in comparison.metrics.items():
        rate = metric.pass_rate
        rows.append((MetricName(name), *_cells(rate), str(metric.table.newly_failing), str(metric.table.newly_passing)))
    lines: list[TextLine] = [
        ("Not compared: ", MetricName(name), ": ", SentenceText(why), ".")
        for name, why in comparison.not_comparable.items()
    ]
    return TextSection(("Pass-rates",), table=TextTable(head, rows, ("p",)), after=lines)


def _cells(rate: Difference) -> tuple[str, ...]:
    change = "n/a" if rate.difference is None else f"{rate.difference:+.4f}"
    p_value = "n/a" if rate.p_value is None else f"{rate.p_value:.4f}"
    return format_number(rate.baseline), format_number(rate.candidate), change, format_interval(rate.interval), p_value


def _origins(comparison: ComparisonReport) -> TextSection:
    head = ("number", "change", "outputs", "judge", "unscored", "dataset", "metrics")
    origins = {"macro-F1": comparison.macro_f1_origin, "pass-rate": comparison.pass_rate_origin}
    rows = [
        (name, *(f"{getattr(origin, part):+.4f}" for part in ("total", *head[2:]))) for name, origin in origins.items()
    ]
    return TextSection(("Where the difference comes from",), table=TextTable(head, rows))


def _cohorts(comparison: ComparisonReport) -> TextSection:
    head = ("cohort", "samples", "before", "now", "change", "interval", "p")
    rows = [(DataText(cohort.label), str(cohort.samples), *_cells(cohort.macro_f1)) for cohort in comparison.cohorts]
    return TextSection(("Macro-F1 by cohort",), table=TextTable(head, rows, ("p",)))


def _statuses(comparison: ComparisonReport) -> TextSection:
    rows = [(status.replace("_", " "), f"{count:,}") for status, count in comparison.statuses.items()]
    return TextSection(("Samples",), table=TextTable(("status", "samples"), rows))
