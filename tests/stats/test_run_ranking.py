"""Tests of the ranking of several runs."""

import math

import numpy as np
import pytest

from deemster.stats import paired_difference, rank_runs


def test_every_run_is_compared_with_the_first_at_the_shared_level():
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 2, (3, 80))

    ranked = rank_runs(scores)

    assert ranked[0].against_first is None
    assert ranked[2].against_first == paired_difference(scores[2] - scores[0], np.ones(80), confidence=1 - 0.05 / 3)
    assert [run.value for run in ranked] == pytest.approx(scores.mean(axis=1))


def test_clusters_are_compared_as_wholes():
    scores = np.zeros((2, 60))
    scores[1, :20] = 1.0

    alone = rank_runs(scores)
    together = rank_runs(scores, clusters=np.repeat(np.arange(3), 20))

    assert [run.best_rank for run in alone] == [2, 1]
    assert [run.best_rank for run in together] == [1, 1]
    assert together[1].against_first.n == 3


def test_missing_scores_leave_out_their_pair_only():
    ranked = rank_runs([[1.0, None, 0.0], [1.0, 1.0, 1.0], [None, None, None]])

    assert [run.n for run in ranked] == [2, 3, 0]
    assert ranked[1].against_first.n == 2
    assert (ranked[2].value, ranked[2].against_first.value) == (None, None)
    assert (ranked[2].best_rank, ranked[2].worst_rank) == (1, 3)


def test_one_run_has_rank_1():
    assert [(run.best_rank, run.worst_rank) for run in rank_runs([[1.0, 0.0]])] == [(1, 1)]


@pytest.mark.parametrize("rate", [0.02, 0.3])
def test_equal_runs_are_all_of_open_rank_at_the_level(rate):
    """Five runs of one system: in at most 5 of 100 experiments does any rank exclude the truth."""
    rng = np.random.default_rng(9)
    draws = 150
    wrong = sum(
        any((run.best_rank, run.worst_rank) != (1, 5) for run in rank_runs(rng.random((5, 100)) < rate))
        for _ in range(draws)
    )
    assert wrong / draws <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / draws)


def test_scores_off_the_scale_are_refused():
    with pytest.raises(ValueError, match="outside the bounds"):
        rank_runs([[0.0, 0.0], [3.0, 0.0]])
