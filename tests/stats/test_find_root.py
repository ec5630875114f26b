"""Roots, compared with those of scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from deemster.stats.find_root import find_root


@given(st.floats(-50, 50), st.floats(0.01, 100), st.floats(0.01, 100), st.sampled_from([1.0, -1.0]))
def test_root_equals_scipys(root, before, after, sign):
    for function in (lambda x: sign * math.expm1((x - root) / 10), lambda x: sign * math.atan(x - root)):
        found = find_root(function, root - before, root + after)
        assert found == pytest.approx(brentq(function, root - before, root + after, xtol=1e-14), abs=1e-12)


def test_steep_and_flat_functions_are_solved():
    assert find_root(lambda x: math.exp(50 * x) - 1e20, 0.0, 10.0) == pytest.approx(20 * math.log(10) / 50, rel=1e-14)
    assert find_root(lambda x: x**9 - 1e-18, 0.0, 5.0) == pytest.approx(1e-2, rel=1e-12)
    assert find_root(lambda x: (x - 3) ** 3, 0.0, 5.0) == pytest.approx(3, abs=1e-12)


def test_end_that_is_a_root_is_returned():
    assert (find_root(lambda x: x - 1, 1.0, 3.0), find_root(lambda x: x - 3, 1.0, 3.0)) == (1.0, 3.0)


def test_function_of_one_sign_is_an_error():
    with pytest.raises(ValueError, match="same sign"):
        find_root(lambda x: x * x + 1, -1.0, 1.0)
