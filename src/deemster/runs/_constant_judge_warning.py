"""Warns of a judge that gives the same score and reason for everything."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.records import Execution, MetricScore
from deemster.runs.run_plan import Plan

FEWEST = 10
REASON = "judge_reason"


class ConstantJudgeWatch:
    """Sees the marks of a run go by, and remembers of each judge only its first verdict and whether it ever varied.

    Args:
        plan: The run.
    """

    def __init__(self, plan: Plan) -> None:
        judges = [(place, metric.name) for place, metric in enumerate(plan.metrics) if hasattr(metric, "script")]
        self._watched = [_WatchedJudge(place, name) for place, name in judges]

    def add(self, executions: Sequence[Execution]) -> None:
        """Look at executions as they finish."""
        for judge in self._watched:
            for execution in executions:
                if not judge.varies:
                    judge.add(execution)

    def warnings(self) -> list[str]:
        """A warning for every judge that gave one score and one reason for every sample."""
        return [
            f"{judge.name}: the judge gave the same score and the same reason for all of {judge.samples} samples. "
            "Read a few of its replies: it may not look at what it is given."
            for judge in self._watched
            if not judge.varies and judge.samples >= FEWEST
        ]


class _WatchedJudge:
    """What one metric's judge has said so far."""

    def __init__(self, place: int, name: str) -> None:
        self.place, self.name = place, name
        self.samples, self.varies = 0, False
        self._first: tuple[float, object] | None = None

    def add(self, execution: Execution) -> None:
        mark = execution.marks[self.place]
        if isinstance(mark, MetricScore) and REASON in mark.details:
            verdict = (mark.score, mark.details[REASON])
            self._first = self._first or verdict
            self.varies = verdict != self._first
            # A repetition of a sample is no further sample.
            self.samples += execution.repetition == 0
