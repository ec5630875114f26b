"""Scores batches of outputs with metrics, and settles marks that need the whole run."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from deemster.datasets.where_condition import applies
from deemster.errors import visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.metrics.batch_ranking import RankingMetric, score_rankings
from deemster.metrics.builtin_metric import BuiltinMetric, BuiltinScorer
from deemster.metrics.function_metric import mark_from
from deemster.records import (
    NOT_APPLICABLE,
    Execution,
    Mark,
    Metric,
    MetricScore,
    NotApplicable,
    Output,
    Sample,
    TargetFailure,
    Unscored,
    Usage,
)
from deemster.records.shared_call_cost import add_earlier_calls
from deemster.runs.run_plan import Plan


def score_outputs(
    metrics: Sequence[Metric],
    samples: Sequence[Sample],
    answers: Sequence[Output | TargetFailure],
    *,
    thresholds: Mapping[str, float],
) -> list[tuple[Mark, ...]]:
    """Score outputs with metrics that ask no model: one tuple of marks per sample, one mark per metric.

    Args:
        metrics: In the order of the suite.
        samples: The samples of the batch.
        answers: What the target said to each, or how it failed.
        thresholds: Pass marks that replace the metrics' own, by metric name.
    """
    answered = [place for place, answer in enumerate(answers) if isinstance(answer, Output)]
    if len(answered) == len(answers):
        scored, outputs = samples, answers
    else:
        scored = [samples[place] for place in answered]
        outputs = [answers[place] for place in answered]
    ranked = _ranked_columns(metrics, scored, outputs)  # type: ignore[arg-type]
    columns = []
    for metric in metrics:
        column = ranked.get(metric.name) or _column(metric, scored, outputs)  # type: ignore[arg-type]
        threshold = thresholds.get(metric.name)
        if threshold is not None:
            column = [with_threshold(mark, threshold) for mark in column]
        columns.append(column)
    marks: list[tuple[Mark, ...]] = list(zip(*columns, strict=True)) if columns else [()] * len(scored)
    if len(answered) == len(answers):
        return marks
    found = iter(marks)
    return [next(found) if isinstance(answer, Output) else failed_marks(answer, len(metrics)) for answer in answers]


def _ranked_columns(
    metrics: Sequence[Metric], samples: Sequence[Sample], outputs: Sequence[Output]
) -> dict[str, list[Mark]]:
    """The columns of the metrics that read rankings, marked together so that each ranking is read once."""
    ranked = [metric for metric in metrics if isinstance(metric, RankingMetric)]
    columns = score_rankings(ranked, samples, outputs) if ranked else []
    return {metric.name: column for metric, column in zip(ranked, columns, strict=True)}


def _column(metric: Metric, samples: Sequence[Sample], outputs: Sequence[Output]) -> list[Mark]:
    many = getattr(metric, "score_many", None)
    if isinstance(metric, BuiltinMetric):
        if many is not None:
            return list(many(samples, outputs))
        return [metric.score(sample, output) for sample, output in zip(samples, outputs, strict=True)]
    if many is not None:
        with UserCodeGuard():
            marks = list(many(samples, outputs))
            if len(marks) == len(samples):
                return [user_mark(metric, mark) for mark in marks]
        # The batch failed as a whole; pair by pair, only some pairs fail.
    return [_user_score(metric, sample, output) for sample, output in zip(samples, outputs, strict=True)]


def _user_score(metric: Metric, sample: Sample, output: Output) -> Mark:
    with UserCodeGuard() as caught:
        return user_mark(metric, metric.score(sample, output))
    return Unscored("metric_failed", caught.message_with_place)


def user_mark(metric: Any, value: Any) -> Mark:
    """Turn what user code returned into a mark, or into an unscored mark that says why not."""
    if isinstance(metric, BuiltinScorer):
        mark: Mark = value
        return mark
    if inspect.iscoroutine(value):
        value.close()
        return Unscored("metric_failed", "`score` is async; a metric is a plain function.")
    try:
        made = mark_from(
            value,
            threshold=0.5 if (threshold := getattr(metric, "threshold", None)) is None else threshold,
            higher_is_better=getattr(metric, "higher_is_better", True),
        )
        if made.usage is not None and not isinstance(made.usage, Usage):
            return msgspec.structs.replace(made, usage=msgspec.convert(made.usage, Usage))
    except msgspec.ValidationError as error:
        return Unscored("metric_failed", visible(f"The usage of a mark cannot be read: {error}", limit=300))
    except ValueError as error:
        return Unscored("metric_failed", visible(str(error), limit=300))
    return made


def failed_marks(failure: TargetFailure, count: int) -> tuple[Mark, ...]:
    """The marks of a target that failed."""
    return (Unscored("target_failed", failure.message),) * count


def with_threshold(mark: Mark, threshold: float | None) -> Mark:
    """A mark with another pass mark, where one is given."""
    if threshold is None or not isinstance(mark, MetricScore):
        return mark
    return msgspec.structs.replace(mark, threshold=threshold)


def needs_settling(metrics: Sequence[Any]) -> bool:
    """Whether any of the metrics needs all marks of a run before they are final."""
    return any(getattr(metric, "settles", False) for metric in metrics)


def settle_marks(metrics: Sequence[Any], executions: Iterable[Execution | None]) -> Iterator[Execution]:
    """Settle marks: the executions with their final marks."""
    late = [(place, metric) for place, metric in enumerate(metrics) if getattr(metric, "settles", False)]
    final = {place: _settle_column(metric, place, executions) for place, metric in late}
    for number, execution in enumerate(execution for execution in executions if execution is not None):
        marks = list(execution.marks)
        for place, column in final.items():
            marks[place] = column[number]
        yield msgspec.structs.replace(execution, marks=tuple(marks))


def _settle_column(metric: Any, place: int, executions: Iterable[Execution | None]) -> list[Mark]:
    """One metric's final marks, in the order of the executions."""
    keys: list[tuple[int, int]] = []
    marks: list[Mark] = []
    for execution in executions:
        if execution is not None:
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
