"""The test of drift: right against numerical integration, valid under repeated looks, and able to see a drop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from deemster.stats import rate_drift
from deemster.stats.drift_test import _shown

counts = st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def days(rng, rate, sd, volume, count):
    """Counts of days whose rates vary: nothing of this is known to the test."""
    rates = np.clip(rate + sd * rng.standard_normal(count), 0, 1)
    volumes = rng.poisson(volume, count) + 1
    return [(int(passed), int(n)) for passed, n in zip(rng.binomial(volumes, rates), volumes, strict=True)]


def test_evidence_is_the_bayes_factor_of_a_shift_by_numerical_integration():
    """The t density with a normal shift over that without, mixed over the starts."""
    before, after = np.array([0.1, 0.3, -0.2, 0.0]), np.array([0.9, 1.1])
    values = np.concatenate([before, after])
    evidence = _shown(values, np.zeros(6), 1.0, 4, 1e-9).evidence

    def factor(first, second):
        n, freedom = len(first) * len(second) / (len(first) + len(second)), len(first) + len(second) - 2
        spread = np.square(first - first.mean()).sum() + np.square(second - second.mean()).sum()
        change = second.mean() - first.mean()

        def likelihood(shift):
            """Of effect and spread, over all scales, where the effect is a shift in standard deviations."""
            inner, _ = quad(
                lambda s: (
                    s ** -(freedom + 2) * math.exp(-spread / (2 * s * s) - n * (change - shift * s) ** 2 / (2 * s * s))
                ),
                0.01,
                20,
                limit=300,
            )
            return inner

        mixed, _ = quad(lambda d: likelihood(d) * math.exp(-d * d / 2) / math.sqrt(2 * math.pi), -8, 8, limit=300)
        return mixed / likelihood(0.0)

    # The second unit after the baseline, alone, is no drift: it counts at most 1.
    expected = factor(before, after) / 2 + min(1.0, factor(values[:5], after[1:])) / 6 + 1 / 3
    assert evidence == pytest.approx(expected, rel=1e-4)


@given(st.lists(counts, min_size=1, max_size=6), st.lists(counts, max_size=6))
def test_swapping_success_and_failure_swaps_the_directions(baseline, periods):
    def turned(rows):
        return [(n - passed, n) for passed, n in rows]

    one, other = rate_drift(baseline, periods), rate_drift(turned(baseline), turned(periods))
    assert (other.evidence or 0) == pytest.approx(one.evidence or 0, rel=1e-6)
    assert {one.direction, other.direction} in ({None}, {"down", "up"})
    assert one.n == sum(trials for _, trials in periods)


@pytest.mark.parametrize(
    ("rate", "sd", "reference"), [(0.9, 0.0, 14), (0.9, 0.04, 14), (0.9, 0.08, 40), (0.99, 0.0, 30)]
)
def test_rate_that_only_varies_from_day_to_day_is_flagged_in_at_most_alpha_of_the_processes(rate, sd, reference):
    rng = np.random.default_rng(11)
    alarms = sum(
        rate_drift(days(rng, rate, sd, 60, reference), days(rng, rate, sd, 60, 60), alpha=0.1).direction is not None
        for _ in range(120)
    )
    assert alarms / 120 <= 0.1


def test_ordinary_fall_is_noticed_where_the_days_differ_little():
    rng = np.random.default_rng(4)
    found = [rate_drift(days(rng, 0.9, 0.0, 100, 10), days(rng, 0.85, 0.0, 100, 50)).direction for _ in range(60)]
    assert found.count("down") / 60 >= 0.75


def test_drop_that_begins_late_is_found_and_dated():
    rng = np.random.default_rng(3)
    found = rate_drift(days(rng, 0.9, 0.0, 50, 20), [*days(rng, 0.9, 0.0, 50, 20), *days(rng, 0.65, 0.0, 50, 20)])
    assert found.direction == "down"
    assert found.period in range(21, 26)
    assert abs(found.began - 20) <= 1


def test_detected_drift_stays_detected():
    early = [(10, 50)] * 4
    shown = rate_drift([(45, 50)] * 10, early)
    later = rate_drift([(45, 50)] * 10, [*early, *[(50, 50)] * 20])
    assert shown.direction == later.direction == "down"
    assert shown.period == later.period


def test_one_bad_period_is_no_drift():
    steady = [(90, 100)] * 20
    assert rate_drift(steady, [*steady, (10, 100)]).direction is None
    assert rate_drift(steady, [*steady, (10, 100), (10, 100), (10, 100)]).direction == "down"


def test_small_periods_are_joined_and_the_drift_is_dated_in_periods():
    steady = [(1, 1)] * 9 + [(0, 1)]
    found = rate_drift(steady * 20, [*steady * 5, *[(0, 1)] * 100])
    assert found.direction == "down"
    assert found.began == pytest.approx(50, abs=20)


def test_without_baseline_evidence_is_none():
    found = rate_drift([], [(1, 50)])
    assert (found.direction, found.evidence, found.between) == (None, None, None)


def test_huge_evidence_is_a_number():
    assert math.isfinite(rate_drift([(999, 1000)] * 300, [(0, 100_000)] * 300).evidence)


@pytest.mark.parametrize(
    ("baseline", "periods", "alpha"), [((3, 2), (1, 2), 0.05), ((1, 2), (-1, 2), 0.05), ((1, 2), (1, 2), 1.0)]
)
def test_impossible_counts_are_refused(baseline, periods, alpha):
    with pytest.raises(ValueError, match=r"no count|alpha"):
        rate_drift([baseline], [periods], alpha=alpha)
