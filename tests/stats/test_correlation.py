from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from deemster.stats import (
    cohen_kappa,
    concordance,
    icc,
    interpret_correlation,
    interpret_effect_size,
    interpret_emd,
    interpret_kappa,
    kendall,
    limits_of_agreement,
    pearson,
    spearman,
)

FIXTURES = {
    entry["id"]: entry
    for entry in json.loads((Path(__file__).parent.parent / "fixtures" / "statistics.json").read_text("utf-8"))
}


def test_the_verified_rank_correlations_come_out():
    entry = FIXTURES["rank_corr"]
    data, expected, near = entry["input"], entry["expected"], {"abs": entry["abs_tol"]}
    h, j = data["h"], data["j"]
    assert kendall(data["x"], data["y"]).value == pytest.approx(expected["tau_b_xy"], **near)
    assert spearman(h, j).value == pytest.approx(expected["spearman_hj"], **near)
    assert kendall(h, j).value == pytest.approx(expected["tau_b_hj"], **near)
    assert pearson(h, j).value == pytest.approx(expected["pearson_hj"], **near)
    assert cohen_kappa(h, j).value == pytest.approx(expected["kappa_hj"], **near)
    assert cohen_kappa(h, j, weights="linear").value == pytest.approx(expected["kappa_linear_hj"], **near)
    assert cohen_kappa(h, j, weights="quadratic").value == pytest.approx(expected["kappa_quadratic_hj"], **near)


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([1], [2]), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [0.1, 0.1, 0.1])]
)
def test_two_pairs_or_a_constant_side_have_no_correlation(statistic, x, y):
    result = statistic(x, y)
    assert (result.value, result.p_value, result.interval, result.n) == (None, None, None, len(x))


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
def test_a_straight_line_is_one_exactly_and_has_no_interval(statistic):
    x = [0.1 * i for i in range(40)]
    up, down = statistic(x, [3 * v - 1 for v in x]), statistic(x, [-v for v in x])
    assert (up.value, up.interval) == (1.0, None)
    assert (down.value, down.interval) == (-1.0, None)


def test_rounding_in_the_last_digit_is_no_spread():
    assert pearson([0.3, 0.1 + 0.2, 0.3], [1, 2, 3]).value is None


@pytest.mark.parametrize("scale", [1e-200, 1e150])
def test_pearson_does_not_depend_on_the_unit_of_measurement(scale):
    x, y = np.array([1.0, 2, 4, 3, 7]), np.array([2.0, 1, 5, 3, 6])
    assert pearson(x * scale, y).value == pytest.approx(pearson(x, y).value, abs=1e-14)


def test_missing_pairs_are_left_out_and_counted():
    result = spearman([1, None, 3, 4, float("nan")], [2, 1, 3, 5, 4])
    assert (result.value, result.n, result.missing) == (1.0, 3, 2)


@pytest.mark.parametrize(
    ("statistic", "variance"),
    [
        (pearson, lambda r, n: 1 / (n - 3)),
        (spearman, lambda r, n: (1 + r * r / 2) / (n - 3)),
        (kendall, lambda r, n: 0.437 / (n - 4)),
    ],
)
def test_intervals_are_symmetric_on_the_scale_of_fisher(statistic, variance):
    result = statistic([1, 2, 3, 4, 5, 6, 7], [2, 1, 4, 3, 7, 5, 6], confidence=0.9)
    half = 1.6448536269514722 * math.sqrt(variance(result.value, 7))
    assert math.atanh(result.interval.upper) - math.atanh(result.value) == pytest.approx(half)
    assert math.atanh(result.value) - math.atanh(result.interval.lower) == pytest.approx(half)
    assert result.interval.confidence == 0.9


def test_below_five_pairs_there_is_no_interval():
    assert pearson([1, 2, 3, 4], [1, 3, 2, 4]).interval is None
    assert pearson([1, 2, 3, 4, 5], [1, 3, 2, 4, 5]).interval is not None


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1, 2, 3], [1, 2], "3 and 2 values"),
        ([1, 2, math.inf], [1, 2, 3], "infinite"),
        (["a", "b", "c"], [1, 2, 3], "no number"),
        ([[1, 2], [3, 4]], [1, 2], "plain sequence"),
    ],
)
def test_bad_numbers_are_named(x, y, words):
    for statistic in (pearson, spearman, kendall, concordance, limits_of_agreement):
        with pytest.raises(ValueError, match=words):
            statistic(x, y)


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


def test_the_ratings_of_shrout_and_fleiss_give_the_published_forms():
    entry = FIXTURES["shrout_fleiss_1979"]
    expected, near = entry["expected"], {"abs": entry["abs_tol"]}
    result = icc(entry["input"])
    for name, form in {
        "ICC(1,1)": result.icc_1_1,
        "ICC(2,1)": result.icc_2_1,
        "ICC(3,1)": result.icc_3_1,
        "ICC(1,4)": result.icc_1_k,
        "ICC(2,4)": result.icc_2_k,
        "ICC(3,4)": result.icc_3_k,
        "cronbach_alpha": result.icc_3_k,
    }.items():
        assert form.value == pytest.approx(expected[name], **near), name
    assert result.between == pytest.approx(expected["MSB"], **near)
    assert result.within == pytest.approx(expected["MSW"], **near)
    assert result.between_raters == pytest.approx(expected["MSJ"], **near)
    assert result.error == pytest.approx(expected["MSE"], **near)


def test_units_that_a_rater_left_out_are_left_out_of_the_icc():
    whole = [[1, 2], [3, 5], [4, 4], [6, 7]]
    result = icc([*whole, [9, None]])
    assert (result.n, result.missing) == (4, 1)
    assert result.icc_2_1.value == icc(whole).icc_2_1.value


@pytest.mark.parametrize("ratings", [[], [[1, 2]], [[1], [2], [3]], [[2, 2], [2, 2]], [[0.3, 0.1 + 0.2], [0.3, 0.3]]])
def test_icc_is_none_below_two_units_or_raters_or_without_spread(ratings):
    result = icc(ratings)
    assert result.icc_1_1.value is result.icc_2_1.value is result.icc_3_k.value is None


def test_raters_in_full_agreement_have_icc_one_and_no_interval():
    result = icc([[0.1, 0.1, 0.1], [0.7, 0.7, 0.7], [0.3, 0.3, 0.3]])
    assert (result.icc_2_1.value, result.icc_2_1.p_value, result.icc_2_1.interval) == (1.0, 0.0, None)


def test_a_constant_shift_of_one_rater_costs_the_absolute_forms_only():
    result = icc([[1, 2], [2, 3], [4, 5], [7, 8]])
    assert result.icc_3_1.value == pytest.approx(1.0)
    assert result.icc_2_1.value < 0.95


@pytest.mark.parametrize(
    ("call", "value", "word"),
    [
        (interpret_kappa, -0.01, "poor (worse than chance)"),
        (interpret_kappa, 0.0, "slight"),
        (interpret_kappa, 0.2099, "slight"),
        (interpret_kappa, 0.21, "fair"),
        (interpret_kappa, 0.41, "moderate"),
        (interpret_kappa, 0.61, "substantial"),
        (interpret_kappa, 0.81, "almost perfect"),
        (interpret_kappa, None, "undefined"),
        (interpret_correlation, 0.9, "very strong positive"),
        (interpret_correlation, -0.9, "very strong negative"),
        (interpret_correlation, 0.7, "strong positive"),
        (interpret_correlation, 0.5, "moderate positive"),
        (interpret_correlation, -0.3, "weak negative"),
        (interpret_correlation, 0.0, "very weak positive"),
        (interpret_correlation, None, "undefined"),
        (interpret_effect_size, 0.19, "negligible"),
        (interpret_effect_size, -0.2, "small"),
        (interpret_effect_size, 0.5, "medium"),
        (interpret_effect_size, -0.8, "large"),
        (interpret_effect_size, None, "undefined"),
        (interpret_emd, 0.049, "very similar"),
        (interpret_emd, 0.05, "minor differences"),
        (interpret_emd, 0.1, "moderate differences"),
        (interpret_emd, 0.2, "substantial differences"),
        (interpret_emd, None, "insufficient data"),
    ],
)
def test_words_change_at_their_bounds(call, value, word):
    assert call(value) == word
