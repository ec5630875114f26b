"""The comparison of two runs as an HTML page: the verdict first, then changes, a plot of the samples, both answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from deemster.comparison.comparison_sections import format_start
from deemster.comparison.comparison_verdict import comparison_kind
from deemster.errors import plural
from deemster.report.gate_sections import gate_verdict
from deemster.text.html_page import PageHead, Tile, render_page, render_part
from deemster.text.number_format import format_change, format_change_interval, format_number
from deemster.text.svg_plots import square_plot
from deemster.text.table_plots import IntervalCell, PlotColumn, scale_around_zero
from deemster.text.text_sections import (
    DataText,
    Figure,
    MetricName,
    SentenceText,
    TextLine,
    TextTable,
    in_order,
    without_keys,
)

if TYPE_CHECKING:
    from deemster.comparison.comparison import Comparison
    from deemster.comparison.judge_change import MetricJudgeChange
    from deemster.results.compared_numbers import Difference

# The order of a page: what became of samples, then what it means.
_ORDER = (
    *("gate", "judge-change", "judge-flips", "past-decisions"),
    *("newly_failing", "newly_passing", "regressed", "unscored_now"),
    *("pass-rates", "corrected", "means", "origins", "cohorts", "usage", "samples", "effects", "flips"),
)
# What a notebook leaves out, and the order of what it shows.
_NOT_IN_NOTEBOOK = frozenset({"corrected", "origins", "usage", "samples", "regressed", "unscored_now"})
_IN_NOTEBOOK = ("gate", "judge-change", "pass-rates", "means", "cohorts", "newly_failing", "newly_passing")
# The plot of samples has so many steps from 0 to 1; the first places of its table are shown, and the first findings.
_STEPS = 50
_MOST_PLACES = 30
_MOST_FINDINGS = 6


def comparison_page(comparison: Comparison) -> str:
    """The whole comparison as a page; text from data is escaped and stands inside code elements."""
    headline, *sections = comparison.sections()
    roles = {"baseline": comparison.baseline, "candidate": comparison.candidate}
    names = [run.label or f"{role} ({format_start(run)})" for role, run in roles.items()]
    plot = _sample_plot(comparison)
    if plot is not None:
        sections = [section._replace(figures=[plot]) if section.key == "samples" else section for section in sections]
    change = comparison.judge_change
    tiles = _tiles(comparison) if change is None else _judge_tiles(change.metrics[change.deciding])
    findings = list(_findings(comparison))[:_MOST_FINDINGS]
    gated = () if comparison.gate is None else (gate_verdict(comparison.gate, comparison.candidate.part),)
    head = PageHead(
        headline, comparison_kind(comparison), gated, tiles, "What changed: the interval leaves out 0", findings
    )
    return render_page(f"deemster comparison: {' to '.join(names)}", head, in_order(sections, _ORDER))


def _tiles(comparison: Comparison) -> list[Tile]:
    samples = f"of {plural(comparison.samples.paired, 'sample')}"
    return [
        _change_tile("mean pass-rate", comparison.macro_f1),
        _change_tile("every metric passed", comparison.pass_rate),
        Tile("broke", f"{comparison.table.newly_failing:,}", samples),
        Tile("fixed", f"{comparison.table.newly_passing:,}", samples),
    ]


def _judge_tiles(metric: MetricJudgeChange) -> list[Tile]:
    outputs = f"of {plural(metric.outputs, 'output')}"
    return [
        _change_tile("pass-rate", metric.pass_rate),
        _change_tile("mean score", metric.mean),
        Tile("pass under the old judge only", f"{metric.only_before:,}", outputs),
        Tile("pass under the new judge only", f"{metric.only_now:,}", outputs),
    ]


def comparison_notebook(comparison: Comparison) -> str:
    """The comparison as a part of a page, for a notebook: what a reader looks for first."""
    headline, *parts = comparison.sections(full=False)
    return render_part([headline, *in_order(without_keys(parts, _NOT_IN_NOTEBOOK), _IN_NOTEBOOK)])


def _change_tile(label: str, number: Difference) -> Tile:
    plot = None
    if number.interval is not None:
        cell = IntervalCell(number.difference, number.interval)
        plot = PlotColumn(label, [cell], label, scale_around_zero(number.interval))
    about = f"{format_number(number.baseline)} to {format_number(number.candidate)}"
    return Tile(
        f"{label}, change",
        format_change(number.difference),
        f"{about}; {format_change_interval(number.interval)}",
        plot,
    )


def _findings(comparison: Comparison) -> Iterator[TextLine]:
    """The checks that did not pass, and the metrics and cohorts whose interval of the change leaves out 0."""
    for check in () if comparison.gate is None else comparison.gate.checks:
        if check.status in ("fail", "inconclusive"):
            yield (f"{check.status}: ", DataText(check.name), ": ", SentenceText(check.because), ".")
    numbers: list[tuple[TextLine, Difference]] = [
        (("The pass-rate of ", MetricName(name)), metric.pass_rate) for name, metric in comparison.metrics.items()
    ]
    numbers += (
        (("The mean pass-rate of the cohort ", DataText(cohort.label)), cohort.macro_f1)
        for cohort in comparison.cohorts
    )
    for words, number in numbers:
        if number.interval is not None and number.interval.leaves_out_zero:
            moved = "fell" if number.interval.high < 0 else "rose"
            told = f" {moved}: {format_change(number.difference)} ({format_change_interval(number.interval)})."
            yield (*words, told)


def _sample_plot(comparison: Comparison) -> Figure | None:
    """The mean score of every sample that changed, before and now; samples at one place are one larger circle."""
    places: Counter[tuple[int, int]] = Counter()
    unscored = 0
    for change in comparison.changes:
        if change.baseline is not None and change.candidate is not None:
            before, now = (comparison.mean_quality(side) for side in (change.baseline, change.candidate))
            if before is not None and now is not None:
                places[round(before * _STEPS), round(now * _STEPS)] += 1
            else:
                unscored += 1
    if not places:
        return None
    area = square_plot("before", "now")
    most = max(places.values())
    for (before, now), count in sorted(places.items()):
        kind = "worse" if now < before else "better" if now > before else "same"
        area.add_point(
            (before / _STEPS, now / _STEPS),
            radius=3 + 7 * math.sqrt((count - 1) / most),
            kind=f"point {kind}",
            told=f"{plural(count, 'sample')}: {before / _STEPS:.2f} to {now / _STEPS:.2f}",
        )
    drawn, stable = places.total(), comparison.statuses.get("stable", 0)
    title = "Mean score of each sample, before (across) and now (up): below the diagonal it got worse"
    rest = f"{stable:,} that did not" + (f", and {unscored:,} without a score in one run," if unscored else "")
    told = f"{plural(drawn, 'sample')} that changed; {rest} are not drawn."
    rows = [
        (f"{before / _STEPS:.2f}", f"{now / _STEPS:.2f}", f"{count:,}")
        for (before, now), count in places.most_common(_MOST_PLACES)
    ]
    more = f" The table has the {_MOST_PLACES} places with most samples." if len(places) > _MOST_PLACES else ""
    table = TextTable(("before", "now", "samples"), rows)
    return Figure(f"{title}. {told}{more}", area.draw("samples", title, told), table, is_square=True)
