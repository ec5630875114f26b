from __future__ import annotations

import pytest

from deemster.stats import (
    fleiss_kappa,
    gwet_ac,
)
from tests.builders.published_numbers import PUBLISHED


def test_ratings_of_krippendorff_give_the_known_answers_of_gwet():
    ratings = PUBLISHED["kripp_2011_C"]["input"]
    assert gwet_ac(ratings).value == pytest.approx(0.7754, abs=5e-5)
    assert gwet_ac(ratings, weights="quadratic").value == pytest.approx(0.9140, abs=5e-5)


def test_table_of_fleiss_1971_gives_the_published_kappas():
    entry = PUBLISHED["fleiss_1971"]
    expected, near = entry["expected"], {"abs": entry["abs_tol"]}
    result = fleiss_kappa(entry["input"])
    assert result.value == pytest.approx(expected["kappa"], **near)
    assert result.randolph == pytest.approx(expected["randolph"], **near)
    assert result.categories == pytest.approx(expected["category_kappas"], **near)
    assert result.standard_error == pytest.approx(expected["se0_FleissNeeLandis1979"], **near)
    assert result.z == pytest.approx(expected["z"], **near)
    assert (result.n, result.raters) == (30, 6)


def test_fewer_than_two_units_or_raters_have_no_fleiss_kappa():
    assert fleiss_kappa([[2, 1]]).value is None
    assert fleiss_kappa([[1, 0], [0, 1]]).value is None
    assert fleiss_kappa([]).value is None
    constant = fleiss_kappa([[3, 0], [3, 0]])
    assert (constant.value, constant.z, constant.categories) == (None, None, (None, None))


def test_gwet_leaves_units_without_two_votes_out_of_the_agreement_only():
    with_single = gwet_ac([[0, 1, 1, 0], [0, 1, 0, None]])
    assert (with_single.n, with_single.missing) == (3, 1)
    # p_o = 2/3, π = (2.5/4, 1.5/4), p_e = 2·(5/8)(3/8).
    assert with_single.value == pytest.approx((2 / 3 - 15 / 32) / (1 - 15 / 32))
