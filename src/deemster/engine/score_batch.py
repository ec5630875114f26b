"""Scores batches of outputs with metrics that need no model; marks that are known stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from deemster.engine.run_plan import Plan
from deemster.engine.work_items import AnsweredBatch, WorkItem
from deemster.metrics.score_outputs import score_outputs
from deemster.records import Execution, Mark, Metric


def score_batch(plan: Plan, batch: AnsweredBatch) -> list[Execution]:
    """Mark a batch with all metrics of a plan."""
    rows = mark_rows(plan, batch, plan.metrics)
    return [work.finish(answer, marks) for work, answer, marks in zip(batch.works, batch.answers, rows, strict=True)]


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
        missing = tuple(column for column in columns if work.is_missing(column))
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
    known = work.marks or ()
    return tuple(new_marks[column] if column in new_marks else cast("Mark", known[column]) for column in columns)
