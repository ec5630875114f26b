"""Plans: what the samples of a dataset or run can show, and how many a question needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.errors import ConfigurationError, did_you_mean
from deemster.results.metric_summary import SCORED
from deemster.results.run_columns import JoinedSamples, RunColumns, join_samples
from deemster.results.run_summary import cohort_label, cohort_sizes
from deemster.results.undeclared_clusters import group_likeness
from deemster.stats.noise_split import noise_split
from deemster.stats.paired_difference import certifiable_margin
from deemster.stats.power_analysis import (
    PairedNoise,
    RepetitionSplit,
    certain_margin,
    detectable_difference,
    detectable_drop,
    repetition_splits,
    sample_size,
    samples_to_certify,
    samples_to_detect,
)

Source: TypeAlias = Literal["stated", "two runs", "repetitions", "one run"]
_Bools: TypeAlias = NDArray[np.bool_]
_Floats: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.int64]

EVERY_METRIC = "every metric"
# How often a mark passes, and how often it flips from run to run, where nothing is known.
USUAL_PASS_RATE, USUAL_FLIP_RATE = 0.8, 0.1
# How alike samples of one cluster are, where nothing is known.
USUAL_ICC = 0.3
# Clusters that flip together have long tails, which cost power: with so much more spread, simulated plans keep theirs.
_LONG_TAIL = 1.12
_UNCHANGED = PairedNoise(flip_rate=0.0)


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How much the marks of two runs on the same samples differ without any true difference.

    Attributes:
        source: Where it comes from: stated by the user, two runs, the repetitions of one, or the spread of the marks of
            one, as if the marks of two runs had a correlation of one half.
        variance: The variance of the marks of different samples; p(1 - p) for a pass-rate p.
        flip_rate: The share of samples whose mark differs, for single marks of pass or fail.
        sd: The standard deviation over samples of the difference, otherwise.
        within: The variance of single marks of one sample, where there are repetitions.
        between: The variance over samples of the difference that endless repetitions would show, where it is known.
        cluster_size: How many samples a cluster has on average; 1 where each sample stands alone.
        icc: How much the differences of samples of one cluster are alike: their intraclass correlation.
        scores: Whether it is about mean scores, which may all fall a little, and not about samples that break.
    """

    source: Source
    variance: float
    flip_rate: float | None = None
    sd: float | None = None
    within: float | None = None
    between: float | None = None
    cluster_size: float = 1.0
    icc: float = 0.0
    scores: bool = False

    @property
    def design_effect(self) -> float:
        """How many times more samples are needed than without clusters: 1 + (size - 1)·icc."""
        return 1 + (self.cluster_size - 1) * self.icc

    @property
    def of_unit(self) -> PairedNoise:
        """The noise of one unit: of a sample, or of the mean difference of a cluster."""
        if self.cluster_size == 1:
            return PairedNoise(flip_rate=self.flip_rate, sd=self.sd, breaking=self.breaking)
        variance = self.flip_rate if self.flip_rate is not None else (self.sd or 0.0) ** 2
        return PairedNoise(sd=(variance * self._unit_share) ** 0.5, breaking=self.breaking)

    @property
    def breaking(self) -> float:
        """How much of the variance d(1 - d) of samples that break a drop d adds to that of one unit."""
        return 0.0 if self.scores else self._unit_share

    @property
    def _unit_share(self) -> float:
        tail = _LONG_TAIL if self.icc and self.cluster_size > 1 else 1.0
        return tail**2 * self.design_effect / self.cluster_size


class Goal(NamedTuple):
    """How certain an answer must be.

    Attributes:
        confidence: The level of intervals and one-sided bounds.
        power: The chance of an answer.
    """

    confidence: float = 0.95
    power: float = 0.8


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """What some samples can show.

    Attributes:
        metric: Whose pass-rate, or mean score, it is.
        cohort: The cohort; None for all samples.
        n: How many samples.
        noise: What the numbers rest on.
        certifiable: The smallest margin that the gate certifies if nothing flips.
        margin: The smallest margin that it certifies with the given power, if nothing is worse.
        drop: The smallest drop that two runs of these samples show with the given power.
        drop_unpaired: The same for two runs of so many different samples each.
    """

    metric: str
    cohort: str | None
    n: int
    noise: Noise
    certifiable: float | None
    margin: float | None
    drop: float | None
    drop_unpaired: float


class SamplePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples a question needs.

    Attributes:
        effect: The drop to be shown, and the margin to be certified.
        noise: What the numbers rest on.
        detect: Samples that show the drop, both runs on the same ones.
        detect_unpaired: Samples for each of two runs on different ones.
        certify: Samples that certify the margin, if nothing is worse.
        certify_unchanged: The same if nothing flips.
        splits: Samples with 1, 2, ... repetitions that show the drop, cheapest first; empty where the noise of
            repetitions is not known.
    """

    effect: float
    noise: Noise
    detect: int | None
    detect_unpaired: int
    certify: int | None
    certify_unchanged: int | None
    splits: tuple[RepetitionSplit, ...] = ()


def stated_noise(
    *,
    pass_rate: float | None = None,
    flip_rate: float | None = None,
    sd: float | None = None,
    cluster_size: float = 1.0,
    icc: float = 0.0,
) -> Noise:
    """Noise as the user states it; a flip rate of 10 % where nothing is said."""
    rate = USUAL_PASS_RATE if pass_rate is None else pass_rate
    if flip_rate is None and sd is None:
        flip_rate = USUAL_FLIP_RATE if pass_rate is None else rate * (1 - rate)
    return Noise(
        source="stated",
        variance=rate * (1 - rate),
        flip_rate=flip_rate,
        sd=sd,
        cluster_size=cluster_size,
        icc=icc,
        scores=sd is not None,
    )


class RunNoise:
    """The noise of the marks of a run, for some of its samples.

    Args:
        run: The run.
        against: Another run of the same samples, whose differences are the noise.
        stated: What the user says instead.
        scores: Look at scores instead of passes.

    Raises:
        ConfigurationError: The two runs share no sample.
    """

    def __init__(
        self, run: RunColumns, against: RunColumns | None, stated: Noise | None, *, scores: bool = False
    ) -> None:
        self.scores = scores
        self._run, self._against, self._stated = run, against, stated
        self._joined: JoinedSamples | None = None
        if against is not None:
            self._joined = join_samples(against, run)
            if not len(self._joined.after):
                raise ConfigurationError("The two runs share no sample, so nothing says how much they differ.")

    def metrics(self) -> list[str]:
        """The names of the metrics, in the order of the suite."""
        return [card.name for card in self._run.marks.cards]

    def find(self, metric: str, places: _Places) -> Noise:
        """The noise of a metric, or of all metrics together, at some samples.

        Where the run has clusters, their size and likeness are measured on the differences of two runs, else on the
        marks of the one.

        Raises:
            ConfigurationError: A run has no such metric, or no score there.
        """
        noise = self._independent(metric, places)
        if self.scores:
            noise = msgspec.structs.replace(noise, scores=True)
        if self._run.clusters is None:
            return noise
        values, positions = np.nanmean(mark_values(self._run, metric, scores=self.scores)[places], axis=1), places
        if self._against is not None and self._joined is not None:
            kept = np.isin(self._joined.after, places) & rated_samples(self._against, metric)[self._joined.before]
            positions = self._joined.after[kept]
            runs = (self._run, positions), (self._against, self._joined.before[kept])
            now, before = (np.nanmean(mark_values(run, metric, scores=self.scores)[at], axis=1) for run, at in runs)
            values = now - before
        known = np.flatnonzero(~np.isnan(values))
        names = [str(self._run.clusters[position]) for position in positions[known].tolist()]
        _, groups = np.unique(names, return_inverse=True)
        likeness = group_likeness(values[known], groups)
        # Repetitions of different samples have nothing in common.
        icc = 0.0 if noise.source == "repetitions" else likeness.icc
        return msgspec.structs.replace(noise, cluster_size=likeness.size, icc=icc)

    def _independent(self, metric: str, places: _Places) -> Noise:
        """The noise as if each sample stood alone."""
        marks = mark_values(self._run, metric, scores=self.scores)
        here = marks[places]
        if np.isnan(here).all():
            raise ConfigurationError(f"The run has no score of `{metric}` to measure the noise on.")
        variance = float(np.nanvar(here))
        if not self.scores:
            # With all or nothing passed, the rate is known no better than this.
            rate = (float(here.sum()) + 1) / (here.size + 2)
            variance = rate * (1 - rate)
        if self._stated is not None:
            return msgspec.structs.replace(self._stated, variance=variance)
        if self._against is not None and self._joined is not None:
            inside = rated_samples(self._against, metric)[self._joined.before]
            known = np.flatnonzero(np.isin(self._joined.after, places) & inside)
            before = mark_values(self._against, metric, scores=self.scores)[self._joined.before[known]]
            return _noise_of_pairs(variance, before, marks[self._joined.after[known]], scores=self.scores)
        # A run compared with itself: what is left is the noise of repetitions.
        split = noise_split(here, here)
        if split is not None and split.within[0]:
            within, repetitions = split.within[0], split.repetitions[0]
            return Noise(source="repetitions", variance=variance, sd=(2 * within / repetitions) ** 0.5, within=within)
        if self.scores:
            return Noise(source="one run", variance=variance, sd=variance**0.5)
        return Noise(source="one run", variance=variance, flip_rate=variance)


def mark_values(run: RunColumns, metric: str, *, scores: bool = False) -> _Floats:
    """The marks of a metric, or of all metrics together, by sample and repetition.

    Passes are 1 and all others 0, unscored ones too; scores are NaN where there is none.

    Raises:
        ConfigurationError: The run has no such metric, or scores of all metrics together are asked for.
    """
    if metric != EVERY_METRIC:
        place = _place(run, metric)
        passed = run.marks.passed[:, :, place].astype(np.float64)
        return (
            np.where(run.marks.causes[:, :, place] == SCORED, run.marks.scores[:, :, place], np.nan)
            if scores
            else passed
        )
    if scores:
        raise ConfigurationError("Scores of different metrics are not looked at together. Name one with `--metric`.")
    together = (run.marks.passed | ~run.marks.applies_to(slice(None))[:, None, :]).all(axis=2)
    return np.asarray(together, dtype=np.float64)


def rated_samples(run: RunColumns, metric: str) -> _Bools:
    """For each sample, whether a metric, or any of them, applies to it.

    Raises:
        ConfigurationError: The run has no such metric.
    """
    applies = run.marks.applies_to(slice(None))
    return np.asarray(applies.any(axis=1)) if metric == EVERY_METRIC else applies[:, _place(run, metric)]


def _place(run: RunColumns, metric: str) -> int:
    names = [card.name for card in run.marks.cards]
    if metric not in names:
        raise ConfigurationError(f"No metric of the run is called `{metric}`. {did_you_mean(metric, names)}")
    return names.index(metric)


def _noise_of_pairs(variance: float, before: _Floats, after: _Floats, *, scores: bool) -> Noise:
    """The noise of two runs of the same samples, of those that have marks on both sides."""
    both = ~(np.isnan(before).all(axis=1) | np.isnan(after).all(axis=1))
    before, after = before[both], after[both]
    if not len(before):
        raise ConfigurationError("The two runs share no scored sample, so nothing says how much they differ.")
    differences = np.nanmean(after, axis=1) - np.nanmean(before, axis=1)
    is_flip = not scores and before.shape[1] == after.shape[1] == 1
    split = noise_split(before, after)
    return Noise(
        source="two runs",
        variance=variance,
        flip_rate=float(np.mean(differences != 0)) if is_flip else None,
        sd=None if is_flip else float(np.std(differences, ddof=min(1, len(after) - 1))),
        within=None if split is None else sum(split.within) / 2,
        between=None if split is None else split.between,
    )


def plan_run(noise: RunNoise, run: RunColumns, *, metric: str | None = None, goal: Goal) -> Iterator[Detection]:
    """What the samples of a run can show: each metric, then each cohort of one metric, or of all together.

    Only samples that a metric applies to count.

    Raises:
        ConfigurationError: The run has no such metric.
    """
    everything = np.arange(run.marks.samples)
    names = noise.metrics()
    is_several = len(names) > 1 and metric is None
    together = metric or (EVERY_METRIC if is_several else names[0])
    for name in [*names, *([] if noise.scores else [EVERY_METRIC])] if is_several else [together]:
        inside = everything[rated_samples(run, name)]
        if len(inside):
            yield detection(name, None, len(inside), noise.find(name, inside), goal=goal)
    cohorts = run.marks.cohorts
    if len(cohorts) > 1 and not (noise.scores and is_several):
        rated = rated_samples(run, together)
        for tag, places in cohorts:
            if len(inside := places[rated[places]]):
                yield detection(together, cohort_label(tag), len(inside), noise.find(together, inside), goal=goal)


def plan_dataset(tags: Iterable[Sequence[str]], noise: Noise, *, goal: Goal) -> Iterator[Detection]:
    """What the samples of a dataset can show: all, and each cohort.

    Args:
        tags: The tags of each sample.
        noise: What is known or guessed of its marks.
        goal: How certain the answer must be.
    """
    every = list(tags)
    yield detection(EVERY_METRIC, None, len(every), noise, goal=goal)
    sizes = cohort_sizes(every)
    if len(sizes) > 1:
        for tag, size in sizes.items():
            yield detection(EVERY_METRIC, cohort_label(tag), size, noise, goal=goal)


def detection(metric: str, cohort: str | None, n: int, noise: Noise, *, goal: Goal) -> Detection:
    """What so many samples can show with such noise."""
    confidence, power = goal
    units = max(1, math.floor(n / noise.cluster_size))
    spread = 2 * noise.variance * noise.design_effect

    return Detection(
        metric=metric,
        cohort=cohort,
        n=n,
        noise=noise,
        certifiable=certifiable_margin(units, confidence=confidence),
        margin=certain_margin(units, noise.of_unit, confidence=confidence, power=power),
        drop=detectable_drop(units, noise.of_unit, confidence=confidence, power=power),
        drop_unpaired=min(1.0, detectable_difference(spread, n, level=1 - confidence, power=power).value),
    )


def plan_size(effect: float, noise: Noise, *, sample_cost: float = 0.0, goal: Goal) -> SamplePlan:
    """How many samples show a drop, and certify it as a margin.

    Raises:
        ValueError: The effect is outside (0, 1), or the cost of a sample is negative.
    """
    confidence, power = goal
    level = 1 - confidence

    splits: tuple[RepetitionSplit, ...] = ()
    if noise.within and noise.between is not None and noise.cluster_size == 1:
        splits = repetition_splits(
            effect,
            between=noise.between + noise.breaking * effect * (1 - effect),
            within=noise.within,
            sample_cost=sample_cost,
            fewest=samples_to_detect(effect, _UNCHANGED, confidence=confidence, power=power) or 1,
            level=level,
            power=power,
        )

    certify = samples_to_certify(effect, noise.of_unit, confidence=confidence, power=power)
    certify_unchanged = samples_to_certify(effect, _UNCHANGED, confidence=confidence, power=power)
    return SamplePlan(
        effect=effect,
        noise=noise,
        detect=_samples(samples_to_detect(effect, noise.of_unit, confidence=confidence, power=power), noise),
        detect_unpaired=sample_size(2 * noise.variance * noise.design_effect, effect, level=level, power=power).value,
        certify=_samples(certify, noise),
        certify_unchanged=_samples(certify_unchanged, noise),
        splits=splits,
    )


def _samples(units: int | None, noise: Noise) -> int | None:
    """The samples of so many units."""
    return None if units is None else math.ceil(units * noise.cluster_size)
