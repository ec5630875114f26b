from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import spearmanr

from deemster.results.score_by_length import score_by_length


def test_no_sample_with_a_score_has_no_profile():
    assert score_by_length([3, 4], [None, None]) is None


def test_correlation_is_that_of_scipy_over_the_scored_samples():
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 2000, 80)
    scores = [None if place % 9 == 0 else float(rng.random()) for place in range(80)]
    known = [place for place in range(80) if scores[place] is not None]
    profile = score_by_length(lengths, scores)
    expected = spearmanr(lengths[known], [scores[place] for place in known]).statistic
    assert profile.n == len(known)
    assert profile.correlation == pytest.approx(expected)


@pytest.mark.parametrize("size", [1, 4, 9, 40, 1000])
def test_groups_and_points_hold_every_sample_once(size):
    rng = np.random.default_rng(size)
    lengths, scores = rng.integers(0, 50, size), rng.random(size).round(1).tolist()
    profile = score_by_length(lengths, scores)
    assert sum(group.n for group in profile.groups) == size
    assert sum(point.n for point in profile.points) == size
    edges = [(group.shortest, group.longest) for group in profile.groups]
    assert all(before[1] < after[0] for before, after in pairwise(edges))
    assert len(profile.groups) <= 8
    total = sum(group.n * group.mean for group in profile.groups)
    assert total == pytest.approx(sum(scores))


def test_equal_lengths_have_no_correlation_and_one_group():
    profile = score_by_length([7] * 30, [place / 30 for place in range(30)])
    assert profile.correlation is None
    assert len(profile.groups) == 1
