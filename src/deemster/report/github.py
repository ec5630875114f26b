"""A report as the summary of a GitHub job: verdict, checks, numbers, and the failing samples folded away."""

from __future__ import annotations

from itertools import islice

from deemster.report.document import Report
from deemster.report.markdown import joined, table
from deemster.report.sections import Data, Table, decimals, sections

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
