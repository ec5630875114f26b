"""Chooses a part of a dataset for quick runs, and how many of its samples may newly fail; measures what is lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.audit.gate_error_rates import GateTrial, SimulatedShare, simulated_gate, simulated_share
from deemster.audit.simulated_runs import ExecutionPool, SimulatedRun
from deemster.gate.read_gate import GateRules
from deemster.stats import certifiable_margin, count_prediction_limit

_Places: TypeAlias = NDArray[np.int64]
_Bools: TypeAlias = NDArray[np.bool_]
# Of the regressions that the whole dataset catches, a part must catch so many.
KEPT = 0.95
# A part of at most this share is worth the trouble; what it catches is always told.
WANTED_SHARE: Final = 0.4
_SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, WANTED_SHARE, 0.3, 0.2, 0.1)
# How often a part may alarm although nothing changed.
FALSE_ALARMS: Final = 0.05
# How often two runs are set aside.
_FOLDS = 12
# How far the pass-rate falls: of all samples beyond the margin, or of one group of them.
_OVERALL, _GROUP = (0.05, 0.25), (0.3, 0.8)
_FEWEST = 10
# A stratum of fewer samples is joined with others like it.
_SMALL_STRATUM = 5
EVERYWHERE, COHORT, TOPIC, DEFECT = "any samples", "one cohort", "one topic", "one kind of defect"


class KindPower(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part of a dataset catches of the planted regressions of one kind.

    Attributes:
        where: Which samples the regressions break.
        planted: How many were planted.
        whole: How many the gate fails on all samples.
        kept: Of these, how many the part catches.
    """

    where: str
    planted: int
    whole: int
    kept: int


class SubsetPower(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part of a dataset catches of planted regressions, beside the gate on all samples.

    Attributes:
        samples: How many samples the part has.
        max_newly_failing: The part alarms where more of its samples newly fail.
        whole: Regressions that the gate fails on all samples.
        caught: Of these, the part alarms; None where all samples catch none.
        false_alarms: The part alarms although nothing changed.
        false_alarms_whole: The gate fails on all samples although nothing changed.
        kinds: The regressions by the samples that they break.
    """

    samples: int
    max_newly_failing: int
    whole: SimulatedShare
    caught: SimulatedShare | None
    false_alarms: SimulatedShare
    false_alarms_whole: SimulatedShare
    kinds: tuple[KindPower, ...]

    @property
    def is_enough(self) -> bool:
        """Whether the part surely keeps the power of the whole: by the lower end of its interval."""
        return self.caught is not None and self.caught.low >= KEPT


class SampleSubset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of at most 40 % of a dataset, for quick runs between full ones.

    Its gate is a count: it alarms where more than ``power.max_newly_failing`` samples newly fail. After an alarm, a run
    of all samples decides.

    Attributes:
        ids: The samples, in the order of the dataset.
        samples: How many they are.
        of: How many samples the dataset has.
        share: The part of the dataset that they are.
        power: What so many samples catch, by simulation.
        enough_share: The smallest share of the samples that keeps the power; None where 90 % do not.
        is_held_out: Whether what is caught was measured on executions that did not choose the samples. Otherwise it is
            told a little too high.
        certifiable: The smallest margin that they certify where nothing flips.
        certifiable_whole: The same of all samples.
        never_passed: Samples that come last because no execution of them passed: they cannot fall.
        copies: Samples that come last because they are nearly the same as another one.
    """

    ids: tuple[str, ...]
    samples: int
    of: int
    share: float
    power: SubsetPower
    enough_share: float | None
    is_held_out: bool
    certifiable: float | None
    certifiable_whole: float | None
    never_passed: int
    copies: int


class SubsetSettings(NamedTuple):
    """How a part of a dataset is measured.

    Attributes:
        draws: How many regressions are planted, and how many pairs of runs without a change are drawn.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
    """

    draws: int = 200
    confidence: float = 0.95
    seed: int = 0


class SampleGroups(NamedTuple):
    """Which samples belong together beside their cohorts, by their places.

    Attributes:
        topics: Groups of samples with similar inputs.
        defects: For each kind of defect that applications have, the samples whose outputs can have it.
        copies: Samples that are nearly the same as an earlier one.
    """

    topics: Sequence[_Places] = ()
    defects: Sequence[_Places] = ()
    copies: Collection[int] = ()


NO_GROUPS = SampleGroups()


class _Fold(NamedTuple):
    """Two runs that are set aside, and the samples in the order in which the other executions choose them.

    Samples that were chosen because they passed look steadier than they are. So the executions that measure a part are
    never those that chose it.
    """

    order: _Places
    # Which executions of each sample the two runs have.
    executions: _Places

    def draw_pair(self, rng: np.random.Generator) -> tuple[SimulatedRun, SimulatedRun]:
        """The two runs; either execution of a sample may come first."""
        n, both = self.executions.shape
        turned = np.where(rng.random((n, 1)) < 0.5, np.roll(self.executions, both // 2, axis=1), self.executions)
        own = np.broadcast_to(np.arange(n)[:, None], (n, both // 2))
        whole = np.zeros(n, dtype=np.bool_)
        return SimulatedRun(own, turned[:, : both // 2], whole), SimulatedRun(own, turned[:, both // 2 :], whole)


def _set_runs_aside(pool: ExecutionPool, groups: SampleGroups, seed: int) -> list[_Fold]:
    """Folds of a pool; none where no execution is left to choose."""
    both, folds = 2 * pool.repetitions, []
    for number in range(_FOLDS if pool.executions > both else 0):
        rng = np.random.default_rng([seed, number, _FOLDS])
        shuffled = np.argsort(rng.random(pool.passed.shape), axis=1)
        others = np.take_along_axis(pool.passed, shuffled[:, both:], axis=1)
        folds.append(_Fold(rank_samples(pool, passed=others, groups=groups, seed=seed), shuffled[:, :both]))
    return folds


class PlantedRegressions:
    """Planted regressions, what a gate says of them on all samples, and which samples newly fail.

    Regressions come as real defects do. Some break samples of the whole dataset, so that its pass-rate falls by 5 to 25
    points more than the margin. The others break 30 to 80 points of one group of at least ten samples: a cohort, or one
    of ``groups``. All kinds are planted equally often. The gate on all samples catches a regression where it fails.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
        groups: Which samples belong together beside their cohorts.

    Attributes:
        caught: By regression, whether the gate fails.
        is_held_out: Whether there are executions that can choose samples and measure nothing.
    """

    def __init__(
        self,
        gate: GateRules,
        pool: ExecutionPool,
        *,
        metrics: Mapping[str, str],
        settings: SubsetSettings,
        groups: SampleGroups = NO_GROUPS,
    ) -> None:
        self._pool, self._settings = pool, settings
        cohorts = [places for _, places in pool.reference.marks.cohorts]
        kinds = {COHORT: cohorts, TOPIC: groups.topics, DEFECT: groups.defects}
        fitting = {
            where: [places for places in own if _FEWEST <= len(places) < pool.samples and pool.passed[places].any()]
            for where, own in kinds.items()
        }
        self._kinds: list[tuple[str, list[_Places]]] = [
            (EVERYWHERE, [np.arange(pool.samples)]),
            *((where, own) for where, own in fitting.items() if own),
        ]
        folds = _set_runs_aside(pool, groups, settings.seed)
        self.is_held_out = bool(folds)
        chosen = [fold.order for fold in folds] or [rank_samples(pool, groups=groups, seed=settings.seed)]
        # By draw, the samples in the order in which a part takes them.
        self._orders = np.array(chosen)[np.arange(settings.draws) // len(self._kinds) % len(chosen)]
        margin = gate.baseline.margin if gate.baseline is not None else None
        kept = simulated_gate(gate, metrics=metrics)[0]
        trial = GateTrial(kept, pool, metrics=metrics, seed=settings.seed)
        caught, alarms, broken, unchanged = [], [], [], []
        for number in range(settings.draws):
            rng = np.random.default_rng([settings.seed, number])
            source = folds[number // len(self._kinds) % len(folds)] if folds else pool
            before, after = source.draw_pair(rng)
            worse = self._plant(rng, after, number, margin or 0.0)
            alarms.append(trial.decide(before, after).decision.decision == "fail")
            caught.append(trial.decide(before, worse).decision.decision == "fail")
            unchanged.append(_newly_failing(pool, before, after))
            broken.append(_newly_failing(pool, before, worse))
        self.caught: _Bools = np.array(caught)
        self._alarms: _Bools = np.array(alarms)
        # By draw and sample, whether it newly fails.
        self._broken: _Bools = np.array(broken)
        self._unchanged: _Bools = np.array(unchanged)

    def _plant(self, rng: np.random.Generator, run: SimulatedRun, number: int, margin: float) -> SimulatedRun:
        where, groups = self._kinds[number % len(self._kinds)]
        scope = groups[int(rng.integers(len(groups)))]
        low, high = _OVERALL if where == EVERYWHERE else _GROUP
        drop = (margin if where == EVERYWHERE else 0.0) + low + (high - low) * rng.random()
        drop = min(drop, float(self._pool.passed[scope].mean()))
        return self._pool.break_samples(rng, run, drop=drop, scope=scope)

    def allowance(self, samples: int) -> int:
        """How many samples of a part may newly fail, so that at most 5 % of unchanged runs have more.

        Where no execution is left to choose, the noise of all samples counts as that of a part.

        Args:
            samples: The size of the part.
        """
        if self.is_held_out:
            expected = np.take_along_axis(self._unchanged, self._orders[:, :samples], axis=1).sum(axis=1).mean()
        else:
            expected = self._unchanged.mean() * samples
        pairs = max(1.0, self._pool.executions / self._pool.repetitions - 1)
        return count_prediction_limit(float(expected) * pairs, pairs, level=FALSE_ALARMS)

    def chosen_power(self, samples: int) -> SubsetPower:
        """What parts of one size catch, chosen by other executions than those that measure.

        Args:
            samples: The size of the part.
        """
        return self.power(self._orders[:, :samples], max_newly_failing=self.allowance(samples))

    def power(self, places: _Places, *, max_newly_failing: int) -> SubsetPower:
        """What some samples catch, beside all of them.

        Args:
            places: The samples, the same in each draw or a row for each.
            max_newly_failing: They alarm where more of them newly fail.
        """
        level, draws = self._settings.confidence, self._settings.draws
        places = np.broadcast_to(places, (draws, places.shape[-1]))
        alarms, false_alarms = (
            np.take_along_axis(newly, places, axis=1).sum(axis=1) > max_newly_failing
            for newly in (self._broken, self._unchanged)
        )
        numbers = np.arange(draws) % len(self._kinds)

        def kind(number: int, where: str) -> KindPower:
            own = numbers == number
            return KindPower(
                where=where,
                planted=int(own.sum()),
                whole=int((own & self.caught).sum()),
                kept=int((own & self.caught & alarms).sum()),
            )

        def share(which: _Bools) -> SimulatedShare:
            return simulated_share(int(which.sum()), len(which), confidence=level)

        return SubsetPower(
            samples=places.shape[1],
            max_newly_failing=max_newly_failing,
            whole=share(self.caught),
            caught=share(alarms[self.caught]) if self.caught.any() else None,
            false_alarms=share(false_alarms),
            false_alarms_whole=share(self._alarms),
            kinds=tuple(kind(number, where) for number, (where, _) in enumerate(self._kinds)),
        )


def _newly_failing(pool: ExecutionPool, before: SimulatedRun, after: SimulatedRun) -> _Bools:
    """By sample, whether it passed at least half of the time before and does not now."""
    was, now = (pool.passed[run.samples, run.executions].mean(axis=1) * ~run.broken >= 0.5 for run in (before, after))
    return np.asarray(was & ~now)


def choose_subset(
    gate: GateRules,
    pool: ExecutionPool,
    *,
    metrics: Mapping[str, str],
    settings: SubsetSettings,
    groups: SampleGroups = NO_GROUPS,
) -> SampleSubset | str:
    """The smallest part of a dataset that catches 95 % of the planted regressions that all samples catch.

    ``rank_samples`` says in which order samples are taken. The part has as few tenths of the dataset as catch enough,
    but at most 40 %. What so many samples catch is measured with parts that other executions chose; all executions
    choose the part itself.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
        groups: Which samples belong together beside their cohorts.

    Returns:
        The part, or why there is none, as a sentence.
    """
    if not pool.passed.any():
        return "No sample ever passes, so there is nothing that a change could break."
    regressions = PlantedRegressions(gate, pool, metrics=metrics, settings=settings, groups=groups)
    if not regressions.caught.any():
        return "All samples together catch none of the planted regressions, so there is no power to keep."
    n = pool.samples
    powers = {share: regressions.chosen_power(max(2, round(share * n))) for share in _SHARES}
    # All larger parts must be enough too: the smallest of several is often one that was lucky.
    enough = min(itertools.takewhile(lambda share: powers[share].is_enough, _SHARES), default=None)
    power = powers[WANTED_SHARE if enough is None else min(enough, WANTED_SHARE)]
    best = rank_samples(pool, groups=groups, seed=settings.seed)
    level = 0.95 if gate.baseline is None else gate.baseline.confidence
    return SampleSubset(
        ids=tuple(pool.reference.ids(np.sort(best[: power.samples]).tolist())),
        samples=power.samples,
        of=n,
        share=power.samples / n,
        power=power,
        enough_share=enough,
        is_held_out=regressions.is_held_out,
        certifiable=certifiable_margin(power.samples, confidence=level),
        certifiable_whole=certifiable_margin(n, confidence=level),
        never_passed=int((~pool.passed.any(axis=1)).sum()),
        copies=len(groups.copies),
    )


def rank_samples(
    pool: ExecutionPool, *, passed: _Bools | None = None, groups: SampleGroups = NO_GROUPS, seed: int = 0
) -> _Places:
    """The samples in the order in which a part of the dataset takes them.

    Samples that never passed cannot fall, and a copy falls with its original: both come last. The others come by their
    pass-rate over all executions, because a sample that always passes shows a drop without noise. Samples with the same
    tags and of the same topic keep their share.

    Args:
        pool: Their executions.
        passed: By sample and execution, whether it passed; all executions of the pool where not given.
        groups: Which samples belong together beside their cohorts.
        seed: The seed of the order of samples that are alike.
    """
    seen = pool.passed if passed is None else passed
    rates = seen.mean(axis=1)
    last = np.asarray(~seen.any(axis=1))
    last[list(groups.copies)] = True
    ties = np.random.default_rng(seed).random(pool.samples)
    labels: dict[int, tuple[int, ...]] = {}
    known = [places for _, places in pool.reference.marks.cohorts]
    for number, places in enumerate([*known, *groups.topics]):
        for place in places.tolist():
            labels[place] = (*labels.get(place, ()), number)
    sizes = Counter((bool(last[place]), labels.get(place, ())) for place in range(pool.samples))
    strata: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
    for place in sorted(range(pool.samples), key=lambda at: (-rates[at], ties[at])):
        stratum = bool(last[place]), labels.get(place, ())
        strata.setdefault(stratum if sizes[stratum] >= _SMALL_STRATUM else (stratum[0], ()), []).append(place)
    keyed = [
        (is_last, (rank + 0.5) / len(members), place)
        for (is_last, _), members in strata.items()
        for rank, place in enumerate(members)
    ]
    return np.array([place for _, _, place in sorted(keyed)], dtype=np.int64)
