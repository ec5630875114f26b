"""The summary of a run: macro-F1, pass rates, every metric, every cohort, usage and cost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets.attack_facts import AttackedSamples
from deemster.records import CAUSES
from deemster.results.attack_success import AdversarialSummary, summarize_attacks
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import (
    NOT_RUN,
    OUTSIDE,
    SCORED,
    Clusters,
    HistogramBin,
    MetricSummary,
    PanelSummary,
    RunMetricSummary,
    histogram,
    mean_interval,
    sample_means,
    share_interval,
    summarize_metric,
)
from deemster.results.repetition_precision import Precision, repetition_precision
from deemster.results.usage_and_cost import Cost, RunUsage, run_usage, total_cost
from deemster.stats import weighted_wilson
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.means import unit_sums

UNTAGGED = "(untagged)"
_CRASHED = CAUSES.index("target_failed") + 1


def cohort_sizes(tags: Iterable[Sequence[str]]) -> dict[str | None, int]:
    """How many samples have each tag, by code point; None stands for those without any and comes last.

    Args:
        tags: The tags of each sample.
    """
    sizes = Counter(tag for own in tags for tag in own or (None,))
    return {tag: sizes[tag] for tag in sorted(sizes, key=lambda tag: (tag is None, tag or ""))}


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
        samples: How many samples it rests on: those that a metric applies to.
    """

    aggregator: str
    success_rate: float
    interval: Interval
    mean_score: float
    mean_score_interval: Interval | None
    samples: int | None = None


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that share a tag; `name` is None for those without one.

    `macro_f1_metrics` are the metrics that apply to some of them, on which macro-F1 rests; it is None where none does.
    The pass rate rests on the samples that a metric applies to: all but `samples_not_applicable`.
    """

    name: str | None
    label: str
    untagged: bool
    samples: int
    executions: int
    macro_f1: float | None
    macro_f1_interval: Interval | None
    pass_rate: float | None
    pass_rate_interval: Interval | None
    metrics: dict[str, MetricSummary]
    aggregate: Aggregate | None = None
    macro_f1_metrics: tuple[str, ...] | None = None
    samples_not_applicable: int = 0


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of a run.

    `not_applicable` counts marks that were not made, since the metric does not apply to the sample; they are not among
    the `marks`. `samples_not_applicable` are the samples that no metric applies to.
    """

    samples: int
    repetitions: int
    executions: int
    metrics: int
    marks: int
    scored: int
    unscored: int
    not_run: int
    target_failures: int
    not_applicable: int = 0
    samples_not_applicable: int = 0


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is computed from the marks of a run.

    `samples_unscored` are the samples with a mark that could not be made, `samples_crashed` those that the target
    failed on.
    """

    totals: Totals
    macro_f1: float | None
    macro_f1_interval: Interval | None
    macro_f1_metrics: tuple[str, ...]
    pass_rate: float | None
    pass_rate_interval: Interval | None
    metric_order: tuple[str, ...]
    metrics: dict[str, RunMetricSummary]
    histograms: dict[str, tuple[HistogramBin, ...]]
    cohorts: tuple[Cohort, ...]
    aggregate: Aggregate | None
    precision: Precision | None
    usage: RunUsage
    cost: Cost | None
    answers_without_usage: int
    adversarial: AdversarialSummary | None = None
    panels: dict[str, PanelSummary] | None = None
    samples_unscored: int = 0
    samples_crashed: int = 0


def summarize_run(marks: MarkTable, *, delta: float = 0.05, attacks: AttackedSamples | None = None) -> RunSummary:
    """Summarize the marks of a run.

    Args:
        marks: The marks of a finished or stopped run.
        delta: The difference between two runs that repetitions should be able to show.
        attacks: Which samples are attacks; None where none is.

    Raises:
        ValueError: The difference is outside (0, 1].
    """
    names = tuple(card.name for card in marks.cards)
    spending = dict(zip(names, marks.scoring_usage, strict=True))
    every = slice(None)
    return RunSummary(
        totals=_totals(marks),
        **pass_rates(marks, every),
        metric_order=names,
        metrics={name: _metric(marks, place) for place, name in enumerate(names)},
        histograms={
            name: histogram(marks.scores[:, :, place], marks.causes[:, :, place]) for place, name in enumerate(names)
        },
        cohorts=tuple(_cohort(marks, name, positions) for name, positions in marks.cohorts),
        aggregate=_aggregate(marks, every),
        precision=_precision(marks, delta),
        usage=run_usage(marks.target_usage, spending, marks.further_usage),
        cost=total_cost([marks.target_usage, *marks.scoring_usage, marks.further_usage]),
        answers_without_usage=marks.without_usage,
        adversarial=None if attacks is None else summarize_attacks(marks, attacks),
        panels=marks.panel_summaries(),
        samples_unscored=_count_samples(~np.isin(marks.causes, (SCORED, NOT_RUN, OUTSIDE))),
        samples_crashed=_count_samples(marks.causes == _CRASHED),
    )


def _precision(marks: MarkTable, delta: float) -> Precision | None:
    clusters = marks.clusters
    if clusters is not None:
        clusters = clusters[marks.applies_to(slice(None)).any(axis=1)]
    passes = count_passes(marks)
    return repetition_precision(passes, repetitions=marks.repetitions, delta=delta, clusters=clusters)


def _count_samples(marks: NDArray[np.bool_]) -> int:
    """How many samples have one of these marks."""
    return int(np.count_nonzero(marks.any(axis=(1, 2))))


def _totals(marks: MarkTable) -> Totals:
    not_run = int(np.count_nonzero(marks.causes == NOT_RUN))
    scored = int(np.count_nonzero(marks.causes == SCORED))
    applies = marks.applies_to(slice(None))
    made = int(np.count_nonzero(applies)) * marks.repetitions
    outside = marks.causes.size - made
    not_run += int(np.count_nonzero(marks.causes == OUTSIDE)) - outside
    return Totals(
        samples=marks.samples,
        repetitions=marks.repetitions,
        executions=marks.samples * marks.repetitions,
        metrics=len(marks.cards),
        marks=made,
        scored=scored,
        unscored=made - scored - not_run,
        not_run=not_run,
        target_failures=marks.target_failures,
        not_applicable=outside,
        samples_not_applicable=int(np.count_nonzero(~applies.any(axis=1))),
    )


def _metric(marks: MarkTable, place: int) -> RunMetricSummary:
    card = marks.cards[place]
    thresholds: set[float | None] = {*marks.thresholds[place]} or {card.threshold}
    directions = marks.directions[place]
    summary = summarize_metric(
        marks.scores[:, :, place], marks.causes[:, :, place], marks.passed[:, :, place], marks.clusters
    )
    return RunMetricSummary(
        **msgspec.structs.asdict(summary),
        spec=card.spec,
        identity=card.identity,
        family=card.family,
        threshold=next(iter(thresholds)) if len(thresholds) == 1 else None,
        # If the marks disagree, the metric itself says which direction is better.
        higher_is_better=next(iter(directions)) if len(directions) == 1 else card.higher_is_better,
        criteria=marks.criteria[place].summarize(marks.clusters) if place in marks.criteria else None,
        roles=card.roles,
        where=card.where,
    )


def _cohort(marks: MarkTable, name: str | None, positions: NDArray[np.int64]) -> Cohort:
    scores, causes, passed = marks.scores[positions], marks.causes[positions], marks.passed[positions]
    clusters = marks.clusters_at(positions)
    return Cohort(
        name=name,
        label=cohort_label(name),
        untagged=name is None,
        samples=len(positions),
        executions=len(positions) * marks.repetitions,
        **pass_rates(marks, positions),
        metrics={
            card.name: summarize_metric(scores[:, :, place], causes[:, :, place], passed[:, :, place], clusters)
            for place, card in enumerate(marks.cards)
        },
        aggregate=_aggregate(marks, positions),
        samples_not_applicable=int(np.count_nonzero(~(causes != OUTSIDE).any(axis=(1, 2)))),
    )


def _aggregate(marks: MarkTable, positions: NDArray[np.int64] | slice) -> Aggregate | None:
    """The aggregate over the samples that have one. Undefined (None) without an aggregator or such a sample."""
    aggregates = marks.aggregates
    if aggregates is None:
        return None
    covered = aggregates.covers(marks.applies_to(positions))
    successes, scores = aggregates.successes[positions][covered], aggregates.scores[positions][covered]
    counts = successes.sum(axis=1)
    clusters = marks.clusters_at(positions)
    clusters = None if clusters is None else clusters[covered]
    interval = share_interval(counts, marks.repetitions, clusters)
    if interval is None:
        return None
    return Aggregate(
        aggregator=aggregates.name,
        success_rate=int(counts.sum()) / successes.size,
        interval=interval,
        mean_score=math.fsum(scores.ravel().tolist()) / scores.size,
        mean_score_interval=mean_interval(sample_means(scores, np.ones_like(successes)), clusters),
        samples=len(counts),
    )


def count_passes(marks: MarkTable, positions: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.int64]:
    """In how many repetitions every metric that applies passed, for each sample that one applies to."""
    outside = marks.causes[positions] == OUTSIDE
    every = (marks.passed[positions] | outside).all(axis=2).sum(axis=1)
    return np.asarray(every[~outside.all(axis=(1, 2))])


def pass_rates(marks: MarkTable, positions: NDArray[np.int64] | slice = slice(None)) -> dict[str, Any]:
    """Macro-F1 and pass rate with their intervals: the fields that a run and a cohort share.

    Macro-F1 is the mean of the metrics' pass rates, over metrics that apply to some of the samples. The pass rate is
    the share of executions in which every metric that applies passed. Both are undefined (None) where none applies.
    """
    applies, passed = marks.applies_to(positions), marks.passed[positions]
    used = np.asarray(applies.any(axis=0))
    rows = np.asarray(applies.any(axis=1))
    applies, passed = applies[np.ix_(rows, used)], passed[rows][:, :, used]
    executions = count_passes(marks, positions)
    clusters = marks.clusters_at(positions)
    clusters = None if clusters is None else clusters[rows]
    macro_f1, interval = _macro_f1(applies, passed, clusters)
    return {
        "macro_f1": macro_f1,
        "macro_f1_interval": interval,
        "macro_f1_metrics": tuple(marks.cards[place].name for place in np.flatnonzero(used).tolist()),
        "pass_rate": int(executions.sum()) / (len(executions) * marks.repetitions) if len(executions) else None,
        "pass_rate_interval": share_interval(executions, marks.repetitions, clusters),
    }


def _macro_f1(
    applies: NDArray[np.bool_], passed: NDArray[np.bool_], clusters: Clusters
) -> tuple[float | None, Interval | None]:
    """Macro-F1 with its interval, of samples and metrics that each have a counterpart that applies."""
    repetitions = passed.shape[1]
    if applies.all():
        # All metrics have the same number of marks, so it is the share of marks that pass.
        counts = passed.sum(axis=(1, 2))
        share = int(counts.sum()) / passed.size if passed.size else None
        return share, share_interval(counts, repetitions * applies.shape[1], clusters)
    samples = applies.sum(axis=0)
    rates = passed.sum(axis=(0, 1)) / (samples * repetitions)
    # A mark of a metric that applies to few samples counts more, so that every metric has one vote.
    votes = applies / samples
    weights = votes.sum(axis=1)
    shares = (passed.sum(axis=1) / repetitions * votes).sum(axis=1) / weights
    if clusters is not None:
        totals, sizes = (unit_sums(values, clusters)[0] for values in (shares * weights, weights))
        shares, weights = totals / sizes, sizes
    most = len(samples) ** 2 * repetitions / math.fsum((1 / samples).tolist())
    interval = interval_ends(weighted_wilson(shares, weights, most=most).interval)
    return math.fsum(rates.tolist()) / len(rates), interval
