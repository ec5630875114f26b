"""Panels: combining votes, ties, quorum, and weights learned over a run."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.judges.judge_panel import combine_values, vote_spread
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.records import MetricScore, NoAnswer, Unscored
from tests.judges.play import DOWN, OUTPUT, SAMPLE, play, said, scored

LATE = NoAnswer(cause="not_run", message="The budget is spent.")
votes = st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=1, max_size=7)


@pytest.mark.parametrize(
    ("values", "how", "up", "down"),
    [
        ([3, 3, 1], "majority", 3, 3),
        ([1, 3], "majority", 1, 3),
        ([1, 2, 3], "majority", 1, 3),
        ([2, 2, 5, 5, 9], "majority", 2, 5),
        ([1, 2, 9], "median", 2, 2),
        ([1, 2, 3, 9], "median", 2, 3),
        ([4], "median", 4, 4),
        ([1, 2, 6], "mean", 3, 3),
    ],
)
def test_ties_go_to_the_worse_quality(values, how, up, down):
    assert combine_values(values, how) == up
    assert combine_values(values, how, higher_is_better=False) == down
    assert combine_values(values[::-1], how) == up


def test_weighted_mean_follows_the_weights():
    assert combine_values([0.0, 1.0, 1.0], "weighted", weights=[2, 1, 1]) == 0.5
    assert combine_values([0.2, 1.0], "weighted", weights=[1, 0]) == 0.2
    assert combine_values([0.0, 1.0], "weighted", weights=[0, 0]) == 0.5


@given(votes, st.sampled_from(["majority", "median", "mean"]), st.booleans())
def test_panel_never_leaves_the_range_of_its_votes(values, how, up):
    assert min(values) <= combine_values(values, how, higher_is_better=up) <= max(values)


@given(votes, st.sampled_from(["majority", "median", "mean"]))
def test_reversed_scale_reverses_result(values, how):
    mirrored = combine_values([1 - value for value in values], how, higher_is_better=False)
    assert mirrored == pytest.approx(1 - combine_values(values, how))


@given(votes, st.integers(0, 5))
def test_mean_by_weight_is_the_mean_of_repeated_votes(values, seed):
    weights = [(seed + place) % 3 + 1 for place in range(len(values))]
    repeated = [value for value, weight in zip(values, weights, strict=True) for _ in range(weight)]
    exact = sum(map(Fraction, repeated)) / len(repeated)
    assert combine_values(values, "weighted", weights=weights) == pytest.approx(float(exact))


def test_agreement_is_the_share_equal_to_the_result():
    found = vote_spread([0.2, 0.5, 0.5, 0.8], 0.5)
    assert found["agreement"] == 0.5
    assert found["spread"] == pytest.approx(math.sqrt(0.06))
    assert vote_spread([0.4], 0.4) == {"members": 1, "lowest": 0.4, "highest": 0.4, "spread": None, "agreement": 1.0}


def panel(size, **options):
    return LlmAsJudge(models=[f"m{place}" for place in range(size)], **options)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_quorum_is_every_member_by_default(size):
    needed = size
    for speaking in range(size + 1):
        replies = [scored(0.6)] * speaking + [DOWN] * (size - speaking)
        mark, _ = play(panel(size).script(SAMPLE, OUTPUT), replies)
        assert isinstance(mark, MetricScore) == (speaking >= needed)
        if speaking < needed and size > 1:
            assert mark.cause == "no_quorum"
            assert mark.details == {"first_cause": "model_failed"}
            assert f"{speaking} of {size} members of the panel spoke; {needed} are needed" in mark.message
            assert mark.message.count(" 0.6") == speaking


def test_panel_with_a_member_that_was_not_asked_has_no_mark_though_a_quorum_voted():
    unasked = NoAnswer(cause="not_run", message="The budget is exhausted.")
    mark = play(panel(3, quorum=1).script(SAMPLE, OUTPUT), [scored(0.6), scored(0.6), unasked])[0]
    assert mark.cause == "not_run"
    assert mark.message == "2 of 3 members of the panel spoke; the others were not asked: The budget is exhausted."


def test_given_quorum_replaces_every_member_and_is_said():
    mark = play(panel(5, quorum=1).script(SAMPLE, OUTPUT), [scored(0.6), DOWN, DOWN, DOWN, DOWN])[0]
    assert (mark.score, mark.details["quorum"]) == (0.6, 1)
    assert "quorum" not in play(panel(2).script(SAMPLE, OUTPUT), [scored(0.6), scored(0.6)])[0].details
    assert play(panel(3, quorum=3).script(SAMPLE, OUTPUT), [scored(0.6), scored(0.6), DOWN])[0].cause == "no_quorum"


def test_panel_stopped_by_budget_is_not_run():
    mark, _ = play(panel(3).script(SAMPLE, OUTPUT), [scored(0.6), LATE, DOWN])
    assert mark.cause == "not_run"


def test_member_whose_reply_is_unreadable_twice_has_no_vote():
    script = panel(3, quorum=2).script(SAMPLE, OUTPUT)
    mark, rounds = play(script, [scored(0.6), said("no"), scored(0.8)], [scored(7)])
    assert mark.score == pytest.approx(0.7)
    assert [ask.role for ask in rounds[1]] == ["m1"]
    assert mark.details["votes"][1]["cause"] == "unreadable"


@pytest.mark.parametrize(
    ("combine", "score", "agreement"), [("majority", 0.2, 0.5), ("median", 0.2, 0.5), ("mean", 0.55, 0.0)]
)
def test_panel_combines_votes_by_its_rule(combine, score, agreement):
    replies = [scored(0.2), scored(0.2), scored(0.9), scored(0.9)]
    mark, _ = play(panel(4, combine=combine).script(SAMPLE, OUTPUT), replies)
    assert mark.score == pytest.approx(score)
    assert (mark.details["combine"], mark.details["agreement"]) == (combine, agreement)


def test_weights_of_members_without_a_vote_do_not_count():
    judge = panel(3, combine="weighted", weights={"m0": 1, "m1": 3, "m2": 100}, quorum=2)
    mark, _ = play(judge.script(SAMPLE, OUTPUT), [scored(0.0), scored(1.0), DOWN])
    assert mark.score == 0.75


def run(judge, rows):
    return [play(judge.script(SAMPLE, OUTPUT), [scored(value) for value in row])[0] for row in rows]


def test_weights_are_learned_from_agreement_over_the_run():
    judge = panel(3, combine="dawid-skene")
    rows = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 0, 1]] * 5
    marks = run(judge, rows)
    assert marks[0].score == pytest.approx(2 / 3)
    settled = judge.settle([*marks, Unscored("model_failed", "x")])
    # The first two always agree; the third says the opposite two times in three and weighs nothing.
    assert [mark.score for mark in settled[:-1]] == pytest.approx([float(row[0]) for row in rows], abs=1e-6)
    assert settled[-1] == Unscored("model_failed", "x")
    assert settled[0].details["judge_score"] == settled[0].score
    weights = settled[0].details["weights"]
    assert weights["m0#0"] == pytest.approx(1, abs=1e-6)
    assert weights["m2#0"] == 0


def test_run_without_information_keeps_weights():
    judge = panel(3, combine="dawid-skene")
    marks = run(judge, [[1, 1, 1], [0.9, 0.8, 0.7]])
    assert judge.settle(marks) == marks
    assert judge.settle([]) == []


def test_only_dawid_skene_changes_marks_after_the_run():
    judge = panel(3)
    marks = run(judge, [[1, 0, 1], [0, 0, 1]])
    assert judge.settle(marks) == marks
