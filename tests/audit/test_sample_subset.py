"""The part of a dataset that keeps the power of a gate: what is chosen, what it catches, and when there is none."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.audit.sample_subset import (
    PlantedRegressions,
    SampleGroups,
    SubsetSettings,
    choose_subset,
    rank_samples,
)
from deemster.audit.simulated_runs import ExecutionPool
from deemster.gate.read_gate import BaselineRules, GateRules
from deemster.stats import count_prediction_limit
from tests.results import make_compared_runs
from tests.results.simulated_histories import NAMES, PartPool, draw_runs

GATE = GateRules(baseline=BaselineRules(margin=0.05))
SETTINGS = SubsetSettings(draws=120)


def pool(chances, *, count, seed=0, tags=None):
    rng = np.random.default_rng(seed)
    return ExecutionPool(draw_runs(make_compared_runs, rng, np.asarray(chances), count=count, tags=tags))


def test_part_catches_what_all_samples_catch_in_fresh_runs_and_seldom_alarms_without_a_change():
    chances = np.repeat([0.99, 0.5, 0.01], [120, 90, 90])
    found = choose_subset(GATE, pool(chances, count=5), metrics=NAMES, settings=SETTINGS)
    assert not isinstance(found, str)
    assert found.is_held_out
    assert found.enough_share == found.share <= 0.4
    assert found.certifiable > found.certifiable_whole
    places = np.array([int(name[1:]) for name in found.ids])
    assert (chances[places] > 0.1).all()
    fresh = PlantedRegressions(GATE, pool(chances, count=8, seed=9), metrics=NAMES, settings=SETTINGS)
    power = fresh.power(places, max_newly_failing=found.power.max_newly_failing)
    assert power.caught.rate >= 0.9
    assert power.false_alarms.rate <= 0.1


@pytest.mark.parametrize("samples", [100, 300])
def test_part_of_samples_that_are_alike_catches_as_much_with_a_count_where_the_gate_alone_does_not(samples):
    stored, fresh = (pool([0.99] * samples, count=count, seed=count) for count in (5, 8))
    found = choose_subset(GATE, stored, metrics=NAMES, settings=SETTINGS)
    places = np.array([int(name[1:]) for name in found.ids])
    regressions = PlantedRegressions(GATE, fresh, metrics=NAMES, settings=SETTINGS)
    alone = PlantedRegressions(GATE, PartPool(fresh, places), metrics=NAMES, settings=SETTINGS)
    power = regressions.power(places, max_newly_failing=found.power.max_newly_failing)
    assert found.share <= 0.4
    assert power.caught.rate >= 0.9 > (alone.caught & regressions.caught).sum() / power.caught.n
    assert power.false_alarms.rate <= 0.1


def test_alarm_is_a_count_above_what_may_newly_fail():
    regressions = PlantedRegressions(GATE, pool([1.0] * 60, count=3), metrics=NAMES, settings=SETTINGS)
    everything = np.arange(60)
    assert regressions.power(everything, max_newly_failing=0).caught.rate == 1
    assert regressions.power(everything, max_newly_failing=60).caught.rate == 0
    assert regressions.power(everything, max_newly_failing=0).false_alarms.count == 0


def test_one_sample_may_newly_fail_where_no_execution_ever_failed():
    regressions = PlantedRegressions(GATE, pool([1.0] * 60, count=3), metrics=NAMES, settings=SETTINGS)
    assert regressions.allowance(24) == count_prediction_limit(0, 2, level=0.05) == 1


def test_samples_that_passed_by_luck_are_not_taken_for_steady_ones():
    coins = pool([0.5] * 400, count=5)
    passed_always = int((coins.passed.sum(axis=1) == 5).sum())
    assert passed_always > 5
    regressions = PlantedRegressions(GATE, coins, metrics=NAMES, settings=SETTINGS)
    # A quarter of the coins newly fail in an unchanged run, however they fell before.
    assert regressions.allowance(passed_always) >= passed_always / 4
    assert regressions.chosen_power(passed_always).false_alarms.rate <= 0.1


def test_noise_of_all_samples_counts_where_no_execution_is_left_to_choose():
    chances = np.repeat([1.0, 0.5], [20, 80])
    found = choose_subset(GATE, pool(chances, count=2), metrics=NAMES, settings=SETTINGS)
    assert not found.is_held_out
    assert found.power.max_newly_failing >= found.samples * 0.8 * 0.25


def test_repetitions_newly_fail_where_fewer_than_half_of_them_pass():
    rng = np.random.default_rng(3)
    runs = draw_runs(make_compared_runs, rng, np.full(60, 0.9), count=4, repetitions=3)
    # Of three, two fail with a chance of 2.8 %; one alone with 24.3 %.
    assert PlantedRegressions(GATE, ExecutionPool(runs), metrics=NAMES, settings=SETTINGS).allowance(60) <= 6


def test_regressions_break_any_samples_a_cohort_a_topic_and_what_can_have_a_defect():
    groups = SampleGroups([np.arange(20)], [np.arange(10, 40), np.arange(3)])
    tags = [["a"]] * 30 + [["b"]] * 30
    settings = SubsetSettings(draws=12)
    regressions = PlantedRegressions(
        GATE, pool([1.0] * 60, count=2, tags=tags), metrics=NAMES, settings=settings, groups=groups
    )
    found = regressions.power(np.arange(60), max_newly_failing=1)
    assert [(kind.where, kind.planted) for kind in found.kinds] == [
        ("any samples", 3),
        ("one cohort", 3),
        ("one topic", 3),
        ("one kind of defect", 3),
    ]
    assert all(kind.kept == kind.whole for kind in found.kinds)


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


def test_cohort_that_never_passes_cannot_break():
    chances = np.repeat([1.0, 0.0], [40, 20])
    tags = [["good"]] * 40 + [["bad"]] * 20
    regressions = PlantedRegressions(
        GATE, pool(chances, count=3, tags=tags), metrics=NAMES, settings=SubsetSettings(draws=12)
    )
    assert regressions.caught.any()


def test_dataset_without_a_sample_that_passes_has_no_part():
    found = choose_subset(GATE, pool([0.0] * 60, count=3), metrics=NAMES, settings=SETTINGS)
    assert found == "No sample ever passes, so there is nothing that a change could break."
