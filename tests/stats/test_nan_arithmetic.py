from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats.nan_arithmetic import merge_rounded


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 1000))
def test_sums_of_weights_that_are_equal_as_fractions_become_equal(weights, divisor):
    shares = [weight / divisor for weight in weights]
    total = sum(shares)
    chosen = list(product((0, 1), repeat=len(weights)))
    scores = np.array([sum(share for share, on in zip(shares, one, strict=True) if on) / total for one in chosen])
    exact = [sum(weight for weight, on in zip(weights, one, strict=True) if on) for one in chosen]
    merged = merge_rounded(scores)
    assert np.allclose(merged, scores, rtol=0, atol=1e-12)
    assert len(set(merged.tolist())) == len(set(exact))
    assert len({(score, count) for score, count in zip(merged.tolist(), exact, strict=True)}) == len(set(exact))


def test_merging_keeps_shape_gaps_and_real_differences():
    values = np.array([[0.5, np.nan], [0.5 + 1e-15, 0.5 + 1e-9]])
    merged = merge_rounded(values)
    assert merged.shape == (2, 2)
    assert np.isnan(merged[0, 1])
    assert (merged[0, 0], merged[1, 0], merged[1, 1]) == (0.5, 0.5, 0.5 + 1e-9)
    assert values[1, 0] != 0.5
    empty = np.full((0, 3), np.nan)
    assert merge_rounded(empty).shape == (0, 3)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-3])
def test_merging_changes_no_order(scale):
    values = scale * np.random.default_rng(0).random(500)
    assert (np.argsort(merge_rounded(values), kind="stable") == np.argsort(values, kind="stable")).all()
