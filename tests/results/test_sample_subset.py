"""The part of a dataset that keeps the power of a gate: what is chosen, what it catches, and when there is none."""

from __future__ import annotations

import numpy as np

from deemster.results.gate_rules import BaselineRules, Gate
from deemster.results.sample_subset import SampleGroups, SubsetSettings, choose_subset, measure_subset, rank_samples
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
    assert found.enough_share == found.share <= 0.4
    assert found.certifiable > found.certifiable_whole
    places = np.array([int(name[1:]) for name in found.ids])
    assert (chances[places] > 0.1).all()
    power = measure_subset(GATE, pool(chances, count=8, seed=9), places, metrics=NAMES, settings=SETTINGS)
    assert power.caught.failed.rate >= 0.9
    assert power.unchanged.failed.rate <= 0.2


def test_part_of_samples_that_are_alike_lets_no_regression_pass_but_does_not_fail_enough_by_itself():
    found = choose_subset(GATE, pool([0.99] * 120, count=4), metrics=NAMES, settings=SETTINGS)
    assert found.share == 0.4
    assert not found.power.is_enough
    assert found.enough_share is None or found.enough_share > 0.4
    assert found.power.caught.passed.count == 0
    assert found.detects > found.detects_whole


def test_regressions_break_any_samples_a_cohort_a_topic_and_what_can_have_a_defect():
    groups = SampleGroups([np.arange(20)], [np.arange(10, 40), np.arange(3)])
    tags = [["a"]] * 30 + [["b"]] * 30
    found = measure_subset(
        GATE, pool([1.0] * 60, count=2, tags=tags), np.arange(60), metrics=NAMES, settings=SETTINGS, groups=groups
    )
    assert [(kind.where, kind.planted) for kind in found.kinds] == [
        ("any samples", 3),
        ("one cohort", 3),
        ("one topic", 3),
        ("one kind of defect", 3),
    ]
    assert all(kind.kept == kind.whole and not kind.passed for kind in found.kinds)


def test_topics_keep_their_share_and_small_strata_are_joined():
    topics = SampleGroups([np.arange(20), np.arange(20, 40)])
    order = list(rank_samples(pool([1.0] * 40, count=2), groups=topics))
    assert sum(place < 20 for place in order[:10]) == 5
    chances = [1.0, 0.0] * 10
    single = SampleGroups([np.array([place]) for place in range(20)])
    order = list(rank_samples(pool([0.5 + chance / 2 for chance in chances], count=8), groups=single))
    assert all(place % 2 == 0 for place in order[:10])


def test_every_cohort_keeps_its_share():
    tags = [["a"]] * 30 + [["b"]] * 10
    order = list(rank_samples(pool([1.0] * 40, count=2, tags=tags)))
    assert sorted(order) == list(range(40))
    assert sum(place < 30 for place in order[:8]) == 6


def test_samples_that_never_pass_and_copies_come_last():
    order = list(rank_samples(pool([1.0, 0.0, 1.0, 1.0], count=3), groups=SampleGroups(copies={2})))
    assert set(order[:2]) == {0, 3}


def test_dataset_that_catches_nothing_has_no_part():
    found = choose_subset(GATE, pool([0.5] * 6, count=2), metrics=NAMES, settings=SubsetSettings(draws=4))
    assert isinstance(found, str)
    assert "catch none" in found
