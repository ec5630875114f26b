"""A report as the summary of a GitHub job."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from deemster.report.report_sections import report_sections
from deemster.text.markdown_layout import join_line, markdown_blocks, markdown_table

if TYPE_CHECKING:
    from deemster.report.report_document import Report

SHOWN = 10


def github_job_summary(report: Report) -> str:
    """The verdict line, the table of checks, figures of attacks, metrics and cohorts, the first samples that failed."""
    parts = {section.title[0]: section for section in report_sections(report)}
    headline, gate = parts["deemster report"], parts.get("Gate")
    blocks = [f"## {join_line(headline.title)}", *(join_line(line) for line in headline.lines)]
    if gate is not None and gate.table is not None:
        blocks.append(markdown_table(gate.table))
    for title, section in parts.items():
        if title.startswith(("Attack success rate", "Per-metric", "Cohorts")) and section.table is not None:
            blocks += [f"### {join_line(section.title)}", markdown_table(section.table)]
        elif title.startswith(("Macro-F1", "Aggregate success-rate")):
            blocks.append(f"**{join_line(section.title)}** {' '.join(join_line(line) for line in section.lines)}")
    failing = parts["Samples that did not pass"]
    if failing.details:
        shown = failing._replace(details=failing.details[:SHOWN], after=())
        blocks += [f"### {join_line(failing.title)}", *islice(markdown_blocks(shown, 1), 1, None)]
    return "\n\n".join(blocks) + "\n"
