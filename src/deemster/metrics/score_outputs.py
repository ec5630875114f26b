"""Marks a batch of outputs with metrics that ask no model; a mark of user code is checked before it counts."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deemster.errors import visible
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.metrics.batch_ranking import RankingMetric, score_rankings
from deemster.metrics.builtin_metric import BuiltinMetric, BuiltinScorer
from deemster.metrics.function_metric import mark_from
from deemster.records import Mark, Metric, MetricScore, Output, Sample, TargetFailure, Unscored, Usage


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
        return Unscored("metric_failed", visible(f"The usage of a score cannot be read: {error}", limit=300))
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
