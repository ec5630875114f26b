"""The test of drift: right against numerical integration, valid under repeated looks, and able to see a drop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from deemster.stats import clopper_pearson, rate_drift


def by_integration(passed, failed, rate):
    """The likelihood ratio of one stretch of trials, averaged over all lower rates."""
    value, _ = quad(lambda p: (p / rate) ** passed * ((1 - p) / (1 - rate)) ** failed, 0, rate, limit=200)
    return value / rate


def test_evidence_of_two_periods_is_the_weighted_mean_over_starts_by_numerical_integration():
    lower = clopper_pearson(45, 50, confidence=0.975).interval.lower
    found = rate_drift((45, 50), [(6, 10), (5, 10)])
    first = by_integration(6, 4, lower) / 2 + 1 / 2
    second = by_integration(11, 9, lower) / 2 + by_integration(5, 5, lower) / 6 + 1 / 3
    assert found.evidence_down == pytest.approx(max(first, second), rel=1e-9)


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.lists(st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), max_size=6),
)
def test_swapping_success_and_failure_swaps_the_directions(baseline, periods):
    def turned(counts):
        return counts[1] - counts[0], counts[1]

    one = rate_drift(baseline, periods)
    other = rate_drift(turned(baseline), [turned(each) for each in periods])
    assert other.evidence_down == pytest.approx(one.evidence_up, rel=1e-6)
    assert {one.direction, other.direction} in ({None}, {"down", "up"})
    assert one.n == sum(trials for _, trials in periods)


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_steady_rate_looked_at_after_every_period_is_flagged_in_at_most_alpha_of_the_processes(rate):
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(150):
        baseline = (int(rng.binomial(100, rate)), 100)
        found = rate_drift(baseline, [(int(n), 20) for n in rng.binomial(20, rate, 40)], alpha=0.2)
        alarms += found.direction is not None
    assert alarms / 150 <= 0.2


def test_drop_that_begins_late_is_found_and_dated():
    rng = np.random.default_rng(3)
    steady, low = rng.binomial(50, 0.9, 20), rng.binomial(50, 0.65, 20)
    found = rate_drift((900, 1000), [(int(n), 50) for n in (*steady, *low)])
    assert found.direction == "down"
    assert found.period in range(20, 26)
    assert abs(found.began - 20) <= 1


def test_detected_drift_stays_detected():
    early = [(10, 50)] * 3
    shown = rate_drift((450, 500), early)
    later = rate_drift((450, 500), [*early, *[(50, 50)] * 20])
    assert shown.direction == later.direction == "down"
    assert shown.period == later.period


def test_baseline_of_zero_or_one_cannot_drift_outward():
    assert rate_drift((0, 20), [(0, 50)]).evidence_down == 0.0
    assert rate_drift((20, 20), [(50, 50)]).evidence_up == 0.0


def test_without_baseline_evidence_is_none():
    found = rate_drift((0, 0), [(1, 50)])
    assert (found.direction, found.evidence_down, found.evidence_up, found.baseline) == (None, None, None, None)


def test_evidence_stays_finite():
    assert math.isfinite(rate_drift((999, 1000), [(0, 100_000)]).evidence_down)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3, 2), []), "3 of 2 is no count"),
        (((1, 2), [(-1, 2)]), "-1 of 2 is no count"),
    ],
)
def test_impossible_counts_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        rate_drift(*arguments)


def test_alpha_outside_0_and_1_is_error():
    with pytest.raises(ValueError, match="alpha lies strictly between 0 and 1, not 1"):
        rate_drift((1, 2), [], alpha=1)
