"""Tests of the mean difference of paired units: bounds, p-values, certifiable margins."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from deemster.stats import bounded_mean, certifiable_margin, paired_difference, sign_flip
from deemster.stats.paired_difference import fewest_flips, flip_p_values

units = st.lists(
    st.tuples(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.0, 0.0, 0.3, 1.0]), st.sampled_from([1.0, 1.0, 2.0, 5.0])),
    min_size=1,
    max_size=60,
)


def split(rows):
    shares, sizes = np.array(rows).T
    return shares * sizes, sizes


def flips(worse, better, n):
    return np.repeat([-1.0, 1.0, 0.0], [worse, better, n - worse - better])


@given(units, st.sampled_from([0.8, 0.95, 0.99]), st.floats(0, 0.9))
def test_p_values_are_the_duals_of_the_bounds(rows, confidence, margin):
    result = paired_difference(*split(rows), margin=margin, confidence=confidence)

    if abs(result.lower_bound + margin) > 1e-7:
        assert (result.p_within <= 1 - confidence) == (result.lower_bound > -margin)
    if abs(result.upper_bound + margin) > 1e-7:
        assert (result.p_beyond <= 1 - confidence) == (result.upper_bound < -margin)


@given(units, st.lists(st.floats(0, 0.95), min_size=2, max_size=5))
def test_p_values_are_monotone_in_the_margin(rows, margins):
    results = [paired_difference(*split(rows), margin=margin) for margin in sorted(margins)]

    for smaller, larger in itertools.pairwise(results):
        assert larger.p_within <= smaller.p_within + 1e-9
        assert larger.p_beyond >= smaller.p_beyond - 1e-9


@given(units)
def test_one_sided_bounds_are_ends_of_the_interval_of_twice_the_alpha(rows):
    totals, sizes = split(rows)
    result = paired_difference(totals, sizes, confidence=0.95)
    both = paired_difference(totals, sizes, confidence=0.9).interval

    assert result.upper_bound == pytest.approx(both.upper, abs=1e-12)
    floor = result.value - (1 + result.value) * result.certifiable_unchanged
    assert result.lower_bound == pytest.approx(min(both.lower, floor), abs=1e-9)
    assert result.lower_bound <= result.value <= result.upper_bound <= result.interval.upper


@given(units)
def test_exchanged_runs_give_the_mirrored_result(rows):
    totals, sizes = split(rows)
    ours, other = paired_difference(totals, sizes), paired_difference(-totals, sizes)

    assert other.interval.lower == pytest.approx(-ours.interval.upper, abs=1e-9)
    assert other.lower_bound <= -ours.upper_bound + 1e-9
    assert (other.better, other.worse) == (ours.worse, ours.better)


def test_few_changed_units_have_the_interval_of_a_bounded_mean():
    result, other = paired_difference(flips(3, 1, 60)), bounded_mean(flips(3, 1, 60), low=-1, high=1)

    assert result.interval == other.interval


def test_enough_changed_units_have_students_p_value():
    differences = np.linspace(-0.8, 0.7, 500)
    result = paired_difference(differences, margin=0.1)

    expected = scipy_stats.ttest_1samp(differences, -0.1, alternative="greater")
    assert result.p_within == pytest.approx(expected.pvalue)
    assert result.p_beyond == pytest.approx(1 - expected.pvalue)
    assert result.effect == pytest.approx(differences.mean() / differences.std(ddof=1))


def test_nothing_changed_on_20_samples_certifies_no_small_margin():
    result = paired_difference(np.zeros(20), margin=0.02)

    assert result.p_within > 0.05
    assert result.certifiable == result.certifiable_unchanged == pytest.approx(0.163, abs=1e-3)
    assert (result.better, result.worse, result.effect) == (0, 0, None)


@pytest.mark.parametrize(("n", "margin"), [(180, 0.02), (75, 0.05)])
def test_unchanged_samples_certify_the_margin_that_the_specification_names(n, margin):
    assert paired_difference(np.zeros(n), margin=margin).p_within <= 0.05
    assert certifiable_margin(n) == pytest.approx(3.6 / n, rel=0.02)


@pytest.mark.parametrize("sizes", [None, [5.0] * 8, [1, 2, 3, 4, 5, 6, 7, 20]])
def test_certifiable_margin_is_the_bound_of_unchanged_units(sizes):
    assert certifiable_margin(8, sizes=sizes) == pytest.approx(-paired_difference(np.zeros(8), sizes).lower_bound)


def test_shift_that_all_samples_share_does_not_hide_a_rare_drop():
    """25 equal differences have no spread, and still no interval without a width."""
    result = paired_difference(np.full(25, 0.01), margin=0.02)

    assert result.lower_bound < -0.1
    assert result.p_within > 0.05


def test_long_tail_lengthens_the_bound_on_its_side_only():
    """60 of 600 newly fail: γ = -2.67."""
    result = paired_difference(flips(60, 0, 600))
    half = 1.6474 * result.standard_error

    assert result.interval.method == "skewness-adjusted student"
    assert result.lower_bound == pytest.approx(
        -0.1 - half - 0.0272 * (1 + 2 * 1.6474**2) * result.standard_error, abs=1e-4
    )
    assert result.upper_bound == pytest.approx(-0.1 + half, abs=1e-5)


def test_few_large_changes_among_many_small_ones_are_few():
    differences = np.concatenate([np.full(8, -0.9), np.tile([-0.01, 0.01], 100)])

    assert paired_difference(differences).interval.method == "empirical likelihood"


def test_small_moves_of_all_scores_certify_no_more_than_no_move():
    rng = np.random.default_rng(6)
    moving, still = paired_difference(rng.normal(0, 0.01, 60)), paired_difference(np.zeros(60))

    assert moving.interval.width < 0.01
    assert moving.lower_bound == pytest.approx(still.lower_bound, abs=0.01)


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.floats(0, 0.9))
def test_p_values_of_many_flips_at_once_are_the_same(worse, better, kept, margin):
    n = worse + better + kept
    if n:
        result = paired_difference(flips(worse, better, n), margin=margin)
        for side, expected in (("above", result.p_within), ("below", result.p_beyond)):
            ours = flip_p_values([worse], [better], n=n, mean=-margin, side=side)
            assert ours == pytest.approx([expected], abs=1e-9)


def test_so_many_flips_as_a_sign_test_needs_are_detected():
    assert fewest_flips(0.95) == 6  # 2·½⁶ = .031
    assert paired_difference(flips(6, 0, 200)).interval.upper < 0 < paired_difference(flips(5, 0, 200)).interval.upper


@pytest.mark.parametrize(("n", "rate"), [(40, 0.0), (300, 0.0), (300, 0.2), (1000, 0.1)])
def test_detectable_drop_is_detected_with_the_promised_power(n, rate):
    """As many samples as before flip either way, and a drop comes on top."""
    rng = np.random.default_rng(5)
    background = flips(round(n * rate / 2), round(n * rate / 2), n)
    drop = paired_difference(background).detectable
    worse, better = rate / 2 + drop, rate / 2
    draws, found = 300, 0
    for _ in range(draws):
        counts = rng.multinomial(n, [worse, better, 1 - worse - better])
        found += paired_difference(flips(*counts[:2], n)).interval.upper < 0
    assert found / draws >= 0.8 - 3 * math.sqrt(0.16 / draws)


def test_too_few_units_detect_nothing():
    assert paired_difference(np.zeros(5)).detectable is None


def test_no_unit_has_no_difference():
    result = paired_difference([], margin=0.1)

    assert (result.value, result.interval, result.p_within, result.n) == (None, None, None, 0)
    assert certifiable_margin(0) is None


def test_million_units_take_well_below_a_second_each():
    changes = np.zeros(1_000_000)
    changes[:7] = -1

    assert paired_difference(changes, np.ones(1_000_000), margin=0.02).p_within < 1e-6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_difference([0.0], margin=1.0), "margin"),
        (lambda: paired_difference([0.0], margin=-0.1), "margin"),
        (lambda: paired_difference([2.0]), "outside the bounds"),
        (lambda: paired_difference([0.0], [0.0]), "size above 0"),
        (lambda: paired_difference([0.0, 0.0], power=1.0), "power"),
        (lambda: paired_difference([0.0], confidence=1.0), "confidence"),
        (lambda: certifiable_margin(3, sizes=[1.0]), "3 units"),
    ],
)
def test_impossible_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def exact_errors(n, fail, gain):
    """How often the rule passes and fails a drop exactly at the margin, by going through all counts of flips."""
    margin = fail - gain
    passes = fails = 0.0
    for worse, better in itertools.product(range(n + 1), range(n + 1)):
        chance = scipy_stats.multinomial.pmf([worse, better, n - worse - better], n, [fail, gain, 1 - fail - gain])
        if worse + better > n or chance < 1e-7:
            continue
        result = paired_difference(flips(worse, better, n), margin=margin)
        passes += chance * (result.p_within <= 0.05)
        fails += chance * (result.p_beyond <= 0.05)
    return passes, fails


@pytest.mark.parametrize(("n", "fail", "gain"), [(20, 0.02, 0.0), (50, 0.06, 0.04), (30, 0.2, 0.1), (100, 0.02, 0.0)])
def test_errors_at_the_margin_stay_near_the_level(n, fail, gain):
    passes, fails = exact_errors(n, fail, gain)

    assert passes <= 0.06
    assert fails <= 0.06


@given(
    st.lists(st.tuples(st.sampled_from([-1.0, -0.5, -0.1, 0.0, 0.2, 1.0]), st.integers(1, 3)), min_size=1, max_size=60),
    st.booleans(),
)
def test_p_beside_the_interval_is_the_interval_s_own(units, is_clustered):
    """At the level of its p-value the interval ends at 0, a little above it excludes 0, a little below it does not."""
    values = np.array([value for value, _ in units])
    sizes = np.array([size for _, size in units], dtype=float) if is_clustered else np.ones(len(values))
    found = paired_difference(values * sizes, sizes)
    assert 0 < found.p_value <= 1 or found.standard_error == 0
    for level in (0.9 * found.p_value, min(0.999, 1.1 * found.p_value)):
        if 1e-6 < level < 0.95:
            interval = paired_difference(values * sizes, sizes, confidence=1 - level).interval
            assert (interval.lower > 0 or interval.upper < 0) == (level > found.p_value)


def test_eight_samples_that_all_lose_a_third_have_the_p_of_their_interval():
    moved = np.random.default_rng(0).normal(-0.33, 0.03, 8)
    found = paired_difference(moved)

    assert found.interval.lower < 0 < found.interval.upper
    assert found.p_value > 0.05
    assert sign_flip(moved).p_value == pytest.approx(2 / 2**8)
