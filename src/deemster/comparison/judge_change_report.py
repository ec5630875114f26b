"""The sections about two judges of the same outputs: what moved, how they agree, which pass mark makes up for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deemster.comparison.comparison_verdict import change_cells, format_level, format_mark, format_points
from deemster.comparison.judge_change import JudgeChange, MetricJudgeChange
from deemster.errors import plural
from deemster.report.failing_samples import detail_notes, quoted_field
from deemster.report.report_entries import MarkEntry, ScoreEntry
from deemster.text.number_format import format_percent
from deemster.text.table_plots import IntervalCell, drawn_changes
from deemster.text.text_sections import (
    DataText,
    MetricName,
    PassageText,
    SentenceText,
    TextDetail,
    TextField,
    TextLine,
    TextSection,
    TextTable,
)

if TYPE_CHECKING:
    from deemster.comparison.compared_sample import ComparedSample
    from deemster.comparison.comparison import Comparison
    from deemster.results.compared_numbers import Difference

# What one screen has room for.
_MOST_COHORTS = 3
_MOST_FLIPS = 2


def judge_change_sections(comparison: Comparison, *, full: bool) -> Iterator[TextSection]:
    """What a comparison says of two judges of the same outputs; nothing where the judge is the same.

    Args:
        comparison: The comparison.
        full: Whether all cohorts and flips are shown, or those that matter most.
    """
    change = comparison.judge_change
    if change is None:
        return
    shown = list(change.metrics) if full else [change.deciding]
    for name in shown:
        yield _numbers(comparison, name, change.metrics[name], full=full)
        yield from _flips(name, change.metrics[name], full=full)

    others: list[TextLine] = [
        (MetricName(name), f": {metric.answer.replace('-', ' ')}, since ", SentenceText(metric.because), ".")
        for name, metric in change.metrics.items()
        if name not in shown
    ]
    if others:
        yield TextSection(("Other metrics whose judge changed (all: `--full`)",), others, key="judge-change")
    yield from _past_decisions(change)


def _numbers(comparison: Comparison, name: str, metric: MetricJudgeChange, *, full: bool) -> TextSection:
    cohorts = list(metric.cohorts.items())
    if not full:
        cohorts = sorted(cohorts, key=lambda entry: -abs(entry[1].difference or 0.0))[:_MOST_COHORTS]
    numbers: list[tuple[str, Difference]] = [("pass-rate", metric.pass_rate), ("mean score", metric.mean)]
    numbers += [(DataText(f"  criterion {criterion}"), number) for criterion, number in metric.criteria.items()]
    numbers += [(DataText(f"  in {label} ({number.n:,})"), number) for label, number in cohorts]

    interval = f"{format_level(comparison)} interval"
    rows = [(label, *change_cells(number, places=3)) for label, number in numbers]
    cells = [IntervalCell(number.difference, number.interval) for _, number in numbers]
    plots = drawn_changes("change", cells, beside=interval)
    table = TextTable(("number", "old judge", "new judge", "change", interval), rows, (), plots)

    outputs = f": {plural(metric.outputs, 'output')} that both judges scored"
    left_out = f"; {metric.left_out:,} that only one scored left out" if metric.left_out else ""
    after = [*_agreement(metric), *_people(metric), *_exchange(metric)]
    title = ("Old and new judge of ", MetricName(name), f"{outputs}{left_out}")
    lines: list[TextLine] = [("What changed: ", SentenceText(metric.changed), ".")] if metric.changed else []
    return TextSection(title, lines, table, after=after, key="judge-change", is_short=True)


def _agreement(metric: MetricJudgeChange) -> Iterator[TextLine]:
    agreement = metric.agreement
    if agreement.kappa is None:
        yield ("One of the judges gives a single verdict throughout, so their agreement has no kappa.",)
    else:
        itself = ""
        if agreement.retest_kappa is not None:
            own = _with_interval(agreement.retest_kappa, agreement.retest_interval)
            itself = (
                f"; the old judge agrees with itself at {own}, on {plural(agreement.retests, 'output')} judged twice"
            )
        yield (f"The verdicts agree at kappa {_with_interval(agreement.kappa, agreement.interval)}{itself}.",)


def _with_interval(value: float, interval: tuple[float, float] | None) -> str:
    return f"{value:.2f}" + ("" if interval is None else f" ({interval[0]:.2f} to {interval[1]:.2f})")


def _people(metric: MetricJudgeChange) -> Iterator[TextLine]:
    people = metric.people
    if people is None:
        yield ("No labels of people, so nothing says which judge is the better one.",)
        return

    change = f"{format_percent(people.before)} to {format_percent(people.now)}"
    ends = "" if people.interval is None else " to ".join(format_points(end, sign=True) for end in people.interval)
    verdict = {
        "now": "The new judge is closer to people",
        "before": "The old judge is closer to people",
        None: "Neither judge is shown to be closer to people",
    }[people.closer]
    yield (f"{verdict}: errors on {plural(people.labels, 'label')} went from {change} ({ends}).",)
    if people.passes_failed is not None:
        old, new = map(format_percent, people.passes_failed)
        yield (f"Of what people failed, the old judge passes {old} and the new one {new}.",)
    if people.fails_passed is not None:
        old, new = map(format_percent, people.fails_passed)
        yield (f"Of what people passed, the old judge fails {old} and the new one {new}.",)


def _exchange(metric: MetricJudgeChange) -> Iterator[TextLine]:
    exchange = metric.exchange
    if exchange.refused is not None:
        yield (f"No exchange rate: {exchange.refused}.",)
    elif exchange.interval is not None and exchange.left_bounds is not None:
        low, high = (format_mark(end) for end in exchange.interval)
        left = " to ".join(format_points(end, sign=True) for end in exchange.left_bounds)
        old = "the old pass mark" if exchange.old_mark is None else format_mark(exchange.old_mark)
        yield (
            f"{format_mark(exchange.mark)} stands for {old} ({low} to {high}); it leaves the pass-rate {left} apart.",
        )


def _flips(name: str, metric: MetricJudgeChange, *, full: bool) -> Iterator[TextSection]:
    """The outputs that pass under one judge only, with both reasons."""
    if not metric.flips:
        return
    shown = metric.flips if full else metric.flips[:_MOST_FLIPS]
    counts = f"{metric.only_before:,} pass under the old judge only, {metric.only_now:,} under the new one only"
    rest = metric.only_before + metric.only_now - len(shown)
    after: list[TextLine] = [(f"... and {rest:,} more.",)] if rest > 0 else []
    details = [_flip(name, sample) for sample in shown]
    yield TextSection(
        ("Flips of ", MetricName(name), f": {counts}"), details=details, after=after, key="judge-flips", is_short=True
    )


def _flip(name: str, sample: ComparedSample) -> TextDetail:
    fields = [*quoted_field("input", sample.input)]
    if sample.baseline is not None:
        fields += quoted_field("output", sample.baseline.output)
    for when, side in {"old judge": sample.baseline, "new judge": sample.candidate}.items():
        if side is not None and name in side.marks:
            fields.append(TextField(when, _describe_mark(side.marks[name])))
    return TextDetail((DataText(sample.id),), fields)


def _describe_mark(mark: MarkEntry) -> TextLine:
    if not isinstance(mark, ScoreEntry):
        return ("no score",)
    verdict = f"{mark.score:.2f}, {'passes' if mark.success else 'fails'}"
    reason = next(islice((text for _, text in detail_notes(mark.details)), 1), None)
    return (verdict,) if reason is None else (f"{verdict}: ", PassageText(reason))


def _past_decisions(change: JudgeChange) -> Iterator[TextSection]:
    decisions = change.past_decisions
    if not decisions:
        return
    outcomes = [decision.outcome for decision in decisions]
    counts = ", ".join(f"{outcomes.count(each)} {each}" for each in ("same", "changed", "inconclusive"))
    rows: Sequence[TextLine] = [
        (DataText(decision.run), decision.before, decision.now, decision.outcome) for decision in decisions
    ]
    table = TextTable(("run", "old judge", "new judge", "outcome"), rows)
    yield TextSection((f"Past decisions of the gate: {counts}",), table=table, key="past-decisions", is_short=True)
