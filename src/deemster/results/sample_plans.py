"""Plans: what the samples of a dataset or run can show, and how many a question needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.errors import ConfigurationError, did_you_mean
from deemster.results.repetition_precision import within_sample_variance
from deemster.results.run_columns import JoinedSamples, RunColumns, join_samples
from deemster.results.run_summary import cohort_label
from deemster.stats.noise_split import noise_split
from deemster.stats.paired_difference import certifiable_margin
from deemster.stats.power_analysis import (
    RepetitionSplit,
    certain_margin,
    detectable_difference,
    detectable_drop,
    repetition_splits,
    sample_size,
    samples_to_certify,
    samples_to_detect,
)

Source: TypeAlias = Literal["stated", "two runs", "repetitions", "pass-rate"]
_Bools: TypeAlias = NDArray[np.bool_]
_Places: TypeAlias = NDArray[np.int64]

EVERY_METRIC = "every metric"
# How often a mark passes, and how often it flips from run to run, where nothing is known.
USUAL_PASS_RATE, USUAL_FLIP_RATE = 0.8, 0.1


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """How much the marks of two runs on the same samples differ without any true difference.

    Attributes:
        source: Where it comes from: stated by the user, two runs, the repetitions of one, or the pass-rate of one, as
            if the marks of two runs had a correlation of one half.
        pass_rate: The share of marks that pass.
        flip_rate: The share of samples whose mark differs, for single marks of pass or fail.
        sd: The standard deviation over samples of the difference, otherwise.
        within: The variance of single marks of one sample, where there are repetitions.
        between: The variance over samples of the difference that endless repetitions would show, where it is known.
    """

    source: Source
    pass_rate: float
    flip_rate: float | None = None
    sd: float | None = None
    within: float | None = None
    between: float | None = None


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
        metric: Whose pass-rate it is.
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


def stated_noise(*, pass_rate: float | None = None, flip_rate: float | None = None, sd: float | None = None) -> Noise:
    """Noise as the user states it; a flip rate of 10 % where nothing is said."""
    rate = USUAL_PASS_RATE if pass_rate is None else pass_rate
    if flip_rate is None and sd is None:
        flip_rate = USUAL_FLIP_RATE if pass_rate is None else rate * (1 - rate)
    return Noise(source="stated", pass_rate=rate, flip_rate=flip_rate, sd=sd)


class RunNoise:
    """The noise of the marks of a run, for some of its samples.

    Args:
        run: The run.
        against: Another run of the same samples, whose differences are the noise.
        stated: What the user says instead.

    Raises:
        ConfigurationError: The two runs share no sample.
    """

    def __init__(self, run: RunColumns, against: RunColumns | None, stated: Noise | None) -> None:
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
        """The noise of a metric's pass-rate, or that of all metrics together, at some samples.

        Raises:
            ConfigurationError: A run has no such metric.
        """
        marks = passed_marks(self._run, metric)
        here = marks[places]
        # With all or nothing passed, the rate is known no better than this.
        rate = (int(here.sum()) + 1) / (here.size + 2)
        if self._stated is not None:
            return msgspec.structs.replace(self._stated, pass_rate=rate)
        if self._against is not None and self._joined is not None:
            inside = rated_samples(self._against, metric)[self._joined.before]
            known = np.flatnonzero(np.isin(self._joined.after, places) & inside)
            before = passed_marks(self._against, metric)[self._joined.before[known]]
            return _noise_of_pairs(rate, before, marks[self._joined.after[known]])
        within = within_sample_variance(here.sum(axis=1), repetitions=here.shape[1])
        if within:
            return Noise(source="repetitions", pass_rate=rate, sd=(2 * within / here.shape[1]) ** 0.5, within=within)
        return Noise(source="pass-rate", pass_rate=rate, flip_rate=rate * (1 - rate), within=within)


def passed_marks(run: RunColumns, metric: str) -> _Bools:
    """Which marks of a metric, or of all metrics together, passed, by sample and repetition.

    Raises:
        ConfigurationError: The run has no such metric.
    """
    if metric == EVERY_METRIC:
        return np.asarray((run.marks.passed | ~run.marks.applies_to(slice(None))[:, None, :]).all(axis=2))
    return run.marks.passed[:, :, _place(run, metric)]


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


def _noise_of_pairs(rate: float, before: _Bools, after: _Bools) -> Noise:
    differences = after.mean(axis=1) - before.mean(axis=1)
    split = noise_split(before, after)
    return Noise(
        source="two runs",
        pass_rate=rate,
        flip_rate=float(np.mean(differences != 0)) if before.shape[1] == after.shape[1] == 1 else None,
        sd=None if before.shape[1] == after.shape[1] == 1 else float(np.std(differences, ddof=min(1, len(after) - 1))),
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
    together = metric or (EVERY_METRIC if len(names) > 1 else names[0])
    for name in [metric] if metric else [*names, *([EVERY_METRIC] if len(names) > 1 else [])]:
        inside = everything[rated_samples(run, name)]
        if len(inside):
            yield detection(name, None, len(inside), noise.find(name, inside), goal=goal)
    cohorts = run.marks.cohorts
    if len(cohorts) > 1:
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
    counts: dict[str | None, int] = {}
    n = 0
    for own in tags:
        n += 1
        for tag in own or (None,):
            counts[tag] = counts.get(tag, 0) + 1
    yield detection(EVERY_METRIC, None, n, noise, goal=goal)
    if len(counts) > 1:
        for tag in sorted(counts, key=lambda tag: (tag is None, tag or "")):
            yield detection(EVERY_METRIC, cohort_label(tag), counts[tag], noise, goal=goal)


def detection(metric: str, cohort: str | None, n: int, noise: Noise, *, goal: Goal) -> Detection:
    """What so many samples can show with such noise."""
    ask: dict[str, Any] = {"flip_rate": noise.flip_rate, "sd": noise.sd, **goal._asdict()}
    return Detection(
        metric=metric,
        cohort=cohort,
        n=n,
        noise=noise,
        certifiable=certifiable_margin(n, confidence=goal.confidence),
        margin=certain_margin(n, **ask),
        drop=detectable_drop(n, **ask),
        drop_unpaired=min(
            1.0,
            detectable_difference(_unpaired_variance(noise), n, level=1 - goal.confidence, power=goal.power).value,
        ),
    )


def plan_size(effect: float, noise: Noise, *, sample_cost: float = 0.0, goal: Goal) -> SamplePlan:
    """How many samples show a drop, and certify it as a margin.

    Raises:
        ValueError: The effect is outside (0, 1), or the cost of a sample is negative.
    """
    ask: dict[str, Any] = {"flip_rate": noise.flip_rate, "sd": noise.sd, **goal._asdict()}
    level = 1 - goal.confidence
    splits: tuple[RepetitionSplit, ...] = ()
    if noise.within and noise.between is not None:
        splits = repetition_splits(
            effect,
            between=noise.between,
            within=noise.within,
            sample_cost=sample_cost,
            fewest=samples_to_detect(effect, flip_rate=0.0, **goal._asdict()) or 1,
            level=level,
            power=goal.power,
        )
    return SamplePlan(
        effect=effect,
        noise=noise,
        detect=samples_to_detect(effect, **ask),
        detect_unpaired=sample_size(_unpaired_variance(noise), effect, level=level, power=goal.power).value,
        certify=samples_to_certify(effect, **ask),
        certify_unchanged=samples_to_certify(effect, flip_rate=0.0, **goal._asdict()),
        splits=splits,
    )


def _unpaired_variance(noise: Noise) -> float:
    """The variance of the difference of two marks of different samples."""
    return 2 * noise.pass_rate * (1 - noise.pass_rate)
