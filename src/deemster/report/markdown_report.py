"""Renders sections as Markdown, and a report as the summary of a GitHub job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deemster.report._escaping import code_element, escape_metric_name, escape_sentence
from deemster.report.report_sections import report_sections
from deemster.report.text_sections import (
    DataText,
    MetricName,
    SentenceText,
    TextLine,
    TextSection,
    TextTable,
    format_number,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def report_markdown(report: Report) -> str:
    """The whole report as Markdown; text from data is escaped and stands inside code elements."""
    return render_markdown(report_sections(report))


def render_markdown(parts: Sequence[TextSection]) -> str:
    """Sections as Markdown, the first with the heading of the whole; text from data is escaped."""
    return "\n\n".join(block for level, section in enumerate(parts) for block in _blocks(section, level)) + "\n"


def _blocks(section: TextSection, level: int) -> Iterator[str]:
    yield f"{'#' if level == 0 else '##'} {join_line(section.title)}"
    for line in section.lines:
        text = join_line(line)
        yield f"**{text}**" if text.startswith("Warning:") else text
    if section.table is not None:
        yield markdown_table(section.table)
    if section.after:
        yield "\n".join(join_line(line) for line in section.after)


def join_line(line: TextLine) -> str:
    """A line with its data made harmless."""
    return "".join(_part(part) for part in line)


def _part(part: str) -> str:
    if isinstance(part, MetricName):
        return escape_metric_name(part)
    if isinstance(part, SentenceText):
        return escape_sentence(part)
    return code_element(part) if isinstance(part, DataText) else part


def markdown_table(content: TextTable) -> str:
    """A table with its columns padded to one width."""
    rows = [list(content.head), *([_part(part) for part in row] for row in content.rows)]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(content.head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


SHOWN = 10


def github_job_summary(report: Report) -> str:
    """The verdict line, the table of checks, the figures per metric and cohort, and the first samples that failed."""
    parts = {section.title[0]: section for section in report_sections(report)}
    headline, gate = parts["deemster report"], parts.get("Gate")
    blocks = [f"## {join_line(headline.title)}", *(join_line(line) for line in headline.lines)]
    if gate is not None and gate.table is not None:
        blocks.append(markdown_table(gate.table))
    for title, section in parts.items():
        if title.startswith(("Per-metric", "Cohorts")) and section.table is not None:
            blocks += [f"### {join_line(section.title)}", markdown_table(section.table)]
        elif title.startswith(("Macro-F1", "Aggregate success-rate")):
            blocks.append(f"**{join_line(section.title)}** {' '.join(join_line(line) for line in section.lines)}")
    failing = (entry for entry in report.samples if entry.passed < entry.repetitions)
    rows = [
        (
            DataText(entry.id),
            f"{entry.passed} of {entry.repetitions}",
            format_number(entry.score_mean),
            DataText(", ".join(entry.tags)),
        )
        for entry in islice(failing, SHOWN)
    ]
    if rows:
        count = len(rows) + sum(1 for _ in failing)
        summary = f"<details><summary>{count} of {report.totals.samples} samples do not pass every metric</summary>"
        head = ("sample", "passed", "mean score", "tags")
        blocks += [summary, markdown_table(TextTable(head, rows)), "</details>"]
    return "\n\n".join(blocks) + "\n"
