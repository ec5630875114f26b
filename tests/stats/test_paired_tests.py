from __future__ import annotations

import itertools
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from deemster.stats import (
    mcnemar,
    sign_flip,
)
from tests.builders.published_numbers import PUBLISHED, near


def enumerated(sums, alternative):
    observed = sum(sums)
    hits = 0
    for signs in itertools.product([-1, 1], repeat=len(sums)):
        total = sum(sign * abs(value) for sign, value in zip(signs, sums, strict=True))
        far = {"two-sided": abs(total) >= abs(observed), "greater": total >= observed, "less": total <= observed}
        hits += far[alternative]
    return hits / 2 ** len(sums)


def test_mcnemar_of_no_discordant_pair_is_undefined():
    result = mcnemar(0, 0)
    assert (result.value, result.p_value, result.mid_p, result.chi2, result.corrected_p) == (None,) * 5


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_symmetric_and_its_p_values_are_ordered(b, c):
    one, other = mcnemar(b, c), mcnemar(c, b)
    assert one.p_value == other.p_value
    if b + c:
        assert 0 < one.mid_p <= one.p_value <= 1
        assert one.corrected_p >= one.chi2_p
        tail = sum(math.comb(b + c, place) for place in range(min(b, c) + 1)) / 2 ** (b + c)
        assert one.p_value == pytest.approx(min(1.0, 2 * tail), rel=1e-9)


def test_equal_discordant_counts_have_p_value_one():
    result = mcnemar(4, 4)
    assert (result.p_value, result.mid_p, result.chi2_p, result.corrected_p) == (1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("bad", [-1, 1.5, math.nan, math.inf])
def test_non_integer_discordant_count_is_error(bad):
    with pytest.raises(ValueError, match="whole numbers"):
        mcnemar(bad, 2)


@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.sampled_from(["two-sided", "less", "greater"]))
def test_few_differences_are_enumerated(values, alternative):
    result = sign_flip(values, alternative=alternative)
    assert result.method == "enumeration"
    assert result.p_value == pytest.approx(enumerated(values, alternative))
    assert result.seed is None


def test_exact_methods_agree(monkeypatch):
    steps = np.random.default_rng(0).choice([-0.2, -0.1, 0.1, 0.3], 40)
    exact = sign_flip(steps)
    assert exact.method == "convolution"
    monkeypatch.setattr(sys.modules[sign_flip.__module__], "_LATTICE", 0)
    drawn = sign_flip(steps, seed=1, n_resamples=40_000)
    assert drawn.method == "monte carlo"
    assert (drawn.seed, drawn.n_resamples) == (1, 40_000)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=0.012)


@pytest.mark.parametrize(("ups", "downs"), [(30, 12), (900, 800), (25, 25)])
def test_passes_and_failures_give_the_sign_test(ups, downs):
    result = sign_flip([1] * ups + [-1] * downs + [0] * 50)
    assert result.method == "convolution"
    assert result.p_value == pytest.approx(mcnemar(ups, downs).p_value, rel=1e-9)
    assert result.n == ups + downs + 50


@given(st.lists(st.integers(-3, 3), min_size=21, max_size=30), st.sampled_from(["two-sided", "less", "greater"]))
def test_convolution_counts_every_pattern_of_signs(values, alternative):
    kept = [value for value in values if value]
    totals = {0: 1}
    for value in kept:
        after = {}
        for total, ways in totals.items():
            for moved in (total - abs(value), total + abs(value)):
                after[moved] = after.get(moved, 0) + ways
        totals = after
    observed = sum(kept)
    far = {
        "two-sided": lambda total: abs(total) >= abs(observed),
        "greater": lambda total: total >= observed,
        "less": lambda total: total <= observed,
    }[alternative]
    expected = sum(ways for total, ways in totals.items() if far(total)) / 2 ** len(kept)
    assert sign_flip(values, alternative=alternative).p_value == pytest.approx(expected, rel=1e-9)


def test_clusters_change_their_signs_together():
    values, clusters = [1, 1, 1, -1, 2, 2], ["a", "a", "b", "b", "c", "c"]
    result = sign_flip(values, clusters=clusters)
    assert result.units == 3
    assert result.p_value == enumerated([2, 4], "two-sided") == 0.5
    assert result.value == 1.0


def test_zero_differences_have_p_value_one():
    assert sign_flip([0.0, 0.0]).p_value == 1.0
    assert sign_flip([0.1, -0.1] * 15).p_value == 1.0
    assert sign_flip([]).p_value is None


def test_drawn_p_value_is_never_zero_and_the_same_for_the_same_seed():
    values = np.random.default_rng(1).normal(5, 1, 60)
    result = sign_flip(values, seed=3, n_resamples=99)
    assert result.p_value == 0.01
    assert sign_flip(values, seed=3, n_resamples=99) == result


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sign_flip([1.0, math.nan]), "finite"),
        (lambda: sign_flip([[1.0]]), "one row"),
        (lambda: sign_flip([1.0], clusters=["a", "b"]), "one cluster"),
        (lambda: sign_flip([1.0], alternative="both"), "alternative"),
        (lambda: sign_flip([1.0], n_resamples=0), "one draw"),
    ],
)
def test_invalid_arguments_are_error_with_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_many_differences_have_the_p_value_of_the_normal_limit():
    lengths = np.array([1.0, math.sqrt(2), math.pi])
    counts = np.array([600, 600, 400])
    sizes = np.repeat(lengths, counts)
    signs = np.where(np.arange(1600) % 100 < 53, 1.0, -1.0)
    result = sign_flip(sizes * signs)
    # Of each length, how many keep their sign is all that a sum depends on.
    kept = np.random.default_rng(2).binomial(counts, 0.5, (40_000, 3))
    drawn = (2 * kept - counts) @ lengths
    reference = float((np.abs(drawn) >= abs(float((sizes * signs).sum()))).mean())
    assert (result.method, result.seed) == ("normal", None)
    assert result.p_value == pytest.approx(reference, abs=4 * math.sqrt(reference / 40_000))
    sides = [sign_flip(sizes * signs, alternative=side).p_value for side in ("greater", "less")]
    assert sides == pytest.approx([result.p_value / 2, 1 - result.p_value / 2])


def test_many_passes_and_fails_are_counted_exactly():
    moved = np.where(np.arange(200_000) % 1000 < 503, 1.0, -1.0)
    result = sign_flip(moved)
    assert result.method == "convolution"
    assert result.p_value == pytest.approx(binomtest(100_600, 200_000).pvalue, rel=1e-6)


def test_one_difference_that_outweighs_the_others_is_drawn():
    moved = np.append(np.random.default_rng(0).normal(size=300), 40.0)
    assert sign_flip(moved, seed=1).method == "monte carlo"


@pytest.mark.parametrize("name", ["mcnemar_86_150", "mcnemar_1_7"])
def test_mcnemar_gives_the_published_p_values(name):
    (_, b), (c, _) = PUBLISHED[name]["input"]
    result = mcnemar(b, c)
    parts = {
        "exact": result.p_value,
        "midp": result.mid_p,
        "chi2": result.chi2,
        "p": result.chi2_p,
        "chi2_cc": result.corrected_chi2,
        "p_cc": result.corrected_p,
    }
    assert parts == near(name)
