"""Scores: the worked examples of the specification, gates, penalties, failures, and a second opinion."""

from __future__ import annotations

import itertools
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError, RubricError
from deemster.rubrics import Criterion, LengthPenalty, Option, Rubric, Scoring, rubric_score
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING
from deemster.rubrics.rubric_scoring import rubric_scores
from tests.rubrics.loop_reference import plain_score
from tests.rubrics.make_rubrics import EXAMPLE, FACTS, rubrics

STRATEGIES = ("skip", "zero", "partial", "fail")
FAULTS = Rubric((Criterion("a", -3), Criterion("b", -1)))
MIXED = Rubric((Criterion("a", 10), Criterion("b", -5)))


def score(rubric, verdicts, abstention="skip", **settings):
    return rubric_score(rubric, verdicts, scoring=Scoring(abstention, **settings))


@pytest.mark.parametrize(
    ("rubric", "verdicts", "expected"),
    [
        (EXAMPLE, ["MET", "UNMET", "fair", "warm"], [0.8333] * 4),
        (EXAMPLE, ["MET", "MET", "fair", "warm"], [0.6111] * 4),
        (EXAMPLE, ["MET", "CANNOT_ASSESS", "n-a", "curt"], [0.8667, 0.5778, 0.7444, 0.3556]),
        (EXAMPLE, ["CANNOT_ASSESS", "MET", "n-a", "curt"], [0.0, 0.0, 0.2444, 0.0]),
        (FAULTS, ["MET", "UNMET"], [0.25] * 4),
        (FAULTS, ["CANNOT_ASSESS", "MET"], [0.0, 0.75, 0.75, 0.0]),
        (FAULTS, ["CANNOT_ASSESS", "CANNOT_ASSESS"], [None, 1.0, 1.0, 0.0]),
        (MIXED, ["CANNOT_ASSESS", "UNMET"], [1.0, 0.0, 0.5, 0.0]),
    ],
)
def test_worked_examples_give_specified_scores(rubric, verdicts, expected):
    found = [score(rubric, verdicts, strategy).score for strategy in STRATEGIES]
    assert [None if one is None else round(one, 4) for one in found] == expected


def test_raw_score_is_the_weighted_sum():
    assert score(EXAMPLE, ["MET", "UNMET", "fair", "warm"]).raw_score == 15
    assert score(EXAMPLE, ["MET", "MET", "fair", "warm"]).raw_score == 11
    assert score(EXAMPLE, ["CANNOT_ASSESS", "MET", "n-a", "curt"]).raw_score == pytest.approx(-3.6)


def test_unnormalised_score_is_the_weighted_sum():
    found = score(EXAMPLE, ["CANNOT_ASSESS", "MET", "n-a", "curt"], normalize=False)
    assert found.score == found.raw_score == pytest.approx(-3.6)
    assert score(FAULTS, ["CANNOT_ASSESS", "CANNOT_ASSESS"], normalize=False).score is None


def test_only_zero_weights_give_no_score():
    rubric = Rubric((Criterion("a", 0), Criterion("b", 0)))
    for strategy in STRATEGIES:
        found = score(rubric, ["MET", "UNMET"], strategy)
        assert (found.score, found.raw_score) == (None, None)


def test_partial_credit_applies_to_positive_weights_only():
    assert score(MIXED, ["CANNOT_ASSESS", "UNMET"], "partial", partial_credit=0.2).score == pytest.approx(0.2)
    assert score(MIXED, ["MET", "CANNOT_ASSESS"], "partial", partial_credit=0.2).score == 1.0


def test_verdicts_may_be_labels_codes_or_none():
    assert score(EXAMPLE, ["met", 1, " FAIR ", None]).score == score(EXAMPLE, [0, "UNMET", 1, MISSING]).score == 13 / 16
    assert score(EXAMPLE, [np.int16(0), 1, 1, None]).score == 13 / 16


def test_all_unknown_verdicts_are_listed_at_once():
    with pytest.raises(RubricError) as error:
        score(EXAMPLE, ["MTE", 3, "great", True])
    assert [issue.message for issue in error.value.issues] == [
        "`MTE` is no verdict of `facts`. It has `MET`, `UNMET`, `CANNOT_ASSESS`. Did you mean `MET`?",
        "3 is no code of `fluff`; its verdicts are 0 to 2.",
        "`great` is no verdict of `depth`. It has `poor`, `fair`, `good`, `n-a`.",
        "True is no verdict of `tone`. It has `curt`, `warm`, `cold`, `Cannot assess / not applicable`.",
    ]


@pytest.mark.parametrize("verdicts", [["MET"], "MET, UNMET", []])
def test_missing_verdict_is_error(verdicts):
    with pytest.raises(RubricError, match="has 4 criteria and needs a verdict for each, not"):
        score(EXAMPLE, verdicts)


def test_failed_fatal_criterion_makes_the_score_zero_and_leaves_the_raw_one():
    gate = Criterion("Nothing private is said.", 2, "private", fatal=True)
    found = score(Rubric((FACTS, gate)), ["MET", "UNMET"])
    assert (found.score, found.raw_score, found.failed_fatal, found.unresolved_fatal) == (0.0, 10.0, ("private",), ())
    assert score(Rubric((FACTS, gate)), ["UNMET", "MET"]).score == pytest.approx(2 / 12)


def test_fatal_fault_fails_when_it_is_met():
    rubric = Rubric((FACTS, Criterion("It threatens.", -1, "threat", fatal=True)))
    assert score(rubric, ["MET", "MET"]).failed_fatal == ("threat",)
    assert score(rubric, ["MET", "UNMET"]).score == 1.0


def test_fatal_choice_fails_at_its_lowest_value():
    options = (Option("rude", 0), Option("cold", 0), Option("warm", 1))
    rubric = Rubric((FACTS, Criterion("Tone", 1, "tone", options, "nominal", fatal=True)))
    assert [bool(score(rubric, ["MET", label]).failed_fatal) for label in ("rude", "cold", "warm")] == [
        True,
        True,
        False,
    ]


def test_weight_of_zero_makes_a_pure_gate():
    gate = Criterion("It is safe.", 0, "safe", fatal=True)
    assert score(Rubric((FACTS, gate)), ["MET", "UNMET"]).score == 0.0
    assert score(Rubric((FACTS, gate)), ["MET", "MET"]).score == 1.0
    assert score(Rubric((gate,)), ["UNMET"]).score == 0.0
    assert score(Rubric((gate,)), ["MET"]).score is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_abstention_fails_a_gate_only_under_fail(strategy):
    found = score(Rubric((FACTS, Criterion("b", 2, "gate", fatal=True))), ["MET", "CANNOT_ASSESS"], strategy)
    lists = (found.failed_fatal, found.unresolved_fatal)
    assert lists == ((("gate",), ()) if strategy == "fail" else ((), ("gate",)))
    assert (found.score == 0.0) == (strategy == "fail")


def test_unasked_fatal_criterion_is_unresolved():
    found = score(Rubric((FACTS, Criterion("b", 2, "gate", fatal=True))), ["MET", None], "fail")
    assert (found.score, found.failed_fatal, found.unresolved_fatal) == (1.0, (), ("gate",))


def test_failed_verdicts_count_by_their_replacements():
    assert score(MIXED, [FAILED, "UNMET"]).score == 1.0
    assert score(MIXED, [FAILED_WORST, "UNMET"]).score == 0.0
    assert score(MIXED, ["MET", FAILED_WORST]).score == 0.5
    assert score(MIXED, ["MET", FAILED], "fail").score == 0.5


@pytest.mark.parametrize("verdicts", [[FAILED, FAILED], [FAILED_WORST, FAILED], [None, FAILED_WORST], [None, None]])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_unjudged_item_has_no_score_under_any_strategy(verdicts, strategy):
    rubric = Rubric((FACTS, Criterion("b", 2, "gate", fatal=True)))
    found = score(rubric, verdicts, strategy)
    assert (found.score, found.raw_score, found.failed_fatal, found.unresolved_fatal) == (None, None, (), ("gate",))


def test_penalty_is_subtracted_and_floored_only_when_normalising():
    verdicts = ["MET", "UNMET", "fair", "warm"]
    penalty = LengthPenalty(free_budget=100, max_cap=200).of("word " * 150)
    assert round(rubric_score(EXAMPLE, verdicts, penalty=penalty).score, 4) == 0.6684
    assert rubric_score(EXAMPLE, ["UNMET", "UNMET", "poor", "cold"], penalty=0.3).score == 0.0
    plain = Scoring(normalize=False)
    assert rubric_score(EXAMPLE, ["UNMET", "MET", "poor", "cold"], scoring=plain, penalty=0.3).score == pytest.approx(
        -4.3
    )
    assert rubric_score(EXAMPLE, verdicts, penalty=0.3).raw_score == 15


@pytest.mark.parametrize("penalty", [-0.1, math.nan, math.inf])
def test_impossible_penalty_is_refused(penalty):
    with pytest.raises(RubricError, match="A penalty is a finite number of at least 0"):
        rubric_score(FAULTS, ["MET", "MET"], penalty=penalty)


def test_scores_may_have_judges_between_items_and_criteria():
    codes = np.array([[[0, 1], [1, 1]], [[0, 0], [MISSING, MISSING]]])
    found = rubric_scores(MIXED, codes, scoring=Scoring(), penalties=[[0.0], [0.25]])
    assert found.score[0].tolist() == [1.0, 0.0]
    assert found.score[1, 0] == 0.25
    assert math.isnan(found.score[1, 1])


@pytest.mark.parametrize(
    ("codes", "penalties", "message"),
    [
        ([[0, 1, 0]], None, "Verdicts are submissions by 2 criteria, not of the shape (1, 3)."),
        ([0, 1], None, "Verdicts are submissions by 2 criteria, not of the shape (2,)."),
        ([[0, 3]], None, "3 is no code of `Criterion 2`; its verdicts are 0 to 2."),
        ([[0, 1.0]], None, "Codes are whole numbers, not of the type float64."),
        ([[0, 1]], [0.1, 0.2], "Penalties of the shape (2,) do not fit scores of the shape (1,)."),
    ],
)
def test_impossible_codes_are_refused(codes, penalties, message):
    with pytest.raises(RubricError) as error:
        rubric_scores(MIXED, codes, scoring=Scoring(), penalties=penalties)
    assert str(error.value) == message


@pytest.mark.parametrize("weights", [(0.1, 0.2, 0.3, 0.7), (0.1, -0.2, 0.3, 0.1), (-0.1, -0.2, -0.3, -0.6)])
def test_scores_are_the_same_to_the_bit_in_every_order_of_criteria(weights):
    found = set()
    for row in itertools.permutations(zip(weights, ["MET", "MET", "MET", None], strict=True)):
        rubric = Rubric(tuple(Criterion(f"{place}", weight) for place, (weight, _) in enumerate(row)))
        one = score(rubric, [word for _, word in row])
        found.add((one.score, one.raw_score))
    assert len(found) == 1


def test_no_rows_have_no_scores():
    found = rubric_scores(MIXED, np.zeros((0, 2), np.int16), scoring=Scoring())
    assert found.score.shape == (0,)
    assert found.failed_fatal.shape == (0, 2)


def test_huge_fault_beside_a_tiny_gain_is_zero_without_a_warning():
    assert score(Rubric((Criterion("a", 5e-324), Criterion("b", -1e300))), ["MET", "MET"]).score == 0.0


def test_all_impossible_settings_are_reported():
    with pytest.raises(ConfigurationError) as error:
        Scoring("skp", 2, "yes")
    assert [issue.message for issue in error.value.issues] == [
        "abstention must be one of `fail`, `partial`, `skip`, `zero`, not `skp`. Did you mean `skip`?",
        "partial_credit must be a number from 0 to 1, not 2.",
        "normalize must be true or false, not text.",
    ]


@given(st.data())
def test_vectorised_scores_equal_the_loop(data):
    rubric = data.draw(rubrics())
    scoring = Scoring(
        data.draw(st.sampled_from(STRATEGIES)), data.draw(st.sampled_from([0.5, 0.25])), data.draw(st.booleans())
    )
    row = st.tuples(*(st.integers(FAILED_WORST, len(one.labels) - 1) for one in rubric.criteria))
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    penalties = data.draw(st.lists(st.sampled_from([0.0, 0.1, 0.9]), min_size=len(rows), max_size=len(rows)))
    found = rubric_scores(rubric, rows, scoring=scoring, penalties=penalties)
    for index, codes in enumerate(rows):
        value, raw, failed, unresolved = plain_score(rubric, codes, scoring, penalties[index])
        assert found.score[index] == pytest.approx(math.nan if value is None else value, abs=1e-12, nan_ok=True)
        assert found.raw_score[index] == pytest.approx(math.nan if raw is None else raw, abs=1e-12, nan_ok=True)
        assert [name for name, flag in zip(rubric.names, found.failed_fatal[index], strict=True) if flag] == failed
        assert [
            name for name, flag in zip(rubric.names, found.unresolved_fatal[index], strict=True) if flag
        ] == unresolved
        single = rubric_score(rubric, codes, scoring=scoring, penalty=penalties[index])
        assert single.score == pytest.approx(value, abs=1e-12)
        assert msgspec.structs.asdict(single)["failed_fatal"] == tuple(failed)


GRADE = Criterion("How good is it?", name="grade", minimum=1, maximum=5, weight=6)
FLAWS = Criterion("How many flaws?", name="flaws", minimum=0, maximum=10, weight=-2, fatal=True)


@pytest.mark.parametrize(
    ("verdicts", "score", "failed"),
    [
        ([4, 0], (6 * 0.75) / 6, ()),
        (["4.0", 5], (6 * 0.75 - 1) / 6, ()),
        ([1, "CANNOT_ASSESS"], 0.0, ()),
        ([None, 5], 0.5, ()),
        ([5, 10], 0.0, ("flaws",)),
    ],
)
def test_number_is_worth_its_share_of_the_range(verdicts, score, failed):
    found = rubric_score(Rubric((GRADE, FLAWS)), verdicts)
    assert (found.score, found.failed_fatal) == (pytest.approx(score), failed)


def test_abstention_on_a_number_fails_with_the_worst_end():
    scored = [
        rubric_score(Rubric((GRADE, FACTS)), ["CANNOT_ASSESS", "MET"], scoring=Scoring(abstention=strategy)).score
        for strategy in ("skip", "zero", "partial", "fail")
    ]
    assert scored == pytest.approx([1.0, 10 / 16, 13 / 16, 10 / 16])


def test_nominal_criterion_without_values_counts_in_no_score():
    tone = Criterion("Which tone?", name="tone", scale_type="nominal", options=(Option("warm"), Option("cold")))
    assert rubric_score(Rubric((tone, FACTS)), ["warm", "MET"]).score == 1.0
    assert rubric_score(Rubric((tone,)), ["warm"]).score is None
