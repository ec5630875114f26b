"""The report of monitoring: the pass rate over time, with control limits and drift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.errors import plural
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import DataText, TextLine, TextSection, TextTable

if TYPE_CHECKING:
    from deemster.monitoring.pass_rate_over_time import PassRateHistory, Period


def monitoring_sections(shown: PassRateHistory) -> list[TextSection]:
    """What the numbers say to people, in order."""
    head = ("from (UTC)", "records", "unscored", "pass-rate", "95% interval", "expected", "limits")
    rows = [_row(period) for period in shown.periods]
    cells = [IntervalCell(period.pass_rate, period.limits) for period in shown.periods]
    plots = drawn_columns(PlotColumn("pass-rate within what is expected", cells, "expected"))
    return [
        TextSection(
            ("Pass-rate of ", DataText(shown.dataset)),
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
        f"The evidence for a change is {drift.evidence or 0.0:.3g}; from {drift.needed:.3g} on it counts as a drift. "
        f"A rate that only varies as in the baseline gets that far in at most {drift.alpha:.0%} of all cases, however "
        "long it is watched."
    )
    if drift.direction is None:
        return f"No drift is shown. {evidence}"
    return f"The pass-rate has {'dropped' if drift.direction == 'down' else 'risen'}. {evidence}"


def _lines(shown: PassRateHistory) -> list[str]:
    lines = [f"{plural(shown.n, 'record')}, {shown.unscored:,} without a score."]
    if shown.not_applicable:
        lines.append(f"{plural(shown.not_applicable, 'further record')} that no metric applies to.")
    if shown.baseline_rate is not None:
        count = 0 if shown.drift is None else shown.drift.baseline_n
        lines.append(f"Baseline: of the first {count:,} scored records {format_number(shown.baseline_rate)} passed.")
    return [*lines, drift_words(shown), *_noticed_words(shown)]


def _noticed_words(shown: PassRateHistory) -> Iterator[str]:
    """What the test could see, for the user's own rate and volume."""
    if not shown.noticed:
        return
    period = "period" if shown.every.isdecimal() else shown.every
    falls = [
        f"a fall from {one.before:.0%} to {one.after:.0%} is noticed within {one.periods} {period}s "
        f"in {round(10 * one.share)} of 10 cases"
        for one in shown.noticed
    ]
    article = "an" if period == "hour" else "a"
    yield f"At {plural(shown.noticed[0].records, 'record')} {article} {period}, {'; '.join(falls)}."


def _row(period: Period) -> TextLine:
    return (
        period.start[:16].replace("T", " "),
        f"{period.n:,}",
        f"{period.unscored:,}",
        format_number(period.pass_rate),
        format_interval(period.interval),
        format_interval(period.limits),
        "outside" if period.outside else "inside" if period.limits is not None else "n/a",
    )
