from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from deemster.stats import (
    cohen_kappa,
    concordance,
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
def test_invalid_numbers_are_error_with_name(x, y, words):
    for statistic in (pearson, spearman, kendall, concordance, limits_of_agreement):
        with pytest.raises(ValueError, match=words):
            statistic(x, y)
