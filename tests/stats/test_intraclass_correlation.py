from __future__ import annotations

import pytest

from deemster.stats import (
    icc,
)
from tests.builders.published_numbers import PUBLISHED


def test_ratings_of_shrout_and_fleiss_give_the_published_forms():
    entry = PUBLISHED["shrout_fleiss_1979"]
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


def test_constant_shift_of_one_rater_costs_the_absolute_forms_only():
    result = icc([[1, 2], [2, 3], [4, 5], [7, 8]])
    assert result.icc_3_1.value == pytest.approx(1.0)
    assert result.icc_2_1.value < 0.95
