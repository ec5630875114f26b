"""A report as the summary of a GitHub job."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from deemster.report.report_sections import report_sections
from deemster.text.markdown_layout import join_line, markdown_blocks, markdown_table
from deemster.text.text_sections import TextSection

if TYPE_CHECKING:
    from deemster.report.report_document import Report

SHOWN = 10
# Sections of which the table is shown, and those of which only the title and the sentences are.
_TABLES = ("attacks", "metrics", "cohorts")
_SENTENCES = ("macro-f1", "aggregate")


def github_job_summary(report: Report) -> str:
    """The verdict line, the table of checks, figures of attacks, metrics and cohorts, the first samples that failed."""
    headline, *sections = report_sections(report)
    blocks = [f"## {join_line(headline.title)}", *(join_line(line) for line in headline.lines)]
    for section in sections:
        blocks += _short_blocks(section)
    return "\n\n".join(blocks) + "\n"


def _short_blocks(section: TextSection) -> Iterator[str]:
    title = join_line(section.title)
    if section.key == "gate" and section.table is not None:
        yield markdown_table(section.table)
    elif section.key in _TABLES and section.table is not None:
        yield f"### {title}"
        yield markdown_table(section.table)
    elif section.key in _SENTENCES:
        yield f"**{title}** {' '.join(join_line(line) for line in section.lines)}"
    elif section.key == "samples" and section.details:
        yield f"### {title}"
        shown = section._replace(details=section.details[:SHOWN], after=())
        yield from islice(markdown_blocks(shown, 1), 1, None)
