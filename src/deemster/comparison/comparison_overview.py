"""The overview of a comparison: what became better or worse, on one screen. `comparison_sections` has the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deemster.comparison.comparison_sections import comparison_headline, comparison_sections, repeated_numbers
from deemster.comparison.comparison_verdict import change_cells, format_level
from deemster.report.failing_samples import describe_unscored, quoted_text
from deemster.report.overview import broken_rules, lines_left, rest_line
from deemster.report.report_entries import ExecutionEntry, MarkEntry, ScoreEntry
from deemster.results.compared_numbers import Difference
from deemster.text.number_format import format_number, supported_places
from deemster.text.table_plots import IntervalCell, drawn_changes
from deemster.text.text_sections import (
    DataText,
    MetricName,
    PassageText,
    TextDetail,
    TextField,
    TextLine,
    TextSection,
    TextTable,
    with_keys,
)

if TYPE_CHECKING:
    from deemster.comparison.compared_sample import ComparedSample
    from deemster.comparison.comparison import Comparison

_WHOLE = "`--full`"
_MOST_METRICS = 6
_MOST_COHORTS = 3
_MOST_LINES = 6
# The lines of a sample: its title, input, expected output, both outputs.
_SAMPLE_LINES = 5
_SAMPLES_AROUND = 2
_MOST_SAMPLES = 5
_JUDGES = ("judge-change", "judge-flips", "past-decisions")
# The titles of what is shown with both outputs, by what became of the samples.
_TITLES = {
    "newly_failing": "Samples that broke",
    "unscored_now": "Samples without a score now",
    "regressed": "Samples that got worse",
    "newly_passing": "Samples that were fixed",
}


def comparison_overview(
    comparison: Comparison, *, steps: Sequence[str] = (), further: Sequence[TextSection] = ()
) -> list[TextSection]:
    """What one came for: what became of samples, whether that can be chance, which broke, and what to do next.

    Args:
        comparison: The comparison.
        steps: Commands that show more.
        further: What else was found out, which stands before the samples.
    """
    headline = comparison_headline(comparison)
    sections = comparison_sections(comparison, full=False)
    above = [
        headline._replace(lines=headline.lines[:_MOST_LINES]),
        *broken_rules(comparison.gate, _WHOLE),
        *with_keys(sections, _JUDGES),
        *([_pass_rates(comparison)] if comparison.metrics else []),
        *with_keys(sections, ("corrected",)),
        *further,
    ]
    lines = [("      " if place else "Next: ", DataText(step)) for place, step in enumerate(steps)]
    below = [TextSection((), lines, key="next")] if lines else []

    room = (lines_left([*above, *below]) - _SAMPLES_AROUND) // _SAMPLE_LINES
    return [*above, *_samples(comparison, max(1, min(_MOST_SAMPLES, room))), *below]


def _pass_rates(comparison: Comparison) -> TextSection:
    """How each pass-rate changed: the mean, each metric, and the cohorts where it fell most."""
    metrics: list[tuple[str, Difference]] = [
        (MetricName(name), metric.pass_rate) for name, metric in comparison.metrics.items()
    ]
    left = len(metrics) - _MOST_METRICS
    if left > 0:
        metrics = sorted(metrics, key=lambda row: _change(row[1]))[:_MOST_METRICS]

    numbers = [*metrics]
    if len(comparison.metrics) > 1:
        numbers.append(("mean pass-rate", comparison.macro_f1))
    numbers += _lowest_cohorts(comparison)
    numbers += repeated_numbers(comparison)

    head = ("pass-rate", "before", "now", "change", f"{format_level(comparison)} interval")
    rows = [(name, *change_cells(number, places=supported_places(number.interval))) for name, number in numbers]
    cells = [IntervalCell(number.difference, number.interval) for _, number in numbers]
    plots = drawn_changes("change", cells, beside=head[-1])
    after = rest_line(left, "metric", _WHOLE)
    return TextSection((), table=TextTable(head, rows, (), plots), after=after, key="pass-rates", is_short=True)


def _lowest_cohorts(comparison: Comparison) -> Iterator[tuple[str, Difference]]:
    """The cohorts whose mean pass-rate fell most, where there are several."""
    cohorts = [cohort for cohort in comparison.cohorts if cohort.macro_f1.difference is not None]
    if len(cohorts) < 2:
        return
    for cohort in sorted(cohorts, key=lambda cohort: _change(cohort.macro_f1))[:_MOST_COHORTS]:
        yield DataText(f"  in {cohort.label} ({cohort.samples:,})"), cohort.macro_f1


def _change(number: Difference) -> float:
    return 0.0 if number.difference is None else number.difference


def _samples(comparison: Comparison, most: int) -> Iterator[TextSection]:
    """The first samples of the worst kind that there is, each with both outputs."""
    for status, title in _TITLES.items():
        examples = [example for example in comparison.examples if example.status == status]
        if not examples:
            continue

        count = comparison.statuses.get(status, 0)
        shown = f": {count:,}" if count <= most else f": {most} of {count:,} (more: {_WHOLE})"
        details = [_sample(comparison, example) for example in islice(examples, most)]
        yield TextSection((f"{title}{shown}",), details=details, key=status, is_short=True)
        return


def _sample(comparison: Comparison, example: ComparedSample) -> TextDetail:
    title: list[str] = [DataText(example.id)]
    if example.tags:
        title += [" (", DataText(", ".join(example.tags)), ")"]
    title += _changed_scores(comparison, example)

    texts = {"input": example.input, "expected": example.expected_output}
    fields = [TextField(label, (PassageText(quoted_text(text)),)) for label, text in texts.items() if text is not None]
    for label, side in {"before": example.baseline, "now": example.candidate}.items():
        if side is not None:
            fields.append(TextField(label, _output(comparison, side)))
    return TextDetail(tuple(title), fields)


def _output(comparison: Comparison, side: ExecutionEntry) -> TextLine:
    if side.output is not None:
        return (PassageText(side.output),)
    if "executions.output" in comparison.privacy.removed and any(map(_has_score, side.marks.values())):
        return ("left out",)
    unscored = (mark.unscored for mark in side.marks.values() if not isinstance(mark, ScoreEntry))
    return next(map(describe_unscored, unscored), ("no output",))


def _changed_scores(comparison: Comparison, example: ComparedSample) -> Iterator[str]:
    """The metrics whose score changed, with both scores."""
    before = {} if example.baseline is None else example.baseline.marks
    now = {} if example.candidate is None else example.candidate.marks
    separator = ": "
    for name in comparison.metrics:
        scores = (_score(before.get(name)), _score(now.get(name)))
        if scores[0] != scores[1]:
            yield separator
            yield MetricName(name)
            yield f" {scores[0]} to {scores[1]}"
            separator = ", "


def _has_score(mark: MarkEntry) -> bool:
    return isinstance(mark, ScoreEntry)


def _score(mark: MarkEntry | None) -> str:
    return format_number(mark.score, places=2) if isinstance(mark, ScoreEntry) else "n/a"
