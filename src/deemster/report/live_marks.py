"""Counts the marks of a run while it is under way."""

from __future__ import annotations

from collections.abc import Sequence

from deemster.engine.run_plan import Plan
from deemster.engine.settle_marks import needs_settling
from deemster.records import Execution, MetricCard
from deemster.report.build_report import BATCH, RunRecord
from deemster.results.mark_table import MarkTable


class LiveMarks:
    """Counts executions as they finish, so that the report need not read them again.

    It counts only where every execution is final when it finishes: no metric settles its marks at the end, and no mark
    comes from a model call, since the run must end before it is clear who pays for a shared call. Where it does not
    count, it still tries the aggregator on every execution, so that one that does not fit ends the run early.

    Args:
        table: An empty table of marks that knows the samples' tags.
        plan: The run.
    """

    def __init__(self, table: MarkTable, plan: Plan) -> None:
        self._table, self._dataset, settles = table, plan.dataset, needs_settling(plan.metrics)
        self._counts = not plan.asking and not settles
        self._trial = None if settles else table.aggregates
        self._waiting: list[Execution] = []

    def resume(self, cards: Sequence[MetricCard]) -> bool:
        """Whether to count the stored executions of a resumed run too; otherwise it counts nothing any more.

        Args:
            cards: The metrics of the resumed run.
        """
        self._counts = self._counts and self._table.cards == tuple(cards)
        return self._counts

    def note(self, execution: Execution) -> None:
        """Count a stored execution."""
        self._waiting.append(execution)
        if len(self._waiting) == BATCH:
            self.add(self._waiting)
            self._waiting = []

    def add(self, executions: Sequence[Execution]) -> None:
        """Count executions that finished, each once.

        Raises:
            ConfigurationError: The aggregator does not fit a mark.
        """
        if self._counts:
            self._table.add(executions)
            self._counts = not any(mark.calls for execution in executions for mark in execution.marks)
        elif self._trial is not None:
            self._trial.add(executions)

    def table(self, record: RunRecord) -> MarkTable | None:
        """The table with every execution of the run counted, or with none where some are missing.

        Args:
            record: The run. The report of one that was resumed with changes shows the stored samples: None then.
        """
        if record.samples is not self._dataset or self._table.cards != tuple(record.cards):
            return None
        if self._waiting:
            self.add(self._waiting)
            self._waiting = []
        table = self._table
        is_complete = self._counts and table.counted == table.samples * table.repetitions
        return table if is_complete else table.empty_copy()
