"""The figures of a run that the list of runs shows, kept with it, so that a list reads no marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from deemster.records import CAUSES
from deemster.report import Report
from deemster.runs.run_plan import Evaluation
from deemster.stats import Interval
from deemster.store import RunRow
from deemster.store.run_facts import PassCounts
from deemster.targets.saved_outputs import SavedOutputs

_KEY = "figures"
# What a run is without figures: it has not ended, or its marks have changed since.
NO_FIGURES: Mapping[str, Any] = {_KEY: None}


class MetricFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric came to in a run: its mean score, and its pass-rate with the 95 % interval."""

    mean: float | None
    pass_rate: float | None
    pass_rate_interval: Interval | None


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        macro_f1: The mean pass-rate of its metrics.
        gate: The gate's decision; None where no rule is declared.
        cost_usd: What its model calls cost; None where none has a price.
        is_whole_cost: Whether every call has a price.
        outcomes: How often each metric passed, failed or gave no score.
        has_columns: Whether the columns that are kept of its marks are those of its report.
        macro_f1_interval: The 95 % interval of macro-F1; runs of earlier versions do not keep it, nor what follows.
        pass_rate: The share of its executions in which every metric passed.
        pass_rate_interval: Its 95 % interval.
        metrics: Each metric in short.
    """

    macro_f1: float | None
    gate: str | None
    cost_usd: Decimal | None
    is_whole_cost: bool
    outcomes: tuple[PassCounts, ...]
    has_columns: bool = False
    macro_f1_interval: Interval | None = None
    pass_rate: float | None = None
    pass_rate_interval: Interval | None = None
    metrics: dict[str, MetricFigures] = {}


def figures_facts(report: Report, *, has_columns: bool = False) -> dict[str, Any]:
    """What a store keeps of a report, as plain JSON. The marks stay the only source: these are computed from them."""
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
    return {_KEY: msgspec.to_builtins(figures)}


def _outcomes(report: Report) -> Sequence[PassCounts]:
    found = []
    for name in report.metric_order:
        figures = report.metrics[name]
        causes = {**figures.unscored_by_cause, "not_run": figures.n_not_run}
        unscored: dict[str, int] = {cause: causes[cause] for cause in CAUSES if causes.get(cause)}
        failed = figures.n_scored - figures.n_passed
        found.append(PassCounts(name, figures.n_passed, failed, unscored, figures.n_not_applicable))
    return found


def stored_figures(run: RunRow) -> RunFigures | None:
    """The figures that are stored with a run; None where there are none, as of a run that has not ended."""
    if run.status == "running":
        return None
    try:
        return msgspec.convert(run.facts.get(_KEY), RunFigures | None)
    except msgspec.ValidationError:
        # An imported run may hold anything. Its figures can be computed from its marks.
        return None


def target_name(job: Evaluation) -> str | None:
    """The target of a job in a few words: a function, a URL, a command, a file of outputs; None without a name."""
    target = job.plan.target
    if isinstance(target, SavedOutputs):
        return None if target.path is None else Path(target.path).name
    identity: Mapping[str, Any] = getattr(target, "identity", None) or {}
    for kind in ("python", "http", "command"):
        if kind in identity:
            return _name(identity[kind])
    return type(target).__name__


def _name(value: Any) -> str | None:
    """The name in what identifies a target: a text, or the URL or the words of a command."""
    if isinstance(value, Mapping):
        value = value.get("url") or value.get("argv")
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else None
