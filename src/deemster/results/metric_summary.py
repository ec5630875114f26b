"""The summary of one metric over some samples: counts, mean, pass rate, intervals, histogram."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.records import CAUSES, Where
from deemster.stats import (
    Proportion,
    bounded_mean,
    clustered_wilson,
    exact_mean,
    exact_stdev,
    quantile,
    weighted_wilson,
)
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.means import unit_sums

# The cluster of each sample; None where samples stand alone.
Clusters: TypeAlias = NDArray[np.intp] | None

SCORED = 0
NOT_RUN = CAUSES.index("not_run") + 1
# Not among the causes: a mark of a metric that does not apply to the sample is not unscored.
OUTSIDE = len(CAUSES) + 1
BINS = 10


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean score corrected for the judge's errors."""

    value: float
    low: float | None
    high: float | None


class CorrectedPassRate(msgspec.Struct, frozen=True, kw_only=True):
    """A pass rate corrected for the judge's errors, by labels of people.

    Attributes:
        value: The corrected rate; None where the labels do not allow one.
        low: The lower end of its 95 % interval.
        high: The upper end.
        labels: How many labels it rests on.
        source: The run or the cases whose outputs people labelled.
        note: Why it is missing or doubtful.
        mean: The corrected mean score, where people gave scores.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    labels: int = 0
    source: str | None = None
    note: str | None = None
    mean: CorrectedMean | None = None


class MetricSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the samples that it applies to, of some samples.

    An undefined number is None; every rate has the counts that it rests on.

    Attributes:
        n: The marks that should be there.
        n_scored: Those with a score.
        n_unscored: Those without one, though they were made.
        n_not_run: Those that were never made.
        n_passed: Scores that reach the threshold.
        unscored_by_cause: How many of the unscored have each cause.
        mean: The mean score.
        stdev: The standard deviation of the scores, over all repetitions.
        min: The lowest score.
        p5: The score that 5 % of the scores do not exceed.
        p50: The median score.
        p95: The score that 95 % do not exceed.
        max: The highest score.
        mean_interval: The 95 % interval of the mean, by sample or cluster.
        pass_rate: The share of all marks that passed; what has no score did not.
        pass_rate_worst: The same: what has no score failed.
        pass_rate_best: The share if all that has no score passed.
        pass_rate_scored: The share of the scores that passed.
        pass_rate_interval: The 95 % interval of the pass rate, by sample or cluster.
        pass_rate_corrected: The pass rate corrected by labels of people.
        n_not_applicable: Marks that were not made, since the metric does not apply to the sample; they are not in `n`.
    """

    n: int
    n_scored: int
    n_unscored: int
    n_not_run: int
    n_passed: int
    unscored_by_cause: dict[str, int]
    mean: float | None
    stdev: float | None
    min: float | None
    p5: float | None
    p50: float | None
    p95: float | None
    max: float | None
    mean_interval: Interval | None
    pass_rate: float | None
    pass_rate_worst: float | None
    pass_rate_best: float | None
    pass_rate_scored: float | None
    pass_rate_interval: Interval | None
    pass_rate_corrected: CorrectedPassRate | None = None
    n_not_applicable: int = 0


class CriterionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion of a rubric over the scored marks of its metric.

    Attributes:
        n: Marks that report on it.
        n_judged: Those with a verdict that has a value.
        n_abstained: Those whose verdict is an abstention.
        n_failed: Those where every vote on it failed.
        mean: The mean value of those with one; of a binary criterion, the share that was met.
        mean_interval: Its 95 % interval over per-sample means; None below two samples.
        mean_agreement: The mean share of the votes that equal the verdict.
    """

    n: int
    n_judged: int
    n_abstained: int
    n_failed: int
    mean: float | None
    mean_interval: Interval | None
    mean_agreement: float | None


class PanelSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The panels of judges behind the scores of a metric.

    Attributes:
        n: Scores that votes of judges were combined into.
        n_incomplete: Those that lack the vote of a judge that failed.
        quorum: The fewest votes that make a score; None where every judge must vote.
    """

    n: int = 0
    n_incomplete: int = 0
    quorum: int | None = None


class RunMetricSummary(MetricSummary, frozen=True, kw_only=True):
    """One metric over the whole run, and what the metric is.

    Attributes:
        spec: The metric as a suite writes it.
        identity: What must be equal for marks of two runs to be compared.
        family: The family it belongs to.
        threshold: The pass mark; None where it differs between samples.
        higher_is_better: Whether scores pass at or above it.
        criteria: The criteria of a rubric.
        roles: The models that it asks.
        where: The samples that it applies to; None for all.
    """

    spec: str
    identity: str
    family: str
    threshold: float | None
    higher_is_better: bool
    criteria: dict[str, CriterionSummary] | None = None
    roles: tuple[str, ...] = ()
    where: Where | None = None


class HistogramBin(msgspec.Struct, frozen=True):
    """One bar of a histogram: scores from `low` up to, but not including, `high` (the last bin includes 1)."""

    low: float
    high: float
    count: int


def summarize_metric(
    scores: NDArray[np.float64],
    causes: NDArray[np.uint8],
    passed: NDArray[np.bool_],
    clusters: Clusters = None,
) -> MetricSummary:
    """One metric, from its marks in arrays of samples x repetitions.

    Args:
        scores: The scores; values at unscored places are not read.
        causes: `SCORED`, `OUTSIDE`, or 1 + the cause's place in ``CAUSES``.
        passed: Whether the mark passed.
        clusters: The cluster of each sample.
    """
    n_marks, repetitions = scores.size, scores.shape[1]
    applies = (causes != OUTSIDE).any(axis=1)
    if not applies.all():
        scores = scores[applies]
        causes = causes[applies]
        passed = passed[applies]
        clusters = None if clusters is None else clusters[applies]

    scored = causes == SCORED
    scored_clusters = None if clusters is None else clusters[scored.any(axis=1)]
    interval = mean_interval(sample_means(scores, scored), scored_clusters)
    values = scores[scored]
    values.sort()

    n, n_scored, n_passed = scores.size, values.size, int(np.count_nonzero(passed))
    counts = np.bincount(causes.ravel(), minlength=OUTSIDE + 1)
    # If a metric applies to only some repetitions of a sample, its metadata changed while the run was stopped.
    n_not_run = int(counts[NOT_RUN] + counts[OUTSIDE])

    return MetricSummary(
        n=n,
        n_scored=n_scored,
        n_unscored=n - n_scored - n_not_run,
        n_not_run=n_not_run,
        n_passed=n_passed,
        unscored_by_cause=_unscored_by_cause(counts),
        mean=exact_mean(values),
        stdev=exact_stdev(values),
        min=quantile(values, 0.0),
        p5=quantile(values, 0.05),
        p50=quantile(values, 0.50),
        p95=quantile(values, 0.95),
        max=quantile(values, 1.0),
        mean_interval=interval,
        pass_rate=_share(n_passed, n),
        pass_rate_worst=_share(n_passed, n),
        pass_rate_best=_share(n_passed + n - n_scored, n),
        pass_rate_scored=_share(n_passed, n_scored),
        pass_rate_interval=share_interval(passed.sum(axis=1), repetitions, clusters),
        n_not_applicable=n_marks - n,
    )


def _unscored_by_cause(counts: NDArray[np.intp]) -> dict[str, int]:
    by_cause = zip(CAUSES, counts[1:OUTSIDE].tolist(), strict=True)
    return {cause: count for cause, count in by_cause if count and cause != "not_run"}


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


def share_interval(passed: NDArray[np.int64], marks: int, clusters: Clusters = None) -> Interval | None:
    """Wilson's 95 % interval of the share of marks that passed, by sample or cluster; None without a mark."""
    return interval_ends(clustered_share(passed, marks, clusters).interval)


def clustered_share(passed: NDArray[np.int64], marks: int, clusters: Clusters = None) -> Proportion:
    """The share of marks that passed, with Wilson's 95 % interval by sample or cluster.

    Args:
        passed: How many marks of each sample passed.
        marks: How many marks each sample has.
        clusters: The cluster of each sample.
    """
    if clusters is None:
        return clustered_wilson(passed, marks=marks)
    totals, sizes = unit_sums(passed, clusters)
    return weighted_wilson(totals / (sizes * marks), sizes, most=marks * len(passed))


def mean_share_interval(shares: NDArray[np.float64], marks: float, clusters: Clusters = None) -> Interval | None:
    """Wilson's 95 % interval of the mean of samples' shares, by sample or cluster; None without a sample.

    Args:
        shares: The share of each sample.
        marks: How many independent marks the share of a sample rests on at most.
        clusters: The cluster of each sample.
    """
    sizes = np.ones(len(shares))
    most = marks * len(shares)
    if clusters is not None:
        totals, sizes = unit_sums(shares, clusters)
        shares = totals / sizes
    return interval_ends(weighted_wilson(shares, sizes, most=most).interval)


def sample_means(scores: NDArray[np.float64], scored: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean score of each sample that has one."""
    if scores.shape[1] == 1:
        return scores[scored]
    counts = scored.sum(axis=1)
    # Sorted within the sample, so that the order of repetitions changes no digit.
    sums = np.sort(np.where(scored, scores, 0.0), axis=1).sum(axis=1)
    return np.asarray(sums[counts > 0] / counts[counts > 0])


def mean_interval(means: NDArray[np.float64], clusters: Clusters = None) -> Interval | None:
    """A 95 % interval of the mean of per-sample means in [0, 1] (see ``bounded_mean``).

    Undefined (None) below two samples, or two clusters of them.

    Args:
        means: The mean of each sample.
        clusters: The cluster of each sample.
    """
    if clusters is not None:
        totals, sizes = unit_sums(means, clusters)
        return None if sizes.size < 2 else interval_ends(bounded_mean(totals, sizes).interval)
    return None if means.size < 2 else interval_ends(bounded_mean(means).interval)


def histogram(scores: NDArray[np.float64], causes: NDArray[np.uint8]) -> tuple[HistogramBin, ...]:
    """The scored marks in ten bins, [0, 0.1) to [0.9, 1.0]; empty bins are kept.

    Scores are rounded to ten decimals first, so that 1 - 0.9 falls into the second bin.
    """
    steps = np.rint(scores[causes == SCORED] * 1e10).astype(np.int64) // 10**9
    counts = np.bincount(np.minimum(steps, BINS - 1), minlength=BINS)
    return tuple(HistogramBin(index / BINS, (index + 1) / BINS, int(count)) for index, count in enumerate(counts))
