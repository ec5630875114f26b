"""Marks of a metric in two runs, as arrays by sample and repetition, and what is computed of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.records import MetricCard
from deemster.results.compared_numbers import PassTable
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import RunColumns
from deemster.stats import mcnemar
from deemster.stats.confidence_interval import Interval
from deemster.stats.noise_split import NoiseSplit, noise_split
from deemster.stats.pass_at_k import chances_of_all

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.int64]


class Side(NamedTuple):
    """One metric, or all of them, in one run, by sample and repetition."""

    passed: Bools
    scored: Bools

    def at(self, rows: Rows) -> Side:
        """The same of some samples."""
        if len(rows) == len(self.passed):
            return self
        return Side(self.passed[rows], self.scored[rows])

    @property
    def share(self) -> Floats:
        """The share of repetitions that pass, by sample."""
        return np.asarray(self.passed.mean(axis=1))

    def pass_at(self, k: int) -> Floats:
        """The chance that at least one of k repetitions passes, by sample."""
        failed = (~self.passed).sum(axis=1)
        return 1 - chances_of_all(failed, self.passed.shape[1], k)

    def pass_hat(self, k: int) -> Floats:
        """The chance that all of k repetitions pass, by sample."""
        return chances_of_all(self.passed.sum(axis=1), self.passed.shape[1], k)


class MacroShares:
    """The share of each sample in macro-F1: every metric has one vote, divided among the samples that it applies to.

    Args:
        applies: For each sample and metric, whether the metric applies to the sample in both runs.

    Attributes:
        rated: For each sample, whether a metric applies to it.
        before: The share of each sample in the baseline, times its weight.
        after: The share of each sample in the candidate, times its weight.
        weights: The weights, whose mean over rated samples is 1; None where all count alike.
    """

    def __init__(self, applies: Bools) -> None:
        self._applies = applies
        self.rated = np.asarray(applies.any(axis=1))

        n_samples = applies.sum(axis=0)
        n_metrics = int(np.count_nonzero(n_samples))
        # Where every metric applies to every sample, a mark counts 1 divided by the number of metrics.
        self._divisors = n_metrics * n_samples / max(1, int(np.count_nonzero(self.rated)))

        self.before = np.zeros(len(applies))
        self.after = np.zeros(len(applies))
        self.weights = None if applies.size and applies.all() else np.zeros(len(applies))

    def add(self, column: int, before: Floats, after: Floats) -> None:
        """Add the shares of a metric, by sample, in both runs."""
        divisor = float(self._divisors[column])
        if self.weights is None:
            self.before += before / divisor
            self.after += after / divisor
        elif divisor:
            inside = self._applies[:, column]
            self.before[inside] += before[inside] / divisor
            self.after[inside] += after[inside] / divisor
            self.weights[inside] += 1 / divisor


def card_of(run: RunColumns, name: str) -> MetricCard:
    """What a run knows of a metric."""
    return run.marks.cards[column_of(run, name)]


def column_of(run: RunColumns, name: str) -> int:
    """The column of a metric in a run."""
    return next(column for column, card in enumerate(run.marks.cards) if card.name == name)


def side_of(run: RunColumns, name: str, positions: Rows) -> Side:
    """A metric in a run, at some positions."""
    column = column_of(run, name)
    passed = run.marks.passed[:, :, column][positions]
    return Side(passed, run.marks.causes[:, :, column][positions] == SCORED)


def scores_of(run: RunColumns, name: str, positions: Rows) -> Floats:
    """The scores of a metric in a run, at some positions; 0 where there is none."""
    return run.marks.scores[:, :, column_of(run, name)][positions]


def metric_passed(run: RunColumns, name: str) -> Bools:
    """Whether a metric passed, for each sample that it applies to and each repetition."""
    column = column_of(run, name)
    return np.asarray(run.marks.passed[run.marks.applies_to(slice(None))[:, column], :, column])


def all_passed(run: RunColumns, names: list[str]) -> Bools:
    """Whether all metrics that apply passed, for each sample that one applies to and each repetition."""
    columns = [column_of(run, name) for name in names]
    applies = run.marks.applies_to(slice(None))[:, columns]
    passed = np.asarray((run.marks.passed[:, :, columns] | ~applies[:, None, :]).all(axis=2))
    return passed if applies.all() else passed[applies.any(axis=1)]


def pass_rate(passed: Bools) -> float:
    """The share that passed; 0 of none."""
    return int(np.count_nonzero(passed)) / passed.size if passed.size else 0.0


def mean_scores(scores: Floats, scored: Bools) -> Floats:
    """The mean score of each sample; 0 where it has none."""
    means = np.asarray(np.where(scored, scores, 0.0).sum(axis=1))
    means /= np.maximum(scored.sum(axis=1, dtype=np.int32), 1)
    return means


def mean_bounds(before: tuple[Floats, Bools], after: tuple[Floats, Bools]) -> Interval | None:
    """What the mean difference of all samples could be, whatever scores the unscored marks would have.

    Args:
        before: The scores of the baseline, and which of them there are.
        after: Those of the candidate.
    """
    scores_before, scored_before = before
    scores_after, scored_after = after
    if scored_before.all() and scored_after.all():
        return None
    low = np.where(scored_after, scores_after, 0.0).mean() - np.where(scored_before, scores_before, 1.0).mean()
    high = np.where(scored_after, scores_after, 1.0).mean() - np.where(scored_before, scores_before, 0.0).mean()
    return Interval(float(low), float(high))


def noise_of(before: Side, after: Side) -> NoiseSplit | None:
    """Where the noise of a pass-rate comes from; None where a run has no repetitions."""
    if before.passed.shape[1] < 2 or after.passed.shape[1] < 2:
        return None
    return noise_split(before.passed.astype(np.float64), after.passed.astype(np.float64))


def pass_table(before: Floats, after: Floats) -> PassTable:
    """How many samples passed in both runs, in one of them, in none; by the share of repetitions that pass."""
    passed_before = before >= 0.5
    passed_after = after >= 0.5
    newly_failing = int(np.count_nonzero(passed_before & ~passed_after))
    newly_passing = int(np.count_nonzero(~passed_before & passed_after))
    test = mcnemar(newly_failing, newly_passing)
    return PassTable(
        passed_both=int(np.count_nonzero(passed_before & passed_after)),
        newly_failing=newly_failing,
        newly_passing=newly_passing,
        failed_both=int(np.count_nonzero(~passed_before & ~passed_after)),
        p_value=test.p_value,
        mid_p=test.mid_p,
    )


def cluster_codes(keys: Iterable[Hashable]) -> Rows:
    """A number for each sample, by the key of its cluster, that only samples of one cluster share."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def known_means(values: Floats) -> Floats:
    """The mean of each row over what is known; NaN where nothing is."""
    if values.shape[1] == 1:
        return values[:, 0]
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def per_pass(run: RunColumns, values: Floats, names: list[str]) -> float | None:
    """The sum of values divided by how often all metrics passed; None where they never did."""
    n_passed = int(np.count_nonzero(all_passed(run, names))) if names else 0
    return float(np.nansum(values)) / n_passed if n_passed else None
