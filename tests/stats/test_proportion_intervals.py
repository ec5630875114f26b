from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    clopper_pearson,
    clustered_wilson,
    newcombe,
    student,
    tango,
    weighted_wilson,
    wilson,
)
from tests.builders.published_numbers import ends

scipy_stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(3, 5, 0.2307, 0.8824), (3, 3, 0.4385, 1.0), (22, 30, 0.5555, 0.8582), (2, 4, 0.1500, 0.8500)],
)
def test_wilson_gives_the_published_ends(successes, n, low, high):
    assert ends(wilson(successes, n)) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipys(counts):
    successes, n = counts
    expected = scipy_stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert ends(wilson(successes, n)) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_ends_are_exact_for_no_or_all_successes():
    assert wilson(0, 7).interval.lower == 0.0
    assert wilson(7, 7).interval.upper == 1.0
    assert clustered_wilson([3, 3, 3], marks=3).interval.upper == 1.0
    assert clustered_wilson([0, 0, 0], marks=3).interval.lower == 0.0


def test_interval_of_zero_trials_is_undefined():
    assert wilson(0, 0).interval is None
    assert wilson(0, 0).value is None
    assert clustered_wilson([], marks=3).interval is None
    assert student([]).value is None
    assert student([0.5]).interval is None
    assert student([0.5, 0.5]).interval is None


@pytest.mark.parametrize("bad", [(-1, 5), (6, 5)])
def test_impossible_counts_are_refused(bad):
    with pytest.raises(ValueError, match="successes"):
        wilson(*bad)


def test_worked_example_has_effective_size_twelve():
    passed = [5, 5, 5, 4, 3, 5, 5, 0, 2, 5]
    assert clustered_wilson(passed, marks=5).n == pytest.approx(11.87, abs=0.005)
    assert ends(clustered_wilson(passed, marks=5)) == pytest.approx((0.4956, 0.9275), abs=5e-5)
    assert ends(wilson(39, 50)) == pytest.approx((0.6476, 0.8725), abs=5e-5)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_one_mark_per_cluster_is_plain_wilson(passed):
    assert ends(clustered_wilson(passed, marks=1)) == pytest.approx(ends(wilson(sum(passed), len(passed))))


@given(st.integers(1, 8).flatmap(lambda marks: st.tuples(st.just(marks), st.lists(st.integers(0, marks), min_size=1))))
def test_effective_size_lies_between_clusters_and_marks_and_ignores_order(case):
    marks, passed = case
    size = clustered_wilson(passed, marks=marks).n
    assert len(passed) <= size <= len(passed) * marks
    assert size == clustered_wilson(passed[::-1], marks=marks).n


@pytest.mark.parametrize("samples", [10, 40, 300])
@pytest.mark.parametrize("repetitions", [3, 10])
@pytest.mark.parametrize("mean", [0.5, 0.8, 0.95])
def test_clustered_intervals_cover_the_truth(samples, repetitions, mean):
    """Samples with pass rates of their own (a beta of intra-class correlation 0.4), many runs, one fixed seed."""
    rng = np.random.default_rng(20_260_101)
    size = 1 / 0.4 - 1
    runs = 1500
    shares = rng.beta(mean * size, (1 - mean) * size, (runs, samples))
    passed = rng.binomial(repetitions, shares)
    hits = sum(
        interval.lower <= mean <= interval.upper
        for interval in (clustered_wilson(row, marks=repetitions).interval for row in passed)
    )
    noise = 2.6 * math.sqrt(0.94 * 0.06 / runs)
    assert hits / runs >= 0.94 - noise


def test_empty_sample_makes_a_difference_undefined():
    result = newcombe(0, 0, 1, 2)
    assert (result.value, result.interval, result.shares) == (None, None, (None, 0.5))
    assert clopper_pearson(0, 0).value is None


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_exact_interval_contains_its_share(counts):
    result = clopper_pearson(*counts)
    assert 0 <= result.interval.lower <= result.value <= result.interval.upper <= 1
    assert result.interval.width > 0


def test_tangos_published_example():
    interval = tango(1, 7, 21).interval

    assert (interval.lower, interval.upper) == pytest.approx((-0.5172, -0.0260), abs=5e-5)


@pytest.mark.parametrize("n", [1, 2, 12, 1000])
def test_tangos_interval_has_a_width_however_few_or_many_samples_changed(n):
    z2 = 1.959964**2
    unchanged, all_worse = tango(0, 0, n).interval, tango(0, n, n).interval

    assert unchanged.upper == -unchanged.lower == pytest.approx(z2 / (n + z2), abs=1e-6)
    assert all_worse.lower == -1 < all_worse.upper


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.sampled_from([0.5, 0.95, 0.999]))
def test_tangos_interval_holds_the_value_and_mirrors(gained, lost, unchanged, confidence):
    n = gained + lost + unchanged
    if not n:
        assert tango(0, 0, 0).value is None
        return
    ours, other = tango(gained, lost, n, confidence=confidence), tango(lost, gained, n, confidence=confidence)
    assert -1 <= ours.interval.lower <= ours.value <= ours.interval.upper <= 1
    assert other.interval.lower == pytest.approx(-ours.interval.upper)


def test_tango_refuses_more_changes_than_samples():
    with pytest.raises(ValueError, match="cannot have changed"):
        tango(3, 3, 5)


def test_equal_weights_give_the_interval_of_equal_clusters():
    random = np.random.default_rng(3)
    for _ in range(50):
        marks, clusters = int(random.integers(1, 6)), int(random.integers(1, 40))
        passed = random.integers(0, marks + 1, clusters)
        plain = clustered_wilson(passed, marks=marks)
        weighted = weighted_wilson(passed / marks, np.full(clusters, 7.0), most=clusters * marks)
        assert weighted.value == pytest.approx(plain.value)
        assert weighted.n == pytest.approx(plain.n)
        assert weighted.interval.lower == pytest.approx(plain.interval.lower)
        assert weighted.interval.upper == pytest.approx(plain.interval.upper)


def test_weighted_wilson_without_a_cluster_is_undefined():
    found = weighted_wilson([], [], most=0)
    assert (found.value, found.interval) == (None, None)


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_weighted_wilson_covers_a_mean_of_metrics_that_apply_to_few_samples(rate):
    random = np.random.default_rng(7)
    samples, covered, runs = 60, 0, 600
    # One metric applies to all samples, a second one to a quarter of them; marks of a sample go together.
    applies = np.column_stack([np.ones(samples, dtype=bool), np.arange(samples) % 4 == 0])
    votes = applies / applies.sum(axis=0)
    weights = votes.sum(axis=1)
    most = 4 / (1 / applies.sum(axis=0)).sum()
    for _ in range(runs):
        together = random.random(samples) < rate
        own = random.random((samples, 2)) < rate
        passed = np.where(random.random((samples, 1)) < 0.5, together[:, None], own) & applies
        found = weighted_wilson((passed * votes).sum(axis=1) / weights, weights, most=most)
        covered += found.interval.lower <= rate <= found.interval.upper
    assert covered / runs >= 0.93
