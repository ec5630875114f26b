"""What a report says of panels of judges that lack a vote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.results.metric_summary import PanelSummary
from deemster.text.text_sections import MetricName, TextLine

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def panel_lines(report: Report) -> Iterator[TextLine]:
    """Which scores lack the vote of a judge, and which metrics may lack some."""
    for name, panels in (report.panels or {}).items():
        if panels.n_incomplete:
            yield ("Warning: ", MetricName(name), f": {incomplete_panels(panels)}")
        if panels.quorum is not None:
            yield (MetricName(name), f": a score needs {plural(panels.quorum, 'vote')} of its judges (`quorum`).")


def incomplete_panels(panels: PanelSummary) -> str:
    """How many scores lack the vote of a judge, in one sentence.

    Args:
        panels: The panels behind the scores.
    """
    lacking = f"{panels.n_incomplete:,} of {panels.n:,} scores lack the vote of a judge that failed"
    return f"{lacking}; `--resume` asks it again."
