"""Plans: what samples can show, and how many a question needs."""

from __future__ import annotations

import numpy as np
import pytest

from deemster.planning.sample_plans import Goal, Noise, detection, plan_dataset, plan_size, stated_noise
from deemster.stats import certifiable_margin, paired_difference


def test_cohorts_are_the_tags_of_samples():
    found = list(plan_dataset([("a", "b"), ("a",), ()], stated_noise(), goal=Goal()))

    assert [(row.cohort, row.n) for row in found] == [(None, 3), ("a", 2), ("b", 1), ("(untagged)", 1)]


def test_dataset_of_one_cohort_has_one_row():
    assert len(list(plan_dataset([("a",), ("a",)], stated_noise(), goal=Goal()))) == 1


def test_stated_pass_rate_gives_the_flip_rate_of_half_correlated_runs():
    assert stated_noise(pass_rate=0.9).flip_rate == pytest.approx(0.09)
    assert stated_noise().flip_rate == 0.1
    assert stated_noise(sd=0.2).flip_rate is None


def test_splits_never_ask_for_fewer_samples_than_flips_need():
    noise = Noise(source="two runs", variance=0.16, sd=0.01, within=0.0001, between=0.0)
    plan = plan_size(0.1, noise, goal=Goal())

    assert min(split.samples for split in plan.splits) >= 40


def clustered_differences(rng, *, n, size, icc, flips, drop):
    """Differences in which a share `icc` of the clusters flips or breaks as one, so that this is their correlation."""

    def draw(*shape):
        chance = rng.random(shape)
        return np.where(chance < flips / 2 + drop, -1.0, np.where(chance < flips + drop, 1.0, 0.0))

    shared = rng.random((n // size, 1)) < icc
    return np.where(shared, draw(n // size, 1), draw(n // size, size))


@pytest.mark.parametrize(("n", "size", "icc", "flips"), [(600, 5, 0.3, 0.1), (2000, 20, 0.6, 0.2)])
def test_plan_with_clusters_keeps_its_power_in_simulation_and_one_without_does_not(n, size, icc, flips):
    sizes, repeats = np.full(n // size, float(size)), 300
    goal = Goal()
    plan = detection("all", None, n, stated_noise(flip_rate=flips, cluster_size=size, icc=icc), goal=goal)
    naive = detection("all", None, n, stated_noise(flip_rate=flips), goal=goal)

    def share(drop, shows):
        rng = np.random.default_rng(1)
        drawn = (clustered_differences(rng, n=n, size=size, icc=icc, flips=flips, drop=drop) for _ in range(repeats))
        return sum(shows(paired_difference(each.sum(axis=1), sizes)) for each in drawn) / repeats

    # Three standard errors of 300 comparisons are 0.07.
    assert 0.73 < share(plan.drop, lambda found: found.interval.upper < 0) < 0.95
    assert 0.73 < share(0.0, lambda found: found.lower_bound > -plan.margin) < 0.95
    assert share(naive.drop, lambda found: found.interval.upper < 0) < 0.6


def test_with_clusters_the_clusters_are_counted_where_nothing_flips():
    noise = stated_noise(flip_rate=0.1, cluster_size=4, icc=0.25)
    assert noise.design_effect == 1.75
    assert detection("all", None, 200, noise, goal=Goal()).certifiable == certifiable_margin(50)
    alone, clustered = (plan_size(0.05, one, goal=Goal()) for one in (stated_noise(flip_rate=0.1), noise))
    assert clustered.certify_unchanged == 4 * alone.certify_unchanged
    assert 1.75 * alone.detect < clustered.detect < 2.6 * alone.detect
