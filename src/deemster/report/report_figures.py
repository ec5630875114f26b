"""The figures that are kept with a run, from its report: the marks stay the only source."""

from __future__ import annotations

from typing import Any

from deemster.gate import GateDecision
from deemster.report import Report
from deemster.results.metric_summary import RunMetricSummary
from deemster.runs.run_figures import MetricFigures, RunFigures


def figures_facts(report: Report) -> dict[str, Any]:
    """What a store keeps of a report beside its columns, as plain JSON."""
    cost = report.cost
    is_known = cost is not None and (cost.complete or any(model.cost_usd is not None for model in cost.models))
    figures = RunFigures(
        macro_f1=report.macro_f1,
        gate=None if report.gate is None else _gate_figure(report.gate),
        cost_usd=cost.total_usd if cost is not None and is_known else None,
        is_whole_cost=cost is None or cost.complete,
        has_columns=True,
        macro_f1_interval=report.macro_f1_interval,
        pass_rate=report.pass_rate,
        pass_rate_interval=report.pass_rate_interval,
        metrics={name: _metric_figures(report.metrics[name]) for name in report.metric_order},
    )
    return figures.facts()


def _gate_figure(gate: GateDecision) -> str | None:
    if not gate.checks:
        return None
    return gate.decision if gate.is_decided else "skipped"


def _metric_figures(figures: RunMetricSummary) -> MetricFigures:
    return MetricFigures(mean=figures.mean, pass_rate=figures.pass_rate, pass_rate_interval=figures.pass_rate_interval)
