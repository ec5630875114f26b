from __future__ import annotations

import pytest

from deemster.stats import systematic_bias


def test_constant_shift_has_mean_but_no_p_value():
    result = systematic_bias([0.6, 0.7, 0.8], [0.5, 0.6, 0.7])
    assert result.mean_bias == pytest.approx(0.1)
    assert (result.std_bias, result.p_value, result.effect_size, result.ci) == (0.0, None, None, None)
    assert (result.direction, result.is_significant) == ("positive", False)
    equal = systematic_bias([0.5, 0.5], [0.5, 0.5])
    assert (equal.mean_bias, equal.p_value, equal.direction) == (0.0, None, "none")


def test_no_score_has_no_bias_and_one_score_has_its_mean_only():
    empty = systematic_bias([], [])
    assert (empty.mean_bias, empty.std_bias, empty.n_samples) == (None, None, 0)
    one = systematic_bias([0.4], [0.7])
    assert (one.mean_bias, one.std_bias, one.p_value, one.direction) == (pytest.approx(-0.3), None, None, "negative")


def test_the_direction_of_a_bias_is_named_beyond_a_thousandth():
    assert systematic_bias([0.501, 0.5005], [0.5, 0.5]).direction == "none"
    assert systematic_bias([0.5, 0.5], [0.503, 0.502]).direction == "negative"


def test_pairs_with_missing_side_are_left_out_of_bias():
    result = systematic_bias([0.9, None, 0.7], [0.7, 0.1, 0.6])
    assert (result.n_samples, result.mean_bias) == (2, pytest.approx(0.15))


def test_paired_scores_of_different_length_are_an_error_and_unpaired_ones_are_not():
    with pytest.raises(ValueError, match="3 and 2 values"):
        systematic_bias([1, 2, 3], [1, 2])
    assert systematic_bias([1, 2, 3], [1, 2], paired=False).n_samples == 5
