import math

import numpy as np
import pytest

from deemster.stats import effective_votes
from deemster.stats.effective_votes import error_correlations


@pytest.mark.parametrize(("n", "correlation"), [(3, 0.0), (3, 0.5), (9, 0.4), (5, 1.0)])
def test_equal_correlations_give_the_design_effect_of_kish(n, correlation):
    correlations = np.full((n, n), correlation) + (1 - correlation) * np.eye(n)
    assert effective_votes(correlations, np.ones(n)) == pytest.approx(n / (1 + (n - 1) * correlation))


def test_weights_count_as_the_formula_says():
    assert effective_votes(np.eye(2), [3, 1]) == pytest.approx(16 / 10)


def test_errors_that_cancel_out_are_worth_more_than_the_votes():
    assert effective_votes([[1, -0.5], [-0.5, 1]], [1, 1]) == pytest.approx(4)


def test_errors_that_cancel_out_fully_and_unknown_ones_are_undefined():
    assert math.isnan(effective_votes([[1, -1], [-1, 1]], [1, 1]))
    assert math.isnan(effective_votes([[1, math.nan], [math.nan, 1]], [1, 1]))


def test_correlations_are_those_of_numpy():
    errors = np.random.default_rng(0).random((40, 3)) < 0.3
    centred = errors - errors.mean(axis=0)
    assert error_correlations(centred.T @ centred) == pytest.approx(np.corrcoef(errors.T))
