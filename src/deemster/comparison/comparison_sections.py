"""The sections of a comparison: is the candidate worse, where, why, and on which samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from deemster.comparison.comparison_verdict import (
    change_cells,
    describe_change,
    describe_samples,
    format_level,
    format_points,
)
from deemster.comparison.judge_change_report import judge_change_sections
from deemster.errors import plural
from deemster.report.failing_samples import describe_unscored, detail_notes, quoted_field, word_difference
from deemster.report.gate_sections import gate_section, gate_verdict
from deemster.report.report_entries import ExecutionEntry, MarkEntry, ScoreEntry
from deemster.results.run_columns import ComparedRun
from deemster.stats.noise_split import NoiseSplit
from deemster.text.markdown_layout import join_line, markdown_blocks
from deemster.text.number_format import format_change, format_change_interval, format_number, format_p_value
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns, scale_around_zero
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
    with_keys,
)

if TYPE_CHECKING:
    from deemster.comparison.compared_sample import ComparedSample
    from deemster.comparison.comparison import Comparison
    from deemster.results.compared_numbers import Difference, PassTable

# So many samples of a kind are shown with both answers: in a document, and in a short form.
SHOWN = 20
SHOWN_SHORT = 5
_NOTES = 3
# Reports round their numbers to nine decimals.
_ROUNDING = 1e-8
_USAGE = {"cost_usd": "cost in USD", "tokens": "tokens", "latency_ms": "latency in ms"}
_EXAMPLES = {
    "newly_failing": "Samples that broke",
    "newly_passing": "Samples that were fixed",
    "regressed": "Samples that got worse",
    "unscored_now": "Samples that have no score now",
}
# What became of a sample, in words.
STATUS_WORDS = {
    "newly_failing": "broke",
    "newly_passing": "fixed",
    "regressed": "got worse",
    "improved": "got better",
    "unscored_now": "no score now",
    "scored_now": "has a score now",
    "stable": "as before",
}
_BROKEN = ("newly_failing", "unscored_now")
# The sections in the summary of a GitHub job.
_SUMMARY = ("gate", "judge-change", "past-decisions", "pass-rates", "cohorts", "newly_failing")


def comparison_sections(comparison: Comparison, *, full: bool = True) -> list[TextSection]:
    """What a comparison says, in order.

    Args:
        comparison: The comparison.
        full: Whether details of the tests, and more samples, are shown.
    """
    head = [
        comparison_headline(comparison),
        *(() if comparison.gate is None else (gate_section(comparison.gate, comparison.candidate.part),)),
        *judge_change_sections(comparison, full=full),
    ]
    change = comparison.judge_change
    if change is not None and not comparison.metrics and comparison.not_comparable.keys() <= change.metrics.keys():
        return head
    parts = [
        *head,
        _numbers(comparison),
        *_corrected(comparison),
        *_means(comparison),
        *_origins(comparison),
        *_cohorts(comparison),
        *_usage(comparison),
        _statuses(comparison),
        *example_sections(comparison, full=full),
    ]
    return [*parts, *_details(comparison)] if full else parts


def comparison_headline(comparison: Comparison) -> TextSection:
    """What became of samples, what that means, what the gate decides, what to mind, and which runs these are.

    Args:
        comparison: The comparison.
    """
    counts, gate = comparison.samples, comparison.gate
    lines: list[TextLine] = [(change,)] if (change := describe_change(comparison)) else []
    lines += [] if gate is None else [(gate_verdict(gate, comparison.candidate.part),)]
    lines += (("Warning: ", SentenceText(warning)) for warning in comparison.warnings)
    lines += _drifts(comparison)
    lines += _uneven_errors(comparison)
    lines += (_name_run("Baseline", comparison.baseline), _name_run("Candidate", comparison.candidate))
    both = f"{plural(counts.paired, 'sample')} in both runs"
    both += f", {counts.added:,} added" if counts.added else ""
    both += f", {counts.removed:,} removed" if counts.removed else ""
    units = comparison.macro_f1.units
    together = () if comparison.cluster is None else (f"; {units:,} clusters by ", DataText(comparison.cluster))
    lines.append((both, *together, "."))
    if left_out := comparison.privacy.describe():
        lines.append((left_out,))
    return TextSection(describe_samples(comparison), lines, key="headline")


def _name_run(role: str, run: ComparedRun) -> TextLine:
    name = (DataText(run.label), " (", DataText(run.id), ")") if run.label else (DataText(run.id),)
    subject = run.target or run.suite
    tested: TextLine = (" of ", DataText(subject)) if subject else ()
    return (f"{role}: ", *name, *tested, f", {format_start(run)}.")


def format_start(run: ComparedRun) -> str:
    """When a run began, to the minute."""
    return run.started_at[:16].replace("T", " ")


def _noise(noise: NoiseSplit) -> TextLine:
    """What more repetitions, or more samples, would bring."""
    own = "" if noise.share_within is None else f"{noise.share_within:.0%} of the noise is the system's own variation. "
    now, repeated, wider = noise.standard_error, noise.error_twice_repetitions, noise.error_twice_samples
    change = f"Twice the repetitions would bring the standard error of the pass-rate's change from {format_points(now)}"
    return (f"{own}{change} to {format_points(repeated)}, twice the samples to {format_points(wider)}.",)


def _resolution(comparison: Comparison) -> Iterator[TextLine]:
    """What such a comparison can show at all."""
    macro = comparison.macro_f1
    if macro.detectable is not None:
        drop = f"{100 * macro.detectable:.3g} points"
        counted = plural(comparison.samples.paired, "sample")
        shows = "only shows" if comparison.samples.paired == 1 else "only show"
        yield (f"{counted} {shows} a drop of about {drop} reliably (80 %).",)
    if macro.certifiable is not None:
        ideal = format_points(macro.certifiable_unchanged)
        found = f"A drop of more than {format_points(macro.certifiable)} is ruled out"
        yield (f"{found}; identical runs would rule out those above {ideal}.",)
    if comparison.noise is not None:
        yield _noise(comparison.noise)


def _drifts(comparison: Comparison) -> Iterator[TextLine]:
    for name, metric in comparison.metrics.items():
        drift = metric.drift
        if drift is not None and drift.drifted:
            moved = f"{drift.changed:,} of {plural(drift.n, 'output')} that did not change have another score"
            mean = f"on average {format_change(drift.difference)} (p {format_p_value(drift.p_value)})"
            yield ("Warning: the judge drifted: ", MetricName(name), f": {moved}, {mean}.")


def _uneven_errors(comparison: Comparison) -> Iterator[TextLine]:
    for name, found in (comparison.corrected or {}).items():
        if found.is_error_different and found.error_difference is not None:
            side = "candidate" if found.error_difference < 0 else "baseline"
            size = format_points(abs(found.error_difference))
            why = f"measured by the labels, the judge favours the {side} by {size}"
            yield ("Warning: the uncorrected comparison of ", MetricName(name), f" misleads: {why}.")


def _corrected(comparison: Comparison) -> Iterator[TextSection]:
    """The differences that labels on both runs correct."""
    if not comparison.corrected:
        return
    rows: list[TextLine] = [
        (
            MetricName(name),
            found.number,
            " and ".join(f"{count:,}" for count in found.labels),
            format_change(found.naive),
            format_change(found.difference),
            format_change_interval(found.interval),
        )
        for name, found in comparison.corrected.items()
    ]
    errors: list[TextLine] = [
        (
            "The error of ",
            MetricName(name),
            f" in the candidate minus that in the baseline: {format_change(found.error_difference)}, ",
            f"{format_change_interval(found.error_interval)}.",
        )
        for name, found in comparison.corrected.items()
    ]
    head = ("metric", "number", "labels", "change by the judge", "corrected", f"{format_level(comparison)} interval")
    lines: list[TextLine] = [("Each run is corrected by labels of people on its own outputs.",)]
    yield TextSection(("Corrected by labels",), lines, TextTable(head, rows), errors, key="corrected")


def _numbers(comparison: Comparison) -> TextSection:
    """The narrow main table: macro-F1, the pass-rate of the run, of repetitions together, of each metric."""
    interval = f"{format_level(comparison)} interval"
    head = ("number", "before", "now", "change", interval, "p", "broke", "fixed")
    rows: list[TextLine] = [
        ("mean pass-rate", *_cells(comparison.macro_f1), "", ""),
        ("all metrics pass", *_cells(comparison.pass_rate), *_flips(comparison.table)),
    ]
    rows += ((name, *_cells(number), "", "") for name, number in repeated_numbers(comparison))
    rows += ((MetricName(name), *_cells(one.pass_rate), *_flips(one.table)) for name, one in comparison.metrics.items())
    after: list[TextLine] = [*_resolution(comparison)]
    after += (
        ("Not compared: ", MetricName(name), ": ", SentenceText(why), ".")
        for name, why in comparison.not_comparable.items()
    )
    meant = [("The mean pass-rate, that of the metrics' pass-rates, is `macro_f1` in files and in Python.",)]
    repeated = [number for _, number in repeated_numbers(comparison)]
    rates = [
        comparison.macro_f1,
        comparison.pass_rate,
        *repeated,
        *(one.pass_rate for one in comparison.metrics.values()),
    ]
    plots = _changes(comparison, rates, line=None if comparison.margin is None else -comparison.margin)
    return TextSection(("Pass-rates",), meant, TextTable(head, rows, ("p", "before"), plots), after, key="pass-rates")


def repeated_numbers(comparison: Comparison) -> list[tuple[str, Difference]]:
    """How often one of several repetitions passes, and how often all do, by name; nothing without repetitions."""
    repeated = comparison.repeated
    if repeated is None:
        return []
    return [(f"pass@{repeated.k}", repeated.pass_at_k), (f"pass^{repeated.k}", repeated.pass_hat_k)]


def _changes(comparison: Comparison, numbers: Sequence[Difference], *, line: float | None = None) -> list[PlotColumn]:
    """The changes with their intervals; those of all tables of a comparison are drawn on one scale."""
    every = [comparison.macro_f1, comparison.pass_rate, *(cohort.macro_f1 for cohort in comparison.cohorts)]
    every += (number for metric in comparison.metrics.values() for number in (metric.pass_rate, metric.mean))
    reach = [end for number in every for end in number.interval or (number.difference,)]
    scale = scale_around_zero([*reach, comparison.margin])
    cells = [IntervalCell(number.difference, number.interval) for number in numbers]
    name = "change" if line is None else f"change, and the margin of {format_points(-line)}"
    return drawn_columns(PlotColumn(name, cells, f"{format_level(comparison)} interval", scale, line))


def _cells(rate: Difference) -> TextLine:
    return *change_cells(rate), format_p_value(rate.p_value)


def _flips(table: PassTable) -> TextLine:
    return f"{table.newly_failing:,}", f"{table.newly_passing:,}"


def _means(comparison: Comparison) -> Iterator[TextSection]:
    """The mean scores of the metrics whose scores say more than pass or fail."""
    graded = {
        name: metric
        for name, metric in comparison.metrics.items()
        if (metric.mean.baseline, metric.mean.candidate) != (metric.pass_rate.baseline, metric.pass_rate.candidate)
    }
    rows = [
        (
            MetricName(name),
            *_cells(metric.mean),
            *(f"{count:,}" for count in (metric.mean.better, metric.mean.worse, metric.left_out)),
        )
        for name, metric in graded.items()
    ]
    if rows:
        interval = f"{format_level(comparison)} interval"
        head = ("metric", "before", "now", "change", interval, "p", "better", "worse", "left out")
        lines: list[TextLine] = [("Over the samples that both runs scored.",)]
        plots = _changes(comparison, [metric.mean for metric in graded.values()])
        table = TextTable(head, rows, ("left out", "p", "before"), plots)
        told = ": whatever the missing scores are, its change lies in "
        after: list[TextLine] = [
            (MetricName(name), told, format_change_interval(bounds), ".")
            for name, metric in graded.items()
            if (bounds := metric.mean_bounds) is not None
        ]
        yield TextSection(("Mean scores",), lines, table, after=after, key="means")


def _origins(comparison: Comparison) -> Iterator[TextSection]:
    names = ("outputs", "judge", "unscored", "dataset", "metrics")
    origins = {"mean pass-rate": comparison.macro_f1_origin, "all metrics pass": comparison.pass_rate_origin}
    used = [name for name in names if any(abs(getattr(origin, name)) > _ROUNDING for origin in origins.values())]
    told = {
        "outputs": "outputs that changed",
        "judge": "other scores of equal outputs",
        "unscored": "scores that came or went",
        "dataset": "samples that were added, removed or edited",
        "metrics": "metrics that cannot be compared",
    }
    if len(used) > 1:
        rows = [
            (name, *(format_change(getattr(origin, part)) for part in ("total", *used)))
            for name, origin in origins.items()
        ]
        lines: list[TextLine] = [("; ".join(f"{name}: {told[name]}" for name in used) + ".",)]
        yield TextSection(
            ("Where the difference comes from",), lines, TextTable(("number", "change", *used), rows), key="origins"
        )
    elif used:
        yield TextSection(("Where the difference comes from",), [(f"All of it: {told[used[0]]}.",)], key="origins")


def _cohorts(comparison: Comparison) -> Iterator[TextSection]:
    head = ("cohort", "samples", "before", "now", "change", f"{format_level(comparison)} interval", "p")
    cohorts = [cohort for cohort in comparison.cohorts if cohort.macro_f1.difference is not None]
    rows = [(DataText(cohort.label), f"{cohort.samples:,}", *_cells(cohort.macro_f1)) for cohort in cohorts]
    if rows:
        note = "These p-values are not corrected for the number of rows."
        plots = _changes(comparison, [cohort.macro_f1 for cohort in cohorts])
        table = TextTable(head, rows, ("p", "before"), plots)
        yield TextSection(("Mean pass-rate by cohort",), table=table, after=[(note,)], key="cohorts")


def _usage(comparison: Comparison) -> Iterator[TextSection]:
    rows = [
        (
            _USAGE.get(name, name),
            *map(_amount, (usage.baseline, usage.candidate, usage.difference)),
            "n/a" if usage.interval is None else f"{_amount(usage.interval[0])} to {_amount(usage.interval[1])}",
            _amount(usage.baseline_per_pass),
            _amount(usage.candidate_per_pass),
        )
        for name, usage in comparison.usage.items()
    ]
    if rows:
        interval = f"{format_level(comparison)} interval"
        head = ("for each sample", "before", "now", "change", interval, "for each pass, before", "for each pass, now")
        yield TextSection(("Usage and cost",), table=TextTable(head, rows), key="usage")


def _amount(value: float | None) -> str:
    """A cost, a number of tokens or a time, with as many decimals as say something."""
    if value is None:
        return "n/a"
    if abs(value) >= 10 or not value:
        return f"{value:,.1f}"
    return f"{value:.4f}" if abs(value) >= 0.001 else f"{value:.2g}"


def _statuses(comparison: Comparison) -> TextSection:
    rows = [(STATUS_WORDS.get(name, name), f"{count:,}") for name, count in comparison.statuses.items() if count]
    return TextSection(("Samples",), table=TextTable(("status", "samples"), rows), key="samples")


def example_sections(comparison: Comparison, *, full: bool = True) -> Iterator[TextSection]:
    """The first samples that broke, were fixed, or got worse, each with the question and both answers.

    Args:
        comparison: The comparison.
        full: Whether more than the first broken samples are shown with their answers.
    """
    for status, title in _EXAMPLES.items():
        found = [example for example in comparison.examples if example.status == status]
        count = comparison.statuses.get(status, 0)
        if not found:
            continue
        shown = found[: SHOWN if full else SHOWN_SHORT if status in _BROKEN else 0]
        listed = [DataText(example.id) for example in found[: 0 if shown else SHOWN]]
        names = tuple(part for name in listed for part in (", ", name))[1:]
        rest = count - len(shown) - len(listed)
        after: list[TextLine] = [(f"... and {rest:,} more.",)] if rest > 0 else []
        details = [describe_example(comparison, example) for example in shown]
        yield TextSection((f"{title}: {count:,}",), [names] if names else [], details=details, after=after, key=status)


def describe_example(comparison: Comparison, example: ComparedSample) -> TextDetail:
    """What a sample asked and expected, what came out in both runs, and what the metrics say."""
    title: list[str] = [DataText(example.id)]
    if example.tags:
        title += [" (", DataText(", ".join(example.tags)), ")"]
    before, after = example.baseline, example.candidate
    fields = [
        *quoted_field("input", example.input),
        *quoted_field("expected", example.expected_output),
        *_answers(before, after),
        *_marks(comparison, {} if before is None else before.marks, {} if after is None else after.marks),
    ]
    return TextDetail(tuple(title), fields)


def _answers(before: ExecutionEntry | None, after: ExecutionEntry | None) -> Iterator[TextField]:
    """Both answers: as one text with what went and what came, where that can be read, else one after the other."""
    old, new = (None if side is None else side.output for side in (before, after))
    if old is not None and old == new:
        yield from quoted_field("both outputs", old)
    elif old is not None and new is not None and (parts := word_difference(old, new)):
        yield TextField("output, before to now", parts)
    else:
        yield from quoted_field("output before", old)
        yield from quoted_field("output now", new)


def _marks(
    comparison: Comparison, before: Mapping[str, MarkEntry], after: Mapping[str, MarkEntry]
) -> Iterator[TextField]:
    """The metrics that pass in one run only, else those whose scores differ: both scores, then the reasons."""
    names = [name for name in comparison.metrics if name in before and name in after]
    told = [name for name in names if _passes(before[name]) != _passes(after[name])]
    for name in told or [name for name in names if _score(before[name]) != _score(after[name])]:
        marks = {"before": before[name], "now": after[name]}
        sign = ">=" if comparison.metrics[name].higher_is_better else "<="
        needed = next((f", passes with {sign} {mark.threshold:.4g}" for mark in _scored(marks.values())), "")
        scores = (*_describe_mark(before[name]), " to ", *_describe_mark(after[name]), needed)
        yield TextField(MetricName(name), scores)
        for when, mark in marks.items():
            notes = detail_notes(mark.details) if isinstance(mark, ScoreEntry) else ()
            for label, text in islice(notes, _NOTES):
                yield TextField("", (DataText(f"{label.rstrip(':')}, {when}"), ": ", PassageText(text)))


def _scored(marks: Iterable[MarkEntry]) -> Iterator[ScoreEntry]:
    return (mark for mark in marks if isinstance(mark, ScoreEntry))


def _passes(mark: MarkEntry) -> bool:
    return isinstance(mark, ScoreEntry) and mark.success


def _score(mark: MarkEntry) -> float | None:
    return mark.score if isinstance(mark, ScoreEntry) else None


def _describe_mark(mark: MarkEntry) -> TextLine:
    return (f"{mark.score:.4f}",) if isinstance(mark, ScoreEntry) else describe_unscored(mark.unscored)


def _details(comparison: Comparison) -> Iterator[TextSection]:
    """What a statistician asks for: effects, resolution, the tables of the tests."""
    numbers: dict[str, Difference] = {"mean pass-rate": comparison.macro_f1, "all metrics pass": comparison.pass_rate}
    numbers |= {MetricName(name): metric.pass_rate for name, metric in comparison.metrics.items()}
    head: TextLine = ("number", "units", "interval by", "effect", "better", "equal", "worse", "one-sided bounds")
    head = (*head, "finds a drop of", "certifies", "if unchanged")
    rows = [
        (
            name,
            f"{one.units:,}",
            one.method or "n/a",
            "n/a" if one.effect is None else f"{one.effect:+.2f}",
            *(f"{count:,} ({count / one.n:.0%})" if one.n else "0" for count in (one.better, one.equal, one.worse)),
            f"{format_change(one.lower_bound)} to {format_change(one.upper_bound)}",
            *map(format_number, (one.detectable, one.certifiable, one.certifiable_unchanged)),
        )
        for name, one in numbers.items()
    ]
    lines: list[TextLine] = [
        ("Effect: mean difference divided by the standard deviation of the differences.",),
        ("Finds a drop of: with power 0.8. Certifies: the smallest margin that these data certify.",),
    ]
    spare = ("one-sided bounds", "if unchanged", "interval by", "equal", "better", "worse", "units")
    yield TextSection(("Effects and resolution",), lines, TextTable(head, rows, spare), key="effects")
    tables = {"all metrics pass": (comparison.table, comparison.pass_rate)}
    tables |= {MetricName(name): (metric.table, metric.pass_rate) for name, metric in comparison.metrics.items()}
    counts = ("passed both", "newly failing", "newly passing", "failed both")
    head = ("number", *counts, "McNemar p", "mid-p", "Tango interval")
    flips = [
        (
            name,
            *(f"{count:,}" for count in (one.passed_both, one.newly_failing, one.newly_passing, one.failed_both)),
            *map(format_p_value, (one.p_value, one.mid_p)),
            format_change_interval(rate.tango),
        )
        for name, (one, rate) in tables.items()
    ]
    yield TextSection(
        ("Pass and fail, before and now",), table=TextTable(head, flips, ("mid-p", "Tango interval")), key="flips"
    )


def comparison_summary(comparison: Comparison) -> str:
    """The comparison as the summary of a GitHub job: verdict, checks, numbers, cohorts, the first broken samples."""
    headline, *parts = comparison_sections(comparison, full=False)
    blocks = [f"## {join_line(headline.title)}", *(join_line(line) for line in headline.lines)]
    for section in with_keys(parts, _SUMMARY):
        blocks += markdown_blocks(section, 2)
    return "\n\n".join(blocks) + "\n"
