"""The work of a plan, item by item: what is to be answered, and which marks are still to be made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from deemster.datasets.where_condition import applies
from deemster.engine.run_plan import Plan
from deemster.records import NOT_APPLICABLE, Execution, Mark, Output, Sample, TargetFailure
from deemster.records.shared_call_cost import add_earlier_calls

Answer: TypeAlias = Output | TargetFailure


class WorkItem(NamedTuple):
    """One sample in one repetition that is still to be run, or to be finished.

    Attributes:
        position: The sample's place in the dataset, from 0.
        sample: The sample.
        repetition: From 0.
        answer: What the target said, where that is known; then it is not called.
        marks: The marks that are known, in the order of the metrics; only those that are None are made.
        earlier: Marks of an earlier attempt, in the order of the metrics: those that are made add to what they cost.
    """

    position: int
    sample: Sample
    repetition: int
    answer: Answer | None = None
    marks: tuple[Mark | None, ...] | None = None
    earlier: tuple[Mark, ...] | None = None

    def is_missing(self, column: int) -> bool:
        """Whether the mark of one of the plan's metrics is still to be made."""
        return self.marks is None or self.marks[column] is None

    def finish(self, answer: Answer, marks: tuple[Mark, ...]) -> Execution:
        """The execution that it becomes, with the cost of earlier attempts.

        Args:
            answer: What the target said.
            marks: The marks of all metrics, new ones and those that were known.
        """
        if self.earlier is not None:
            marks = tuple(
                add_earlier_calls(mark, earlier) if self.is_missing(column) else mark
                for column, (mark, earlier) in enumerate(zip(marks, self.earlier, strict=True))
            )
        return Execution(self.position, self.sample.id, self.repetition, answer, marks)


class AnsweredBatch(NamedTuple):
    """Work items, and the target's answer to each."""

    works: Sequence[WorkItem]
    answers: Sequence[Answer]


def planned_work(plan: Plan) -> Iterator[WorkItem]:
    """All work of a plan: the whole dataset, repetition by repetition."""
    for repetition in range(plan.repetitions):
        for position, sample in enumerate(plan.dataset):
            yield WorkItem(position, sample, repetition)


def leave_out(plan: Plan, works: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """Work in which the marks of metrics that do not apply to the sample are known already, so that none is made."""
    conditions = {column: condition for column, condition in enumerate(plan.where) if condition is not None}

    for work in works:
        outside = {
            column
            for column, condition in conditions.items()
            if work.is_missing(column) and not applies(condition, work.sample)
        }
        if not outside:
            yield work
            continue
        known = work.marks or (None,) * len(plan.metrics)
        marks = tuple(NOT_APPLICABLE if column in outside else mark for column, mark in enumerate(known))
        yield work._replace(marks=marks)
