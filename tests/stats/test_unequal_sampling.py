"""Unequal random samples: probabilities that come true, sizes that cost little, precision in equal labels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats.unequal_sampling import (
    FLOOR,
    MOST_LOST,
    equal_sample_size,
    inclusion_probabilities,
    pivotal_sample,
    sampling_sizes,
)

SPREADS = st.lists(st.floats(0, 0.5), min_size=1, max_size=60)


@pytest.mark.parametrize("chances", [[0.5, 0.25, 0.25, 1.0], [0.3, 0.9, 0.8, 0.6, 0.4], [0.1] * 10, [1.0, 1.0]])
def test_every_item_is_drawn_as_often_as_its_probability_says(chances):
    draws = 20_000
    counts = Counter(item for seed in range(draws) for item in pivotal_sample(chances, seed=seed))
    for item, chance in enumerate(chances):
        assert counts[item] / draws == pytest.approx(chance, abs=0.015)


@given(SPREADS, st.data())
def test_number_of_items_is_fixed_and_none_is_drawn_twice(spreads, data):
    n = data.draw(st.integers(0, len(spreads)))
    chances = inclusion_probabilities(sampling_sizes(spreads), n)
    drawn = pivotal_sample(chances, seed=data.draw(st.integers(0, 1000)))
    assert len(drawn) == len(set(drawn)) == n
    assert chances.sum() == pytest.approx(n)
    assert not len(chances) or (chances.min() >= 0 and chances.max() <= 1)


def test_certain_items_are_drawn_and_the_others_share_what_is_left():
    chances = inclusion_probabilities([1, 1, 2, 8], 2)
    assert chances.tolist() == [0.25, 0.25, 0.5, 1.0]
    assert all(3 in pivotal_sample(chances, seed=seed) for seed in range(50))


def test_same_seed_gives_the_same_draw_in_an_order_that_says_nothing():
    chances = inclusion_probabilities(np.linspace(1, 3, 40), 20)
    assert pivotal_sample(chances, seed=3) == pivotal_sample(chances, seed=3) != pivotal_sample(chances, seed=4)
    first = [pivotal_sample(chances, seed=seed) for seed in range(5000, 7000)]
    halves = [np.mean([np.mean(drawn[part]) for drawn in first]) for part in (slice(10), slice(10, 20))]
    assert halves[0] == pytest.approx(halves[1], abs=0.25)


@given(SPREADS)
def test_draw_costs_at_most_a_tenth_where_spreads_say_nothing(spreads):
    sizes = sampling_sizes(spreads)
    assert sizes.mean() == pytest.approx(1)
    assert sizes.min() >= FLOOR / 2
    assert np.mean(1 / sizes) <= 1 + MOST_LOST + 1e-9


@given(SPREADS)
def test_sizes_are_in_the_order_of_the_spreads(spreads):
    order = np.argsort(spreads, kind="stable")
    assert (np.diff(sampling_sizes(spreads)[order]) >= -1e-12).all()


def test_equal_weights_are_worth_their_number_and_unequal_ones_what_their_variance_says():
    rng = np.random.default_rng(0)
    errors = rng.normal(size=200)
    assert equal_sample_size(errors, np.full(200, 7.0)) == pytest.approx(200)
    weights = np.where(np.arange(200) % 2, 1.0, 3.0)
    # Kish: (Σw)²/Σw² items, where weights say nothing of the errors.
    assert equal_sample_size(np.tile([1.0, 1.0, -1.0, -1.0], 50), weights) == pytest.approx(160)
    assert equal_sample_size(np.ones(3), np.ones(3)) is None
    assert equal_sample_size(np.zeros(0), np.zeros(0)) is None
