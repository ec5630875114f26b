"""Chooses a part of a dataset that keeps the power of its gate, and measures what is lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.results.gate_error_rates import (
    POWER,
    GateOutcomes,
    GateTrial,
    SimulatedShare,
    gate_outcomes,
    simulated_gate,
    simulated_share,
)
from deemster.results.gate_rules import Gate
from deemster.results.simulated_runs import ExecutionPool
from deemster.stats import certifiable_margin, gate_power

_Places: TypeAlias = NDArray[np.int64]
# Of the regressions that the whole dataset catches, a part must catch so many.
KEPT = 0.95
# A part of at most this share is worth the trouble; what it catches is always told.
WANTED_SHARE: Final = 0.4
_LARGER_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
_SMALLER_SHARES = (0.1, 0.2, 0.3)
# How far the pass-rate falls: of all samples beyond the margin, or of one group of them.
_OVERALL, _GROUP = (0.05, 0.25), (0.3, 0.8)
_FEWEST = 10
# A stratum of fewer samples is joined with others like it.
_SMALL_STRATUM = 5
EVERYWHERE, COHORT, TOPIC, DEFECT = "any samples", "one cohort", "one topic", "one kind of defect"


class KindPower(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the gate says, on a part of a dataset, of the planted regressions of one kind.

    Attributes:
        where: Which samples the regressions break.
        planted: How many were planted.
        whole: How many the gate fails on all samples.
        kept: Of these, how many it fails on the part.
        passed: Of these, how many it passes on the part.
    """

    where: str
    planted: int
    whole: int
    kept: int
    passed: int


class SubsetPower(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part of a dataset catches of planted regressions, beside the whole, with a three-way gate.

    Attributes:
        samples: How many samples the part has.
        whole: Regressions that the gate fails on all samples.
        caught: What it says of these on the part; None where all samples catch none.
        unchanged: What it says on the part where nothing changed.
        unchanged_whole: What it says on all samples where nothing changed.
        kinds: The regressions by the samples that they break.
    """

    samples: int
    whole: SimulatedShare
    caught: GateOutcomes | None
    unchanged: GateOutcomes
    unchanged_whole: GateOutcomes
    kinds: tuple[KindPower, ...]

    @property
    def is_enough(self) -> bool:
        """Whether the part by itself keeps the power of the whole."""
        return self.caught is not None and self.caught.failed.rate >= KEPT


class SampleSubset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of at most 40 % of a dataset, which keeps the power of a gate by itself or as the first of two steps.

    In two steps, a run of the part is followed by one of all samples where the gate is inconclusive on the part.

    Attributes:
        ids: The samples, in the order of the dataset.
        samples: How many they are.
        of: How many samples the dataset has.
        share: The part of the dataset that they are.
        power: What so many samples catch, by simulation.
        enough_share: The smallest share of the samples that keeps the power by itself; None where 90 % do not.
        is_held_out: Whether what is caught was measured on executions that did not choose the samples. Otherwise it is
            told a little too high.
        detects: The smallest share of samples that break at random and fail the margin of the gate with a power of
            80 %, on the part. None where it has no margin, or no share does.
        detects_whole: The same on all samples.
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
    detects: float | None
    detects_whole: float | None
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

    draws: int = 60
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


class _Decisions(NamedTuple):
    """What the gate says of each planted regression, and of each pair without a change."""

    broken: NDArray[np.str_]
    unchanged: NDArray[np.str_]

    @property
    def caught(self) -> NDArray[np.bool_]:
        """Which regressions the gate fails."""
        return np.asarray(self.broken == "fail")


class _Regressions:
    """Planted regressions, and what a gate says of them on some samples."""

    def __init__(
        self,
        gate: Gate,
        pool: ExecutionPool,
        *,
        groups: SampleGroups,
        metrics: Mapping[str, str],
        settings: SubsetSettings,
    ) -> None:
        self._gate = simulated_gate(gate, metrics=metrics)[0]._replace(decision="three-way")
        self._pool, self._metrics, self._settings = pool, metrics, settings
        least = gate.baseline.margin if gate.baseline is not None else None
        self._margin = least or 0.0
        cohorts = [places for _, places in pool.reference.marks.cohorts]
        kinds = {COHORT: cohorts, TOPIC: groups.topics, DEFECT: groups.defects}
        fitting = {
            where: [places for places in own if _FEWEST <= len(places) < pool.samples] for where, own in kinds.items()
        }
        self._kinds: list[tuple[str, list[_Places]]] = [
            (EVERYWHERE, [np.arange(pool.samples)]),
            *((where, own) for where, own in fitting.items() if own),
        ]
        self.whole = self.decide(None)

    def decide(self, places: _Places | None) -> _Decisions:
        """What the gate says on some samples; on all where none are given."""
        trial = GateTrial(self._gate, self._pool, metrics=self._metrics, places=places, seed=self._settings.seed)
        broken, unchanged = [], []
        for number in range(self._settings.draws):
            rng = np.random.default_rng([self._settings.seed, number])
            before, after = self._pool.draw_pair(rng)
            unchanged.append(trial.decide(before, after).decision.decision)
            where, groups = self._kinds[number % len(self._kinds)]
            scope = groups[int(rng.integers(len(groups)))]
            low, high = _OVERALL if where == EVERYWHERE else _GROUP
            drop = (self._margin if where == EVERYWHERE else 0.0) + low + (high - low) * rng.random()
            drop = min(drop, float(self._pool.passed[scope].mean()))
            worse = self._pool.break_samples(rng, after, drop=drop, scope=scope)
            broken.append(trial.decide(before, worse).decision.decision)
        return _Decisions(np.array(broken), np.array(unchanged))

    def power(self, places: _Places) -> SubsetPower:
        """What some samples catch, beside all of them."""
        whole, part, level = self.whole, self.decide(places), self._settings.confidence
        caught = whole.caught
        numbers = np.arange(self._settings.draws) % len(self._kinds)

        def kind(number: int, where: str) -> KindPower:
            own = numbers == number
            said = part.broken[own & caught]
            return KindPower(
                where=where,
                planted=int(own.sum()),
                whole=len(said),
                kept=int((said == "fail").sum()),
                passed=int((said == "pass").sum()),
            )

        return SubsetPower(
            samples=len(places),
            whole=simulated_share(int(caught.sum()), len(caught), confidence=level),
            caught=gate_outcomes(part.broken[caught], confidence=level) if caught.any() else None,
            unchanged=gate_outcomes(part.unchanged, confidence=level),
            unchanged_whole=gate_outcomes(whole.unchanged, confidence=level),
            kinds=tuple(kind(number, where) for number, (where, _) in enumerate(self._kinds)),
        )


def measure_subset(
    gate: Gate,
    pool: ExecutionPool,
    places: _Places,
    *,
    metrics: Mapping[str, str],
    settings: SubsetSettings,
    groups: SampleGroups = NO_GROUPS,
) -> SubsetPower:
    """What some samples catch of planted regressions, beside all of them.

    Regressions come as real defects do. Some break samples of the whole dataset, so that its pass-rate falls by 5 to 25
    points more than the margin. The others break 30 to 80 points of one group of at least ten samples: a cohort, or one
    of ``groups``. All kinds are planted equally often. A regression is caught where the gate fails.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        places: The samples.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
        groups: Which samples belong together beside their cohorts.
    """
    return _Regressions(gate, pool, groups=groups, metrics=metrics, settings=settings).power(places)


def choose_subset(
    gate: Gate,
    pool: ExecutionPool,
    *,
    metrics: Mapping[str, str],
    settings: SubsetSettings,
    groups: SampleGroups = NO_GROUPS,
) -> SampleSubset | str:
    """The smallest part of a dataset that catches 95 % of the planted regressions that all samples catch.

    ``rank_samples`` says in which order samples are taken. The part grows by tenths of the dataset until it catches
    enough by itself; where 40 % are not enough, it is the first of two steps. Where there are enough executions, how
    much a part catches is measured on one half of them, with samples that the other half chooses. All executions then
    choose the samples of the part.

    No choice helps where all samples pass equally often and a regression hits any of them: then every part of a size
    catches as much as a random one, and small drops need many samples.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
        groups: Which samples belong together beside their cohorts.

    Returns:
        The part, or why there is none, as a sentence.
    """
    half = pool.executions // 2
    is_held_out = half >= 1 and pool.executions - half >= 2 * pool.repetitions
    chooser = pool.with_executions(slice(half)) if is_held_out else pool
    measured = pool.with_executions(slice(half, None)) if is_held_out else pool
    regressions = _Regressions(gate, measured, groups=groups, metrics=metrics, settings=settings)
    if not regressions.whole.caught.any():
        return "All samples together catch none of the planted regressions, so there is no power to keep."
    order, best = (
        np.array(list(rank_samples(one, groups=groups, seed=settings.seed)), dtype=np.int64) for one in (chooser, pool)
    )
    part = _smallest_part(regressions, order)
    count, n = part.power.samples, pool.samples
    level = 0.95 if gate.baseline is None else gate.baseline.confidence
    return SampleSubset(
        ids=tuple(pool.reference.ids(np.sort(best[:count]).tolist())),
        samples=count,
        of=n,
        share=count / n,
        power=part.power,
        enough_share=part.enough_share,
        is_held_out=is_held_out,
        detects=_detectable(gate, measured, np.sort(order[:count])),
        detects_whole=_detectable(gate, measured, np.arange(n)),
        certifiable=certifiable_margin(count, confidence=level),
        certifiable_whole=certifiable_margin(n, confidence=level),
        never_passed=int((~pool.passed.any(axis=1)).sum()),
        copies=len(groups.copies),
    )


class _ChosenPart(NamedTuple):
    """What a part of at most 40 % catches, and the share that keeps the power by itself."""

    power: SubsetPower
    enough_share: float | None


def _smallest_part(regressions: _Regressions, order: _Places) -> _ChosenPart:
    def power(share: float) -> SubsetPower:
        return regressions.power(np.sort(order[: max(2, round(share * len(order)))]))

    wanted = power(WANTED_SHARE)
    found = {WANTED_SHARE: wanted} if wanted.is_enough else {}
    shares = _SMALLER_SHARES if wanted.is_enough else _LARGER_SHARES
    low, high = 0, len(shares)
    while low < high:
        middle = (low + high) // 2
        tried = power(shares[middle])
        if tried.is_enough:
            found[shares[middle]], high = tried, middle
        else:
            low = middle + 1
    enough = min(found, default=None)
    return _ChosenPart(found[enough] if enough is not None and wanted.is_enough else wanted, enough)


def _detectable(gate: Gate, pool: ExecutionPool, places: _Places) -> float | None:
    """The smallest share of broken samples, in whole points, that fails a gate's margin with the usual power."""
    rules, flips, rate = gate.baseline, pool.flip_rate_of(places), float(pool.passed[places].mean())
    if rules is None or rules.margin is None or flips is None:
        return None
    for points in range(1, 100):
        broken = points / 100
        drop = broken * rate
        # Where a sample is run several times, its difference is a mean of as many.
        spread = flips * (1 - broken) / pool.repetitions + drop
        noise = {"flip_rate": spread} if pool.repetitions == 1 else {"sd": math.sqrt(spread - drop**2)}
        level = rules.confidence
        chance = gate_power(len(places), outcome="fail", drop=drop, margin=rules.margin, confidence=level, **noise)
        if chance >= POWER:
            return broken
    return None


def rank_samples(pool: ExecutionPool, *, groups: SampleGroups = NO_GROUPS, seed: int = 0) -> Iterator[int]:
    """The samples in the order in which a part of the dataset takes them.

    Samples that never passed cannot fall, and a copy falls with its original: both come last. The others come by their
    pass-rate over all executions, because a sample that always passes shows a drop without noise. Samples with the same
    tags and of the same topic keep their share.

    Args:
        pool: Their executions.
        groups: Which samples belong together beside their cohorts.
        seed: The seed of the order of samples that are alike.
    """
    rates = pool.passed.mean(axis=1)
    last = np.asarray(~pool.passed.any(axis=1))
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
    for _, _, place in sorted(keyed):
        yield place
