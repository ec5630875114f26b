"""The overview of a report: what one came for, on one screen. `report_sections` has the rest."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from deemster.errors import plural
from deemster.gate import GateCheck, GateDecision
from deemster.report.failing_samples import (
    ExecutedSample,
    count_failing,
    describe_passed,
    is_failed,
    quoted_text,
    worst_samples,
)
from deemster.report.gate_sections import format_against_bound, gate_verdict
from deemster.report.panel_lines import panel_lines
from deemster.report.report_entries import ScoreEntry
from deemster.report.usage_sections import format_cost
from deemster.stats import Interval
from deemster.text.number_format import format_interval, format_number, supported_places
from deemster.text.table_plots import IntervalCell, PlotColumn, drawn_columns
from deemster.text.terminal_layout import plain_text
from deemster.text.text_sections import (
    Column,
    DataText,
    MetricName,
    PassageText,
    SentenceText,
    TextDetail,
    TextField,
    TextLine,
    TextSection,
    table_of,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report

# A screen of 40 lines less that of the next prompt, and less what a run that is not complete says below.
SCREEN_LINES = 39
_LINES_BELOW_INCOMPLETE = 3
# How wide it is at least.
_SCREEN_WIDTH = 80
_MOST_WARNINGS = 2
_MOST_RULES = 3
_MOST_METRICS = 6
_MOST_COHORTS = 3
_MOST_SAMPLES = 5
# The lines of a sample: its title, input, expected output, output.
_SAMPLE_LINES = 4
# The heading of the samples, and the blank line above.
_SAMPLES_AROUND = 2
_REASON_CHARS = 140


class NamedRun(NamedTuple):
    """How commands find a run, so that an overview can say what to type next.

    Attributes:
        name: What stands for it in a command, such as `latest` or a report file.
        store_flag: The `--store` that the command needs; empty where it finds the run without.
        is_stored: Whether it is in a store, and not in a file alone.
        has_baseline: Whether its suite has a baseline, which is another run.
        broken: The places of the first samples that passed in its baseline and do not pass now.
        suite_file: The file of its suite; empty where there is none.
    """

    name: str
    store_flag: str = ""
    is_stored: bool = True
    has_baseline: bool = False
    broken: tuple[int, ...] = ()
    suite_file: str = ""


def overview_sections(report: Report, named: NamedRun | None = None, *, whole: str = "`--full`") -> list[TextSection]:
    """What one came for: the verdict, what broke it, the numbers, the worst samples, and what to do next.

    Args:
        report: The report.
        named: How commands find the run; None where nothing is said of what to do next.
        whole: What gives the whole report.
    """
    worst = worst_samples(report, _MOST_SAMPLES, before=() if named is None else named.broken)
    above = [_verdict(report), *broken_rules(report.gate, whole), _pass_rates(report, whole)]
    below = [] if named is None else list(_next_steps(report, named, worst))

    reserved = _SAMPLES_AROUND + (0 if report.run.status == "complete" else _LINES_BELOW_INCOMPLETE)
    room = max(1, (lines_left([*above, *below]) - reserved) // _SAMPLE_LINES)
    return [*above, *_samples(report, worst[:room], whole), *below]


def lines_left(sections: Sequence[TextSection]) -> int:
    """How many lines of a screen are left beside some sections and the blank lines between them.

    Args:
        sections: The sections.
    """
    return SCREEN_LINES + 1 - sum(len(plain_text([one], width=_SCREEN_WIDTH).splitlines()) + 1 for one in sections)


def _verdict(report: Report) -> TextSection:
    """The decision, how many samples passed, and what a reader must know before believing it."""
    run = report.run
    decided: TextLine = ("No gate.",)
    if report.gate is not None and report.gate.checks:
        before, decision, after = gate_verdict(report.gate, run.part).partition(report.gate.decision)
        decided = (before, decision, after)
    title: TextLine = (*decided, " ", *describe_passed(report))
    if run.part is not None and run.part.is_of_failed:
        title = (*describe_passed(report), " ", *decided)

    lines: list[TextLine] = []
    reason = SentenceText(_cut(run.reason or "no reason is known"))
    if run.status == "incomplete":
        title = ("Incomplete: ", reason, *_after_incomplete(report))
        lines.append(decided)
    elif run.status == "mixed":
        lines.append(("Warning: this run is mixed: ", reason, "."))
    lines += islice(panel_lines(report), _MOST_WARNINGS)
    lines.append(_run_line(report))
    lines += _further_numbers(report)
    if run.part is not None:
        lines.append(("Part: ", DataText(run.part.describe()), "."))
    if left_out := report.privacy.describe():
        lines.append((left_out,))
    return TextSection(title, lines, key="headline")


def _after_incomplete(report: Report) -> TextLine:
    """What became of the samples; where some could not be scored, of the others, so that none is told twice."""
    totals, part = report.totals, report.run.part
    if totals.not_run or not totals.unscored or (part is not None and part.is_of_failed):
        return (". ", *describe_passed(report))

    unscored = len({failure.id for failure in report.failure_list})
    others = totals.samples - totals.samples_not_applicable - unscored
    failing = count_failing(report) - unscored
    if others == 0:
        return (".",)
    if others == 1:
        return ("; the other one did not pass." if failing else "; the other one passed.",)
    return (f"; {failing:,} of the other {others:,} did not pass." if failing else f"; the other {others:,} passed.",)


def _run_line(report: Report) -> TextLine:
    """What was run."""
    totals, run = report.totals, report.run
    name: TextLine = (DataText(run.suite), ", ") if run.suite else ()
    counts = [plural(totals.samples, "sample")]
    if totals.repetitions > 1:
        counts.append(plural(totals.repetitions, "repetition"))
    if totals.unscored:
        counts.append(f"{totals.unscored:,} of {totals.marks:,} scores missing")
    if totals.samples_not_applicable:
        counts.append(f"{totals.samples_not_applicable:,} that no metric applies to")
    return (*name, "dataset ", DataText(report.dataset.name), f": {', '.join(counts)}; run ", DataText(run.id), ".")


def _further_numbers(report: Report) -> Iterator[TextLine]:
    """How attacks did, and what models cost, where there were any."""
    if report.adversarial is not None:
        overall = report.adversarial.overall
        succeeded = f"{overall.successes:,} of {plural(overall.executions, 'attack')} succeeded"
        rate, interval = _rate(overall.attack_success_rate, overall.interval)
        yield (f"{succeeded}: {rate}, 95% interval {interval}. Lower is better.",)
    if report.cost is not None and report.cost.calls:
        yield (f"Cost: {format_cost(report.cost)} for {plural(report.cost.calls, 'call')}.",)


def broken_rules(gate: GateDecision | None, whole: str) -> Iterator[TextSection]:
    """The rules that do not hold: what was found, what is required, and why, with the samples that broke them.

    Args:
        gate: The decision; None where there is no gate.
        whole: What prints all of them.
    """
    checks = () if gate is None else gate.checks
    broken = [check for status in ("fail", "inconclusive") for check in checks if check.status == status]
    if not broken:
        return

    shown = broken if len(broken) <= _MOST_RULES else broken[: _MOST_RULES - 1]
    rest = rest_line(len(broken) - len(shown), "rule", whole)
    lines = [line for check in shown for line in _broken_rule(check)]
    yield TextSection((), lines, after=rest, key="gate")


def _broken_rule(check: GateCheck) -> Iterator[TextLine]:
    yield (check.status, " ", DataText(check.name), f": {format_against_bound(check)}")
    yield ("  ", SentenceText(_cut(check.because)))


class _Rate(NamedTuple):
    """A row of the main table."""

    name: str
    rate: float | None
    interval: Interval | None
    mean: str = ""
    scored: str = ""


def _pass_rates(report: Report, whole: str) -> TextSection:
    """The pass-rate of each metric, what is made of them together, and where that is lowest."""
    names = list(report.metric_order)
    if len(names) > _MOST_METRICS:
        names = sorted(names, key=lambda name: _worst_first(report.metrics[name].pass_rate))[:_MOST_METRICS]

    rates = [rate for name in names for rate in _metric_rates(report, name)]
    if len(report.metric_order) > 1:
        rates.append(_Rate("mean pass-rate", report.macro_f1, report.macro_f1_interval))
    # On one screen, they take the place of a cohort.
    repeated = list(_repeated(report))
    rates += islice(_lowest_cohorts(report), _MOST_COHORTS - len(repeated) // 2)
    if report.aggregate is not None:
        rates.append(_Rate("aggregate success", report.aggregate.success_rate, report.aggregate.interval))

    rates += repeated

    figures = [report.metrics[name] for name in names]
    columns: list[Column[_Rate]] = [
        ("", lambda row: row.name),
        ("pass-rate", lambda row: _rate(row.rate, row.interval)[0]),
        ("95% interval", lambda row: _rate(row.rate, row.interval)[1]),
    ]
    has_means = any(one.mean != one.pass_rate for one in figures)
    if has_means:
        columns.append(("mean score", lambda row: row.mean))
    if any(one.n_unscored or one.n_not_run or one.n_not_applicable for one in figures):
        columns.append(("scored", lambda row: row.scored))

    cells = [IntervalCell(row.rate, row.interval) for row in rates]
    plots = drawn_columns(PlotColumn("pass-rate", cells, "95% interval"))
    table = table_of(rates, columns, spare=("scored", "mean score"), plots=plots)
    after: list[TextLine] = rest_line(len(report.metric_order) - len(names), "metric", whole)
    if has_means and any(one.n_unscored for one in figures):
        after.insert(0, ("An unscored output counts as not passed, and is in no mean score.",))
    return TextSection((), table=table, after=after, key="pass-rates", is_short=True)


def _metric_rates(report: Report, name: str) -> Iterator[_Rate]:
    """The pass-rate of a metric, and the one that people's labels correct."""
    figures = report.metrics[name]
    mean = format_number(figures.mean, places=supported_places(figures.mean_interval))
    scored = f"{figures.n_scored:,} of {figures.n:,}"
    yield _Rate(MetricName(name), figures.pass_rate, figures.pass_rate_interval, mean, scored)

    corrected = figures.pass_rate_corrected
    if corrected is not None:
        ends = None if corrected.low is None or corrected.high is None else Interval(corrected.low, corrected.high)
        yield _Rate(MetricName(f"{name}, corrected"), corrected.value, ends)


def _repeated(report: Report) -> Iterator[_Rate]:
    """How often at least one of all repetitions of a sample passes, and how often all do."""
    if report.precision is not None and report.precision.repeated:
        passes = report.precision.repeated[-1]
        yield _Rate(f"pass@{passes.k}", passes.pass_at_k, passes.pass_at_k_interval)
        yield _Rate(f"pass^{passes.k}", passes.pass_hat_k, passes.pass_hat_k_interval)


def _lowest_cohorts(report: Report) -> Iterator[_Rate]:
    """The cohorts with the lowest mean of pass-rates, where there are several."""
    cohorts = [cohort for cohort in report.cohort_list if cohort.macro_f1 is not None]
    if len(cohorts) < 2:
        return

    for cohort in sorted(cohorts, key=lambda cohort: _worst_first(cohort.macro_f1)):
        name = DataText(f"  in {cohort.label} ({cohort.samples:,})")
        yield _Rate(name, cohort.macro_f1, cohort.macro_f1_interval)


def _worst_first(rate: float | None) -> float:
    """Sorts what has no rate last."""
    return 2.0 if rate is None else rate


def _rate(rate: float | None, interval: Interval | None) -> TextLine:
    places = supported_places(interval)
    return format_number(rate, places=places), format_interval(interval, places=places)


def _samples(report: Report, worst: Sequence[ExecutedSample], whole: str) -> Iterator[TextSection]:
    """The worst samples, each with what was asked, expected and said."""
    if not worst:
        return

    failing = count_failing(report)
    title = "Samples that did not pass, worst first"
    if len(worst) < failing:
        title = f"The worst {len(worst)} of {failing:,} samples that did not pass (all: {whole})"
    yield TextSection((title,), details=[_sample(report, executed) for executed in worst], key="samples", is_short=True)


def _next_steps(report: Report, named: NamedRun, worst: Sequence[ExecutedSample]) -> Iterator[TextSection]:
    """The commands that show more of what the overview shows first."""
    run = shlex.quote(named.name)
    commands: list[str] = []
    gate = report.gate
    if named.suite_file and report.run.part is not None and gate is not None and gate.checks and not gate.is_decided:
        commands.append(f"run {shlex.quote(named.suite_file)}")
    if worst:
        commands.append(f"show {run} {shlex.quote(worst[0].sample.id)}")
    if named.has_baseline:
        commands.append(f"compare baseline {run}")
    elif named.is_stored and not worst and report.run.status == "complete" and report.run.part is None:
        commands.append(f"baseline {run}")
    if named.is_stored:
        commands.append("view")

    calls = [DataText(f"deemster {command}{named.store_flag}") for command in commands]
    lines = [("      " if place else "Next: ", call) for place, call in enumerate(calls)]
    if lines:
        yield TextSection((), lines, key="next")


def _sample(report: Report, executed: ExecutedSample) -> TextDetail:
    sample, execution = executed.sample, executed.executions[0]
    title: list[str] = [DataText(sample.id)]
    if sample.tags:
        title += [" (", DataText(", ".join(sample.tags)), ")"]
    if sample.repetitions > 1:
        title.append(f", {sample.passed} of {plural(sample.repetitions, 'repetition')} passed")

    unscored = None
    failed: list[str] = []
    for name in report.metric_order:
        mark = execution.marks.get(name)
        if isinstance(mark, ScoreEntry):
            if not mark.success:
                failed += [", " if failed else ": ", MetricName(name), f" {format_number(mark.score, places=2)}"]
        elif mark is not None and is_failed(mark):
            unscored = mark.unscored
            failed += [", " if failed else ": ", MetricName(name), f" {mark.unscored.cause}"]

    texts = {"input": sample.input, "expected": sample.expected_output, "output": execution.output}
    fields = [TextField(label, (PassageText(quoted_text(text)),)) for label, text in texts.items() if text is not None]
    if execution.output is None and unscored is not None:
        fields.append(TextField("output", (unscored.cause, ": ", PassageText(unscored.message or "no message"))))
        failed = []
    return TextDetail((*title, *failed), fields)


def _cut(text: str) -> str:
    return text if len(text) <= _REASON_CHARS else f"{text[: _REASON_CHARS - 1]}…"


def rest_line(count: int, noun: str, whole: str) -> list[TextLine]:
    """How many more there are of something, and what prints them; nothing where there are none.

    Args:
        count: How many.
        noun: What they are, in the singular.
        whole: What prints them.
    """
    return [(f"... and {plural(count, f'more {noun}')}: {whole}",)] if count > 0 else []
