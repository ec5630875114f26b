"""Tests of linked scores: the pass mark, its interval, rank correlation in units, permuted groups."""

import numpy as np
import pytest

from deemster.stats.score_link import link_pass_mark, permuted_group_tests, spearman_interval


def draw(n, seed):
    rng = np.random.default_rng(seed)
    quality = rng.beta(4, 1.6, n)
    old = np.clip(quality + rng.normal(0, 0.06, n), 0, 1)
    return old, np.clip(old**2 + rng.normal(0, 0.03, n), 0, 1)


def test_interval_of_the_mark_covers_the_mark_of_the_population():
    old, new = draw(400_000, 0)
    truth = np.quantile(new, np.mean(old < 0.7))
    hits = 0
    for seed in range(1, 201):
        old, new = draw(100, seed)
        link = link_pass_mark(old >= 0.7, new, np.arange(100), confidence=0.95)
        hits += link.interval.low <= truth <= link.interval.high
    assert 0.92 <= hits / 200 <= 0.995


def test_scores_with_few_steps_leave_what_no_mark_can_give():
    old = np.arange(100) / 100
    new = np.where(old < 0.5, 0.25, 0.75)
    link = link_pass_mark(old >= 0.7, new, np.arange(100), confidence=0.95)
    assert 0.25 < link.mark <= 0.75
    assert link.left.value == pytest.approx(0.2)


@pytest.mark.parametrize("mark", [0.0, 1.0])
def test_no_mark_is_exchanged_where_all_outputs_have_one_verdict(mark):
    old = np.arange(20) / 20
    assert link_pass_mark(old >= mark, old, np.arange(20), confidence=0.95) is None


def test_repetitions_of_a_sample_are_one_unit():
    old, new = draw(50, 3)
    alone = link_pass_mark(old >= 0.7, new, np.arange(50), confidence=0.95)
    repeated = link_pass_mark(np.repeat(old >= 0.7, 4), np.repeat(new, 4), np.repeat(np.arange(50), 4), confidence=0.95)
    assert repeated.interval == alone.interval
    assert repeated.mark == alone.mark


def test_rank_correlation_of_repetitions_is_no_surer():
    old, new = draw(40, 5)
    value, interval = spearman_interval(old, new, np.arange(40), confidence=0.95)
    again, wider = spearman_interval(np.repeat(old, 5), np.repeat(new, 5), np.repeat(np.arange(40), 5), confidence=0.95)
    assert again == pytest.approx(value)
    assert wider.high - wider.low == pytest.approx(interval.high - interval.low, rel=0.1)


def test_permuted_groups_hold_their_level():
    rng = np.random.default_rng(8)
    members = np.stack([np.arange(60) < 20, np.arange(60) >= 20], axis=1).astype(float)
    rejected = [min(permuted_group_tests(rng.normal(size=60), members, seed=n)) < 0.05 for n in range(200)]
    assert 0.01 <= np.mean(rejected) <= 0.1
