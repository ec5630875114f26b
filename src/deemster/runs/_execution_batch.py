"""Work, the answers to it, and their marks, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from deemster.records import Execution, Mark, Metric, Output, Sample, TargetFailure
from deemster.records.shared_call_cost import add_earlier_calls
from deemster.runs._score_batch import score_outputs
from deemster.runs.run_plan import Plan

Answer: TypeAlias = Output | TargetFailure


class WorkItem(NamedTuple):
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


class AnsweredBatch(NamedTuple):
    """Work, and what the target answered to each piece of it."""

    works: Sequence[WorkItem]
    answers: Sequence[Answer]


def planned_work(plan: Plan) -> Iterator[WorkItem]:
    """Everything there is to run: the whole dataset, repetition by repetition."""
    for repetition in range(plan.repetitions):
        for position, sample in enumerate(plan.dataset):
            yield WorkItem(position, sample, repetition)


def finish_work(work: WorkItem, answer: Answer, marks: tuple[Mark, ...]) -> Execution:
    """One finished piece of work."""
    if work.earlier is not None:
        known = work.marks or (None,) * len(marks)
        attempts = zip(marks, known, work.earlier, strict=True)
        marks = tuple(add_earlier_calls(mark, old if kept is None else None) for mark, kept, old in attempts)
    return Execution(work.position, work.sample.id, work.repetition, answer, marks)


def score_batch(plan: Plan, batch: AnsweredBatch) -> list[Execution]:
    """Mark a batch with metrics that need no model."""
    rows = mark_rows(plan, batch, plan.metrics)
    return [finish_work(*each) for each in zip(batch.works, batch.answers, rows, strict=True)]


def mark_rows(plan: Plan, batch: AnsweredBatch, metrics: Sequence[Metric]) -> list[tuple[Mark, ...]]:
    """One tuple of marks for each piece of work: the known ones, and the others made.

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
                found[place] if place in found else _known(batch.works[number], place) for place in wanted
            )
    return rows


def is_missing(work: WorkItem, place: int) -> bool:
    """Whether the mark at a place among the plan's metrics is still to be made."""
    return work.marks is None or work.marks[place] is None


def _known(work: WorkItem, place: int) -> Mark:
    mark = None if work.marks is None else work.marks[place]
    if mark is None:
        raise AssertionError
    return mark
