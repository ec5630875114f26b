"""Draws reports and comparisons: histograms of scores, a heat map of cohorts, the changes of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deemster.errors import InputError, plural
from deemster.plot._notebook_figure import BETTER, INK, WORSE, label, open_axes, open_panels, refuse
from deemster.report import ComparisonReport, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def histograms(report: Report) -> Figure:
    """Draw the scores of each metric as a histogram of ten bars.

    Args:
        report: The report of a run.

    Raises:
        InputError: It is no report, or it has no metric.
        MissingExtraError: matplotlib is not installed.
    """
    if not isinstance(report, Report):
        raise refuse(report, "a report")
    if not report.metric_order:
        raise InputError("There is nothing to draw: the report has no metric.")
    columns = min(3, len(report.metric_order))
    rows = -(-len(report.metric_order) // columns)
    panels, figure = open_panels(len(report.metric_order), width=3.2 * columns, height=2.4 * rows, columns=columns)
    for axes, name in zip(panels, report.metric_order, strict=True):
        bars = report.histograms[name]
        axes.bar([bar.low + 0.05 for bar in bars], [bar.count for bar in bars], width=0.09, color=INK)
        axes.set_xlim(0.0, 1.0)
        axes.set_title(f"{label(name)} ({report.metrics[name].n_scored:,} scored)", fontsize=9)
    return figure


def cohort_heatmap(report: Report, *, ax: Axes | None = None) -> Figure:
    """Draw the pass-rate of each metric in each cohort, with the numbers in the cells.

    Args:
        report: The report of a run.
        ax: The axes to draw on; a figure of its own unless given.

    Raises:
        InputError: It is no report, or it has no cohort.
        MissingExtraError: matplotlib is not installed.
    """
    if not isinstance(report, Report):
        raise refuse(report, "a report")
    if not report.cohort_list:
        raise InputError("There is nothing to draw: the report has no cohort.")
    names, cohorts = report.metric_order, report.cohort_list
    figure, axes = open_axes(ax, width=2.5 + 1.1 * len(names), height=1.5 + 0.4 * len(cohorts))
    rates = [[cohort.metrics[name].pass_rate for name in names] for cohort in cohorts]
    shades = [[float("nan") if rate is None else rate for rate in row] for row in rates]
    axes.imshow(shades, vmin=0.0, vmax=1.0, cmap="cividis", aspect="auto")
    for row, found in enumerate(rates):
        for column, rate in enumerate(found):
            colour = "black" if rate is None or rate > 0.5 else "white"
            axes.text(column, row, "n/a" if rate is None else f"{rate:.2f}", ha="center", va="center", color=colour)
    axes.set_xticks(range(len(names)), [label(name) for name in names], rotation=30, ha="right")
    axes.set_yticks(range(len(cohorts)), [f"{label(cohort.label)} ({cohort.samples:,})" for cohort in cohorts])
    axes.set_title("Pass-rate by cohort and metric")
    return figure


def paired_differences(comparison: ComparisonReport, *, ax: Axes | None = None) -> Figure:
    """Draw the change of each sample that changed: its mean score now minus before, in order.

    Args:
        comparison: The comparison of two runs.
        ax: The axes to draw on; a figure of its own unless given.

    Raises:
        InputError: It is no comparison, or no sample that both runs scored has changed.
        MissingExtraError: matplotlib is not installed.
    """
    if not isinstance(comparison, ComparisonReport):
        raise refuse(comparison, "a comparison of two runs")
    pairs = [
        (comparison.mean_quality(change.baseline), comparison.mean_quality(change.candidate))
        for change in comparison.changes
        if change.baseline is not None and change.candidate is not None
    ]
    changes = sorted(now - before for before, now in pairs if before is not None and now is not None)
    if not changes:
        raise InputError("There is nothing to draw: no sample that both runs scored has changed.")
    figure, axes = open_axes(ax)
    colours = [WORSE if change < 0 else BETTER if change > 0 else INK for change in changes]
    axes.bar(range(len(changes)), changes, color=colours, width=0.8)
    axes.axhline(0.0, color="0.4", linewidth=1)
    axes.set_ylabel("mean score now minus before")
    axes.set_xlabel("samples that changed, the worst first")
    stable = comparison.statuses.get("stable", 0)
    axes.set_title(f"{plural(len(changes), 'sample')} changed, {stable:,} did not")
    return figure
