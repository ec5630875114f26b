"""Tests of the empirical likelihood against a direct optimisation of all weights."""

import numpy as np
import pytest
from scipy import optimize

from deemster.stats.empirical_likelihood import furthest_mean, likelihood_ratios


def direct_ratio(deviations):
    """-2 log R by maximising Σlog w over all weights with Σw·y = 0, with a general optimiser."""
    n = len(deviations)
    found = optimize.minimize(
        lambda weights: -np.log(n * weights).sum(),
        np.full(n, 1 / n),
        jac=lambda weights: -1 / weights,
        bounds=[(1e-9, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": lambda _: np.ones(n)},
            {"type": "eq", "fun": lambda weights: weights @ deviations, "jac": lambda _: deviations},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return 2 * found.fun


def direct_end(totals, sizes, limit, sign):
    """The furthest Σwu/Σws of all weights that are likely enough, with a general optimiser."""
    n = len(totals)
    found = optimize.minimize(
        lambda weights: sign * (weights @ totals) / (weights @ sizes),
        np.full(n, 1 / n),
        bounds=[(1e-9, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda weights: weights.sum() - 1},
            {"type": "ineq", "fun": lambda weights: limit + 2 * np.log(n * weights).sum()},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return sign * found.fun


def drawn_units(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 16))
    sizes = rng.integers(1, 6, n).astype(float)
    return np.where(rng.random(n) < 0.5, rng.uniform(-1, 1, n), 0.0) * sizes, sizes


@pytest.mark.parametrize("seed", range(12))
def test_ratio_of_units_of_unequal_size_equals_direct_optimisation(seed):
    totals, sizes = drawn_units(seed)
    totals, sizes = np.append(totals, -sizes.mean()), np.append(sizes, sizes.mean())
    middle = totals.sum() / sizes.sum()
    for mean in (middle - 0.05, middle, middle + 0.1):
        deviations = totals - sizes * mean
        if deviations.min() < 0 < deviations.max():
            ours = likelihood_ratios(deviations[None], np.ones((1, len(deviations))))[0]
            assert ours == pytest.approx(direct_ratio(deviations), abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("bound", [-1.0, 1.0])
def test_end_of_units_of_unequal_size_equals_direct_optimisation(seed, bound):
    totals, sizes = drawn_units(seed)
    totals, sizes = np.append(totals, bound * sizes.mean()), np.append(sizes, sizes.mean())

    ours = furthest_mean(totals, sizes, np.ones(len(totals)), bound=bound, limit=2.7)

    assert ours == pytest.approx(direct_end(totals, sizes, 2.7, -bound), abs=1e-5)


def test_counts_stand_for_repeated_units():
    deviations, counts = np.array([[-0.4, 0.1, 0.3]]), np.array([[2.0, 7.0, 1.0]])

    repeated = np.repeat(deviations[0], counts[0].astype(int))
    assert likelihood_ratios(deviations, counts) == pytest.approx(likelihood_ratios(repeated[None], np.ones((1, 10))))


def test_ratio_is_0_at_the_mean_and_infinite_beyond_the_units():
    rows = np.array([[-1.0, 1.0], [0.0, 0.0], [0.5, 1.0], [-1.0, 0.0]])

    assert likelihood_ratios(rows, np.ones((4, 2))).tolist() == [0, 0, np.inf, np.inf]


def test_kind_that_does_not_occur_changes_nothing():
    rows, counts = np.array([[-1.0, 1.0, 9.0], [-1.0, 1.0, -9.0]]), np.array([[3.0, 1.0, 0.0]] * 2)

    assert likelihood_ratios(rows, counts) == pytest.approx([likelihood_ratios(rows[:1, :2], counts[:1, :2])[0]] * 2)


def test_end_of_units_that_all_lie_at_the_bound_is_the_bound():
    assert furthest_mean(np.array([-2.0, -1.0]), np.array([2.0, 1.0]), np.ones(2), bound=-1.0, limit=3.84) == -1


@pytest.mark.parametrize("n", [1, 10, 10**6, 10**9])
def test_end_of_unchanged_units_solves_its_equation(n):
    end = furthest_mean(np.array([0.0, -1.0]), np.ones(2), np.array([float(n), 1.0]), bound=-1.0, limit=2.7055)

    ratio = likelihood_ratios(np.array([[0.0, -1.0]]) - end, np.array([[float(n), 1.0]]))[0]
    assert ratio == pytest.approx(2.7055, abs=1e-6)
    assert -1 < end < 0
