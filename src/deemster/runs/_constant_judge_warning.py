"""Noticing a judge that says the same of everything."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.records import Execution, MetricScore
from deemster.runs.run_plan import Plan

FEWEST = 10
REASON = "judge_reason"


class ConstantJudgeWatch:
    """Watches the marks of a run go by, and remembers of each judge only whether it ever said something else.

    Args:
        plan: The run.
    """

    def __init__(self, plan: Plan) -> None:
        self._watched = [
            _Watch(place, metric.name) for place, metric in enumerate(plan.metrics) if hasattr(metric, "script")
        ]

    def add(self, executions: Sequence[Execution]) -> None:
        """Look at executions as they finish."""
        for watch in self._watched:
            if not watch.varies:
                watch.add(executions)

    def warnings(self) -> list[str]:
        """What to say of judges that gave one score and one reason for every sample."""
        return [
            f"{watch.name}: the judge gave the same score and the same reason for all of {watch.samples} samples. "
            "Read a few of its replies: it may not look at what it is given."
            for watch in self._watched
            if not watch.varies and watch.samples >= FEWEST
        ]


class _Watch:
    """What one metric's judge has said so far."""

    def __init__(self, place: int, name: str) -> None:
        self.place, self.name = place, name
        self.samples = 0
        self.varies = False
        self._first: tuple[float, object] | None = None

    def add(self, executions: Sequence[Execution]) -> None:
        for execution in executions:
            mark = execution.marks[self.place]
            if not isinstance(mark, MetricScore) or REASON not in mark.details:
                continue
            said = (mark.score, mark.details[REASON])
            if self._first is None:
                self._first = said
            if said != self._first:
                self.varies = True
                return
            # The same sample asked about again is no second sample.
            self.samples += execution.repetition == 0
