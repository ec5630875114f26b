from __future__ import annotations

import math

import numpy as np
import pytest

from deemster.stats import earth_movers_distance, ks_test, score_distribution


def test_scores_shifted_by_a_tenth_are_a_tenth_apart():
    result = earth_movers_distance([0.8, 0.7, 0.9], [0.7, 0.6, 0.8])
    assert result.emd == pytest.approx(0.1)
    assert result.mean_diff == pytest.approx(0.1)
    assert result.std_diff == pytest.approx(0.0, abs=1e-12)
    assert (result.bias_direction, result.interpretation, result.n) == ("higher", "moderate differences", (3, 3))
    assert earth_movers_distance([0.8, 0.7, 0.9], [0.7, 0.6, 0.8], scale="data").emd == pytest.approx(1 / 3)


def test_distance_is_in_units_of_the_scale():
    assert earth_movers_distance([1, 1], [5, 5], scale=(1, 5)).emd == 1.0
    assert earth_movers_distance([2, 4], [3, 5], scale=(1, 5)).emd == pytest.approx(0.25)


def test_means_within_a_hundredth_have_no_direction():
    assert earth_movers_distance([0.5, 0.51], [0.5, 0.5]).bias_direction == "none"
    assert earth_movers_distance([0.5], [0.52]).bias_direction == "lower"


def test_empty_side_has_no_distance_and_equal_scores_have_distance_zero():
    empty = earth_movers_distance([], [0.5])
    assert (empty.emd, empty.mean_diff, empty.interpretation) == (None, None, "insufficient data")
    assert earth_movers_distance([0.5], [0.5], scale="data").emd == 0.0


@pytest.mark.parametrize(
    ("a", "b", "scale", "words"),
    [
        ([1.5], [0.5], (0, 1), "1.5 is off the scale"),
        ([0.5], [-0.5], (0, 1), "-0.5 is off the scale"),
        ([0.5], [0.5], (1, 1), "two ends"),
        ([0.5], [0.5], "range", "two ends"),
        ([math.inf], [0.5], (0, 1), "infinite"),
    ],
)
def test_score_off_the_scale_or_a_scale_without_width_is_named(a, b, scale, words):
    with pytest.raises(ValueError, match=words):
        earth_movers_distance(a, b, scale=scale)


def test_two_samples_apart_differ():
    result = ks_test([0.1, 0.2, 0.3, 0.4], [0.6, 0.7, 0.8, 0.9])
    assert (result.statistic, result.is_significant) == (1.0, True)
    # Of the 70 ways to deal 8 values to two hands, 2 are as far apart.
    assert result.p_value == pytest.approx(2 / 70)


def test_empty_sample_has_no_test():
    assert ks_test([], [1.0]).p_value is None
    assert ks_test([]).p_value is None
    assert ks_test([0.5, 0.5, 0.5]).statistic is None


def test_normal_scores_pass_for_normal_and_skewed_ones_do_not():
    rng = np.random.default_rng(5)
    assert not ks_test(rng.normal(3, 2, 80), seed=1).is_significant
    skewed = ks_test(rng.exponential(size=80), seed=1)
    assert skewed.is_significant
    assert skewed == ks_test(np.random.default_rng(5).permutation(_exponential()), seed=1)


def _exponential():
    rng = np.random.default_rng(5)
    rng.normal(3, 2, 80)
    return rng.exponential(size=80)


def test_test_of_normality_draws_at_least_once():
    with pytest.raises(ValueError, match="at least one"):
        ks_test([1, 2, 4], resamples=0)


def test_distribution_equals_hand_computed_values():
    result = score_distribution([0.0, 0.5, 1.0, 0.5, None], bins=2)
    assert (result.n, result.missing, result.mean, result.median) == (4, 1, 0.5, 0.5)
    assert result.variance == pytest.approx(1 / 6)
    assert (result.q25, result.q75, result.iqr) == (0.375, 0.625, 0.25)
    assert result.skewness == pytest.approx(0.0)
    assert result.kurtosis == pytest.approx(-1.0)
    assert result.histogram == ((1, 3), (0.0, 0.5, 1.0))


@pytest.mark.parametrize(("n", "known"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)])
def test_each_moment_needs_its_number_of_scores(n, known):
    result = score_distribution([0.1, 0.9, 0.4, 0.5][:n])
    shown = [result.mean, result.std, result.skewness, result.kurtosis]
    assert [value is not None for value in shown] == [known > i for i in range(4)]
    assert (result.histogram is None) == (n == 0)


def test_scores_without_spread_have_no_shape():
    result = score_distribution([0.3] * 6)
    assert (result.std, result.skewness, result.kurtosis) == (0.0, None, None)


def test_histogram_without_bins_is_error():
    with pytest.raises(ValueError, match="at least one bin"):
        score_distribution([1.0], bins=0)
