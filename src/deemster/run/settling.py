"""Marks that are final only once all of a run are there, such as those of a panel whose weights are learned."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from deemster.records import Execution
from deemster.run.plan import Plan


class Settling:
    """Keeps the executions of a run back until all are there, where a metric needs that.

    Args:
        plan: The run.
        sink: Takes executions whose marks are final.
    """

    def __init__(self, plan: Plan, sink: Callable[[Sequence[Execution]], None]) -> None:
        self.late = [(place, scorer) for place, scorer in enumerate(plan.metrics) if getattr(scorer, "settles", False)]
        self.kept: list[Execution] = []
        self._sink = sink

    def add(self, executions: Sequence[Execution]) -> None:
        """Take executions as they finish."""
        if self.late:
            self.kept.extend(executions)
        else:
            self._sink(executions)

    def finish(self) -> None:
        """Settle what was kept back, and hand it on."""
        if not self.kept:
            return
        # By position, so that the order in which samples finished changes nothing.
        self.kept.sort(key=lambda execution: (execution.repetition, execution.position))
        rows = [list(execution.marks) for execution in self.kept]
        for place, scorer in self.late:
            for row, mark in zip(rows, scorer.settle([row[place] for row in rows]), strict=True):  # type: ignore[attr-defined]
                row[place] = mark
        self._sink(
            [
                msgspec.structs.replace(execution, marks=tuple(row))
                for execution, row in zip(self.kept, rows, strict=True)
            ]
        )
        self.kept = []
