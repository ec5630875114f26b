"""Scores batches of outputs with metrics, and settles marks that need the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.datasets.where_condition import applies
from deemster.engine.run_plan import Plan
from deemster.metrics.score_outputs import score_outputs
from deemster.records import (
    NOT_APPLICABLE,
    Execution,
    Mark,
    Metric,
    NotApplicable,
    Output,
    Sample,
    TargetFailure,
)
from deemster.records.shared_call_cost import add_earlier_calls


def needs_settling(metrics: Sequence[Any]) -> bool:
    """Whether any of the metrics needs all marks of a run before they are final."""
    return any(getattr(metric, "settles", False) for metric in metrics)


def settle_marks(metrics: Sequence[Any], executions: Iterable[Execution]) -> Iterator[Execution]:
    """Settle marks: the executions with their final marks."""
    settled_columns = {
        column: _settle_column(metric, column, executions)
        for column, metric in enumerate(metrics)
        if getattr(metric, "settles", False)
    }

    for row, execution in enumerate(executions):
        marks = list(execution.marks)
        for column, settled in settled_columns.items():
            marks[column] = settled[row]
        yield msgspec.structs.replace(execution, marks=tuple(marks))


def _settle_column(metric: Any, column: int, executions: Iterable[Execution]) -> list[Mark]:
    """One metric's final marks, in the order of the executions."""
    order: list[tuple[int, int]] = []
    marks: list[Mark] = []
    for execution in executions:
        order.append((execution.repetition, execution.position))
        marks.append(execution.marks[column])

    # Repetition by repetition, as the work is planned; marks of samples that the metric does not apply to stay.
    applicable = [row for row, mark in enumerate(marks) if not isinstance(mark, NotApplicable)]
    rows = sorted(applicable, key=order.__getitem__)
    settled_marks = metric.settle([marks[row] for row in rows])

    final = marks[:]
    for row, mark in zip(rows, settled_marks, strict=True):
        # What was paid for a mark does not change when it is settled.
        final[row] = mark if mark.calls else msgspec.structs.replace(mark, calls=marks[row].calls)
    return final


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
    conditions = {column: where for column, where in enumerate(plan.where) if where is not None}

    for work in works:
        outside = {
            column
            for column, where in conditions.items()
            if is_missing(work, column) and not applies(where, work.sample)
        }
        if outside:
            known = work.marks or (None,) * len(plan.metrics)
            marks = tuple(NOT_APPLICABLE if column in outside else mark for column, mark in enumerate(known))
            work = work._replace(marks=marks)  # noqa: PLW2901
        yield work


def finish_work(work: WorkItem, answer: Answer, marks: tuple[Mark, ...]) -> Execution:
    """The execution that a work item becomes, with the cost of earlier attempts."""
    if work.earlier is not None:
        marks = tuple(
            add_earlier_calls(mark, earlier) if is_missing(work, column) else mark
            for column, (mark, earlier) in enumerate(zip(marks, work.earlier, strict=True))
        )
    return Execution(work.position, work.sample.id, work.repetition, answer, marks)


def score_batch(plan: Plan, batch: AnsweredBatch) -> list[Execution]:
    """Mark a batch with metrics that need no model."""
    rows = mark_rows(plan, batch, plan.metrics)
    return [
        finish_work(work, answer, marks) for work, answer, marks in zip(batch.works, batch.answers, rows, strict=True)
    ]


def mark_rows(plan: Plan, batch: AnsweredBatch, metrics: Sequence[Metric]) -> list[tuple[Mark, ...]]:
    """Score what is missing: one tuple of marks for each work item, known marks included.

    Args:
        plan: The run.
        batch: The work and the answers to it.
        metrics: Those of the plan's metrics that the marks are wanted of, in its order.
    """
    if all(work.marks is None for work in batch.works):
        samples = [work.sample for work in batch.works]
        return score_outputs(metrics, samples, batch.answers, thresholds=plan.thresholds)

    columns_by_name = {metric.name: column for column, metric in enumerate(plan.metrics)}
    columns = [columns_by_name[metric.name] for metric in metrics]

    new_marks: dict[int, dict[int, Mark]] = {}
    for missing, rows in _rows_by_missing_columns(batch.works, columns).items():
        new_marks |= _score_rows(plan, batch, rows, missing)

    return [_join_marks(work, new_marks[row], columns) for row, work in enumerate(batch.works)]


def _rows_by_missing_columns(works: Sequence[WorkItem], columns: Sequence[int]) -> dict[tuple[int, ...], list[int]]:
    """The rows of a batch by the marks that they lack: work that lacks the same marks is marked together."""
    rows_by_missing: dict[tuple[int, ...], list[int]] = {}
    for row, work in enumerate(works):
        missing = tuple(column for column in columns if is_missing(work, column))
        rows_by_missing.setdefault(missing, []).append(row)
    return rows_by_missing


def _score_rows(
    plan: Plan, batch: AnsweredBatch, rows: Sequence[int], columns: Sequence[int]
) -> dict[int, dict[int, Mark]]:
    """New marks of some rows, by row and column."""
    metrics = [plan.metrics[column] for column in columns]
    samples = [batch.works[row].sample for row in rows]
    answers = [batch.answers[row] for row in rows]

    scored = score_outputs(metrics, samples, answers, thresholds=plan.thresholds)
    return {row: dict(zip(columns, marks, strict=True)) for row, marks in zip(rows, scored, strict=True)}


def _join_marks(work: WorkItem, new_marks: Mapping[int, Mark], columns: Sequence[int]) -> tuple[Mark, ...]:
    """The marks of one work item, new ones and those that were known."""
    return tuple(new_marks[column] if column in new_marks else _known_mark(work, column) for column in columns)


def is_missing(work: WorkItem, column: int) -> bool:
    """Whether the mark of one of the plan's metrics is still to be made."""
    return work.marks is None or work.marks[column] is None


def _known_mark(work: WorkItem, column: int) -> Mark:
    mark = None if work.marks is None else work.marks[column]
    if mark is None:
        raise AssertionError
    return mark
