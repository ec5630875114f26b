"""The sections of an evaluation report: what it says, before a renderer lays it out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from deemster.datasets import SelectedPart
from deemster.datasets.where_condition import describe_where
from deemster.errors import plural
from deemster.gate import GateCheck, GateDecision
from deemster.records import Where
from deemster.report.failing_samples import failing_section
from deemster.report.report_entries import FailureEntry
from deemster.results import Aggregate, Cost, CriterionSummary, MetricSummary, UsageTotals
from deemster.results.attack_success import AdversarialSummary, AttackFigures
from deemster.results.metric_summary import PanelSummary, RunMetricSummary
from deemster.stats import Interval
from deemster.text.number_format import format_change_interval, format_interval, format_number
from deemster.text.table_plots import BarCell, HistogramCell, IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import (
    DataText,
    MetricName,
    SentenceText,
    ShadedNumber,
    TextLine,
    TextSection,
    TextTable,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report

SHOWN = 50
_MOST_GROUPS = 1_000
_EXAMPLES = 3
# The rules of a gate whose numbers are counts.
_COUNTED = ("max_unscored", "max_newly_failing", "max_removed")


def report_sections(report: Report) -> list[TextSection]:
    """The parts of a report, in order."""
    return [
        _headline(report),
        *(() if report.gate is None else (gate_section(report.gate, report.run.part),)),
        *_attack_sections(report.adversarial),
        _metrics(report),
        *_corrected(report),
        *criteria_sections(report),
        _macro_f1(report),
        *(() if report.aggregate is None else (_aggregate(report, report.aggregate), _aggregate_samples(report))),
        _cohorts(report),
        _histograms(report),
        _usage(report),
        _unstable(report),
        _failures(report),
        failing_section(report),
    ]


def _headline(report: Report) -> TextSection:
    totals, run = report.totals, report.run
    lines: list[TextLine] = []
    if run.status != "complete":
        reason: TextLine = (": ", DataText(run.reason)) if run.reason else (".",)
        lines.append((f"Warning: this run is {run.status}", *reason))
    lines += panel_lines(report)
    parts = [
        plural(totals.samples, "sample"),
        plural(totals.repetitions, "repetition"),
        f"{totals.scored:,} scored",
        f"{totals.unscored:,} unscored",
    ]
    if totals.not_run:
        parts.append(f"{totals.not_run:,} not run")
    if totals.not_applicable:
        parts.append(f"{totals.not_applicable:,} not applicable")
    if totals.samples_not_applicable:
        parts.append(f"{plural(totals.samples_not_applicable, 'sample')} that no metric applies to")
    if totals.target_failures:
        parts.append(plural(totals.target_failures, "target failure"))
    lines.append(("Dataset ", DataText(report.dataset.name), ": " + ", ".join(parts) + "; run ", DataText(run.id), "."))
    if run.part is not None:
        lines.append(("Part: ", DataText(run.part.describe()), "."))
    if report.gate is not None:
        lines.append((gate_verdict(report.gate, run.part),))
    if report.privacy.removed:
        lines.append((f"Left out ({report.privacy.level}): {', '.join(report.privacy.removed)}.",))
    return TextSection(("deemster report", *((": ", DataText(run.suite)) if run.suite else ())), lines, key="headline")


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


def gate_verdict(gate: GateDecision, part: SelectedPart | None) -> str:
    """The gate's decision in one sentence.

    Args:
        gate: The decision.
        part: The part of the dataset that it judged; None for the whole.
    """
    if not gate.checks:
        return "Gate: no rule is declared, so nothing was gated."
    counts = [
        (sum(check.status == status for check in gate.checks), word)
        for status, word in (
            ("pass", "passed"),
            ("fail", "failed"),
            ("inconclusive", "inconclusive"),
            ("skipped", "skipped"),
        )
    ]
    judged = "" if part is None else f", for a part of the dataset: {part.samples:,} of {part.of:,} samples"
    return f"Gate: {gate.decision} ({', '.join(f'{count} {word}' for count, word in counts if count)}){judged}."


def _metrics(report: Report) -> TextSection:
    figures = [(name, report.metrics[name]) for name in report.metric_order]
    marks = {_pass_mark(entry) for _, entry in figures}
    same = len(marks) == 1 and None not in marks
    head = ["metric", "mean", "p5", "p50", "p95", f"pass-rate ({next(iter(marks))})" if same else "pass-rate"]
    head += [*([] if same else ["threshold"]), "95% interval", "scored", "unscored"]
    head += ["not run"] if report.totals.not_run else []
    head += ["not applicable"] if report.totals.not_applicable else []
    rows = []
    for name, entry in figures:
        row = [MetricName(name), *map(format_number, (entry.mean, entry.p5, entry.p50, entry.p95, entry.pass_rate))]
        row += [] if same else [_pass_mark(entry) or "differs"]
        row += [format_interval(entry.pass_rate_interval), str(entry.n_scored), str(entry.n_unscored)]
        row += [str(entry.n_not_run)] if report.totals.not_run else []
        row += [str(entry.n_not_applicable)] if report.totals.not_applicable else []
        rows.append(tuple(row))
    spare = ("p95", "p50", "p5", "threshold", "unscored", "scored")
    applied = [_applied(report, name, entry, entry.where) for name, entry in figures if entry.where is not None]
    cells = [IntervalCell(entry.pass_rate, entry.pass_rate_interval) for _, entry in figures]
    plots = drawn_columns(PlotColumn("pass-rate", cells, "95% interval"))
    return TextSection(
        ("Per-metric aggregates",), table=TextTable(tuple(head), rows, spare, plots), after=applied, key="metrics"
    )


def _attack_sections(found: AdversarialSummary | None) -> Iterator[TextSection]:
    """How often attacks succeeded: by category, severity and mutator, and by item of each framework."""
    if found is None:
        return
    groups = [("category", found.categories), ("severity", found.severities), ("mutator", found.mutators)]
    overall = found.overall
    rate, interval = format_number(overall.attack_success_rate), format_interval(overall.interval)
    worst = f", worst severity that got through: {overall.worst_severity}" if overall.worst_severity else ""
    undecided = f"; {overall.undecided:,} could not be decided" if overall.undecided else ""
    told = f"{overall.successes:,} of {plural(overall.executions, 'attack')} succeeded{undecided}{worst}. Decided by "
    yield TextSection(
        (f"Attack success rate: {rate}",),
        [
            (f"95% interval {interval}, clustered by seed. Lower is better.",),
            (told, MetricName(", ".join(found.metrics)), "."),
        ],
        _attack_table([(kind, figures) for kind, each in groups for figures in each], second="by"),
        key="attacks",
    )
    rows = [(framework.name, figures) for framework in found.frameworks for figures in framework.items]
    if rows:
        yield TextSection(
            ("Attack success by framework",), table=_attack_table(rows, second="framework"), key="attack-frameworks"
        )


def _attack_table(groups: Sequence[tuple[str, AttackFigures]], *, second: str) -> TextTable:
    rows = [
        (
            DataText(figures.name),
            DataText(kind),
            str(figures.samples),
            str(figures.successes),
            str(figures.undecided),
            format_number(figures.attack_success_rate),
            format_interval(figures.interval),
            _worst_severity(figures),
        )
        for kind, figures in groups
    ]
    cells = [IntervalCell(figures.attack_success_rate, figures.interval) for _, figures in groups]
    plots = drawn_columns(PlotColumn("attack success", cells, "95% interval"))
    head = ("attacks", second, "samples", "succeeded", "undecided", "rate", "95% interval", "worst through")
    return TextTable(head, rows, ("undecided", "succeeded", "95% interval"), plots)


def _worst_severity(figures: AttackFigures) -> str:
    if figures.successes:
        return figures.worst_severity or "unrated"
    return "n/a" if figures.attack_success_rate is None else "none"


def _corrected(report: Report) -> Iterator[TextSection]:
    """The numbers that labels of people correct, beside those of the judge."""
    found = [(name, figures, figures.pass_rate_corrected) for name, figures in report.metrics.items()]
    known = [(name, figures, rate) for name, figures, rate in found if rate is not None]
    if not known:
        return
    rows: list[TextLine] = []
    for name, figures, rate in known:
        pairs = [("pass-rate", figures.pass_rate, rate), ("mean", figures.mean, rate.mean)]
        rows += (
            (MetricName(name), told, format_number(naive), format_number(one.value), _range(one.low, one.high),
             str(rate.labels))
            for told, naive, one in pairs
            if one is not None
        )  # fmt: skip
    notes: list[TextLine] = [(MetricName(name), ": ", SentenceText(rate.note)) for name, _, rate in known if rate.note]
    source = ", ".join(dict.fromkeys(rate.source for _, _, rate in known if rate.source))
    lines: list[TextLine] = [("What people would have found, by their labels of ", DataText(source), ".")]
    head = ("metric", "number", "by the judge", "corrected", "95% interval", "labels")
    yield TextSection(("Corrected for the errors of judges",), lines, TextTable(head, rows), notes, key="corrected")


def _range(low: float | None, high: float | None) -> str:
    return format_interval(None if low is None or high is None else Interval(low, high))


def _applied(report: Report, name: str, figures: RunMetricSummary, where: Where) -> TextLine:
    """How many samples a metric applies to, and which these are."""
    samples = f"{figures.n // report.totals.repetitions:,} of {plural(report.totals.samples, 'sample')}"
    return (MetricName(name), f" applies to {samples}: ", DataText(describe_where(where)), ".")


def _pass_mark(figures: RunMetricSummary) -> str | None:
    if figures.threshold is None:
        return None if figures.n_scored else "n/a"
    return f"{'>=' if figures.higher_is_better else '<='} {figures.threshold:.4g}"


def _macro_f1(report: Report) -> TextSection:
    whole = format_interval(report.pass_rate_interval)
    names, used = report.metric_order, report.macro_f1_metrics
    rests: list[TextLine] = []
    if used is not None and len(used) < len(names):
        unused = ", ".join(name for name in names if name not in used)
        others = f"It rests on {len(used)} of {plural(len(names), 'metric')}; these apply to no sample: "
        rests = [(others, MetricName(unused), ".")]
    every = "every metric that applies passed" if report.totals.not_applicable else "every metric passed"
    return TextSection(
        (f"Macro-F1 (avg pass-rate across all metrics): {format_number(report.macro_f1)}",),
        [
            ("95% interval ", format_interval(report.macro_f1_interval), "."),
            *rests,
            (f"Run pass-rate ({every}): {format_number(report.pass_rate)}", f", 95% interval {whole}."),
        ],
        key="macro-f1",
    )


def _aggregate(report: Report, whole: Aggregate) -> TextSection:
    rows = [
        (
            DataText(cohort.label),
            str(cohort.samples),
            format_number(cohort.aggregate.success_rate),
            format_interval(cohort.aggregate.interval),
            format_number(cohort.aggregate.mean_score),
        )
        for cohort in report.cohort_list
        if cohort.aggregate is not None
    ]
    mean = f"Mean score: {whole.mean_score:.4f}, 95% interval {format_interval(whole.mean_score_interval)}."
    return TextSection(
        (f"Aggregate success-rate: {whole.success_rate:.4f}",),
        [
            ("95% interval ", format_interval(whole.interval), "."),
            (mean,),
            ("Aggregator: ", DataText(whole.aggregator), "."),
        ],
        TextTable(("cohort", "samples", "success-rate", "95% interval", "mean score"), rows, ("samples",)),
        key="aggregate",
    )


def _aggregate_samples(report: Report) -> TextSection:
    """The first samples whose aggregate did not succeed in every repetition, then others, as far as there is room."""
    found: dict[str, list[TextLine]] = {"fail": [], "pass": []}
    for entry in report.samples:
        if entry.aggregate is not None:
            status = "pass" if entry.aggregate.success else "fail"
            if len(found[status]) < SHOWN:
                found[status].append((DataText(entry.id), status, format_number(entry.aggregate.score)))
    rows = [*found["fail"], *found["pass"]][:SHOWN]
    count = report.totals.samples if report.aggregate is None else report.aggregate.samples
    after = _rest(report.totals.samples if count is None else count, rows)
    return TextSection(
        ("Aggregate by sample",),
        table=TextTable(("sample", "aggregate", "score"), rows),
        after=after,
        key="aggregate-samples",
        folds=True,
    )


def _cohorts(report: Report) -> TextSection:
    # Of a metric that gives 0 or 1 the mean is the pass-rate.
    graded = [
        name
        for name in report.metric_order
        if any(cohort.metrics[name].mean != cohort.metrics[name].pass_rate for cohort in report.cohort_list)
    ]
    means = {name: MetricName(f"{name} mean") for name in graded}
    columns = [column for name in report.metric_order for column in (MetricName(name), means.get(name)) if column]
    rows = [
        (
            DataText(cohort.label),
            str(cohort.samples),
            format_number(cohort.macro_f1),
            format_interval(cohort.macro_f1_interval),
            *(cell for name in report.metric_order for cell in _figures(cohort.metrics[name], has_mean=name in means)),
        )
        for cohort in report.cohort_list
    ]
    cells = [IntervalCell(cohort.macro_f1, cohort.macro_f1_interval) for cohort in report.cohort_list]
    plots = drawn_columns(PlotColumn("macro-F1", cells, "95% interval"))
    head = ("cohort", "samples", "macro-F1", "95% interval", *columns)
    lines: list[TextLine] = [("The pass-rate of each metric, and their mean.",)]
    if means:
        lines = [("The pass-rate of each metric, the mean of its scores beside it, and the mean of the pass-rates.",)]
    if any(not cohort.metrics[name].n for cohort in report.cohort_list for name in report.metric_order):
        lines.append(("n/a: the metric applies to no sample of the cohort, and macro-F1 rests on the others.",))
    return TextSection(
        ("Cohorts by metadata.tags",),
        lines,
        TextTable(head, rows, (*means.values(), *reversed(report.metric_order), "95% interval"), plots),
        key="cohorts",
    )


def _figures(figures: MetricSummary, *, has_mean: bool) -> Iterator[str]:
    """The pass-rate of a metric in a cohort, and the mean of its scores."""
    yield ShadedNumber(format_number(figures.pass_rate), figures.pass_rate, is_rate=True)
    if has_mean:
        yield format_number(figures.mean)


def _histograms(report: Report) -> TextSection:
    head = ("metric", *(f"{place / 10:.1f}" for place in range(10)))
    rows = [(MetricName(name), *(str(bar.count) for bar in report.histograms[name])) for name in report.metric_order]
    cells = [HistogramCell(tuple(bar.count for bar in report.histograms[name])) for name in report.metric_order]
    plots = drawn_columns(PlotColumn("scores", cells, "0.9"))
    return TextSection(
        ("Score histograms",),
        [("Scores from each number up to the next; the last column holds 1 too.",)],
        TextTable(head, rows, plots=plots),
        key="histograms",
    )


def _usage(report: Report) -> TextSection:
    usage, cost = report.usage, report.cost
    title = ("Usage and cost",)
    if not usage.total.calls and not usage.total.cached_calls and usage.total.latency_ms is None:
        return TextSection(title, [("No model call was recorded.",), *_halt(report)], key="usage")
    head = ("part", "calls", "cache hits", "prompt tokens", "completion tokens", "cache hit tokens", "p50 ms", "p95 ms")
    again = [] if usage.reruns is None else [_usage_row("beside the samples", usage.reruns)]
    parts = [_usage_row("target", usage.target), _usage_row("scoring", usage.scoring)]
    rows = [*parts, *again, _usage_row("total", usage.total)]
    after: list[TextLine] = []
    if cost is not None:
        after.append((f"Cost: {format_cost(cost)} for {plural(cost.calls, 'call')}.",))
        for model in cost.models:
            price = "no price known" if model.cost_usd is None else f"{_money(model.cost_usd)} USD"
            tokens = f"{model.prompt_tokens:,} + {model.completion_tokens:,} tokens"
            after.append(("- ", DataText(model.model), f": {plural(model.calls, 'call')}, {tokens}, {price}"))
    return TextSection(title, table=TextTable(head, rows), after=[*after, *_halt(report)], key="usage")


def format_cost(cost: Cost) -> str:
    """What a run cost; at least that where a model has no price."""
    is_known = cost.complete or any(model.cost_usd is not None for model in cost.models)
    return f"{'' if cost.complete else 'at least '}{_money(cost.total_usd)} USD" if is_known else "not known"


def _halt(report: Report) -> list[TextLine]:
    if report.budget is None or not report.budget.halted:
        return []
    return [("The budget stopped the run: ", DataText(report.budget.reason or "spent"), ".")]


def _usage_row(part: str, totals: UsageTotals) -> TextLine:
    latency = totals.latency_ms
    return (
        part,
        str(totals.calls),
        str(totals.cached_calls),
        _whole(totals.prompt_tokens),
        _whole(totals.completion_tokens),
        _whole(totals.cached_call_tokens),
        "n/a" if latency is None else f"{latency.p50:.1f}",
        "n/a" if latency is None else f"{latency.p95:.1f}",
    )


def _whole(count: int | None) -> str:
    return "n/a" if count is None else f"{count:,}"


def _money(amount: Decimal) -> str:
    return f"{amount:.4f}"


def _unstable(report: Report) -> TextSection:
    title = ("Unstable samples",)
    precision = report.precision
    if precision is None:
        return TextSection(
            title,
            [("Each sample ran once, so instability cannot be seen; use repetitions.",)],
            key="unstable",
            folds=True,
        )
    run = precision.run
    seen = (
        f"The target does not always answer alike. With {plural(report.totals.repetitions, 'repetition')}, chance "
        f"alone can move one sample's pass-rate by {precision.resolution:.4f} from one run to the next, "
        f"and the run's by {run.resolution:.4f}. "
    )
    needed = (
        f"To see a difference of {precision.target_delta:.4g} in one sample takes "
        f"{plural(precision.required_repetitions, 'repetition')}, in the run {run.required_repetitions:,}."
    )
    lines: list[TextLine] = [(seen, needed)]
    if not precision.unstable:
        return TextSection(
            title, [*lines, ("No sample passed in some repetitions and failed in others.",)], key="unstable", folds=True
        )
    unstable = (entry for entry in report.samples if entry.unstable)
    rows = [
        (DataText(entry.id), f"{entry.passed} of {entry.repetitions}", format_interval(entry.interval))
        for entry in islice(unstable, SHOWN)
    ]
    return TextSection(
        title,
        lines,
        TextTable(("sample", "passed", "95% interval"), rows),
        _rest(precision.unstable, rows),
        key="unstable",
        folds=True,
    )


def _failures(report: Report) -> TextSection:
    """What could not be scored, equal failures together, the most frequent first."""
    groups = group_failures(report.failure_list)
    if not groups:
        which = "every mark that was made" if report.totals.not_run else "every mark"
        return TextSection(("Failures",), [(f"None: {which} has a score.",)], key="failures")
    rows: list[TextLine] = [
        (
            f"{group.times:,}",
            "(target)" if group.metric is None else MetricName(group.metric),
            group.cause,
            "" if group.message is None else DataText(group.message),
            DataText(", ".join(group.samples)),
        )
        for group in groups[:SHOWN]
    ]
    most = groups[0].times
    bars = PlotColumn("how often", [BarCell(group.times / most) for group in groups[:SHOWN]], "times")
    table = TextTable(("times", "metric", "cause", "message", "samples"), rows, ("samples",), [bars])
    return TextSection(("Failures",), table=table, after=_rest(len(groups), rows), key="failures")


class FailureGroup(NamedTuple):
    """Failures of one metric with one cause and one message.

    Attributes:
        metric: The metric; None for the target.
        cause: Why there is no score.
        message: What is said about it; None where it is left out, or where the messages are too many to tell apart.
        times: How many there are.
        samples: The first samples that have it, then an ellipsis where there are more.
    """

    metric: str | None
    cause: str
    message: str | None
    times: int
    samples: tuple[str, ...]


def group_failures(failures: Iterable[FailureEntry]) -> list[FailureGroup]:
    """Equal failures together, the most frequent first; where messages are too many, by metric and cause alone."""
    found: dict[tuple[str | None, str, str | None], tuple[int, tuple[str, ...]]] = {}
    for failure in failures:
        key = (failure.metric, failure.cause, failure.message)
        if key not in found and len(found) >= _MOST_GROUPS:
            key = (failure.metric, failure.cause, None)
        times, samples = found.get(key, (0, ()))
        if failure.id not in samples and len(samples) <= _EXAMPLES:
            samples = (*samples, failure.id if len(samples) < _EXAMPLES else "...")
        found[key] = (times + 1, samples)
    groups = [FailureGroup(*key, times, samples) for key, (times, samples) in found.items()]
    return sorted(groups, key=lambda group: -group.times)


def _rest(count: int, rows: Sequence[TextLine]) -> list[TextLine]:
    return [(f"... and {count - len(rows):,} more.",)] if count > len(rows) else []


def format_observed(check: GateCheck) -> str:
    """The number that a check looked at; a count has no decimals.

    Args:
        check: The check.
    """
    number = check.observed
    is_count = check.name.rpartition(".")[2] in _COUNTED and number is not None and number == int(number)
    return f"{number:,.0f}" if is_count else format_number(number)


def format_against_bound(check: GateCheck) -> str:
    """What a check looked at, its interval where it has one, and the bound.

    Args:
        check: The check.
    """
    interval = "" if check.low is None or check.high is None else f" (interval {check.low:.4f} to {check.high:.4f})"
    return f"{format_observed(check)}{interval}, required {check.required:.4g}"


def gate_section(gate: GateDecision, part: SelectedPart | None) -> TextSection:
    """The table of a gate's checks.

    Args:
        gate: The decision.
        part: The part of the dataset that it judged; None for the whole.
    """
    rows = [
        (
            check.status,
            DataText(check.name),
            format_observed(check),
            _check_interval(check),
            f"{check.required:.4g}",
            SentenceText(check.because),
        )
        for check in gate.checks
    ]
    head = ("status", "check", "observed", "95% interval", "required", "because")
    spare = ("because", "95% interval")
    # The headline tells the decision.
    lines: list[TextLine] = [] if rows else [(gate_verdict(gate, part),)]
    return TextSection(("Gate",), lines, TextTable(head, rows, spare) if rows else None, key="gate")


def _check_interval(check: GateCheck) -> str:
    if check.low is None or check.high is None:
        return "n/a"
    interval = Interval(check.low, check.high)
    return format_interval(interval) if check.low >= 0 else format_change_interval(interval)


_HEAD = ("metric", "criterion", "mean value", "95% interval", "judged", "abstained", "failed", "agreement")


def criteria_sections(report: Report) -> list[TextSection]:
    """The figures of every criterion, in the order of the metrics; nothing where no metric has any."""
    rows: list[TextLine] = [
        (MetricName(name), DataText(criterion), *row)
        for name in report.metric_order
        for criterion, row in criteria_table(report.metrics[name].criteria or {})
    ]
    if not rows:
        return []
    lines: list[TextLine] = [("The mean value of a criterion that is met or not is the share that met it.",)]
    plots = criteria_plots(
        [each for name in report.metric_order for each in (report.metrics[name].criteria or {}).values()]
    )
    return [
        TextSection(
            ("Criteria",), lines, TextTable(_HEAD, rows, ("agreement", "95% interval", "failed"), plots), key="criteria"
        )
    ]


def criteria_plots(criteria: Sequence[CriterionSummary]) -> list[PlotColumn]:
    """The mean value of each criterion with its interval."""
    cells = [IntervalCell(figures.mean, figures.mean_interval) for figures in criteria]
    return drawn_columns(PlotColumn("mean value", cells, "95% interval"))


def criteria_table(criteria: Mapping[str, CriterionSummary]) -> Iterator[tuple[str, TextLine]]:
    """Each criterion with the cells of its row: mean, interval, judged, abstained, failed, agreement."""
    for name, figures in criteria.items():
        counts = (figures.n_judged, figures.n_abstained, figures.n_failed)
        yield (
            name,
            (
                format_number(figures.mean),
                format_interval(figures.mean_interval),
                *map(str, counts),
                format_number(figures.mean_agreement),
            ),
        )
