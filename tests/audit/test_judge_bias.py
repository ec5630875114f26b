"""Flips, moves and flags from the scores of pairs."""

from __future__ import annotations

import pytest
from scipy.stats import binom, binomtest

from deemster.audit.judge_bias import ProbedPair, fewest_samples, flag_biases, order_result, probe_result
from deemster.judges.bias_probes import PROBES


def result(name, rows):
    pairs = [ProbedPair(sample, base, a, b, a >= 0.5, b >= 0.5) for sample, base, a, b in rows]
    return probe_result(PROBES[name], pairs, not_applicable=0, unscored=0, confidence=0.95)


def test_sign_test_of_equal_shifts_counts_samples_not_pairs():
    rows = [(sample, base, 0.4, 0.6) for sample in range(6) for base in ("right", "wrong")]
    found = result("length", rows)
    assert (found.pairs, found.samples) == (12, 6)
    assert found.p_value == pytest.approx(binomtest(6, 6).pvalue)
    assert found.shift.value == pytest.approx(0.2)


def test_unchanged_scores_leave_intervals_of_some_width():
    found = result("length", [(sample, "right", 0.8, 0.8) for sample in range(20)])
    assert (found.flips.value, found.p_value) == (0.0, 1.0)
    assert found.flips.high > 0.05
    assert found.right_move.low < 0 < found.right_move.high


def test_without_pairs_everything_is_undefined():
    found = result("length", [])
    assert (found.flips.value, found.shift.value, found.right_move.value, found.p_value) == (None, None, None, None)


def test_judge_that_misses_changed_numbers_is_held_to_one_miss_in_ten():
    rows = [(sample, "right", 0.9, 0.9 if sample < 5 else 0.2) for sample in range(12)]
    found = result("numbers-changed", rows)
    assert found.noticed.value == pytest.approx(7 / 12)
    assert found.p_value == pytest.approx(binom.sf(4, 12, 0.1))


def test_order_is_tested_by_the_places_that_won_twice():
    found = order_result(["first"] * 9 + ["second"] + [None] * 10 + ["both"], unscored=2, confidence=0.95)
    assert found.flips.value == pytest.approx(11 / 21)
    assert found.p_value == pytest.approx(binomtest(1, 10).pvalue)
    assert (found.to_pass, found.to_fail, found.unscored) == (9, 1, 2)


def test_flags_are_corrected_over_all_probes_and_metrics():
    strong = result("length", [(sample, "right", 0.2, 0.6) for sample in range(8)])
    none = result("length", [(sample, "right", 0.2, 0.2) for sample in range(8)])
    alone = flag_biases({"a": {"length": strong}}, level=0.05)
    among = flag_biases({"a": {"length": strong, **{f"p{n}": none for n in range(9)}}}, level=0.05)
    assert alone["a"]["length"].is_flagged
    assert not among["a"]["length"].is_flagged
    assert among["a"]["length"].adjusted_p == pytest.approx(10 * strong.p_value)


@pytest.mark.parametrize("tests", [1, 9, 19])
def test_fewest_samples_are_the_first_that_can_be_flagged(tests):
    n = fewest_samples(tests, level=0.05)
    assert binomtest(n, n).pvalue * tests <= 0.05 < binomtest(n - 1, n - 1).pvalue * tests
