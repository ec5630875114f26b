"""The sections of an evaluation report: what it says, before a renderer lays it out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from deemster.datasets.where_condition import describe_where
from deemster.errors import plural
from deemster.records import Where
from deemster.report.aggregate_sections import aggregate_sections
from deemster.report.attack_sections import attack_sections
from deemster.report.corrected_sections import corrected_sections
from deemster.report.criteria_sections import criteria_sections
from deemster.report.failing_samples import describe_passed, failing_section
from deemster.report.gate_sections import gate_section, gate_verdict
from deemster.report.panel_lines import panel_lines, worth_lines
from deemster.report.row_limit import MOST_ROWS, more_line
from deemster.report.unscored_causes import group_failures
from deemster.report.usage_sections import usage_section
from deemster.results.metric_summary import RunMetricSummary
from deemster.results.repetition_precision import Precision
from deemster.results.run_summary import Cohort, Totals
from deemster.text.number_format import format_interval, format_number
from deemster.text.table_plots import BarCell, HistogramCell, IntervalCell, PlotColumn, drawn_columns
from deemster.text.text_sections import (
    Column,
    DataText,
    MetricName,
    ShadedNumber,
    TextLine,
    TextSection,
    TextTable,
    table_of,
)

if TYPE_CHECKING:
    from deemster.report.report_document import Report


def report_sections(report: Report) -> list[TextSection]:
    """The parts of a report, in order."""
    return [
        _headline(report),
        *_gate(report),
        *attack_sections(report.adversarial),
        _metrics(report),
        *corrected_sections(report),
        *criteria_sections(report),
        _macro_f1(report),
        *aggregate_sections(report),
        _cohorts(report),
        _histograms(report),
        usage_section(report),
        _unstable(report),
        _failures(report),
        failing_section(report),
    ]


def _headline(report: Report) -> TextSection:
    """What one must know before any number: how the run ended, what it is about, what the gate says."""
    run = report.run
    lines: list[TextLine] = []
    if run.status != "complete":
        reason: TextLine = (": ", DataText(run.reason)) if run.reason else (".",)
        lines.append((f"Warning: this run is {run.status}", *reason))
    lines += [*panel_lines(report), *worth_lines(report)]

    counts = ", ".join(_sample_counts(report.totals))
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


def _gate(report: Report) -> Iterator[TextSection]:
    if report.gate is not None:
        yield gate_section(report.gate, report.run.part)


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


def _metrics(report: Report) -> TextSection:
    """The numbers of each metric; one threshold of all goes into the heading, several have a column."""
    metrics = report.metrics
    thresholds = {_threshold(metrics[name]) for name in report.metric_order}
    common_threshold = thresholds.pop() if len(thresholds) == 1 else None

    columns: list[Column[str]] = [
        ("metric", MetricName),
        ("mean", lambda name: format_number(metrics[name].mean)),
        ("p5", lambda name: format_number(metrics[name].p5)),
        ("p50", lambda name: format_number(metrics[name].p50)),
        ("p95", lambda name: format_number(metrics[name].p95)),
        (
            "pass-rate" if common_threshold is None else f"pass-rate ({common_threshold})",
            lambda name: format_number(metrics[name].pass_rate),
        ),
    ]
    if common_threshold is None:
        columns.append(("threshold", lambda name: _threshold(metrics[name]) or "differs"))
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


def _where_line(report: Report, name: str, where: Where) -> TextLine:
    """How many samples a metric applies to, and which these are."""
    figures = report.metrics[name]
    samples = f"{figures.n // report.totals.repetitions:,} of {plural(report.totals.samples, 'sample')}"
    return (MetricName(name), f" applies to {samples}: ", DataText(describe_where(where)), ".")


def _threshold(figures: RunMetricSummary) -> str | None:
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


def _cohorts(report: Report) -> TextSection:
    """The pass-rates of samples with one tag, by metric and in the mean."""
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
    """The samples that pass only sometimes, and what chance alone can do."""
    section = TextSection(("Unstable samples",), key="unstable", folds=True)
    precision = report.precision
    if precision is None:
        return section._replace(lines=[("Each sample ran once, so instability cannot be seen; use repetitions.",)])

    run = precision.run
    noise_note = (
        "An application may answer differently each time. "
        f"With {plural(report.totals.repetitions, 'repetition')}, chance "
        f"alone can move one sample's pass-rate by {precision.resolution:.4f} from one run to the next, "
        f"and the run's by {run.resolution:.4f}. "
    )
    needed = (
        f"To see a difference of {precision.target_delta:.4g} in one sample takes "
        f"{plural(precision.required_repetitions, 'repetition')}, in the run {run.required_repetitions:,}."
    )
    repeated = _repeated_lines(precision)
    if not precision.unstable:
        none = "No sample passed in some repetitions and failed in others."
        return section._replace(lines=[*repeated, (noise_note, needed), (none,)])

    unstable = (entry for entry in report.samples if entry.unstable)
    rows = [
        (DataText(entry.id), f"{entry.passed} of {entry.repetitions}", format_interval(entry.interval))
        for entry in islice(unstable, MOST_ROWS)
    ]
    return section._replace(
        lines=[*repeated, (noise_note, needed)],
        table=TextTable(("sample", "passed", "95% interval"), rows),
        after=more_line(precision.unstable, rows),
    )


def _repeated_lines(precision: Precision) -> list[TextLine]:
    """How often at least one of all repetitions passes, and how often all do; nothing in reports that do not know."""
    if not precision.repeated:
        return []
    passes = precision.repeated[-1]
    at_k, hat_k = format_number(passes.pass_at_k), format_number(passes.pass_hat_k)
    return [
        (
            f"At least one of {passes.k} repetitions passes: pass@{passes.k} {at_k}, ",
            f"95% interval {format_interval(passes.pass_at_k_interval)}. ",
            f"All of them pass: pass^{passes.k} {hat_k}, ",
            f"95% interval {format_interval(passes.pass_hat_k_interval)}.",
        )
    ]


def _failures(report: Report) -> TextSection:
    """What could not be scored, equal failures together, the most frequent first."""
    groups = group_failures(report.failure_list)
    if not groups:
        which = "every output that was run" if report.totals.not_run else "every output"
        return TextSection(("Failures",), [(f"None: {which} was scored.",)], key="failures")

    shown = groups[:MOST_ROWS]
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
    return TextSection(("Failures",), table=table, after=more_line(len(groups), table.rows), key="failures")
