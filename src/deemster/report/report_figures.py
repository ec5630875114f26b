"""The figures that are kept with a run, from its report: the marks stay the only source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deemster.records import CAUSES
from deemster.report import Report
from deemster.runs.run_figures import MetricFigures, RunFigures
from deemster.store.run_facts import PassCounts


def figures_facts(report: Report, *, has_columns: bool = False) -> dict[str, Any]:
    """What a store keeps of a report, as plain JSON."""
    cost = report.cost
    is_known = cost is not None and (cost.complete or any(model.cost_usd is not None for model in cost.models))
    figures = RunFigures(
        macro_f1=report.macro_f1,
        gate=report.gate.decision if report.gate is not None and report.gate.checks else None,
        cost_usd=cost.total_usd if cost is not None and is_known else None,
        is_whole_cost=cost is None or cost.complete,
        outcomes=tuple(_outcomes(report)),
        has_columns=has_columns,
        macro_f1_interval=report.macro_f1_interval,
        pass_rate=report.pass_rate,
        pass_rate_interval=report.pass_rate_interval,
        metrics={
            name: MetricFigures(mean=one.mean, pass_rate=one.pass_rate, pass_rate_interval=one.pass_rate_interval)
            for name, one in report.metrics.items()
        },
    )
    return figures.facts()


def _outcomes(report: Report) -> Sequence[PassCounts]:
    found = []
    for name in report.metric_order:
        figures = report.metrics[name]
        causes = {**figures.unscored_by_cause, "not_run": figures.n_not_run}
        unscored: dict[str, int] = {cause: causes[cause] for cause in CAUSES if causes.get(cause)}
        failed = figures.n_scored - figures.n_passed
        found.append(PassCounts(name, figures.n_passed, failed, unscored, figures.n_not_applicable))
    return found
