from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.stats import pass_at_k, pass_hat_k
from tests.builders.published_numbers import PUBLISHED, near


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_share_of_draws_with_a_success(case):
    n, correct, k = case
    expected = 1 - math.comb(n - correct, k) / math.comb(n, k)
    assert pass_at_k(correct, attempts=n, k=k).value == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_hat_k_is_the_share_of_draws_without_a_failure(case):
    n, correct, k = case
    expected = math.comb(correct, k) / math.comb(n, k)
    assert pass_hat_k(correct, attempts=n, k=k).value == pytest.approx(expected, abs=1e-12)


def test_pass_at_k_averages_over_tasks():
    result = pass_at_k([0, 5, 10], attempts=[10, 10, 10], k=1)
    assert result.value == pytest.approx(0.5)
    assert result.n == 3
    assert (result.interval.lower, result.interval.upper) == (0.0, 1.0)
    assert pass_at_k([], attempts=[], k=1).value is None


def test_pass_at_k_gives_chens_numbers():
    found = [pass_at_k(3, attempts=10, k=k).value for k in PUBLISHED["pass_at_k"]["input"]]
    assert found == near("pass_at_k")
