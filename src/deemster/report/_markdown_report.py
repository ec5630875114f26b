"""A report as Markdown, and as the summary of a GitHub job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from deemster.report._escaping import code, metric_name, sentence
from deemster.report.report_document import Report
from deemster.report.report_sections import Data, Line, MetricName, Section, Sentence, Table, decimals, sections


def markdown(report: Report) -> str:
    """The whole report as Markdown; text from data is escaped and stands inside code elements."""
    return markdown_of(sections(report))


def markdown_of(parts: Sequence[Section]) -> str:
    """Sections as Markdown, the first with the heading of the whole; text from data is escaped."""
    return "\n\n".join(block for level, section in enumerate(parts) for block in _blocks(section, level)) + "\n"


def _blocks(section: Section, level: int) -> Iterator[str]:
    yield f"{'#' if level == 0 else '##'} {joined(section.title)}"
    for line in section.lines:
        text = joined(line)
        yield f"**{text}**" if text.startswith("Warning:") else text
    if section.table is not None:
        yield table(section.table)
    if section.after:
        yield "\n".join(joined(line) for line in section.after)


def joined(line: Line) -> str:
    """A line with its data made harmless."""
    return "".join(_part(part) for part in line)


def _part(part: str) -> str:
    if isinstance(part, MetricName):
        return metric_name(part)
    if isinstance(part, Sentence):
        return sentence(part)
    return code(part) if isinstance(part, Data) else part


def table(content: Table) -> str:
    """A table with its columns padded to one width."""
    rows = [list(content.head), *([_part(part) for part in row] for row in content.rows)]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(content.head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


SHOWN = 10


def job_summary(report: Report) -> str:
    """The verdict line, the table of checks, the figures per metric and cohort, and the first samples that failed."""
    parts = {section.title[0]: section for section in sections(report)}
    headline, gate = parts["deemster report"], parts.get("Gate")
    blocks = [f"## {joined(headline.title)}", *(joined(line) for line in headline.lines)]
    if gate is not None and gate.table is not None:
        blocks.append(table(gate.table))
    for title, section in parts.items():
        if title.startswith(("Per-metric", "Cohorts")) and section.table is not None:
            blocks += [f"### {joined(section.title)}", table(section.table)]
        elif title.startswith(("Macro-F1", "Aggregate success-rate")):
            blocks.append(f"**{joined(section.title)}** {' '.join(joined(line) for line in section.lines)}")
    failing = (entry for entry in report.samples if entry.passed < entry.repetitions)
    rows = [
        (
            Data(entry.id),
            f"{entry.passed} of {entry.repetitions}",
            decimals(entry.score_mean),
            Data(", ".join(entry.tags)),
        )
        for entry in islice(failing, SHOWN)
    ]
    if rows:
        count = len(rows) + sum(1 for _ in failing)
        summary = f"<details><summary>{count} of {report.totals.samples} samples do not pass every metric</summary>"
        head = ("sample", "passed", "mean score", "tags")
        blocks += [summary, table(Table(head, rows)), "</details>"]
    return "\n\n".join(blocks) + "\n"
