from __future__ import annotations

import pytest

from deemster.agreement._judge_calibration import judge_calibration
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import DEPTH, FACTS, FLAW, graded, labelled_votes, votes_value


def stated(name, truth, p, verdict="MET", judge="a"):
    return graded(name, [truth], **{judge: [{"verdict": verdict, "p": p}]})


def test_probabilities_of_met_are_scored_against_the_truth():
    rows = [
        stated("q1", "MET", 0.9),
        stated("q2", "UNMET", 0.2, "UNMET"),
        stated("q3", "MET", 0.6),
        stated("q4", "UNMET", 0.95),
        # None of these counts: no truth, an abstention on either side.
        stated("q5", "CANNOT_ASSESS", 0.5),
        stated("q6", "MET", 0.5, "CANNOT_ASSESS"),
        {"id": "q7", "votes": {"a": [{"verdict": "MET", "p": 0.7}]}},
    ]
    (found,) = judge_calibration(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"])))
    assert (found.judge_id, found.scale, found.n_samples) == ("a", "binary", 4)
    assert found.brier == pytest.approx((0.01 + 0.04 + 0.16 + 0.9025) / 4)
    # Bins: 0.2 (0 of 1), 0.6 (1 of 1), 0.9 and 0.95 (1 of 2).
    assert found.calibration_error == pytest.approx((0.2 + 0.4 + 2 * (0.925 - 0.5)) / 4)
    last = found.curve[-1]
    assert (len(found.curve), last.n_samples, last.observed_share) == (10, 2, 0.5)
    assert last.mean_probability == pytest.approx(0.925)
    assert (last.ci.lower, last.ci.upper) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    assert (found.curve[0].n_samples, found.curve[0].observed_share, found.curve[0].ci) == (0, None, None)


def test_abstention_that_counts_as_unmet_is_an_outcome():
    rows = [stated("q1", "MET", 0.9), stated("q2", "CANNOT_ASSESS", 0.5)]
    value = votes_value(rows, criteria=[FACTS], judges=["a"])
    for mode in ("as_unmet", "as_category"):
        (found,) = judge_calibration(labelled_votes(value, ballots.AbstentionModes(mode, "exclude")))
        assert found.n_samples == 2
        assert found.brier == pytest.approx((0.01 + 0.25) / 2)


def test_option_probabilities_follow_order_of_author():
    sure = {"verdict": "none", "p": [0.8, 0.2]}
    # Author order of depth is good, fair, poor: the scale runs the other way. flaw has two options, depth three.
    rows = [
        graded("q1", ["good", "none"], a=[{"verdict": "good", "p": [0.7, 0.2, 0.1]}, sure]),
        graded("q2", ["poor", "n-a"], a=[{"verdict": "fair", "p": [0.1, 0.5, 0.4]}, sure]),
    ]
    value = votes_value(rows, criteria=[DEPTH, FLAW], judges=["a"])
    (found,) = judge_calibration(labelled_votes(value))
    first, second, third = 0.09 + 0.04 + 0.01, 0.01 + 0.25 + 0.36, 0.04 + 0.04
    assert (found.scale, found.n_samples) == ("multi-choice", 3)
    assert found.brier == pytest.approx((first + second + third) / 3)
    # The most probable options: 0.7 right, 0.5 wrong, 0.8 right.
    assert found.calibration_error == pytest.approx((0.3 + 0.5 + 0.2) / 3)


def test_calibration_is_listed_per_judge_then_pooled():
    rows = [
        stated("q1", "MET", 0.9, judge="b"),
        stated("q2", "MET", 0.7, judge="a"),
        stated("q3", "UNMET", 0.6, judge="a"),
    ]
    found = judge_calibration(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a", "b"])))
    assert [(one.judge_id, one.n_samples) for one in found] == [("a", 2), ("b", 1), (None, 3)]
    assert found[2].brier == pytest.approx((0.01 + 0.09 + 0.36) / 3)


def test_without_a_probability_there_is_no_calibration():
    assert (
        judge_calibration(
            labelled_votes(votes_value([graded("q1", ["MET"], a=["MET"])], criteria=[FACTS], judges=["a"]))
        )
        is None
    )
