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


def worth_lines(report: Report) -> Iterator[TextLine]:
    """Which metrics are judged by a panel, and what says how many votes it is really worth."""
    for name in report.metric_order:
        judges = len(report.metrics[name].roles)
        if judges > 1:
            yield (MetricName(name), f": {state_panel(judges)}")


def state_panel(judges: int) -> str:
    """What a panel is, and what says how many votes it is really worth."""
    return f"a panel of {judges} judges; `deemster agreement` says by labels how many independent votes they are worth."


def incomplete_panels(panels: PanelSummary) -> str:
    """How many scores lack the vote of a judge, in one sentence.

    Args:
        panels: The panels behind the scores.
    """
    lacking = f"{panels.n_incomplete:,} of {panels.n:,} scores lack the vote of a judge that failed"
    return f"{lacking}; `--resume` asks it again."
