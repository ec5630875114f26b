"""The sections of an evaluation report: what it says, before a renderer lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from deemster.datasets.where_condition import describe_where
from deemster.errors import plural
from deemster.records import Where
from deemster.report.attack_sections import attack_sections
from deemster.report.criteria_sections import criteria_sections
from deemster.report.failing_samples import describe_passed, failing_section
from deemster.report.gate_sections import gate_section, gate_verdict
from deemster.report.unscored_causes import group_failures
from deemster.report.usage_sections import usage_section
from deemster.results import Aggregate
from deemster.results.metric_summary import CorrectedMean, CorrectedPassRate, PanelSummary, RunMetricSummary
from deemster.results.run_summary import Cohort, Totals
from deemster.stats import Interval
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import BarCell, HistogramCell, IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import (
    Column,
    DataText,
    MetricName,
    SentenceText,
    ShadedNumber,
    TextLine,
    TextSection,
    TextTable,
    table_of,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report

SHOWN = 50


def report_sections(report: Report) -> list[TextSection]:
    """The parts of a report, in order."""
    return [
        _headline(report),
        *([] if report.gate is None else [gate_section(report.gate, report.run.part)]),
        *([] if report.adversarial is None else attack_sections(report.adversarial)),
        _metrics(report),
        *_corrected(report),
        *criteria_sections(report),
        _macro_f1(report),
        *([] if report.aggregate is None else _aggregate_sections(report, report.aggregate)),
        _cohorts(report),
        _histograms(report),
        usage_section(report),
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

    counts = ", ".join(_sample_counts(totals))
    lines.append(("Dataset ", DataText(report.dataset.name), f": {counts}; run ", DataText(run.id), "."))
    if run.part is not None:
        lines.append(("Part: ", DataText(run.part.describe()), "."))
        lines += [describe_passed(report)] if run.part.is_of_failed else []
    if report.gate is not None:
        lines.append((gate_verdict(report.gate, run.part),))
    if left_out := report.privacy.describe():
        lines.append((left_out,))

    suite = (": ", DataText(run.suite)) if run.suite else ()
    return TextSection(("deemster report", *suite), lines, key="headline")


def _sample_counts(totals: Totals) -> list[str]:
    """How many samples there are, and what came of them; counts of what is rare where there is any."""
    counts = [
        plural(totals.samples, "sample"),
        plural(totals.repetitions, "repetition"),
        f"{totals.scored:,} scored",
        f"{totals.unscored:,} unscored",
    ]
    if totals.not_run:
        counts.append(f"{totals.not_run:,} not run")
    if totals.not_applicable:
        counts.append(f"{totals.not_applicable:,} not applicable")
    if totals.samples_not_applicable:
        counts.append(f"{plural(totals.samples_not_applicable, 'sample')} that no metric applies to")
    if totals.target_failures:
        counts.append(plural(totals.target_failures, "target failure"))
    return counts


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


def _metrics(report: Report) -> TextSection:
    metrics = report.metrics
    pass_marks = {_pass_mark(metrics[name]) for name in report.metric_order}
    common_mark = pass_marks.pop() if len(pass_marks) == 1 else None

    columns: list[Column[str]] = [
        ("metric", MetricName),
        ("mean", lambda name: format_number(metrics[name].mean)),
        ("p5", lambda name: format_number(metrics[name].p5)),
        ("p50", lambda name: format_number(metrics[name].p50)),
        ("p95", lambda name: format_number(metrics[name].p95)),
        (
            "pass-rate" if common_mark is None else f"pass-rate ({common_mark})",
            lambda name: format_number(metrics[name].pass_rate),
        ),
    ]
    if common_mark is None:
        columns.append(("threshold", lambda name: _pass_mark(metrics[name]) or "differs"))
    columns += [
        ("95% interval", lambda name: format_interval(metrics[name].pass_rate_interval)),
        ("scored", lambda name: str(metrics[name].n_scored)),
        ("unscored", lambda name: str(metrics[name].n_unscored)),
    ]
    if report.totals.not_run:
        columns.append(("not run", lambda name: str(metrics[name].n_not_run)))
    if report.totals.not_applicable:
        columns.append(("not applicable", lambda name: str(metrics[name].n_not_applicable)))

    cells = [IntervalCell(metrics[name].pass_rate, metrics[name].pass_rate_interval) for name in report.metric_order]
    table = table_of(
        report.metric_order,
        columns,
        spare=("p95", "p50", "p5", "threshold", "unscored", "scored"),
        plots=drawn_columns(PlotColumn("pass-rate", cells, "95% interval")),
    )
    notes = [
        _where_line(report, name, where) for name in report.metric_order if (where := metrics[name].where) is not None
    ]
    return TextSection(("Per-metric aggregates",), table=table, after=notes, key="metrics")


def _corrected(report: Report) -> Iterator[TextSection]:
    """The numbers that labels of people correct, beside those of the judge."""
    corrected = {
        name: figures.pass_rate_corrected
        for name, figures in report.metrics.items()
        if figures.pass_rate_corrected is not None
    }
    if not corrected:
        return

    rows: list[TextLine] = []
    for name, rate in corrected.items():
        figures = report.metrics[name]
        rows.append(_corrected_row(name, "pass-rate", figures.pass_rate, rate, labels=rate.labels))
        if rate.mean is not None:
            rows.append(_corrected_row(name, "mean", figures.mean, rate.mean, labels=rate.labels))

    source = ", ".join(dict.fromkeys(rate.source for rate in corrected.values() if rate.source))
    yield TextSection(
        ("Corrected for the errors of judges",),
        [("What people would have found, by their labels of ", DataText(source), ".")],
        TextTable(("metric", "number", "by the judge", "corrected", "95% interval", "labels"), rows),
        [(MetricName(name), ": ", SentenceText(rate.note)) for name, rate in corrected.items() if rate.note],
        key="corrected",
    )


def _corrected_row(
    name: str, number: str, by_judge: float | None, corrected: CorrectedPassRate | CorrectedMean, *, labels: int
) -> TextLine:
    interval = _range(corrected.low, corrected.high)
    return (MetricName(name), number, format_number(by_judge), format_number(corrected.value), interval, str(labels))


def _range(low: float | None, high: float | None) -> str:
    return format_interval(None if low is None or high is None else Interval(low, high))


def _where_line(report: Report, name: str, where: Where) -> TextLine:
    """How many samples a metric applies to, and which these are."""
    figures = report.metrics[name]
    samples = f"{figures.n // report.totals.repetitions:,} of {plural(report.totals.samples, 'sample')}"
    return (MetricName(name), f" applies to {samples}: ", DataText(describe_where(where)), ".")


def _pass_mark(figures: RunMetricSummary) -> str | None:
    if figures.threshold is None:
        return None if figures.n_scored else "n/a"
    return f"{'>=' if figures.higher_is_better else '<='} {figures.threshold:.4g}"


def _macro_f1(report: Report) -> TextSection:
    lines: list[TextLine] = [("95% interval ", format_interval(report.macro_f1_interval), ".")]

    names = report.metric_order
    used = report.macro_f1_metrics
    if used is not None and len(used) < len(names):
        unused = ", ".join(name for name in names if name not in used)
        rests_on = f"It rests on {len(used)} of {plural(len(names), 'metric')}; these apply to no sample: "
        lines.append((rests_on, MetricName(unused), "."))

    every = "every metric that applies passed" if report.totals.not_applicable else "every metric passed"
    interval = format_interval(report.pass_rate_interval)
    lines.append((f"Run pass-rate ({every}): {format_number(report.pass_rate)}", f", 95% interval {interval}."))

    title = (f"Macro-F1 (avg pass-rate across all metrics): {format_number(report.macro_f1)}",)
    return TextSection(title, lines, key="macro-f1")


def _aggregate_sections(report: Report, whole: Aggregate) -> Iterator[TextSection]:
    """What an aggregator made of the metrics: by cohort, then by sample."""
    cohort_rows: list[TextLine] = [
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
    yield TextSection(
        (f"Aggregate success-rate: {whole.success_rate:.4f}",),
        [
            ("95% interval ", format_interval(whole.interval), "."),
            (mean,),
            ("Aggregator: ", DataText(whole.aggregator), "."),
        ],
        TextTable(("cohort", "samples", "success-rate", "95% interval", "mean score"), cohort_rows, ("samples",)),
        key="aggregate",
    )

    sample_rows = _aggregated_samples(report)
    n_samples = report.totals.samples if whole.samples is None else whole.samples
    yield TextSection(
        ("Aggregate by sample",),
        table=TextTable(("sample", "aggregate", "score"), sample_rows),
        after=_rest(n_samples, sample_rows),
        key="aggregate-samples",
        folds=True,
    )


def _aggregated_samples(report: Report) -> list[TextLine]:
    """The first samples whose aggregate did not succeed in every repetition, then others, as far as there is room."""
    failed: list[TextLine] = []
    passed: list[TextLine] = []
    for entry in report.samples:
        if entry.aggregate is None:
            continue
        status, rows = ("pass", passed) if entry.aggregate.success else ("fail", failed)
        if len(rows) < SHOWN:
            rows.append((DataText(entry.id), status, format_number(entry.aggregate.score)))
    return [*failed, *passed][:SHOWN]


def _cohorts(report: Report) -> TextSection:
    cohorts = report.cohort_list
    # Of a metric that gives 0 or 1 the mean is the pass-rate.
    means = {
        name: MetricName(f"{name} mean")
        for name in report.metric_order
        if any(cohort.metrics[name].mean != cohort.metrics[name].pass_rate for cohort in cohorts)
    }

    columns: list[Column[Cohort]] = [
        ("cohort", lambda cohort: DataText(cohort.label)),
        ("samples", lambda cohort: str(cohort.samples)),
        ("mean pass-rate", lambda cohort: format_number(cohort.macro_f1)),
        ("95% interval", lambda cohort: format_interval(cohort.macro_f1_interval)),
    ]
    for name in report.metric_order:
        columns.append((MetricName(name), partial(_cohort_pass_rate, name)))
        if name in means:
            columns.append((means[name], partial(_cohort_mean, name)))

    lines: list[TextLine] = [("The pass-rate of each metric, and their mean.",)]
    if means:
        lines = [("The pass-rate of each metric, the mean of its scores beside it, and the mean of the pass-rates.",)]
    if any(not cohort.metrics[name].n for cohort in cohorts for name in report.metric_order):
        lines.append(
            ("n/a: the metric applies to no sample of the cohort, and the mean pass-rate rests on the others.",)
        )

    cells = [IntervalCell(cohort.macro_f1, cohort.macro_f1_interval) for cohort in cohorts]
    table = table_of(
        cohorts,
        columns,
        spare=(*means.values(), *reversed(report.metric_order), "95% interval"),
        plots=drawn_columns(PlotColumn("mean pass-rate", cells, "95% interval")),
    )
    return TextSection(("Cohorts by metadata.tags",), lines, table, key="cohorts")


def _cohort_pass_rate(name: str, cohort: Cohort) -> str:
    pass_rate = cohort.metrics[name].pass_rate
    return ShadedNumber(format_number(pass_rate), pass_rate, is_rate=True)


def _cohort_mean(name: str, cohort: Cohort) -> str:
    return format_number(cohort.metrics[name].mean)


def _histograms(report: Report) -> TextSection:
    counts = {name: tuple(bar.count for bar in report.histograms[name]) for name in report.metric_order}

    head = ("metric", *(f"{tenth / 10:.1f}" for tenth in range(10)))
    rows = [(MetricName(name), *map(str, bars)) for name, bars in counts.items()]
    plots = drawn_columns(PlotColumn("scores", list(map(HistogramCell, counts.values())), "0.9"))

    return TextSection(
        ("Score histograms",),
        [("Scores from each number up to the next; the last column holds 1 too.",)],
        TextTable(head, rows, plots=plots),
        key="histograms",
    )


def _unstable(report: Report) -> TextSection:
    section = TextSection(("Unstable samples",), key="unstable", folds=True)
    precision = report.precision
    if precision is None:
        return section._replace(lines=[("Each sample ran once, so instability cannot be seen; use repetitions.",)])

    run = precision.run
    seen = (
        "An application may answer differently each time. "
        f"With {plural(report.totals.repetitions, 'repetition')}, chance "
        f"alone can move one sample's pass-rate by {precision.resolution:.4f} from one run to the next, "
        f"and the run's by {run.resolution:.4f}. "
    )
    needed = (
        f"To see a difference of {precision.target_delta:.4g} in one sample takes "
        f"{plural(precision.required_repetitions, 'repetition')}, in the run {run.required_repetitions:,}."
    )
    if not precision.unstable:
        none = "No sample passed in some repetitions and failed in others."
        return section._replace(lines=[(seen, needed), (none,)])

    unstable = (entry for entry in report.samples if entry.unstable)
    rows = [
        (DataText(entry.id), f"{entry.passed} of {entry.repetitions}", format_interval(entry.interval))
        for entry in islice(unstable, SHOWN)
    ]
    return section._replace(
        lines=[(seen, needed)],
        table=TextTable(("sample", "passed", "95% interval"), rows),
        after=_rest(precision.unstable, rows),
    )


def _failures(report: Report) -> TextSection:
    """What could not be scored, equal failures together, the most frequent first."""
    groups = group_failures(report.failure_list)
    if not groups:
        which = "every output that was run" if report.totals.not_run else "every output"
        return TextSection(("Failures",), [(f"None: {which} was scored.",)], key="failures")

    shown = groups[:SHOWN]
    bars = [BarCell(group.times / groups[0].times) for group in shown]
    table = table_of(
        shown,
        [
            ("times", lambda group: f"{group.times:,}"),
            ("metric", lambda group: "(target)" if group.metric is None else MetricName(group.metric)),
            ("cause", lambda group: group.cause),
            ("message", lambda group: "" if group.message is None else DataText(group.message)),
            ("samples", lambda group: DataText(", ".join(group.samples))),
        ],
        spare=("samples",),
        plots=[PlotColumn("how often", bars, "times")],
    )
    return TextSection(("Failures",), table=table, after=_rest(len(groups), table.rows), key="failures")


def _rest(count: int, rows: Sequence[TextLine]) -> list[TextLine]:
    return [(f"... and {count - len(rows):,} more.",)] if count > len(rows) else []
