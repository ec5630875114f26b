from __future__ import annotations

import math

import pytest

from deemster.stats import (
    concordance,
    limits_of_agreement,
)


def test_concordance_sees_the_shift_that_correlation_hides():
    x, y = [0.1, 0.3, 0.5, 0.6, 0.9], [0.3, 0.5, 0.7, 0.8, 1.1]
    result = concordance(x, y)
    # s_xy = s_x² = s_y² = 0.0736 and a shift of 0.2.
    assert result.value == pytest.approx(2 * 0.0736 / (2 * 0.0736 + 0.04))
    assert result.pearson == pytest.approx(1.0)
    assert result.location_and_scale == pytest.approx(result.value)


def test_concordance_by_hand():
    result = concordance([1, 2, 3, 4, 5, 6], [1, 3, 2, 5, 4, 8])
    # Sums about the means: xy 20.5, xx 17.5, yy 185/6; means 3.5 and 23/6.
    assert result.value == pytest.approx(2 * 20.5 / (17.5 + 185 / 6 + 6 / 9))
    assert result.interval.lower < result.value < result.interval.upper < 1


def test_concordance_is_one_for_equal_sides_none_without_spread_and_zero_for_one_constant_side():
    assert concordance([1, 2, 3], [1, 2, 3]).value == pytest.approx(1.0)
    assert concordance([1, 1, 1], [1, 1, 1]).value is None
    assert concordance([1, 1, 1], [1, 2, 3]).value == 0.0
    assert concordance([1], [2]).value is None


def test_limits_of_agreement_by_hand():
    x, y = [10.0, 12, 14, 16], [9.0, 12, 12, 13]
    result = limits_of_agreement(x, y)
    sd = math.sqrt(5 / 3)
    assert (result.value, result.sd, result.n) == (pytest.approx(1.5), pytest.approx(sd), 4)
    assert result.lower == pytest.approx(1.5 - 1.959963984540054 * sd)
    assert result.upper == pytest.approx(1.5 + 1.959963984540054 * sd)
    # Student's 97.5 % point with 3 degrees of freedom is 3.182446.
    half = 3.182446305284263 * sd * math.sqrt(1 / 4 + 1.959963984540054**2 / 6)
    assert result.upper_interval.upper == pytest.approx(result.upper + half)
    assert result.lower_interval.lower == pytest.approx(result.lower - half)


def test_one_pair_has_a_mean_difference_and_no_limits():
    result = limits_of_agreement([1], [0.5])
    assert (result.value, result.lower, result.upper_interval) == (0.5, None, None)
    assert limits_of_agreement([], []).value is None
