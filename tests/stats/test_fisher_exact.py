"""Tests of Fisher's exact test for many samples."""

import numpy as np
import pytest

from deemster.stats import fisher_exact


def test_fishers_tea_is_as_published():
    """Three of four cups on each side: 17/70, or two-sided 34/70."""
    assert fisher_exact(1, 4, 3, 4, alternative="greater") == pytest.approx([17 / 70])
    assert fisher_exact(1, 4, 3, 4) == pytest.approx([34 / 70])


def test_samples_without_trials_or_change_have_the_p_value_1():
    assert fisher_exact([0, 5, 0, 3], [0, 5, 5, 3], [2, 5, 0, 0], [4, 5, 5, 0]).tolist() == [1, 1, 1, 1]


def test_many_samples_are_tested_at_once():
    rng = np.random.default_rng(1)
    before, after = rng.integers(0, 6, (2, 100_000))

    p_values = fisher_exact(before, 5, after, 5)

    assert p_values.shape == (100_000,)
    assert p_values[(before == 5) & (after == 0)] == pytest.approx(1 / 126)


def test_no_sample_has_no_p_value():
    assert fisher_exact([], [], [], []).size == 0


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ((3, 2, 1, 1), {}, "more often"),
        ((0.5, 2, 1, 1), {}, "whole numbers"),
        ((-1, 2, 1, 1), {}, "whole numbers"),
        ((1, 2, 1, 1), {"alternative": "lower"}, "alternative"),
    ],
)
def test_impossible_counts_are_refused(counts, options, message):
    with pytest.raises(ValueError, match=message):
        fisher_exact(*counts, **options)
