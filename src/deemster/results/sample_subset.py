"""Chooses the smallest part of a dataset that keeps the power of its gate, and measures what is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.results.gate_error_rates import GateTrial, SimulatedShare, simulated_gate, simulated_share
from deemster.results.gate_rules import Gate
from deemster.results.simulated_runs import ExecutionPool
from deemster.stats import certifiable_margin

# Of the regressions that the whole dataset catches, a part must catch so many.
KEPT = 0.95
_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# How far the pass-rate falls: of all samples beyond the margin, or of one cohort.
_OVERALL, _COHORT = (0.05, 0.25), (0.3, 0.8)
_FEWEST = 10


class SubsetPower(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part of a dataset catches of planted regressions, beside the whole.

    Attributes:
        whole: Regressions that the gate fails on all samples.
        part: Regressions that it fails on the part.
        kept: Of those that all samples catch, the ones that the part catches; None where all samples catch none.
        whole_alarms: How often it fails on all samples where nothing changed.
        part_alarms: How often it fails on the part where nothing changed.
    """

    whole: SimulatedShare
    part: SimulatedShare
    kept: SimulatedShare | None
    whole_alarms: SimulatedShare
    part_alarms: SimulatedShare


class SampleSubset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The smallest part of a dataset that keeps the power of a gate.

    Attributes:
        ids: The samples, in the order of the dataset.
        samples: How many they are.
        of: How many samples the dataset has.
        share: The part of the dataset that they are.
        power: What they catch, by simulation.
        is_held_out: Whether the simulation draws from other executions than those that they were chosen by; otherwise
            what they catch is told a little too high.
        certifiable: The smallest margin that they certify where nothing flips.
        certifiable_whole: The same of all samples.
        never_passed: Samples that are left out because no execution of them passed: they cannot fall.
        copies: Samples that are left out because they are nearly the same as another one.
    """

    ids: tuple[str, ...]
    samples: int
    of: int
    share: float
    power: SubsetPower
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

    draws: int = 60
    confidence: float = 0.95
    seed: int = 0


class _Regressions:
    """Planted regressions, and which of them a gate fails on some samples."""

    def __init__(
        self, gate: Gate, pool: ExecutionPool, *, metrics: Mapping[str, str], settings: SubsetSettings
    ) -> None:
        self._gate, _ = simulated_gate(gate, metrics=metrics)
        self._pool, self._metrics, self._settings = pool, metrics, settings
        least = gate.baseline.margin if gate.baseline is not None else None
        self._margin = least or 0.0
        cohorts = [places for _, places in pool.reference.marks.cohorts]
        self._cohorts = [places for places in cohorts if _FEWEST <= len(places) < pool.samples]
        self.whole = self.caught(None)

    def caught(self, places: NDArray[np.int64] | None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which regressions the gate fails on some samples, and which pairs without a change."""
        trial = GateTrial(self._gate, self._pool, metrics=self._metrics, places=places, seed=self._settings.seed)
        failed = np.zeros((2, self._settings.draws), dtype=np.bool_)
        for number in range(self._settings.draws):
            rng = np.random.default_rng([self._settings.seed, number])
            before, after = self._pool.draw_pair(rng)
            failed[1, number] = trial.decide(before, after).decision.decision == "fail"
            # Every other regression hits one cohort.
            scope = None
            if number % 2 and self._cohorts:
                scope = self._cohorts[int(rng.integers(len(self._cohorts)))]
            low, high = _OVERALL if scope is None else _COHORT
            drop = (self._margin if scope is None else 0.0) + low + (high - low) * rng.random()
            inside = self._pool.passed if scope is None else self._pool.passed[scope]
            broken = self._pool.break_samples(rng, after, drop=min(drop, float(inside.mean())), scope=scope)
            failed[0, number] = trial.decide(before, broken).decision.decision == "fail"
        return failed[0], failed[1]

    def power(self, part: tuple[NDArray[np.bool_], NDArray[np.bool_]]) -> SubsetPower:
        n, level = self._settings.draws, self._settings.confidence
        (whole, alarms), (found, part_alarms) = self.whole, part
        caught = int(whole.sum())
        return SubsetPower(
            whole=simulated_share(caught, n, confidence=level),
            part=simulated_share(int(found.sum()), n, confidence=level),
            kept=simulated_share(int((whole & found).sum()), caught, confidence=level) if caught else None,
            whole_alarms=simulated_share(int(alarms.sum()), n, confidence=level),
            part_alarms=simulated_share(int(part_alarms.sum()), n, confidence=level),
        )


def measure_subset(
    gate: Gate,
    pool: ExecutionPool,
    places: NDArray[np.int64],
    *,
    metrics: Mapping[str, str],
    settings: SubsetSettings,
) -> SubsetPower:
    """What some samples catch of planted regressions, beside all of them.

    Half of the regressions break samples of the whole dataset, so that its pass-rate falls by 5 to 25 points more than
    the margin; the other half those of one cohort of at least ten samples, by 30 to 80 points. A regression is caught
    where the gate fails.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        places: The samples.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
    """
    regressions = _Regressions(gate, pool, metrics=metrics, settings=settings)
    return regressions.power(regressions.caught(places))


def choose_subset(
    gate: Gate,
    pool: ExecutionPool,
    *,
    metrics: Mapping[str, str],
    settings: SubsetSettings,
    copies: Collection[int] = (),
) -> SampleSubset | str:
    """The smallest part of a dataset that catches 95 % of the planted regressions that all samples catch.

    Samples that never passed cannot fall, and a copy of another sample falls with it: both are left out first. The
    others come in the order of their pass-rate over all executions, since a sample that always passes shows a drop
    without noise; every cohort keeps its share. The part grows by tenths of the dataset until it catches enough. Where
    there are enough executions, one half chooses and the other half measures.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How much is drawn.
        copies: Samples that are nearly the same as an earlier one.

    Returns:
        The part, or why there is none, as a sentence.
    """
    half = pool.executions // 2
    is_held_out = half >= 1 and pool.executions - half >= 2 * pool.repetitions
    chooser = pool.with_executions(slice(half)) if is_held_out else pool
    measured = pool.with_executions(slice(half, None)) if is_held_out else pool
    regressions = _Regressions(gate, measured, metrics=metrics, settings=settings)
    caught = int(regressions.whole[0].sum())
    if not caught:
        return "All samples together catch none of the planted regressions, so there is no power to keep."
    order = np.array(list(rank_samples(chooser, copies=copies, seed=settings.seed)), dtype=np.int64)
    found = _smallest_part(regressions, order)
    if found is None:
        return f"No part of up to 90 % of the samples catches 95 % of the {caught} regressions that all samples catch."
    places, power = found
    n, level = pool.samples, 0.95 if gate.baseline is None else gate.baseline.confidence
    never = int((~chooser.passed.any(axis=1)).sum())
    return SampleSubset(
        ids=tuple(pool.reference.ids(places.tolist())),
        samples=len(places),
        of=n,
        share=len(places) / n,
        power=power,
        is_held_out=is_held_out,
        certifiable=certifiable_margin(len(places), confidence=level),
        certifiable_whole=certifiable_margin(n, confidence=level),
        never_passed=never,
        copies=len(copies),
    )


def _smallest_part(regressions: _Regressions, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], SubsetPower] | None:
    """The smallest part that keeps the power, with what it catches; None where up to nine tenths are too few."""
    found = None
    low, high = 0, len(_SHARES)
    while low < high:
        middle = (low + high) // 2
        places = np.sort(order[: max(2, round(_SHARES[middle] * len(order)))])
        power = regressions.power(regressions.caught(places))
        if power.kept is not None and power.kept.rate >= KEPT:
            found, high = (places, power), middle
        else:
            low = middle + 1
    return found


def rank_samples(pool: ExecutionPool, *, copies: Collection[int] = (), seed: int = 0) -> Iterator[int]:
    """The samples in the order in which a part of the dataset takes them.

    Args:
        pool: Their executions.
        copies: Samples that are nearly the same as an earlier one.
        seed: The seed of the order of samples that are alike.
    """
    rates = pool.passed.mean(axis=1)
    last = np.asarray(~pool.passed.any(axis=1))
    last[list(copies)] = True
    ties = np.random.default_rng(seed).random(pool.samples)
    labels: dict[int, tuple[int, ...]] = {}
    for number, (_, places) in enumerate(pool.reference.marks.cohorts):
        for place in places.tolist():
            labels[place] = (*labels.get(place, ()), number)
    strata: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
    for place in sorted(range(pool.samples), key=lambda at: (-rates[at], ties[at])):
        strata.setdefault((bool(last[place]), labels.get(place, ())), []).append(place)
    keyed = [
        (is_last, (rank + 0.5) / len(members), place)
        for (is_last, _), members in strata.items()
        for rank, place in enumerate(members)
    ]
    for _, _, place in sorted(keyed):
        yield place
