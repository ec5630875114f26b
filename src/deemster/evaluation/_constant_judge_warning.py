"""Warns of a judge that gives every sample the same score and the same reason."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.engine.run_plan import Plan
from deemster.records import MetricScore
from deemster.records.execution import Execution

# A judge that says the same of so many samples is reported.
FEWEST_SAMPLES = 10
_REASON = "judge_reason"


class ConstantJudgeWatch:
    """Watches the marks of a run for judges that give the same score and reason for everything.

    Args:
        plan: The run.
    """

    def __init__(self, plan: Plan) -> None:
        # Those that have not varied yet, by place: their names, first verdicts and numbers of samples.
        self._names = {place: metric.name for place, metric in enumerate(plan.metrics) if hasattr(metric, "script")}
        self._first: dict[int, tuple[float, object]] = {}
        self._samples = dict.fromkeys(self._names, 0)

    def add(self, executions: Sequence[Execution]) -> None:
        """Look at executions as they are counted."""
        for place in tuple(self._names):
            for execution in executions:
                mark = execution.marks[place]
                if not isinstance(mark, MetricScore) or _REASON not in mark.details:
                    continue
                verdict = (mark.score, mark.details[_REASON])
                if self._first.setdefault(place, verdict) != verdict:
                    del self._names[place]
                    break
                # A repetition of a sample is no further sample.
                self._samples[place] += execution.repetition == 0

    def warnings(self) -> list[str]:
        """A warning for every judge that gave one score and one reason for every sample."""
        return [
            f"{name}: the judge gave the same score and the same reason for all of {self._samples[place]} samples. "
            "Read a few of its replies: it may not look at what it is given."
            for place, name in self._names.items()
            if self._samples[place] >= FEWEST_SAMPLES
        ]
