"""Scores batches of outputs with metrics, and settles marks that need the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    late = [(place, metric) for place, metric in enumerate(metrics) if getattr(metric, "settles", False)]
    final = {place: _settle_column(metric, place, executions) for place, metric in late}
    for number, execution in enumerate(executions):
        marks = list(execution.marks)
        for place, column in final.items():
            marks[place] = column[number]
        yield msgspec.structs.replace(execution, marks=tuple(marks))


def _settle_column(metric: Any, place: int, executions: Iterable[Execution]) -> list[Mark]:
    """One metric's final marks, in the order of the executions."""
    keys: list[tuple[int, int]] = []
    marks: list[Mark] = []
    for execution in executions:
        keys.append((execution.repetition, execution.position))
        marks.append(execution.marks[place])
    # Repetition by repetition, as the work is planned; marks of samples that the metric does not apply to stay.
    made = [number for number, mark in enumerate(marks) if not isinstance(mark, NotApplicable)]
    order = sorted(made, key=keys.__getitem__)
    found = marks[:]
    for number, mark in zip(order, metric.settle([marks[number] for number in order]), strict=True):
        # What was paid for a mark does not change when it is settled.
        found[number] = mark if mark.calls else msgspec.structs.replace(mark, calls=marks[number].calls)
    return found


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
    conditions = [(place, where) for place, where in enumerate(plan.where) if where is not None]
    for work in works:
        outside = {place for place, where in conditions if is_missing(work, place) and not applies(where, work.sample)}
        if outside:
            known = work.marks or (None,) * len(plan.metrics)
            marks = tuple(NOT_APPLICABLE if place in outside else mark for place, mark in enumerate(known))
            yield work._replace(marks=marks)
        else:
            yield work


def finish_work(work: WorkItem, answer: Answer, marks: tuple[Mark, ...]) -> Execution:
    """The execution that a work item becomes, with the cost of earlier attempts."""
    if work.earlier is not None:
        known = work.marks or (None,) * len(marks)
        attempts = zip(marks, known, work.earlier, strict=True)
        marks = tuple(add_earlier_calls(mark, old if before is None else None) for mark, before, old in attempts)
    return Execution(work.position, work.sample.id, work.repetition, answer, marks)


def score_batch(plan: Plan, batch: AnsweredBatch) -> list[Execution]:
    """Mark a batch with metrics that need no model."""
    rows = mark_rows(plan, batch, plan.metrics)
    return [finish_work(*each) for each in zip(batch.works, batch.answers, rows, strict=True)]


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
    places = {metric.name: place for place, metric in enumerate(plan.metrics)}
    wanted = [places[metric.name] for metric in metrics]
    # Work that lacks the same marks is marked together.
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, work in enumerate(batch.works):
        alike.setdefault(tuple(place for place in wanted if is_missing(work, place)), []).append(number)
    rows: list[tuple[Mark, ...]] = [()] * len(batch.works)
    for missing, numbers in alike.items():
        samples = [batch.works[number].sample for number in numbers]
        answers = [batch.answers[number] for number in numbers]
        made = score_outputs([plan.metrics[place] for place in missing], samples, answers, thresholds=plan.thresholds)
        for number, row in zip(numbers, made, strict=True):
            found = dict(zip(missing, row, strict=True))
            rows[number] = tuple(
                found[place] if place in found else _known_mark(batch.works[number], place) for place in wanted
            )
    return rows


def is_missing(work: WorkItem, place: int) -> bool:
    """Whether the mark at a place among the plan's metrics is still to be made."""
    return work.marks is None or work.marks[place] is None


def _known_mark(work: WorkItem, place: int) -> Mark:
    mark = None if work.marks is None else work.marks[place]
    if mark is None:
        raise AssertionError
    return mark
