"""Whether a gain in agreement is more than noise."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from deemster.agreement.agreement_gain import compare_agreement, lowest_p_value, verdict_agreement, verdict_agreements
from deemster.rubrics import Criterion, Option
from deemster.rubrics.criterion import FAILED, MISSING

BINARY = Criterion("Is it right?")
ORDINAL = Criterion("How deep?", options=(Option("poor", 0), Option("fair", 0.5), Option("good", 1)))
WITH_NA = Criterion("Which?", options=(Option("a", 0), Option("b", 1), Option("none", na=True)), scale_type="nominal")


@pytest.mark.parametrize(
    ("criterion", "said", "truth", "expected"),
    [
        (BINARY, 0, 0, 1.0),
        (BINARY, 0, 1, 0.0),
        (BINARY, 2, 0, 0.0),
        (BINARY, 2, 2, 1.0),
        (BINARY, FAILED, 0, 0.0),
        (BINARY, FAILED, 2, 0.0),
        (ORDINAL, 0, 2, 0.0),
        (ORDINAL, 1, 2, 0.5),
        (ORDINAL, 2, 2, 1.0),
        (ORDINAL, 3, 2, 0.0),
        (ORDINAL, 3, 3, 1.0),
        (WITH_NA, 1, 1, 1.0),
        (WITH_NA, 2, 2, 1.0),
        (WITH_NA, 2, 1, 0.0),
    ],
)
def test_agreement_counts_scale_distance_and_abstentions_as_category(criterion, said, truth, expected):
    assert verdict_agreement(criterion, said, truth) == expected


def test_scale_order_is_positions_not_values():
    criterion = Criterion("How?", options=(Option("x", 0.9), Option("y", 0.1), Option("z", 0.5)), order=("z", "x", "y"))
    assert [verdict_agreement(criterion, said, 2) for said in range(3)] == [0.5, 0.0, 1.0]


def test_item_without_a_truth_or_a_verdict_has_no_agreement():
    assert verdict_agreements(BINARY, [0, None, 1, 0], [0, 0, MISSING, 1]) == [1.0, None, None, 0.0]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_binary_criterion_uses_exact_one_sided_mcnemar(pairs):
    gain = compare_agreement([float(first) for first, _ in pairs], [float(second) for _, second in pairs])
    better = sum(second and not first for first, second in pairs)
    worse = sum(first and not second for first, second in pairs)
    assert (gain.n, gain.better, gain.worse, gain.missing) == (len(pairs), better, worse, 0)
    expected = binomtest(better, better + worse, alternative="greater").pvalue if better + worse else 1.0
    assert gain.p_value == pytest.approx(expected, rel=1e-9)


def test_pair_with_missing_side_is_counted_missing_and_ignored():
    gain = compare_agreement([0.0, None, 0.0, 1.0], [1.0, 1.0, None, 1.0], labelled=4)
    assert (gain.n, gain.missing, gain.before, gain.after, gain.difference) == (2, 2, 0.5, 1.0, 0.5)


def test_without_pairs_all_fields_are_none():
    gain = compare_agreement([None], [1.0])
    assert (gain.n, gain.before, gain.after, gain.difference, gain.p_value) == (0, None, None, None, None)


def test_items_of_one_cluster_change_signs_together():
    before, after = [0.0] * 8, [1.0] * 8
    assert compare_agreement(before, after).p_value == 2**-8
    assert compare_agreement(before, after, clusters=[0, 0, 0, 0, 1, 1, 1, 1]).p_value == 2**-2


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=5))
def test_perfect_wording_has_lowest_p_value(before):
    every = [compare_agreement(before, after).p_value for after in product([0.0, 0.5, 1.0], repeat=len(before))]
    assert lowest_p_value(before) == pytest.approx(min(every))


def test_without_agreement_lowest_p_value_is_one():
    assert lowest_p_value([None, None]) == 1.0
