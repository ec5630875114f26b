"""The whole run in a handful of numbers, overall and per cohort."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.results.mark_columns import Tally
from deemster.results.metric_figures import (
    NOT_RUN,
    SCORED,
    Bin,
    Figures,
    Interval,
    MetricFigures,
    ends,
    figures,
    histogram,
    mean_interval,
    sample_means,
)
from deemster.results.repetition_precision import Precision, precision
from deemster.results.usage_totals import Cost, RunUsage, cost, run_usage
from deemster.stats import clustered_wilson

UNTAGGED = "(untagged)"
_T = TypeVar("_T")


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """What an aggregator of several metrics makes of the run.

    Attributes:
        aggregator: Which one it is.
        success_rate: The share of executions that it lets pass; without repetitions, of samples.
        interval: Wilson's 95 % interval of it, clustered by sample.
        mean_score: The mean of its scores over all executions.
        mean_score_interval: A 95 % interval of it over per-sample means; None below two samples.
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
    metrics: dict[str, Figures]
    aggregate: Aggregate | None = None


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """How much there was of everything."""

    samples: int
    repetitions: int
    executions: int
    metrics: int
    marks: int
    scored: int
    unscored: int
    not_run: int
    target_failures: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is computed from the marks of a run."""

    totals: Totals
    macro_f1: float
    macro_f1_interval: Interval
    pass_rate: float
    pass_rate_interval: Interval
    metric_order: tuple[str, ...]
    metrics: dict[str, MetricFigures]
    histograms: dict[str, tuple[Bin, ...]]
    cohorts: tuple[Cohort, ...]
    aggregate: Aggregate | None
    precision: Precision | None
    usage: RunUsage
    cost: Cost | None
    answers_without_usage: int


def summarize(tally: Tally, *, delta: float = 0.05) -> Summary:
    """Turn marks into numbers.

    Args:
        tally: The marks of a finished or stopped run.
        delta: The difference that repeated runs should be able to show.

    Raises:
        ValueError: The difference is outside (0, 1].
    """
    names = tuple(card.name for card in tally.cards)
    macro_f1, macro_f1_interval = _macro_f1(tally.passed)
    pass_rate, pass_rate_interval = _pass_rate(tally.passed)
    spending = dict(zip(names, tally.scoring_spending, strict=True))
    return Summary(
        totals=_totals(tally),
        macro_f1=macro_f1,
        macro_f1_interval=macro_f1_interval,
        pass_rate=pass_rate,
        pass_rate_interval=pass_rate_interval,
        metric_order=names,
        metrics={name: _metric(tally, place) for place, name in enumerate(names)},
        histograms={
            name: histogram(tally.scores[:, :, place], tally.causes[:, :, place]) for place, name in enumerate(names)
        },
        cohorts=tuple(_cohort(tally, name, positions) for name, positions in tally.cohorts),
        aggregate=_aggregate(tally, slice(None)),
        precision=precision(tally.passed.all(axis=2).sum(axis=1), repetitions=tally.repetitions, delta=delta),
        usage=run_usage(tally.target_spending, spending),
        cost=cost([tally.target_spending, *tally.scoring_spending]),
        answers_without_usage=tally.without_usage,
    )


def _totals(tally: Tally) -> Totals:
    not_run = int(np.count_nonzero(tally.causes == NOT_RUN))
    scored = int(np.count_nonzero(tally.causes == SCORED))
    return Totals(
        samples=tally.samples,
        repetitions=tally.repetitions,
        executions=tally.samples * tally.repetitions,
        metrics=len(tally.cards),
        marks=tally.causes.size,
        scored=scored,
        unscored=tally.causes.size - scored - not_run,
        not_run=not_run,
        target_failures=tally.target_failures,
    )


def _metric(tally: Tally, place: int) -> MetricFigures:
    card = tally.cards[place]
    thresholds: set[float | None] = {*tally.thresholds[place]} or {card.threshold}
    directions = tally.directions[place]
    return MetricFigures(
        **figures(tally.scores[:, :, place], tally.causes[:, :, place], tally.passed[:, :, place]),
        spec=card.spec,
        identity=card.identity,
        family=card.family,
        threshold=next(iter(thresholds)) if len(thresholds) == 1 else None,
        # Marks that do not agree say nothing of the metric as a whole.
        higher_is_better=next(iter(directions)) if len(directions) == 1 else card.higher_is_better,
        criteria=tally.criteria[place].figures() if place in tally.criteria else None,
    )


def _cohort(tally: Tally, name: str | None, positions: NDArray[np.int64]) -> Cohort:
    scores, causes, passed = tally.scores[positions], tally.causes[positions], tally.passed[positions]
    macro_f1, macro_f1_interval = _macro_f1(passed)
    pass_rate, pass_rate_interval = _pass_rate(passed)
    return Cohort(
        name=name,
        label=UNTAGGED if name is None else name,
        untagged=name is None,
        samples=len(positions),
        executions=len(positions) * tally.repetitions,
        macro_f1=macro_f1,
        macro_f1_interval=macro_f1_interval,
        pass_rate=pass_rate,
        pass_rate_interval=pass_rate_interval,
        metrics={
            card.name: Figures(**figures(scores[:, :, place], causes[:, :, place], passed[:, :, place]))
            for place, card in enumerate(tally.cards)
        },
        aggregate=_aggregate(tally, positions),
    )


def _aggregate(tally: Tally, positions: NDArray[np.int64] | slice) -> Aggregate | None:
    outcomes = tally.outcomes
    if outcomes is None:
        return None
    successes, scores = outcomes.successes[positions], outcomes.scores[positions]
    counts = successes.sum(axis=1)
    return Aggregate(
        aggregator=outcomes.name,
        success_rate=int(counts.sum()) / successes.size,
        interval=_known(_share(counts, tally.repetitions), len(counts)),
        mean_score=math.fsum(scores.ravel().tolist()) / scores.size,
        mean_score_interval=mean_interval(sample_means(scores, np.ones_like(successes))),
    )


def _macro_f1(passed: NDArray[np.bool_]) -> tuple[float, Interval]:
    """The mean of the metrics' pass rates; all rest on the same number of marks, so it is the share of marks passed."""
    samples, repetitions, metrics = passed.shape
    shares = passed.sum(axis=(1, 2))
    return int(shares.sum()) / passed.size, _known(_share(shares, repetitions * metrics), samples)


def _pass_rate(passed: NDArray[np.bool_]) -> tuple[float, Interval]:
    """The share of executions in which every metric passed."""
    samples, repetitions, _ = passed.shape
    shares = passed.all(axis=2).sum(axis=1)
    return int(shares.sum()) / (samples * repetitions), _known(_share(shares, repetitions), samples)


def _share(passed: NDArray[np.int64], marks: int) -> Interval | None:
    return ends(clustered_wilson(passed, marks=marks).interval)


def _known(value: _T | None, samples: int) -> _T:
    if value is None:
        raise ValueError(
            f"A summary needs at least one sample, one repetition and one metric; there are {samples} samples."
        )
    return value
