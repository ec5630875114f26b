"""Multiplicity, debiasing, clustered means, power and attempts: laws and edges."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import (
    benjamini_hochberg,
    benjamini_yekutieli,
    clopper_pearson,
    clustered_mean,
    detectable_difference,
    holm,
    newcombe,
    pass_at_k,
    ppi_mean,
    rogan_gladen,
    sample_size,
    student,
    wilson,
)

METHODS = [holm, benjamini_hochberg, benjamini_yekutieli]
p_values = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12)


@pytest.mark.parametrize("method", METHODS)
@given(p_values)
def test_an_adjusted_p_value_is_never_smaller_and_keeps_the_order(method, raw):
    result = method(raw)
    assert result.n == sum(p is not None for p in raw)
    pairs = sorted((p, q) for p, q in zip(raw, result.adjusted, strict=True) if p is not None)
    assert all(p <= q + 1e-12 and q <= 1 for p, q in pairs)
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(pairs))
    assert [q is None for q in result.adjusted] == [p is None for p in raw]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("missing", [None, math.nan])
def test_an_undefined_p_value_does_not_count_in_the_family(method, missing):
    with_none, without = method([0.01, missing, 0.04]), method([0.01, 0.04])
    assert with_none.adjusted == (without.adjusted[0], None, without.adjusted[1])
    assert with_none.rejected[1] is False
    assert method([]).adjusted == ()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [[-0.1], [1.1], [math.inf]])
def test_a_p_value_outside_its_range_is_refused(method, bad):
    with pytest.raises(ValueError, match="p-value"):
        method(bad)
    with pytest.raises(ValueError, match="level"):
        method([0.5], level=1)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_one_value_per_cluster_is_students_interval(values):
    clustered, plain = clustered_mean(values, range(len(values))), student(values)
    assert clustered.value == plain.value
    assert clustered.standard_error == pytest.approx(plain.standard_error, rel=1e-9, abs=1e-12)
    if clustered.interval and plain.interval:
        assert clustered.interval.lower == pytest.approx(plain.interval.lower, abs=1e-9)


def test_a_clustered_mean_is_undefined_part_by_part():
    empty, single, one_cluster = clustered_mean([], []), clustered_mean([2], ["a"]), clustered_mean([1, 2], ["a", "a"])
    assert (empty.value, empty.interval, empty.clusters) == (None, None, 0)
    assert (single.value, single.independent, single.standard_error) == (2.0, None, None)
    assert (one_cluster.value, one_cluster.standard_error, one_cluster.miller) == (1.5, None, None)
    assert one_cluster.independent == pytest.approx(0.5)


def test_values_without_spread_have_no_interval():
    result = clustered_mean([0.1] * 6, ["a", "a", "b", "b", "c", "c"])
    assert (result.standard_error, result.miller, result.interval) == (0.0, 0.0, None)
    balanced = clustered_mean([0.1, 0.3] * 3, ["a", "a", "b", "b", "c", "c"])
    assert (balanced.standard_error, balanced.interval) == (0.0, None)
    assert balanced.independent > 0


def test_clusters_match_their_values():
    with pytest.raises(ValueError, match="one cluster"):
        clustered_mean([1, 2], ["a"])
    with pytest.raises(ValueError, match="finite"):
        clustered_mean([1, math.nan], ["a", "b"])


def test_useless_predictions_leave_the_plain_mean():
    result = ppi_mean([1, 0, 1, 1], [1, 1, 1, 1], [1] * 50)
    assert result.lam == 0.0
    assert (result.value, result.standard_error) == (result.classical, result.classical_error)


def test_perfect_predictions_are_worth_nearly_as_much_as_labels():
    labels = [1, 0, 1, 1, 0, 1, 0, 0, 1, 1] * 3
    result = ppi_mean(labels, labels, [1, 0] * 5_000)
    assert result.lam == pytest.approx(1, abs=0.05)
    assert result.value == pytest.approx(0.5, abs=0.01)
    assert result.standard_error < 0.1 * result.classical_error


def test_a_prediction_powered_mean_is_undefined_part_by_part():
    assert ppi_mean([], [], [1, 0]).value is None
    single = ppi_mean([1], [0], [1, 0])
    assert (single.value, single.lam, single.interval) == (1.0, 0.0, None)
    assert ppi_mean([1, 1], [1, 1], [1]).interval is None
    assert ppi_mean([1, 0], [1, 0], []).value == 0.5
    with pytest.raises(ValueError, match="one prediction"):
        ppi_mean([1, 0], [1], [1])


def test_a_perfect_judge_leaves_the_rate_as_it_is():
    options = {"sensitivity": 1.0, "positives": 10**9, "specificity": 1.0, "negatives": 10**9}
    result = rogan_gladen(0.3, n=1000, **options)
    assert result.value == pytest.approx(0.3)
    share = wilson(300, 1000).interval
    assert [result.interval.lower, result.interval.upper] == pytest.approx([share.lower, share.upper], abs=1e-3)


def test_a_judge_at_chance_corrects_nothing():
    result = rogan_gladen(0.3, n=1000, sensitivity=0.4, positives=50, specificity=0.6, negatives=50)
    assert (result.value, result.interval) == (None, None)
    assert "chance" in result.note


@given(st.floats(0, 1), st.integers(1, 500), st.floats(0, 1), st.integers(1, 200), st.floats(0, 1), st.integers(1, 200))
def test_a_corrected_rate_stays_in_range_and_no_interval_has_width_zero(rate, n, se, positives, sp, negatives):
    result = rogan_gladen(rate, n=n, sensitivity=se, positives=positives, specificity=sp, negatives=negatives)
    if result.value is not None:
        assert 0 <= result.value <= 1
    if result.interval is not None:
        assert 0 <= result.interval.lower < result.interval.upper <= 1
    else:
        assert result.note


@pytest.mark.parametrize("bad", [{"sensitivity": 1.2}, {"specificity": -0.1}, {"positives": 0}, {"n": 0}])
def test_impossible_error_rates_are_refused(bad):
    options = {"n": 10, "sensitivity": 0.9, "positives": 10, "specificity": 0.9, "negatives": 10} | bad
    with pytest.raises(ValueError, match=next(iter(bad))):
        rogan_gladen(0.5, **options)


@given(st.floats(0.001, 1), st.floats(0.01, 0.5), st.floats(0.5, 0.99))
def test_the_samples_a_difference_needs_detect_it(variance, difference, power):
    size = sample_size(variance, difference, power=power)
    shown = detectable_difference(variance, size.value, power=power).value
    assert shown <= difference * (1 + 1e-9)
    if size.value > 1:
        assert detectable_difference(variance, size.value - 1, power=power).value > difference * (1 - 1e-9)


def test_repetitions_shrink_only_the_variance_within_samples():
    assert sample_size(0.1, 0.1, within=(0.2, 0.2), repetitions=(4, 4)).exact == pytest.approx(
        sample_size(0.2, 0.1).exact
    )
    assert sample_size(0.1, 0.1, design_effect=2).exact == pytest.approx(2 * sample_size(0.1, 0.1).exact)
    assert sample_size(0.0, 0.1).value == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sample_size(0.1, 0), "above 0"),
        (lambda: sample_size(-0.1, 0.1), "variance"),
        (lambda: sample_size(0.1, 0.1, power=1), "power"),
        (lambda: sample_size(0.1, 0.1, level=0), "level"),
        (lambda: sample_size(0.1, 0.1, repetitions=(0, 1)), "repetition"),
        (lambda: sample_size(0.1, 0.1, design_effect=0), "design effect"),
        (lambda: detectable_difference(0.1, 0), "one sample"),
        (lambda: pass_at_k(3, attempts=2, k=1), "correct"),
        (lambda: pass_at_k(1, attempts=2, k=3), "needs 3 attempts"),
        (lambda: pass_at_k(1, attempts=2, k=0), "k = 0"),
        (lambda: pass_at_k(0.5, attempts=2, k=1), "whole numbers"),
        (lambda: clopper_pearson(0.5, 2), "whole counts"),
        (lambda: newcombe(3, 2, 1, 2), "successes"),
        (lambda: wilson(1, 2, confidence=1), "confidence"),
    ],
)
def test_misuse_is_refused_with_a_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_draws_with_a_success(case):
    n, correct, k = case
    expected = 1 - math.comb(n - correct, k) / math.comb(n, k)
    assert pass_at_k(correct, attempts=n, k=k).value == pytest.approx(expected, abs=1e-12)


def test_pass_at_k_averages_over_tasks():
    result = pass_at_k([0, 5, 10], attempts=[10, 10, 10], k=1)
    assert result.value == pytest.approx(0.5)
    assert result.n == 3
    assert (result.interval.lower, result.interval.upper) == (0.0, 1.0)
    assert pass_at_k([], attempts=[], k=1).value is None


def test_an_empty_sample_makes_a_difference_undefined():
    result = newcombe(0, 0, 1, 2)
    assert (result.value, result.interval, result.shares) == (None, None, (None, 0.5))
    assert clopper_pearson(0, 0).value is None


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_exact_interval_contains_its_share(counts):
    result = clopper_pearson(*counts)
    assert 0 <= result.interval.lower <= result.value <= result.interval.upper <= 1
    assert result.interval.width > 0
