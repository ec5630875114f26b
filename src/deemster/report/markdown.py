"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deemster.report.document import Report
from deemster.report.escape import code, metric_name, sentence
from deemster.report.sections import Data, Line, MetricName, Section, Sentence, Table, sections


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
