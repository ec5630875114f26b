from __future__ import annotations

import numpy as np
import pytest

from deemster.stats import confusion_tables as tables


def test_stacked_tables_equal_single_tables():
    stack = np.random.default_rng(3).integers(0, 9, (40, 4, 4)).astype(float)
    stack[0] = 0
    stack[1] = np.diag([5, 0, 0, 0])
    weights = tables.disagreement(4, "quadratic")
    calls = [
        tables.accuracy,
        tables.balanced_accuracy,
        tables.scott_pi,
        tables.pabak,
        tables.gwet_ac,
        tables.spearman,
        tables.kendall,
        tables.adjacent_accuracy,
        lambda t: tables.weighted_kappa(t, weights),
        lambda t: tables.gwet_ac(t, tables.agreement(weights)),
        lambda t: tables.rmse(t, [0.0, 0.2, 0.7, 1.0]),
        lambda t: tables.mae(t, [0.0, 0.2, 0.7, 1.0]),
        lambda t: tables.f1(tables.one_against_rest(t)),
        lambda t: tables.phi(tables.one_against_rest(t)),
    ]
    for call in calls:
        np.testing.assert_allclose(call(stack), np.stack([call(table) for table in stack]), rtol=1e-12, equal_nan=True)


def test_order_of_positions_and_not_of_classes_decides_spearman():
    table = np.array([[3.0, 1, 0], [1, 3, 1], [0, 1, 3]])
    order = [2, 0, 1]
    shuffled = table[np.ix_(order, order)]
    assert tables.spearman(shuffled, order).item() == pytest.approx(tables.spearman(table).item())
