from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import kendall
from deemster.stats.rank_correlation import (
    dominance,
    kendall_influence,
    spearman_influence,
    weighted_kendall,
    weighted_spearman,
)

# Few values are counted in a table, many are sorted; ties occur in both.
GRADES = st.one_of(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40),
)


@given(GRADES)
def test_dominance_counts_equal_pairwise_comparison(pairs):
    x, y = (np.array(side, dtype=float) for side in (zip(*pairs, strict=True) if pairs else ([], [])))
    counts = dominance(x, y)
    for i in range(len(pairs)):
        others = [j for j in range(len(pairs)) if j != i]
        products = [(x[i] - x[j]) * (y[i] - y[j]) for j in others]
        assert counts.concordant[i] == sum(product > 0 for product in products)
        assert counts.discordant[i] == sum(product < 0 for product in products)
        assert counts.x_ties[i] == sum(x[i] == x[j] for j in others)
        assert counts.y_ties[i] == sum(y[i] == y[j] for j in others)
        assert counts.ties[i] == sum(x[i] == x[j] and y[i] == y[j] for j in others)


def test_counts_of_many_values_equal_small_method():
    """The same order of items, once with few distinct values and once beside items that make them many."""
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 30, 60), rng.integers(0, 30, 60)
    signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
    counts = dominance(x, y)
    np.testing.assert_array_equal(counts.concordant - counts.discordant, signs.sum(axis=1))
    twelvefold = dominance(np.tile(x, 12), np.tile(y, 12))
    np.testing.assert_array_equal(twelvefold.discordant[:60], 12 * counts.discordant)


def test_precomputed_counts_give_same_result(sample):
    x, y = sample
    counts = dominance(x, y)
    assert kendall(x, y, counts=counts) == kendall(x, y)
    with pytest.raises(ValueError, match="2 pairs, but the counts are of 80"):
        kendall([1, 2], [1, 2], counts=counts)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(11)
    x = rng.integers(0, 9, 80) / 8
    return x, np.round(x + rng.normal(size=80) * 0.4, 1)


def influence_on_kendall(x, y):
    return kendall_influence(dominance(np.array(x), np.array(y)))


def influence_on_spearman(x, y):
    return spearman_influence(np.array(x), np.array(y))


@pytest.mark.parametrize(
    ("influence", "weighted"), [(influence_on_kendall, weighted_kendall), (influence_on_spearman, weighted_spearman)]
)
def test_influence_predicts_what_one_more_copy_does_to_a_large_sample(sample, influence, weighted):
    x, y = sample
    copies = 200
    base = np.full((80, 81), copies)
    base[np.arange(80), np.arange(80)] += 1
    replicates = weighted(x, y, base)
    moved = (replicates[:80] - replicates[80]) * copies * 80
    np.testing.assert_allclose(moved, influence(x, y), atol=0.02)


@pytest.mark.parametrize("influence", [influence_on_kendall, influence_on_spearman])
def test_influence_sums_to_zero_or_is_undefined_with_correlation(sample, influence):
    assert abs(influence(*sample).sum()) < 1e-9
    assert np.isnan(influence([1, 1, 1], [1, 2, 3])).all()
    assert np.isnan(influence([1, 2], [1, 2])).all()
    assert influence([], []).shape == (0,)


@pytest.mark.parametrize("weighted", [weighted_kendall, weighted_spearman])
def test_replicates_do_not_depend_on_how_they_are_blocked(sample, weighted):
    x, y = sample
    rng = np.random.default_rng(2)
    draws = np.stack([np.bincount(rng.integers(0, 80, 80), minlength=80) for _ in range(1100)], axis=1)
    whole = weighted(x, y, draws)
    assert whole.shape == (1100,)
    np.testing.assert_array_equal(whole[700:730], weighted(x, y, draws[:, 700:730]))


@pytest.mark.parametrize("weighted", [weighted_kendall, weighted_spearman])
def test_replicate_of_one_value_is_undefined(weighted):
    draws = np.array([[4, 1], [0, 2], [0, 1], [0, 0]])
    found = weighted(np.arange(4), np.array([1, 3, 2, 4]), draws)
    assert np.isnan(found[0])
    assert not np.isnan(found[1])
