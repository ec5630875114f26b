"""The part of a dataset that keeps the power of a gate: what is chosen, what it catches, and when there is none."""

from __future__ import annotations

import numpy as np

from deemster.results.gate_rules import BaselineRules, Gate
from deemster.results.sample_subset import SubsetSettings, choose_subset, measure_subset, rank_samples
from deemster.results.simulated_runs import ExecutionPool
from tests.results import make_compared_runs
from tests.results.simulated_histories import NAMES, draw_runs

GATE = Gate(baseline=BaselineRules(margin=0.05))
SETTINGS = SubsetSettings(draws=12)


def pool(chances, *, count, seed=0, tags=None):
    rng = np.random.default_rng(seed)
    return ExecutionPool(draw_runs(make_compared_runs, rng, np.asarray(chances), count=count, tags=tags))


def test_part_without_coins_and_samples_that_never_pass_catches_what_all_catch_in_fresh_runs():
    chances = np.repeat([0.99, 0.5, 0.01], [120, 90, 90])
    found = choose_subset(GATE, pool(chances, count=5), metrics=NAMES, settings=SETTINGS)
    assert not isinstance(found, str)
    assert found.is_held_out
    assert found.share <= 0.4
    assert found.certifiable > found.certifiable_whole
    places = np.array([int(name[1:]) for name in found.ids])
    assert (chances[places] > 0.1).all()
    power = measure_subset(GATE, pool(chances, count=8, seed=9), places, metrics=NAMES, settings=SETTINGS)
    assert power.kept.rate >= 0.9
    assert power.part_alarms.rate <= 0.2


def test_every_cohort_keeps_its_share():
    tags = [["a"]] * 30 + [["b"]] * 10
    order = list(rank_samples(pool([1.0] * 40, count=2, tags=tags)))
    assert sorted(order) == list(range(40))
    assert sum(place < 30 for place in order[:8]) == 6


def test_samples_that_never_pass_and_copies_come_last():
    order = list(rank_samples(pool([1.0, 0.0, 1.0, 1.0], count=3), copies={2}))
    assert set(order[:2]) == {0, 3}


def test_dataset_that_catches_nothing_has_no_part():
    found = choose_subset(GATE, pool([0.5] * 6, count=2), metrics=NAMES, settings=SubsetSettings(draws=4))
    assert isinstance(found, str)
    assert "catch none" in found
