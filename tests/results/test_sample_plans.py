"""Plans: what samples can show, and how many a question needs."""

from __future__ import annotations

import pytest

from deemster.results.sample_plans import Goal, Noise, plan_dataset, plan_size, stated_noise


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
