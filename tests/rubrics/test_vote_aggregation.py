"""Several votes made one."""

from __future__ import annotations

import math
import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError, RubricError
from deemster.rubrics import Criterion, Option
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING
from deemster.rubrics.vote_aggregation import Rules, aggregate, aggregate_cells, merge_repeated_cells, merge_repeats
from tests.rubrics.loop_reference import plain_aggregate
from tests.rubrics.make_rubrics import DEPTH, FACTS, FLUFF, TONE, criteria, rules_of

COSTLY_DEPTH = msgspec.structs.replace(DEPTH, weight=-6)
NAMES = {"-": MISSING, "x": FAILED, "!": FAILED_WORST}


def verdict(criterion, votes, rule, weights=None):
    codes = [[NAMES[vote] if vote in NAMES else criterion.code(vote) for vote in votes]]
    found = aggregate(criterion, codes, rule=rule, weights=weights)
    code = int(found.codes[0])
    label = next((name for name, held in NAMES.items() if held == code), None) or criterion.labels[code]
    value = float(found.values[0])
    return label, None if math.isnan(value) else round(value, 4)


@pytest.mark.parametrize(
    ("rule", "gain", "fault", "value"),
    [
        ("mean", "fair", "fair", 0.625),
        ("median", "fair", "good", 0.75),
        ("weighted_mean", "good", "good", 0.7857),
        ("mode", "good", "good", 1.0),
        ("min", "poor", "poor", 0.0),
        ("max", "good", "good", 1.0),
    ],
)
def test_aggregation_equals_table_of_specification(rule, gain, fault, value):
    votes, weights = ["poor", "fair", "good", "good"], [1, 1, 1, 4]
    assert verdict(DEPTH, votes, rule, weights) == (gain, value)
    assert verdict(COSTLY_DEPTH, votes, rule, weights) == (fault, value)


def test_tie_goes_to_the_worst_case():
    assert verdict(DEPTH, ["poor", "fair"], "mean") == ("poor", 0.25)
    assert verdict(COSTLY_DEPTH, ["poor", "fair"], "mean") == ("fair", 0.25)
    assert verdict(FACTS, ["MET", "UNMET"], "majority") == ("UNMET", 0.0)
    assert verdict(FLUFF, ["MET", "UNMET"], "majority") == ("MET", 1.0)
    assert verdict(TONE, ["curt", "warm"], "mode") == ("curt", 0.2)
    assert verdict(msgspec.structs.replace(TONE, weight=-1), ["curt", "warm"], "mode") == ("warm", 1.0)


def test_distances_that_differ_by_rounding_tie():
    options = [Option("a", 0.1), Option("b", 0.2), Option("c", 0.3)]
    assert verdict(Criterion("x", options=options), ["a", "b"], "mean") == ("a", 0.15)
    assert verdict(Criterion("x", -1, options=options), ["a", "b"], "mean") == ("b", 0.15)
    assert verdict(Criterion("x", options=options), ["b", "c"], "mean") == ("b", 0.25)
    assert verdict(Criterion("x", -1, options=options), ["b", "c"], "mean") == ("c", 0.25)


def test_weights_that_add_up_the_same_but_for_rounding_tie():
    assert verdict(FACTS, ["MET", "MET", "UNMET"], "weighted", [0.1, 0.2, 0.3]) == ("UNMET", 0.0)
    assert verdict(FLUFF, ["UNMET", "UNMET", "MET"], "weighted", [0.1, 0.2, 0.3]) == ("MET", 1.0)
    assert verdict(TONE, ["warm", "warm", "curt"], "weighted_mode", [1e-12, 2e-12, 3e-12]) == ("curt", 0.2)


@pytest.mark.parametrize(
    ("votes", "rule", "weights", "expected"),
    [
        (["MET", "MET", "UNMET"], "majority", None, "MET"),
        (["MET", "MET", "UNMET"], "weighted", [1, 1, 3], "UNMET"),
        (["MET", "MET", "UNMET"], "majority", [1, 1, 3], "MET"),
        (["MET", "MET", "UNMET"], "unanimous", None, "UNMET"),
        (["MET", "MET", "CANNOT_ASSESS"], "unanimous", None, "MET"),
        (["UNMET", "MET", "UNMET"], "any", None, "MET"),
        (["UNMET", "CANNOT_ASSESS", "UNMET"], "any", None, "UNMET"),
        (["CANNOT_ASSESS", "CANNOT_ASSESS", "UNMET"], "majority", None, "UNMET"),
        (["CANNOT_ASSESS", "CANNOT_ASSESS", "-"], "majority", None, "CANNOT_ASSESS"),
    ],
)
def test_binary_votes_follow_rules(votes, rule, weights, expected):
    assert verdict(FACTS, votes, rule, weights)[0] == expected


@pytest.mark.parametrize(
    ("votes", "rule", "weights", "expected"),
    [
        (["warm", "warm", "cold"], "mode", None, "warm"),
        (["warm", "warm", "cold"], "weighted_mode", [1, 1, 3], "cold"),
        (["warm", "warm", "CANNOT_ASSESS"], "unanimous", None, "warm"),
        (["warm", "warm", "cold"], "unanimous", None, "Cannot assess / not applicable"),
    ],
)
def test_nominal_votes_follow_rules(votes, rule, weights, expected):
    assert verdict(TONE, votes, rule, weights)[0] == expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (["-", "-"], ("-", None)),
        (["x", "-"], ("x", None)),
        (["!", "x"], ("!", None)),
        (["x", "CANNOT_ASSESS"], ("CANNOT_ASSESS", None)),
        (["x", "MET"], ("MET", 1.0)),
        (["!", "MET"], ("UNMET", 0.0)),
        (["!", "CANNOT_ASSESS"], ("UNMET", 0.0)),
    ],
)
def test_failed_call_votes_by_replacement_unless_all_failed(votes, expected):
    assert verdict(FACTS, votes, "majority") == expected


def test_equal_votes_for_the_second_of_two_equal_options_are_that_option():
    options = [Option("late", 0.5), Option("slow", 0.5), Option("none", 0)]
    criterion = Criterion("x", options=options, order=["none", "slow", "late"])
    for rule in ("mean", "median", "weighted_mean", "mode", "min", "max"):
        assert verdict(criterion, ["slow", "slow"], rule)[0] == "slow"


def test_rows_and_voters_may_be_none():
    assert aggregate(FACTS, np.zeros((0, 3), np.int16), rule="any").codes.shape == (0,)
    found = aggregate(FACTS, np.zeros((4, 0), np.int16), rule="majority")
    assert found.codes.tolist() == [MISSING] * 4
    assert np.isnan(found.values).all()


def test_codes_are_small_integers_and_the_votes_stay_as_they_were():
    votes = np.array([[0, FAILED_WORST], [1, MISSING]], dtype=np.int16)
    before = votes.copy()
    found = aggregate(FACTS, votes, rule="majority")
    assert (found.codes.dtype, found.values.dtype) == (np.int16, np.float64)
    assert (votes == before).all()


@pytest.mark.parametrize(
    ("codes", "rule", "weights", "message"),
    [
        ([[0, 3]], "majority", None, "3 is no code of `facts`; its verdicts are 0 to 2."),
        ([[0, -4]], "majority", None, "-4 is no code of `facts`; its verdicts are 0 to 2."),
        ([[0, 65536]], "majority", None, "65536 is no code of `facts`; its verdicts are 0 to 2."),
        ([[0.5]], "majority", None, "Codes are whole numbers, not of the type float64."),
        ([0, 1], "majority", None, "Votes are rows by voters, two dimensions, not 1."),
        ([[0, 1]], "weighted", [1], "Each of the 2 voters has one weight, and 1 were given."),
        ([[0, 1]], "weighted", [1, 0], "The weight of a voter is finite and above 0."),
        ([[0, 1]], "weighted", [1, math.nan], "The weight of a voter is finite and above 0."),
    ],
)
def test_impossible_votes_are_refused(codes, rule, weights, message):
    with pytest.raises(RubricError) as error:
        aggregate(FACTS, codes, rule=rule, weights=weights)
    assert str(error.value) == message


def test_rule_of_other_kind_is_error():
    with pytest.raises(RubricError, match="`mean` is a rule of ordinal and numeric criteria, not of binary ones"):
        aggregate(FACTS, [[0]], rule="mean")
    with pytest.raises(ConfigurationError) as error:
        Rules("majorty", "unanimous", 3)
    assert [issue.message for issue in error.value.issues] == [
        (
            "aggregation must be one of `any`, `majority`, `unanimous`, `weighted`, not `majorty`. "
            "Did you mean `majority`?"
        ),
        (
            "ordinal_aggregation must be one of `max`, `mean`, `median`, `min`, `mode`, `weighted_mean`, "
            "not `unanimous`."
        ),
        "nominal_aggregation must be one of `mode`, `unanimous`, `weighted_mode`, not a number.",
    ]


def test_rule_of_criterion_overrides_panel():
    rules = Rules("any", "median", "weighted_mode")
    assert [rules.rule_for(one) for one in (FACTS, DEPTH, TONE)] == ["any", "median", "weighted_mode"]
    assert rules.rule_for(msgspec.structs.replace(DEPTH, aggregation="max")) == "max"


@given(st.data())
def test_vectorised_aggregate_equals_the_loop(data):
    criterion = data.draw(criteria())
    rule = data.draw(st.sampled_from(rules_of(criterion)))
    voters = data.draw(st.integers(1, 5))
    weights = data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3, 1.0, 2.5]), min_size=voters, max_size=voters))
    code = st.integers(FAILED_WORST, len(criterion.labels) - 1)
    rows = data.draw(st.lists(st.lists(code, min_size=voters, max_size=voters), min_size=1, max_size=12))
    # Repeated rows reach the table of all rows there can be; few rows are computed one by one.
    repeated = rows * data.draw(st.sampled_from([1, 2000]))
    found = aggregate(criterion, repeated, rule=rule, weights=weights)
    for index, row in enumerate(rows):
        expected, value = plain_aggregate(criterion, row, rule, weights)
        for at in (index, len(repeated) - len(rows) + index):
            assert found.codes[at] == expected
            assert found.values[at] == pytest.approx(math.nan if value is None else value, abs=1e-12, nan_ok=True)


@given(st.lists(st.sampled_from([0, 1, 2, FAILED, FAILED_WORST]), min_size=1, max_size=5), st.integers(0, 3))
def test_repeats_become_one_vote_of_successful_answers(codes, pads):
    criterion = Criterion("Is it right?")
    (found,) = merge_repeats(criterion, [codes + [MISSING] * pads], rule="majority").codes.tolist()
    kept = [code for code in codes if code >= 0]
    if kept:
        assert found == aggregate(criterion, [kept], rule="majority").codes[0]
    else:
        assert found == (FAILED_WORST if FAILED_WORST in codes else FAILED)


GRADE = Criterion("How good is it?", minimum=-5, maximum=5)


@pytest.mark.parametrize(
    ("rule", "weights", "expected"),
    [
        ("mean", None, 1.0),
        ("median", None, 0.5),
        ("weighted_mean", [2, 1, 1], 0.25),
        ("min", None, -2.0),
        ("max", None, 4.5),
    ],
)
def test_numbers_are_aggregated_by_rule(rule, weights, expected):
    assert aggregate_cells(GRADE, [-2.0, 4.5, 0.5], rule=rule, weights=weights) == (expected, GRADE.share(expected))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([3.0, 1, MISSING], 3.0),
        ([1, 1, MISSING], 1),
        ([MISSING, MISSING], MISSING),
        ([FAILED, FAILED], FAILED),
        ([FAILED, FAILED_WORST], FAILED_WORST),
        ([FAILED, 2.0], 2.0),
        ([FAILED_WORST, 3.0], -1.0),
        ([-1.0, -3.0], -2.0),
    ],
)
def test_abstentions_and_failures_among_numbers_follow_the_rules_of_other_kinds(cells, expected):
    found, _ = aggregate_cells(GRADE, cells, rule="mean")
    assert (found, type(found)) == (expected, type(expected))


@given(
    cells=st.lists(st.floats(-5, 5) | st.sampled_from([1, MISSING, FAILED]), min_size=1, max_size=6),
    seed=st.integers(0, 99),
)
def test_order_of_voters_changes_no_number_and_equal_votes_stand(cells, seed):
    mixed = random.Random(seed).sample(cells, len(cells))
    for rule in ("mean", "median", "min", "max"):
        assert aggregate_cells(GRADE, cells, rule=rule) == aggregate_cells(GRADE, mixed, rule=rule)
    numbers = [cell for cell in cells if isinstance(cell, float)]
    if numbers:
        found, _ = aggregate_cells(GRADE, [numbers[0]] * 3, rule="mean")
        assert found == numbers[0]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [([2.0, 4.0], 3.0), ([FAILED, 4.0], 4.0), ([FAILED, FAILED_WORST], FAILED_WORST), ([-2.0, MISSING], -2.0)],
)
def test_repeated_numbers_become_one_vote(cells, expected):
    assert merge_repeated_cells(GRADE, cells, rule="mean") == expected


def test_abstention_that_was_voted_is_kept_where_there_are_two():
    options = [
        Option("low", 0.0),
        Option("high", 1.0),
        Option("no text", None, na=True),
        Option("no tone", None, na=True),
    ]
    tone = Criterion("Which tone?", options=tuple(options), scale_type="nominal")
    rows = [[3, FAILED], [3, 3], [2, 3], [3, 2, 3], [0, 3], [3, MISSING]]
    found = [aggregate(tone, [row], rule="mode").codes.item() for row in rows]
    assert found == [3, 3, 2, 3, 0, 3]
