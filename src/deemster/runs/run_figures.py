"""The figures of a run that the list of runs shows, kept with it, so that a list reads no marks."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from deemster.stats import Interval
from deemster.store import RunRow

_KEY = "figures"
# What a run is without figures: it has not ended, or its marks have changed since.
NO_FIGURES: Mapping[str, Any] = {_KEY: None}


class MetricFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a metric came to in a run: its mean score, and its pass-rate with the 95 % interval."""

    mean: float | None
    pass_rate: float | None
    pass_rate_interval: Interval | None


class EarlierOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How often a metric passed, failed or gave no score, as earlier versions keep it."""

    metric: str
    passed: int
    failed: int
    unscored: dict[str, int]

    @property
    def figures(self) -> MetricFigures:
        """What the metric came to, as far as counts say it."""
        n = self.passed + self.failed + sum(self.unscored.values())
        return MetricFigures(mean=None, pass_rate=self.passed / n if n else None, pass_rate_interval=None)


class RunFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a run came to.

    Attributes:
        macro_f1: The mean pass-rate of its metrics.
        gate: The gate's decision, `skipped` where every rule was; None where no rule is declared.
        cost_usd: What its model calls cost; None where none has a price.
        is_whole_cost: Whether every call has a price.
        has_columns: Whether the columns that are kept of its marks are those of its report.
        macro_f1_interval: The 95 % interval of macro-F1; runs of earlier versions do not keep it, nor what follows.
        pass_rate: The share of its executions in which every metric passed.
        pass_rate_interval: Its 95 % interval.
        metrics: Each metric in short.
        outcomes: What earlier versions keep of the metrics.
    """

    macro_f1: float | None
    gate: str | None
    cost_usd: Decimal | None
    is_whole_cost: bool
    has_columns: bool = False
    macro_f1_interval: Interval | None = None
    pass_rate: float | None = None
    pass_rate_interval: Interval | None = None
    metrics: dict[str, MetricFigures] = {}
    outcomes: tuple[EarlierOutcome, ...] = ()

    def facts(self) -> dict[str, Any]:
        """What a store keeps of them, as plain JSON."""
        return {_KEY: msgspec.to_builtins(self)}


def stored_figures(run: RunRow) -> RunFigures | None:
    """The figures that are stored with a run; None where there are none, as of a run that has not ended."""
    if run.status == "running":
        return None
    try:
        figures = msgspec.convert(run.facts.get(_KEY), RunFigures | None)
    except msgspec.ValidationError:
        # An imported run may hold anything. Its figures can be computed from its marks.
        return None
    if figures is None or figures.metrics:
        return figures
    return msgspec.structs.replace(figures, metrics={one.metric: one.figures for one in figures.outcomes})
