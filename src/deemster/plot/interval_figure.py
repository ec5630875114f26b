"""Draws values with their intervals, one line each: pass-rates, changes, or kappas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from deemster.alignment import MetricsResult
from deemster.alignment.trust_verdict import criterion_interval, criterion_kappa, kappa_interval
from deemster.errors import InputError
from deemster.plot._notebook_figure import BETTER, INK, WORSE, label, open_axes, refuse
from deemster.report import ComparisonReport, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class IntervalRow(NamedTuple):
    """A value with its interval and its name."""

    name: str
    value: float | None
    ends: tuple[float, float] | None


def intervals(source: Report | ComparisonReport | MetricsResult, *, ax: Axes | None = None) -> Figure:
    """Draw values with their intervals: where the true value may lie.

    Of a report it draws the pass-rate of each metric, macro-F1 and the pass-rate of the run. Of a comparison it draws
    the change of each of these and of each cohort: blue where the whole interval is better, orange where it is
    worse. Of an alignment it draws the kappa of each criterion and their mean.

    Args:
        source: A report, a comparison of two runs, or a result of alignment.
        ax: The axes to draw on; a figure of its own unless given.

    Raises:
        InputError: It is none of these, or there is nothing to draw.
        MissingExtraError: matplotlib is not installed.
    """
    if isinstance(source, Report):
        rows, title, scale = [*_report_rows(source)], "Pass-rates with 95% intervals", (0.0, 1.0)
    elif isinstance(source, ComparisonReport):
        rows, title, scale = [*_comparison_rows(source)], f"Changes with {source.confidence:.0%} intervals", None
    elif isinstance(source, MetricsResult):
        rows, title, scale = [*_alignment_rows(source)], "Agreement with people (kappa)", None
    else:
        raise refuse(source, "a report, a comparison or a result of alignment")
    known = [(row, row.value) for row in rows if row.value is not None]
    if not known:
        raise InputError("There is nothing to draw: no value is defined.")
    figure, axes = open_axes(ax, height=1.2 + 0.35 * len(known))
    places = range(len(known) - 1, -1, -1)
    is_change = isinstance(source, ComparisonReport)
    for place, (row, value) in zip(places, known, strict=True):
        colour = _colour(row) if is_change else INK
        if row.ends is not None:
            axes.plot(row.ends, (place, place), color=colour, linewidth=2, marker="|", markersize=8)
        axes.plot([value], [place], color=colour, marker="o", markersize=6)
    if scale is not None:
        axes.set_xlim(*scale)
    else:
        axes.axvline(0.0, color="0.4", linewidth=1)
    if isinstance(source, ComparisonReport) and source.margin is not None:
        axes.axvline(-source.margin, color=WORSE, linewidth=1, linestyle="--")
    axes.set_yticks(list(places), [label(row.name) for row, _ in known])
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)
    return figure


def _colour(row: IntervalRow) -> str:
    if row.ends is None or row.ends[0] <= 0 <= row.ends[1]:
        return INK
    return WORSE if row.ends[1] < 0 else BETTER


def _report_rows(report: Report) -> Iterator[IntervalRow]:
    yield IntervalRow("macro-F1", report.macro_f1, report.macro_f1_interval)
    yield IntervalRow("every metric passed", report.pass_rate, report.pass_rate_interval)
    for name in report.metric_order:
        yield IntervalRow(name, report.metrics[name].pass_rate, report.metrics[name].pass_rate_interval)


def _comparison_rows(comparison: ComparisonReport) -> Iterator[IntervalRow]:
    numbers = {"macro-F1": comparison.macro_f1, "every metric passed": comparison.pass_rate}
    numbers |= {name: metric.pass_rate for name, metric in comparison.metrics.items()}
    numbers |= {f"macro-F1 of {cohort.label}": cohort.macro_f1 for cohort in comparison.cohorts}
    for name, number in numbers.items():
        yield IntervalRow(name, number.difference, number.interval)


def _alignment_rows(result: MetricsResult) -> Iterator[IntervalRow]:
    yield IntervalRow("mean kappa", result.mean_kappa, kappa_interval(result))
    for part in result.per_criterion:
        ci = criterion_interval(part)
        yield IntervalRow(part.name, criterion_kappa(part), None if ci is None else (ci.lower, ci.upper))
