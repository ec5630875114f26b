from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    brier,
    calibration_error,
)
from tests.builders.published_numbers import PUBLISHED, near


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_two_classes_have_twice_the_brier_score_of_yes_or_no(pairs):
    outcomes, stated = [y for y, _ in pairs], [p for _, p in pairs]
    both = [[1 - p, p] for p in stated]
    assert brier(outcomes, both).value == pytest.approx(2 * brier(outcomes, stated).value)


def test_brier_has_known_values_at_extremes():
    assert brier([1, 0], [1, 0]).value == 0
    assert brier([1, 0], [1, 0]).skill == 1
    assert brier([1, 0], [0, 1]).value == 1
    assert brier([2, 0], [[1, 0, 0], [0, 1, 0]]).value == 2
    assert brier([1, 1], [0.5, 0.5]).skill is None
    assert brier([1, 0], [0.5, 0.5]).skill == 0
    assert brier([], []).value is None


def test_calibration_error_has_known_values_at_extremes():
    assert calibration_error([1, 0], [1, 0]).value == 0
    assert calibration_error([0, 1], [1, 0]).value == 1
    empty = calibration_error([], [])
    assert (empty.value, empty.largest, len(empty.bins)) == (None, None, 10)
    assert empty.bins[0].ci is None


def test_probability_of_one_is_in_the_last_bin_and_rounding_moves_none_down():
    result = calibration_error([1, 1], [1.0, 1 - 0.9])
    assert [entry.n_samples for entry in result.bins] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert result.bins[9].ci.upper == 1.0
    assert result.largest == pytest.approx(0.9)


def test_several_classes_are_calibrated_by_the_most_probable():
    rows = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]
    several = calibration_error([0, 0, 2], rows)
    assert several.value == pytest.approx(calibration_error([1, 0, 1], [0.7, 0.8, 0.4]).value)


@pytest.mark.parametrize(
    ("outcomes", "stated", "message"),
    [
        ([1], [0.5, 0.5], "one probability"),
        ([1], [1.5], r"\[0, 1\]"),
        ([1], [math.nan], r"\[0, 1\]"),
        ([2], [0.5], "0 to 1"),
        ([0.5], [0.5], "0 to 1"),
        ([0], [[0.5, 0.2]], "sum to 1"),
    ],
)
def test_impossible_forecasts_are_refused(outcomes, stated, message):
    for function in (brier, calibration_error):
        with pytest.raises(ValueError, match=message):
            function(outcomes, stated)
    with pytest.raises(ValueError, match="one bin"):
        calibration_error([1], [0.5], bins=0)


def test_toy_forecasts_have_the_derived_errors():
    given, expected = PUBLISHED["calibration_toy"]["input"], PUBLISHED["calibration_toy"]["expected"]
    for bins in (10, 5, 2):
        found = calibration_error(given["y"], given["p"], bins=bins).value
        assert found == near("calibration_toy", expected[f"ece{bins}"])
    assert brier(given["y"], given["p"]).value == near("calibration_toy", expected["brier"])
