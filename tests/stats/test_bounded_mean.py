"""Tests of the interval of a bounded mean."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from deemster.stats import bounded_mean


def direct_end(values, bound, confidence):
    """The end by its definition: the mean furthest towards the bound whose best weights are likely enough."""
    extended = np.append(values, bound)
    n = len(extended)
    limit = stats.chi2.ppf(confidence, 1)

    def ratio(mean):
        """-2 log R, with weights found by a general optimiser over their logarithms."""

        def profile(logits):
            return -(np.log(n) + (logits - np.log(np.exp(logits).sum()))).sum()

        def constraint(logits):
            weights = np.exp(logits) / np.exp(logits).sum()
            return weights @ extended - mean

        found = optimize.minimize(
            profile, np.zeros(n), constraints={"type": "eq", "fun": constraint}, method="SLSQP", options={"ftol": 1e-12}
        )
        return 2 * found.fun

    middle = extended.mean()
    return optimize.brentq(lambda mean: ratio(mean) - limit, middle, middle + 0.98 * (bound - middle), xtol=1e-6)


@pytest.mark.parametrize("values", [[1, 1, 1, 1, 0.5, 0.8], [0, 0, 1, 0, 0, 0, 0, 0.3], [0.2, 0.9, 0.4]])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_ends_equal_a_direct_optimisation_of_the_weights(values, confidence):
    interval = bounded_mean(values, confidence=confidence).interval

    assert interval.lower == pytest.approx(direct_end(np.array(values, dtype=float), 0.0, confidence), abs=1e-4)
    assert interval.upper == pytest.approx(direct_end(np.array(values, dtype=float), 1.0, confidence), abs=1e-4)


def test_many_different_values_have_students_interval():
    values = np.linspace(0.3, 0.7, 40)

    interval = bounded_mean(values).interval

    expected = stats.t.interval(0.95, 39, loc=values.mean(), scale=stats.sem(values))
    assert (interval.lower, interval.upper) == pytest.approx(expected)
    assert interval.method == "student"


def test_equal_values_have_an_interval_with_a_width():
    interval = bounded_mean([1.0] * 30).interval

    assert interval.upper == 1.0
    assert 0.8 < interval.lower < 0.95


@pytest.mark.parametrize(("n", "margin"), [(180, 0.02), (75, 0.05)])
def test_no_change_certifies_the_margin_that_the_specification_names(n, margin):
    interval = bounded_mean([0.0] * n, low=-1, high=1, confidence=0.9).interval

    assert -margin <= interval.lower < -0.9 * margin


def test_units_of_unequal_size_are_weighed_by_their_size():
    result = bounded_mean([3.0, 0.0], [3.0, 1.0])

    assert result.value == 0.75


def test_no_value_has_no_mean():
    assert bounded_mean([]).value is None


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [([1.5], {}, "outside the bounds"), ([0.5], {"sizes": [1, 2]}, "1 totals and 2 sizes")],
)
def test_impossible_input_is_refused(values, options, message):
    with pytest.raises(ValueError, match=message):
        bounded_mean(values, **options)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=60))
def test_interval_holds_the_mean_inside_the_bounds_and_has_a_width(values):
    result = bounded_mean(values)

    assert 0 <= result.interval.lower <= result.value <= result.interval.upper <= 1
    assert result.interval.lower < result.interval.upper


def test_coverage_of_mostly_perfect_scores_is_at_its_level():
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(200):
        values = np.where(rng.random(20) < 0.8, 1.0, rng.random(20))
        interval = bounded_mean(values).interval
        hits += interval.lower <= 0.9 <= interval.upper

    # 95 % less three standard errors of the simulation.
    assert hits >= 200 * 0.95 - 3 * math.sqrt(200 * 0.95 * 0.05)
