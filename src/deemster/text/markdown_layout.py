"""Renders sections as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from deemster.text.escaping import code_element, escape_metric_name, escape_sentence, passage_element
from deemster.text.text_sections import (
    DataText,
    DiffText,
    MetricName,
    PassageText,
    SentenceText,
    TextField,
    TextLine,
    TextSection,
    TextTable,
)


def render_markdown(parts: Sequence[TextSection]) -> str:
    """Sections as Markdown, the first with the heading of the whole; text from data is escaped."""
    return (
        "\n\n".join(block for level, section in enumerate(parts) for block in markdown_blocks(section, min(level, 1)))
        + "\n"
    )


def markdown_blocks(section: TextSection, level: int) -> Iterator[str]:
    """The blocks of a section.

    Args:
        section: The section.
        level: 0 for the heading of the whole, 1 for a part of it, 2 for a part of a part.
    """
    yield f"{'#' * (level + 1)} {join_line(section.title)}"
    for line in section.lines:
        text = join_line(line)
        if isinstance(line[0], DiffText):
            yield _fenced(line[0])
        else:
            yield f"**{text}**" if text.startswith("Warning:") else text
    if section.table is not None:
        yield markdown_table(section.table)
    for detail in section.details:
        yield f"<details><summary>{join_line(detail.title)}</summary>"
        yield "\n".join(_field(field) for field in detail.fields)
        yield "</details>"
    if section.after:
        yield "\n".join(join_line(line) for line in section.after)


def _fenced(diff: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in ["", *re.findall("`+", diff)]))
    return f"{fence}diff\n{diff}\n{fence}"


def _field(field: TextField) -> str:
    return f"- **{_part(field.label)}**: {join_line(field.line)}" if field.label else f"  - {join_line(field.line)}"


def join_line(line: TextLine) -> str:
    """A line with its data made harmless."""
    return "".join(_part(part) for part in line)


def _part(part: str) -> str:
    if isinstance(part, MetricName):
        return escape_metric_name(part)
    if isinstance(part, SentenceText):
        return escape_sentence(part)
    if isinstance(part, PassageText):
        return passage_element(part)
    return code_element(part) if isinstance(part, DataText) else part


def markdown_table(content: TextTable) -> str:
    """A table with its columns padded to one width."""
    rows = [[_part(name) for name in content.head], *([_part(part) for part in row] for row in content.rows)]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(content.head))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
