from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from deemster.stats import (
    cohen_kappa,
    concordance,
    fisher_interval,
    kendall,
    limits_of_agreement,
    pearson,
    spearman,
)
from tests.builders.published_numbers import PUBLISHED


def test_verified_rank_correlations_come_out():
    entry = PUBLISHED["rank_corr"]
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
def test_straight_line_has_correlation_one_without_interval(statistic):
    x = [0.1 * i for i in range(40)]
    up, down = statistic(x, [3 * v - 1 for v in x]), statistic(x, [-v for v in x])
    assert (up.value, up.interval) == (1.0, None)
    assert (down.value, down.interval) == (-1.0, None)


def test_rounding_errors_count_as_constant():
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
    ],
)
def test_intervals_are_symmetric_on_the_scale_of_fisher(statistic, variance):
    result = statistic([1, 2, 3, 4, 5, 6, 7], [2, 1, 4, 3, 7, 5, 6], confidence=0.9)
    half = 1.6448536269514722 * math.sqrt(variance(result.value, 7))
    assert math.atanh(result.interval.upper) - math.atanh(result.value) == pytest.approx(half)
    assert math.atanh(result.value) - math.atanh(result.interval.lower) == pytest.approx(half)
    assert result.interval.confidence == 0.9


def test_published_variance_of_kendall_without_ties_is_kept():
    interval = fisher_interval(0.5, 24, method="kendall", confidence=0.9)
    half = 1.6448536269514722 * math.sqrt(0.437 / 20)
    assert math.atanh(interval.upper) - math.atanh(0.5) == pytest.approx(half)


def tau_b(x, y, weights):
    """Kendall's tau-b of weighted items, by a loop over all pairs."""
    excess = over_x = over_y = 0.0
    for i, j in combinations(range(len(x)), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        weight = weights[i] * weights[j]
        excess, over_x, over_y = excess + weight * a * b, over_x + weight * a * a, over_y + weight * b * b
    return excess / math.sqrt(over_x * over_y)


@pytest.mark.parametrize("y", [[2, 1, 4, 3, 7, 5, 6, 8], [1, 1, 2, 3, 2, 2, 3, 1]])
def test_kendall_interval_comes_from_the_influence_of_each_item(y):
    x, n, step = [1, 1, 2, 3, 3, 4, 5, 5], 8, 1e-6
    result = kendall(x, y, confidence=0.9)
    influence = []
    for item in range(n):
        up, down = (tau_b(x, y, [1 + sign * step * (item == place) for place in range(n)]) for sign in (1, -1))
        influence.append(n * (up - down) / (2 * step))
    error = math.sqrt(sum(value**2 for value in influence) / (n * (n - 1)))
    half = reference.t.ppf(0.95, n - 1) * error / (1 - result.value**2)
    assert math.atanh(result.interval.upper) - math.atanh(result.value) == pytest.approx(half, rel=1e-5)
    assert math.atanh(result.value) - math.atanh(result.interval.lower) == pytest.approx(half, rel=1e-5)
    assert (result.interval.confidence, result.interval.method) == (0.9, "influence")


def test_kendall_interval_covers_where_both_sides_are_tied():
    # Three ordered classes on both sides: with probability one half the second side copies the first.
    joint = 0.5 * np.diag([0.2, 0.5, 0.3]) + 0.5 * np.outer([0.2, 0.5, 0.3], [0.2, 0.5, 0.3])
    signs = np.sign(np.subtract.outer(range(3), range(3)))
    apart = [1 - np.square(side).sum() for side in (joint.sum(axis=0), joint.sum(axis=1))]
    true = np.einsum("ab,cd,ac,bd", joint, joint, signs, signs) / math.sqrt(math.prod(apart))
    rng = np.random.default_rng(6)
    covered = []
    for _ in range(400):
        drawn = rng.choice(9, 40, p=joint.ravel())
        interval = kendall(drawn // 3, drawn % 3).interval
        covered.append(interval is not None and interval.lower <= true <= interval.upper)
    assert 0.925 <= np.mean(covered) <= 0.99


def test_kendall_without_any_influence_has_no_interval_of_width_zero():
    for x, y in (([1, 1, 2, 1, 0], [1, 2, 1, 0, 1]), (range(6), [4, 5, 2, 3, 0, 1])):
        assert kendall(x, y).value is not None
        assert kendall(x, y).interval is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=5, max_size=12))
def test_no_interval_of_a_correlation_has_width_zero(drawn):
    x, y = zip(*drawn, strict=True)
    for statistic in (pearson, spearman, kendall):
        interval = statistic(x, y).interval
        if interval is not None:
            assert -1 <= interval.lower < interval.upper <= 1
            assert interval.width > 1e-9


@given(st.integers(3, 7).flatmap(lambda n: st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=n, max_size=n)))
def test_p_value_of_spearman_is_that_of_all_orders(drawn):
    x, y = (reference.rankdata(side) for side in zip(*drawn, strict=True))
    found = spearman(x, y)
    if found.value is None:
        return
    expected = reference.permutation_test(
        (x - x.mean(),),
        lambda side: abs(np.sum(side * (y - y.mean()), axis=-1)),
        permutation_type="pairings",
        alternative="greater",
        n_resamples=np.inf,
        vectorized=False,
    )
    assert found.p_value == pytest.approx(expected.pvalue)


def test_p_value_of_spearman_is_exact_up_to_nine_pairs():
    assert spearman([1, 2, 3], [1, 2, 3]).p_value == pytest.approx(2 / 6)
    nine = spearman(range(9), range(9))
    assert (nine.value, nine.p_value) == (1.0, pytest.approx(2 / math.factorial(9)))
    ten = spearman(range(10), [1, 0, 2, 3, 4, 5, 6, 7, 9, 8])
    assert ten.p_value == pytest.approx(reference.spearmanr(range(10), [1, 0, 2, 3, 4, 5, 6, 7, 9, 8]).pvalue)


def test_p_value_of_three_pairs_is_that_of_one_degree_of_freedom():
    found = pearson([1, 2, 4], [1, 3, 4])
    assert found.p_value == pytest.approx(reference.pearsonr([1, 2, 4], [1, 3, 4]).pvalue)
    assert pearson([1, 2], [1, 3]).p_value is None


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
def test_impossible_level_is_error_for_any_number_of_pairs(statistic):
    for n in (2, 4, 8):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            statistic(range(n), range(n), confidence=1.0)


def test_below_five_pairs_there_is_no_interval():
    for statistic in (pearson, spearman, kendall):
        assert statistic([1, 2, 3, 4], [1, 3, 2, 4]).interval is None
        assert statistic([1, 2, 3, 4, 5], [1, 3, 2, 4, 5]).interval is not None


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1, 2, 3], [1, 2], "3 and 2 values"),
        ([1, 2, math.inf], [1, 2, 3], "infinite"),
        (["a", "b", "c"], [1, 2, 3], "no number"),
        ([[1, 2], [3, 4]], [1, 2], "plain sequence"),
    ],
)
def test_invalid_numbers_are_error_with_name(x, y, words):
    for statistic in (pearson, spearman, kendall, concordance, limits_of_agreement):
        with pytest.raises(ValueError, match=words):
            statistic(x, y)
