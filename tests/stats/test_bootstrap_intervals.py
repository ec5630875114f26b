from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from deemster.stats import (
    acceleration,
    bca_interval,
    corrected_interval,
    expanded_percentile_interval,
    percentile_interval,
)

stacks = st.integers(1, 4).flatmap(
    lambda rows: st.lists(
        st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=8, max_size=8), min_size=rows, max_size=rows
    )
)


@given(stacks, st.floats(0.5, 0.99))
def test_stacked_replicates_equal_single_rows(rows, confidence):
    replicates = np.array(rows, dtype=float)
    estimates = np.zeros(len(rows))
    jackknife = np.arange(len(rows) * 5.0).reshape(-1, 5) ** 2
    whole = percentile_interval(replicates, confidence), bca_interval(estimates, replicates, jackknife, confidence)
    for place, row in enumerate(replicates):
        single = percentile_interval(row, confidence), bca_interval(0.0, row, jackknife[place], confidence)
        for one, every in zip(single, whole, strict=True):
            for part, parts in zip(one, every, strict=True):
                assert np.array_equal(part, parts[place], equal_nan=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40), st.floats(0.01, 0.99))
def test_percentile_ends_equal_numpy_quantiles(values, confidence):
    ends = percentile_interval(values, confidence)
    expected = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    assert [float(ends.lower), float(ends.upper)] == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_undefined_replicates_are_left_out():
    ends = percentile_interval([1.0, math.nan, 3.0, math.inf], 0.5)
    assert (float(ends.lower), float(ends.upper), int(ends.defined)) == (1.5, 2.5, 2)


@given(st.lists(st.integers(0, 6), min_size=2, max_size=12))
def test_weighted_jackknife_equals_unweighted(values):
    kinds, counts = np.unique(values, return_counts=True)
    together = float(acceleration(kinds, weights=counts))
    assert together == pytest.approx(float(acceleration(values)), abs=1e-12)


def test_rounding_errors_give_zero_acceleration():
    assert float(acceleration([0.1 + 0.2, 0.3, 0.3])) == 0.0


def test_infinite_bca_correction_falls_back_to_percentile():
    ends = corrected_interval(0.0, np.linspace(-1, 1, 101), 0.9, 0.95)
    assert bool(ends.fallback)
    assert [float(ends.lower), float(ends.upper)] == pytest.approx([-0.95, 0.95])


def test_rounding_does_not_break_ties():
    ends = bca_interval(0.3, [0.1 + 0.2] * 10, [0.3, 0.3], 0.9)
    assert not ends.fallback
    assert float(ends.lower) == pytest.approx(0.3)


@pytest.mark.parametrize("units", [2, 5, 20, 1000])
def test_expanded_levels_make_the_interval_of_a_mean_that_of_students_t(units):
    # Replicates of a mean are normal with the divisor n; the ends are then those of Student's t with n - 1.
    levels = (np.arange(400_000) + 0.5) / 400_000
    ends = expanded_percentile_interval(reference.norm.ppf(levels) * math.sqrt((units - 1) / units), units=units)
    half = reference.t.ppf(0.975, units - 1)
    if units > 2:
        assert (float(ends.lower), float(ends.upper)) == pytest.approx((-half, half), rel=2e-3)
    assert float(ends.upper) > float(percentile_interval(reference.norm.ppf(levels)).upper) or units == 1000


def test_one_unit_has_no_expanded_interval():
    ends = expanded_percentile_interval([[1.0, 2.0], [3.0, 4.0]], units=1)
    assert np.isnan(ends.lower).all()
    assert np.isnan(ends.upper).all()
    assert ends.defined.tolist() == [0, 0]


def test_expanded_interval_needs_half_of_the_replicates():
    ends = expanded_percentile_interval([[1.0, 2.0, math.nan, math.nan], [1.0] + [math.nan] * 3], units=10)
    assert np.isnan(ends.lower).tolist() == [False, True]
