"""The comment under a pull request that compares a run with its baseline: what newly fails, and what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from deemster.comparison.comparison_sections import comparison_sections, describe_example
from deemster.comparison.comparison_verdict import describe_change, describe_samples
from deemster.report.pull_request_comment import CommentContent, render_comment, run_notes
from deemster.text.text_sections import with_keys

if TYPE_CHECKING:
    from deemster.comparison.comparison import Comparison
    from deemster.report.report_document import Report

_MOST_WARNINGS = 10


def comparison_comment(comparison: Comparison, report: Report | None = None) -> str:
    """What a comparison says, as Markdown for a pull request.

    Args:
        comparison: The comparison.
        report: The report of the candidate, whose gate decides; None where the comparison stands alone.
    """
    if report is None:
        return render_comment(_compared(comparison))
    content = _compared(msgspec.structs.replace(comparison, gate=report.gate))
    return render_comment(content._replace(notes=[*run_notes(report), *content.notes]))


def _compared(comparison: Comparison) -> CommentContent:
    run = comparison.candidate
    headline, *parts = comparison_sections(comparison, full=False)
    change = describe_change(comparison)
    lines = [line for line in headline.lines if line[0] != change and not line[0].startswith("Gate:")]
    warnings = [line for line in lines if line[0].startswith("Warning:")]
    runs = tuple(part for line in lines if line not in warnings for part in (*line, " "))[:-1]
    broken = [example for example in comparison.examples if example.status == "newly_failing"]
    return CommentContent(
        suite=run.suite or run.dataset,
        gate=comparison.gate,
        part=run.part,
        verdict=describe_samples(comparison),
        meaning=change,
        notes=[*warnings[:_MOST_WARNINGS], runs],
        tables=with_keys(parts, ("judge-change", "pass-rates", "cohorts")),
        title="Samples that broke",
        total=comparison.statuses.get("newly_failing", 0),
        samples=[describe_example(comparison, example) for example in broken],
        run=(run.id, comparison.tool_version),
    )
