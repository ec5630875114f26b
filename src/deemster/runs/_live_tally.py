"""Counting executions while they finish, so that a run need not be read again for its numbers."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.records import Execution, MetricCard
from deemster.results import MarkTable
from deemster.runs._final_marks import needs_settling
from deemster.runs.run_plan import Plan

_BATCH = 512


class LiveTally:
    """Counts the executions of a run as they come, where each is final when it comes.

    That is so where no mark is settled by all others, and none stands on a call of a model: who pays for a call that
    several share is known at the end.

    Args:
        tally: An empty tally that knows the samples' tags.
        plan: The run.
    """

    def __init__(self, tally: MarkTable, plan: Plan) -> None:
        self._tally = tally
        self._counts = not plan.scorers and not needs_settling(plan.metrics)
        self._waiting: list[Execution] = []

    @property
    def counts(self) -> bool:
        """Whether executions are counted."""
        return self._counts

    def resume(self, cards: Sequence[MetricCard]) -> bool:
        """Whether executions that are kept of a run are to be noted; where not, none is counted from here on.

        Args:
            cards: The metrics of the run that is gone on with.
        """
        tally = self._tally
        # What is kept is read without details, which aggregators look at, and which tell of the parts of a metric.
        needs_details = tally.aggregates is not None or bool(tally.criteria)
        self._counts = self._counts and tally.cards == tuple(cards) and not needs_details
        return self._counts

    def note(self, execution: Execution) -> None:
        """Count an execution that is kept of a run."""
        self._waiting.append(execution)
        if len(self._waiting) == _BATCH:
            self.add(self._waiting)
            self._waiting = []

    def add(self, executions: Sequence[Execution]) -> None:
        """Count executions, each once.

        Raises:
            ConfigurationError: The aggregator does not fit a mark.
        """
        self._tally.add(executions)
        if [mark for execution in executions for mark in execution.marks if mark.calls]:
            self._counts = False

    def tally(self) -> MarkTable:
        """The tally with every execution of the run in it, or with none where some are missing."""
        if self._waiting:
            self.add(self._waiting)
            self._waiting = []
        tally = self._tally
        is_whole = self._counts and tally.counted == tally.samples * tally.repetitions
        return tally if is_whole else tally.empty_copy()
