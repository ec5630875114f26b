"""The laws of scores and aggregates, for every kind of criterion and every rule."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deemster.rubrics import Rubric, Scoring, rubric_score
from deemster.rubrics.criterion import FAILED_WORST, MISSING
from deemster.rubrics.vote_aggregation import aggregate
from tests.rubrics.make_rubrics import criteria, rubrics, rules_of

SETTINGS = st.builds(Scoring, st.sampled_from(["skip", "zero", "partial", "fail"]), st.sampled_from([0.0, 0.5, 1.0]))


def codes_for(rubric: Rubric, lowest: int = FAILED_WORST) -> st.SearchStrategy[list[int]]:
    """One code for each criterion."""
    return st.tuples(*(st.integers(lowest, len(one.labels) - 1) for one in rubric.criteria)).map(list)


def same(score: float | None):
    """Equal but for rounding; None only to None."""
    return None if score is None else pytest.approx(score, abs=1e-12)


@given(st.data())
def test_normalised_score_lies_between_0_and_1(data):
    rubric = data.draw(rubrics())
    found = rubric_score(
        rubric, data.draw(codes_for(rubric)), scoring=data.draw(SETTINGS), penalty=data.draw(st.floats(0, 2))
    )
    assert found.score is None or 0 <= found.score <= 1


@given(st.data())
def test_order_of_criteria_changes_no_score(data):
    rubric, scoring = data.draw(rubrics()), data.draw(SETTINGS)
    codes = data.draw(codes_for(rubric))
    order = data.draw(st.permutations(range(len(codes))))
    moved = rubric_score(Rubric(tuple(rubric.criteria[i] for i in order)), [codes[i] for i in order], scoring=scoring)
    still = rubric_score(rubric, codes, scoring=scoring)
    assert (moved.score, moved.raw_score) == (still.score, still.raw_score)
    assert set(moved.failed_fatal) == set(still.failed_fatal)


@given(st.data(), st.sampled_from([0.1, 3.0, 1e6]))
def test_scaling_weights_changes_no_normalised_score(data, unit):
    rubric, scoring = data.draw(rubrics()), data.draw(SETTINGS)
    codes = data.draw(codes_for(rubric))
    scaled = Rubric(tuple(msgspec.structs.replace(one, weight=one.weight * unit) for one in rubric.criteria))
    assert rubric_score(scaled, codes, scoring=scoring).score == same(
        rubric_score(rubric, codes, scoring=scoring).score
    )


@given(st.data())
def test_meeting_a_criterion_never_moves_the_score_against_its_weight(data):
    rubric, scoring = data.draw(rubrics()), data.draw(SETTINGS)
    places = [index for index, one in enumerate(rubric.criteria) if one.kind == "binary" and one.weight != 0]
    assume(places)
    place = data.draw(st.sampled_from(places))
    codes = data.draw(codes_for(rubric))
    unmet, met = (
        rubric_score(rubric, [*codes[:place], code, *codes[place + 1 :]], scoring=scoring).score for code in (1, 0)
    )
    assert (unmet is None) == (met is None)
    if unmet is not None:
        assert (met - unmet) * rubric.criteria[place].weight >= -1e-12


@given(st.data())
def test_fail_is_the_smallest_score_any_completion_could_give(data):
    rubric = data.draw(rubrics())
    codes = data.draw(codes_for(rubric, 0))
    assume(sum(code in one.abstentions for one, code in zip(rubric.criteria, codes, strict=True)) <= 3)
    choices = [
        one.scored if code in one.abstentions else (code,) for one, code in zip(rubric.criteria, codes, strict=True)
    ]
    found = [rubric_score(rubric, list(row)).score for row in itertools.product(*choices)]
    failing = rubric_score(rubric, codes, scoring=Scoring("fail")).score
    defined = [score for score in found if score is not None]
    assert failing == same(min(defined) if defined else None)


@given(st.data(), st.floats(0, 1))
def test_partial_credit_never_lowers_score(data, credit):
    rubric = data.draw(rubrics())
    codes = data.draw(codes_for(rubric))
    zero, partial = (rubric_score(rubric, codes, scoring=Scoring(name, credit)).score for name in ("zero", "partial"))
    assert (zero is None) == (partial is None)
    assert zero is None or zero <= partial + 1e-12


@given(st.data())
def test_order_of_voters_changes_no_verdict_and_no_value(data):
    criterion = data.draw(criteria())
    rule = data.draw(st.sampled_from(rules_of(criterion)))
    voters = data.draw(st.integers(1, 6))
    weights = data.draw(st.lists(st.floats(0.01, 10), min_size=voters, max_size=voters))
    code = st.integers(FAILED_WORST, len(criterion.labels) - 1)
    row = data.draw(st.lists(code, min_size=voters, max_size=voters))
    order = data.draw(st.permutations(range(voters)))
    still = aggregate(criterion, [row], rule=rule, weights=weights)
    moved = aggregate(criterion, [[row[i] for i in order]], rule=rule, weights=[weights[i] for i in order])
    assert moved.codes.tolist() == still.codes.tolist()
    np.testing.assert_array_equal(moved.values, still.values)


@given(st.data())
def test_aggregate_of_equal_votes_is_that_vote(data):
    criterion = data.draw(criteria())
    rule = data.draw(st.sampled_from(rules_of(criterion)))
    code = data.draw(st.integers(FAILED_WORST, len(criterion.labels) - 1))
    voters = data.draw(st.integers(1, 5))
    silent = data.draw(st.integers(0, 2))
    found = aggregate(criterion, [[code] * voters + [MISSING] * silent], rule=rule)
    assert found.codes.tolist() == [code]


@given(st.data())
def test_aggregate_is_verdict_or_has_reason(data):
    criterion = data.draw(criteria())
    rule = data.draw(st.sampled_from(rules_of(criterion)))
    row = data.draw(st.lists(st.integers(FAILED_WORST, len(criterion.labels) - 1), min_size=1, max_size=5))
    code = int(aggregate(criterion, [row], rule=rule).codes[0])
    judged = any(vote >= 0 for vote in row)
    assert judged == (code >= 0)
    votes = [vote for vote in row if vote in criterion.scored or vote == FAILED_WORST]
    if judged and rule != "unanimous":
        assert (code in criterion.abstentions) == (not votes)


@given(st.data())
def test_scaling_judge_weights_changes_no_verdict(data):
    criterion = data.draw(criteria())
    rule = data.draw(st.sampled_from(rules_of(criterion)))
    row = data.draw(st.lists(st.integers(0, len(criterion.labels) - 1), min_size=1, max_size=5))
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(row), max_size=len(row)))
    still = aggregate(criterion, [row], rule=rule, weights=weights).codes
    assert aggregate(criterion, [row], rule=rule, weights=[w * 1024 for w in weights]).codes.tolist() == still.tolist()
