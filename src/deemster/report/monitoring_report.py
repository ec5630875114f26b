"""The report of monitoring: the pass rate over time, with control limits and drift."""

from __future__ import annotations

from deemster.errors import plural
from deemster.report.table_plots import IntervalCell, PlotColumn, drawn_columns
from deemster.report.text_sections import DataText, TextLine, TextSection, TextTable, format_number
from deemster.results.metric_summary import Interval
from deemster.results.pass_rate_over_time import PassRateHistory, Period


def monitoring_sections(shown: PassRateHistory, *, name: str) -> list[TextSection]:
    """What the numbers say to people, in order."""
    head = ("from (UTC)", "records", "unscored", "pass-rate", "95% interval", "expected", "limits")
    rows = [_row(period) for period in shown.periods]
    cells = [IntervalCell(period.pass_rate, period.limits) for period in shown.periods]
    plots = drawn_columns(PlotColumn("pass-rate within what is expected", cells, "expected"))
    return [
        TextSection(
            ("Pass-rate of ", DataText(name)),
            [(line,) for line in _lines(shown)],
            TextTable(head, rows, ("limits",), plots),
        ),
    ]


def drift_words(shown: PassRateHistory) -> str:
    """What the test of drift says."""
    drift = shown.drift
    if drift is None:
        scored = shown.n - shown.unscored
        return f"No test yet: {scored:,} of the {plural(shown.baseline, 'scored record')} of the baseline are there."
    evidence = (
        f"The evidence for a lower rate is {drift.evidence_down:.3g}, for a higher rate {drift.evidence_up:.3g}; from "
        f"{drift.needed:.3g} on it counts as a drift. A rate that never changes gets that far in at most "
        f"{drift.alpha:.0%} of all cases, however long it is watched."
    )
    if drift.direction is None:
        return f"No drift is shown. {evidence}"
    return f"The pass-rate has {'dropped' if drift.direction == 'down' else 'risen'}. {evidence}"


def _lines(shown: PassRateHistory) -> list[str]:
    lines = [f"{plural(shown.n, 'record')}, {shown.unscored:,} without a score."]
    if shown.not_applicable:
        lines.append(f"{plural(shown.not_applicable, 'further record')} that no metric applies to.")
    if shown.baseline_rate is not None:
        lines.append(
            f"Baseline: of the first {shown.baseline:,} scored records {format_number(shown.baseline_rate)} passed."
        )
    return [*lines, drift_words(shown)]


def _row(period: Period) -> TextLine:
    return (
        period.start[:16].replace("T", " "),
        f"{period.n:,}",
        f"{period.unscored:,}",
        format_number(period.pass_rate),
        _ends(period.interval),
        _ends(period.limits),
        "outside" if period.outside else "inside" if period.limits is not None else "n/a",
    )


def _ends(interval: Interval | None) -> str:
    return "n/a" if interval is None else f"{interval.low:.4f} - {interval.high:.4f}"
