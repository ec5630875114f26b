from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import systematic_bias
from deemster.stats.student_distribution import t_quantile
from deemster.stats.systematic_bias import clustered_error
from tests.builders.published_numbers import PUBLISHED


def test_constant_shift_has_mean_but_no_p_value():
    result = systematic_bias([0.6, 0.7, 0.8], [0.5, 0.6, 0.7])
    assert result.mean_bias == pytest.approx(0.1)
    assert (result.std_bias, result.p_value, result.effect_size, result.ci) == (0.0, None, None, None)
    assert (result.direction, result.is_significant) == ("positive", False)
    equal = systematic_bias([0.5, 0.5], [0.5, 0.5])
    assert (equal.mean_bias, equal.p_value, equal.direction) == (0.0, None, "none")


def test_no_score_has_no_bias_and_one_score_has_its_mean_only():
    empty = systematic_bias([], [])
    assert (empty.mean_bias, empty.std_bias, empty.n_samples) == (None, None, 0)
    one = systematic_bias([0.4], [0.7])
    assert (one.mean_bias, one.std_bias, one.p_value, one.direction) == (pytest.approx(-0.3), None, None, "negative")


def test_direction_of_a_bias_is_named_beyond_a_thousandth():
    assert systematic_bias([0.501, 0.5005], [0.5, 0.5]).direction == "none"
    assert systematic_bias([0.5, 0.5], [0.503, 0.502]).direction == "negative"


def test_pairs_with_missing_side_are_left_out_of_bias():
    result = systematic_bias([0.9, None, 0.7], [0.7, 0.1, 0.6])
    assert (result.n_samples, result.mean_bias) == (2, pytest.approx(0.15))


def test_paired_scores_of_different_length_are_an_error_and_unpaired_ones_are_not():
    with pytest.raises(ValueError, match="3 and 2 values"):
        systematic_bias([1, 2, 3], [1, 2])
    assert systematic_bias([1, 2, 3], [1, 2], paired=False).n_samples == 5


def cr2(values, clusters):
    """Error and degrees of freedom of a mean by Bell and McCaffrey, from matrices."""
    y, codes = np.array(values, dtype=float), np.unique(clusters, return_inverse=True)[1]
    n = len(y)
    x = np.ones((n, 1))
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    rest = np.eye(n) - hat
    residuals = rest @ y
    meat, sides = 0.0, []
    for cluster in range(codes.max() + 1):
        members = codes == cluster
        values_of, vectors = np.linalg.eigh(np.eye(members.sum()) - hat[np.ix_(members, members)])
        adjusted = vectors @ np.diag(values_of**-0.5) @ vectors.T
        own = x[members].T @ adjusted
        meat += (own @ residuals[members]).item() ** 2
        sides.append(rest[:, members] @ adjusted @ x[members] @ bread)
    sides = np.concatenate(sides, axis=1)
    found = sides.T @ sides
    return math.sqrt(meat) * bread.item(), np.trace(found) ** 2 / np.trace(found @ found)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 4)), min_size=2, max_size=25).filter(
        lambda pairs: len({cluster for _, cluster in pairs}) > 1 and np.std([value for value, _ in pairs]) > 1e-3
    )
)
def test_error_in_clusters_equals_that_of_matrices(drawn):
    values, clusters = zip(*drawn, strict=True)
    error, freedom = clustered_error(np.array(values), clusters)
    expected = cr2(values, clusters)
    assert error == pytest.approx(expected[0], rel=1e-6, abs=1e-9)
    assert freedom == pytest.approx(expected[1])


def test_clusters_of_one_size_have_the_published_error():
    entry = PUBLISHED["clustered_se"]
    error, freedom = clustered_error(np.array(entry["input"]["scores"], dtype=float), entry["input"]["cluster"])
    assert error == pytest.approx(entry["expected"]["cr1"], abs=entry["abs_tol"])
    assert freedom == pytest.approx(4)


def test_interval_of_a_bias_covers_with_unequal_clusters():
    clusters = np.repeat(np.arange(12), [30, 20] + [4] * 10)
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(600):
        values = rng.normal(size=12)[clusters] + rng.normal(size=len(clusters))
        interval = systematic_bias(values, np.zeros(len(values)), clusters=clusters).ci
        covered += interval.lower <= 0 <= interval.upper
    assert 0.925 <= covered / 600 <= 0.985


def test_bias_in_clusters_has_the_error_of_its_clusters():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6])
    predicted, true = rng.random(21) + 2 * rng.random(6)[clusters], rng.random(21)
    found, plain = systematic_bias(predicted, true, clusters=clusters), systematic_bias(predicted, true)
    error, freedom = clustered_error(predicted - true, clusters)
    assert found.ci.width == pytest.approx(2 * t_quantile(0.95, freedom) * error)
    assert (found.mean_bias, found.effect_size, found.n_samples) == (plain.mean_bias, plain.effect_size, 21)
    assert found.ci.width > plain.ci.width


@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(10), 4)])
def test_p_value_and_interval_of_a_bias_say_the_same(clusters):
    rng = np.random.default_rng(2)
    seen = set()
    for shift in np.linspace(-0.3, 0.3, 60):
        predicted, true = rng.random(40) + shift, rng.random(40)
        found = systematic_bias(predicted, true, clusters=clusters)
        assert found.is_significant == (found.p_value < 0.05) == (not found.ci.lower <= 0 <= found.ci.upper)
        seen.add(found.is_significant)
    assert seen == {True, False}


def test_each_item_its_own_cluster_changes_nothing():
    predicted, true = [0.9, 0.4, 0.7, 0.2], [0.7, 0.1, 0.6, 0.5]
    alone, plain = systematic_bias(predicted, true, clusters=range(4)), systematic_bias(predicted, true)
    assert (alone.p_value, alone.ci.lower) == pytest.approx((plain.p_value, plain.ci.lower))


def test_bias_in_one_cluster_has_effect_but_no_test():
    found = systematic_bias([0.9, 0.4, 0.7], [0.7, 0.1, 0.6], clusters=["a"] * 3)
    assert (found.p_value, found.ci, found.is_significant) == (None, None, False)
    assert found.mean_bias == pytest.approx(0.2)
    assert found.effect_size == pytest.approx(2.0)


def test_clusters_that_cancel_give_no_interval_of_width_zero():
    found = systematic_bias([0.1, 0.3] * 3, [0.0] * 6, clusters=["a", "a", "b", "b", "c", "c"])
    assert (found.p_value, found.ci, found.is_significant) == (None, None, False)


def test_clusters_of_other_length_and_of_gaps_are_error():
    with pytest.raises(ValueError, match="cluster"):
        systematic_bias([0.1, 0.2], [0.0, 0.1], clusters=["a"])
    with pytest.raises(ValueError, match="cluster"):
        systematic_bias([0.1, None, 0.3], [0.0, 0.1, 0.1], clusters=["a", "a", "b"])
    with pytest.raises(ValueError, match="not paired"):
        systematic_bias([0.1, 0.3], [0.0, 0.1], paired=False, clusters=["a", "b"])
