"""Work, the answers to it, and their marks, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from deemster.records import Execution, Mark, Output, Sample, TargetFailure
from deemster.run.marking import marks_of
from deemster.run.plan import Plan

Answer: TypeAlias = Output | TargetFailure


class Work(NamedTuple):
    """One sample in one repetition, still to be run."""

    position: int
    sample: Sample
    repetition: int


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
    return Execution(work.position, work.sample.id, work.repetition, answer, marks)


def executions_of(plan: Plan, batch: Batch) -> list[Execution]:
    """Mark a batch with metrics that need no model."""
    samples = [work.sample for work in batch.works]
    marks = marks_of(plan.metrics, samples, batch.answers, thresholds=plan.thresholds)
    return [execution_of(*each) for each in zip(batch.works, batch.answers, marks, strict=True)]
