"""The summary of a run: macro-F1, pass rates, every metric, every cohort, usage and cost."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import (
    NOT_RUN,
    SCORED,
    HistogramBin,
    Interval,
    MetricSummary,
    RunMetricSummary,
    histogram,
    mean_interval,
    metric_summary_fields,
    sample_means,
    share_interval,
)
from deemster.results.repetition_precision import Precision, repetition_precision
from deemster.results.usage_and_cost import Cost, RunUsage, run_usage, total_cost

UNTAGGED = "(untagged)"


def cohort_label(tag: str | None) -> str:
    """How reports and gates call the samples of a tag; None stands for samples without one.

    The label is the tag itself. Only a tag that is called `(untagged)` gets quotation marks, and one more pair if it
    has some already, so that no two cohorts of a run share a label.

    Args:
        tag: The tag, or None.

    >>> cohort_label("policy"), cohort_label(None), cohort_label("(untagged)")
    ('policy', '(untagged)', '"(untagged)"')
    """
    if tag is None:
        return UNTAGGED
    return f'"{tag}"' if tag.strip('"') == UNTAGGED else tag


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """The aggregate of several metrics over a run or a cohort.

    Attributes:
        aggregator: The name of the aggregator.
        success_rate: The share of executions that succeed; without repetitions, of samples.
        interval: Wilson's 95 % interval of the success rate, clustered by sample.
        mean_score: The mean aggregate score over all executions.
        mean_score_interval: The 95 % interval of the mean score over per-sample means; None below two samples.
    """

    aggregator: str
    success_rate: float
    interval: Interval
    mean_score: float
    mean_score_interval: Interval | None


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that share a tag; `name` is None for those without one."""

    name: str | None
    label: str
    untagged: bool
    samples: int
    executions: int
    macro_f1: float
    macro_f1_interval: Interval
    pass_rate: float
    pass_rate_interval: Interval
    metrics: dict[str, MetricSummary]
    aggregate: Aggregate | None = None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a run."""

    samples: int
    repetitions: int
    executions: int
    metrics: int
    marks: int
    scored: int
    unscored: int
    not_run: int
    target_failures: int


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is computed from the marks of a run."""

    totals: Totals
    macro_f1: float
    macro_f1_interval: Interval
    pass_rate: float
    pass_rate_interval: Interval
    metric_order: tuple[str, ...]
    metrics: dict[str, RunMetricSummary]
    histograms: dict[str, tuple[HistogramBin, ...]]
    cohorts: tuple[Cohort, ...]
    aggregate: Aggregate | None
    precision: Precision | None
    usage: RunUsage
    cost: Cost | None
    answers_without_usage: int


def summarize_run(marks: MarkTable, *, delta: float = 0.05) -> RunSummary:
    """Summarize the marks of a run.

    Args:
        marks: The marks of a finished or stopped run.
        delta: The difference between two runs that repetitions should be able to show.

    Raises:
        ValueError: The difference is outside (0, 1].
    """
    names = tuple(card.name for card in marks.cards)
    spending = dict(zip(names, marks.scoring_usage, strict=True))
    return RunSummary(
        totals=_totals(marks),
        **_rates(marks.passed),
        metric_order=names,
        metrics={name: _metric(marks, place) for place, name in enumerate(names)},
        histograms={
            name: histogram(marks.scores[:, :, place], marks.causes[:, :, place]) for place, name in enumerate(names)
        },
        cohorts=tuple(_cohort(marks, name, positions) for name, positions in marks.cohorts),
        aggregate=_aggregate(marks, slice(None)),
        precision=repetition_precision(
            marks.passed.all(axis=2).sum(axis=1), repetitions=marks.repetitions, delta=delta
        ),
        usage=run_usage(marks.target_usage, spending),
        cost=total_cost([marks.target_usage, *marks.scoring_usage]),
        answers_without_usage=marks.without_usage,
    )


def _totals(marks: MarkTable) -> Totals:
    not_run = int(np.count_nonzero(marks.causes == NOT_RUN))
    scored = int(np.count_nonzero(marks.causes == SCORED))
    return Totals(
        samples=marks.samples,
        repetitions=marks.repetitions,
        executions=marks.samples * marks.repetitions,
        metrics=len(marks.cards),
        marks=marks.causes.size,
        scored=scored,
        unscored=marks.causes.size - scored - not_run,
        not_run=not_run,
        target_failures=marks.target_failures,
    )


def _metric(marks: MarkTable, place: int) -> RunMetricSummary:
    card = marks.cards[place]
    thresholds: set[float | None] = {*marks.thresholds[place]} or {card.threshold}
    directions = marks.directions[place]
    return RunMetricSummary(
        **metric_summary_fields(marks.scores[:, :, place], marks.causes[:, :, place], marks.passed[:, :, place]),
        spec=card.spec,
        identity=card.identity,
        family=card.family,
        threshold=next(iter(thresholds)) if len(thresholds) == 1 else None,
        # If the marks disagree, the metric itself says which direction is better.
        higher_is_better=next(iter(directions)) if len(directions) == 1 else card.higher_is_better,
        criteria=marks.criteria[place].summarize() if place in marks.criteria else None,
        roles=card.roles,
    )


def _cohort(marks: MarkTable, name: str | None, positions: NDArray[np.int64]) -> Cohort:
    scores, causes, passed = marks.scores[positions], marks.causes[positions], marks.passed[positions]
    return Cohort(
        name=name,
        label=cohort_label(name),
        untagged=name is None,
        samples=len(positions),
        executions=len(positions) * marks.repetitions,
        **_rates(passed),
        metrics={
            card.name: MetricSummary(
                **metric_summary_fields(scores[:, :, place], causes[:, :, place], passed[:, :, place])
            )
            for place, card in enumerate(marks.cards)
        },
        aggregate=_aggregate(marks, positions),
    )


def _aggregate(marks: MarkTable, positions: NDArray[np.int64] | slice) -> Aggregate | None:
    aggregates = marks.aggregates
    if aggregates is None:
        return None
    successes, scores = aggregates.successes[positions], aggregates.scores[positions]
    counts = successes.sum(axis=1)
    return Aggregate(
        aggregator=aggregates.name,
        success_rate=int(counts.sum()) / successes.size,
        interval=share_interval(counts, marks.repetitions),
        mean_score=math.fsum(scores.ravel().tolist()) / scores.size,
        mean_score_interval=mean_interval(sample_means(scores, np.ones_like(successes))),
    )


def _rates(passed: NDArray[np.bool_]) -> dict[str, Any]:
    """Macro-F1 and pass rate with their intervals: the fields that a run and a cohort share.

    Macro-F1 is the mean of the metrics' pass rates. All metrics have the same number of marks, so it is the share of
    marks that pass. The pass rate is the share of executions in which every metric passed.
    """
    samples, repetitions, metrics = passed.shape
    marks, executions = passed.sum(axis=(1, 2)), passed.all(axis=2).sum(axis=1)
    return {
        "macro_f1": int(marks.sum()) / passed.size,
        "macro_f1_interval": share_interval(marks, repetitions * metrics),
        "pass_rate": int(executions.sum()) / (samples * repetitions),
        "pass_rate_interval": share_interval(executions, repetitions),
    }
