"""Work, the answers to it, and their marks, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from deemster.records import Execution, Mark, Metric, Output, Sample, TargetFailure
from deemster.records.shared_call_cost import add_earlier_calls
from deemster.runs._score_batch import marks_of
from deemster.runs.run_plan import Plan

Answer: TypeAlias = Output | TargetFailure


class Work(NamedTuple):
    """One sample in one repetition, still to be run, or to be finished.

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


class Batch(NamedTuple):
    """Work, and what the target answered to each piece of it."""

    works: Sequence[Work]
    answers: Sequence[Answer]


def work_of(plan: Plan) -> Iterator[Work]:
    """Everything there is to run: the whole dataset, repetition by repetition."""
    for repetition in range(plan.repetitions):
        for position, sample in enumerate(plan.dataset):
            yield Work(position, sample, repetition)


def execution_of(work: Work, answer: Answer, marks: tuple[Mark, ...]) -> Execution:
    """One finished piece of work."""
    if work.earlier is not None:
        known = work.marks or (None,) * len(marks)
        attempts = zip(marks, known, work.earlier, strict=True)
        marks = tuple(add_earlier_calls(mark, old if kept is None else None) for mark, kept, old in attempts)
    return Execution(work.position, work.sample.id, work.repetition, answer, marks)


def executions_of(plan: Plan, batch: Batch) -> list[Execution]:
    """Mark a batch with metrics that need no model."""
    rows = rows_of(plan, batch, plan.metrics)
    return [execution_of(*each) for each in zip(batch.works, batch.answers, rows, strict=True)]


def rows_of(plan: Plan, batch: Batch, metrics: Sequence[Metric]) -> list[tuple[Mark, ...]]:
    """One tuple of marks for each piece of work: the known ones, and the others made.

    Args:
        plan: The run.
        batch: The work and the answers to it.
        metrics: Those of the plan's metrics that the marks are wanted of, in its order.
    """
    if all(work.marks is None for work in batch.works):
        samples = [work.sample for work in batch.works]
        return marks_of(metrics, samples, batch.answers, thresholds=plan.thresholds)
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
        made = marks_of([plan.metrics[place] for place in missing], samples, answers, thresholds=plan.thresholds)
        for number, row in zip(numbers, made, strict=True):
            found = dict(zip(missing, row, strict=True))
            rows[number] = tuple(
                found[place] if place in found else _known(batch.works[number], place) for place in wanted
            )
    return rows


def is_missing(work: Work, place: int) -> bool:
    """Whether the mark at a place among the plan's metrics is still to be made."""
    return work.marks is None or work.marks[place] is None


def _known(work: Work, place: int) -> Mark:
    mark = None if work.marks is None else work.marks[place]
    if mark is None:
        raise AssertionError
    return mark
