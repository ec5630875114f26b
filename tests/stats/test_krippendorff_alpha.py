from __future__ import annotations

import numpy as np
import pytest

from deemster.stats import (
    krippendorff_alpha,
)
from tests.builders.published_numbers import PUBLISHED


@pytest.mark.parametrize("name", ["kripp_2011_C", "kripp_2011_A_binary", "kripp_hayes_2007"])
def test_ratings_of_krippendorff_give_the_published_alphas(name):
    entry = PUBLISHED[name]
    found = krippendorff_alpha(entry["input"], level=tuple(entry["expected"]))
    assert {level: result.value for level, result in found.items()} == pytest.approx(
        entry["expected"], abs=entry["abs_tol"]
    )


def test_nominal_alpha_of_the_table_of_fleiss_1971_is_the_published_one():
    table = PUBLISHED["fleiss_1971"]["input"]
    raters = [[label for label, count in enumerate(row) for _ in range(count)] for row in table]
    assert krippendorff_alpha(np.array(raters).T).value == pytest.approx(0.4334, abs=5e-5)


def test_missing_vote_is_not_a_vote_for_alpha():
    judges = [["0", "1", "2", "0"], ["0", "1", "2", "0"], ["0", None, "2", None]]
    result = krippendorff_alpha(judges, level="ordinal", labels=["0", "1", "2"])
    assert (result.value, result.n, result.votes, result.missing) == (1.0, 4, 10, 2)


@pytest.mark.parametrize("data", [[], [[]], [[1, 2, 3]], [[1, None], [None, 2]], [[1, 1], [1, 1]], [[1, None], [2, 3]]])
def test_alpha_is_none_without_two_pairable_units_or_with_one_value(data):
    found = krippendorff_alpha(data, level=("nominal", "ordinal", "interval", "ratio"))
    assert [result.value for result in found.values()] == [None] * 4


def test_alpha_ignores_rounding_errors():
    data = [[7] * 30] * 4
    data = [list(row) for row in data]
    data[1][::3] = [None] * 10
    assert krippendorff_alpha(data, labels=[6, 7, 8]).value is None


def test_ordinal_alpha_uses_scale_order():
    scale = ["low", "mid", "high"]
    words = [["low", "mid", "high", "low"], ["mid", "mid", "high", "low"]]
    numbers = [[scale.index(word) for word in row] for row in words]
    assert (
        krippendorff_alpha(words, level="ordinal", labels=scale).value
        == krippendorff_alpha(numbers, level="ordinal").value
    )
