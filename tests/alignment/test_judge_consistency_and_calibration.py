from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.alignment._item_difficulty import disputed_items
from deemster.alignment._judge_calibration import judge_calibration
from deemster.alignment._judge_consistency import judge_consistency
from tests.alignment import make_votes as ballots
from tests.alignment.make_votes import CRITERIA, DEPTH, FACTS, FLAW, JUDGES, MODES, labelled_votes, votes_value

FAILURE = {"failure": "parse"}


def graded(name, truth, **votes):
    return {"id": name, "ground_truth": truth, "votes": votes}


def test_a_judge_that_repeats_itself_is_stable():
    rows = [
        graded("q1", ["MET"], a=[["MET", "MET", "MET"]], b=["MET"]),
        graded("q2", ["MET"], a=[["MET", "UNMET", "MET"]], b=["MET"]),
        graded("q3", ["MET"], a=[["UNMET", "UNMET", FAILURE]], b=["MET"]),
        graded("q4", ["MET"], a=[["UNMET", "CANNOT_ASSESS"]], b=["MET"]),
        graded("q5", ["MET"], a=[[FAILURE, FAILURE]], b=["MET"]),
    ]
    (found,) = judge_consistency(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a", "b"])))
    # q4 has one repeat that counts, q5 none.
    assert (found.judge_id, found.n_cells, found.n_repeats) == ("a", 3, 8)
    assert found.stable_share == pytest.approx(2 / 3)
    assert found.pairwise_agreement == pytest.approx((1 + 1 / 3 + 1) / 3)
    # 8 votes, 5 MET and 3 UNMET; only q2 differs: 4 ordered pairs, each worth a half.
    assert found.krippendorff_alpha == pytest.approx(1 - 7 * 2 / (2 * 5 * 3))


def test_judges_that_were_asked_once_have_no_consistency():
    rows = [graded("q1", ["MET"], a=["MET"])]
    assert judge_consistency(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


def test_repeats_on_unlabelled_items_do_not_count():
    rows = [graded("q1", ["MET"], a=["MET"]), {"id": "q2", "votes": {"a": [["MET", "UNMET"]]}}]
    assert judge_consistency(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


@given(ballots.panels(), st.sampled_from(MODES))
def test_consistency_is_what_loops_over_repeats_give(value, modes):
    found = {one.judge_id: one for one in judge_consistency(labelled_votes(value, modes)) or ()}
    for judge in JUDGES:
        shares, count, alphas = [], 0, []
        for place, criterion in enumerate(CRITERIA):
            units = []
            for item in ballots.used(value):
                cell = item["votes"].get(judge, [None] * len(CRITERIA))[place]
                said = cell if isinstance(cell, list) else []
                said = [one for entry in said if (one := ballots.seen(criterion, entry, modes)) is not None]
                if len(said) >= 2:
                    units.append(said)
            for unit in units:
                pairs = list(combinations(unit, 2))
                shares.append(sum(one == other for one, other in pairs) / len(pairs))
                count += len(unit)
            alphas.append(ballots.alpha(units, criterion))
        if not shares:
            assert judge not in found
            continue
        one = found[judge]
        assert (one.n_cells, one.n_repeats) == (len(shares), count)
        assert one.stable_share == pytest.approx(sum(share == 1 for share in shares) / len(shares))
        assert one.pairwise_agreement == pytest.approx(sum(shares) / len(shares))
        expected = ballots.mean(alphas)
        assert one.krippendorff_alpha == (expected if expected is None else pytest.approx(expected, abs=1e-9))


def test_the_most_disputed_item_comes_first_then_the_hardest_then_by_id():
    rows = [
        graded("agreed", ["MET"], a=["MET"], b=["MET"], c=["MET"]),
        graded("wrong", ["MET"], a=["UNMET"], b=["UNMET"], c=["UNMET"]),
        graded("split-2", ["MET"], a=["MET"], b=["UNMET"], c=["MET"]),
        graded("split-1", ["MET"], a=["MET"], b=["UNMET"], c=["MET"]),
        graded("split-hard", ["MET"], a=["MET"], b=["UNMET"], c=["UNMET"]),
        graded("silent", ["MET"], a=["CANNOT_ASSESS"]),
    ]
    found = disputed_items(labelled_votes(votes_value(rows, criteria=[FACTS])))
    assert [one.id for one in found] == ["split-hard", "split-1", "split-2", "wrong", "agreed", "silent"]
    assert [one.dispute for one in found] == [pytest.approx(2 / 3)] * 3 + [0.0, 0.0, None]
    assert [one.difficulty for one in found] == pytest.approx([2 / 3, 1 / 3, 1 / 3, 1.0, 0.0, None])
    assert [(one.n_votes, one.n_criteria) for one in found] == [(3, 1)] * 5 + [(0, 0)]


def test_at_most_twenty_items_are_shown():
    rows = [graded(f"q{place:02d}", ["MET"], a=["MET"], b=["UNMET"]) for place in range(30)]
    found = disputed_items(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a", "b"])))
    assert [one.id for one in found] == [f"q{place:02d}" for place in range(20)]


def test_without_a_vote_that_counts_there_is_no_list_of_items():
    rows = [{"id": "q1", "ground_truth": ["MET"], "final": ["MET"], "votes": {"a": ["CANNOT_ASSESS"]}}]
    assert disputed_items(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


@given(ballots.panels(), st.sampled_from(MODES))
def test_difficulty_and_dispute_are_what_loops_over_votes_give(value, modes):
    for item in value["items"]:
        for cells in item["votes"].values():
            cells[:] = [cell[0] if isinstance(cell, list) else cell for cell in cells]
    found = {one.id: one for one in disputed_items(labelled_votes(value, modes))}
    assert len(found) == len(ballots.used(value))
    for item in ballots.used(value):
        missed, votes, disputes = 0, 0, []
        for place, criterion in enumerate(CRITERIA):
            truth = ballots.seen(criterion, ballots.truth_of(item, place, criterion), modes)
            said = [ballots.seen(criterion, cells[place], modes) for cells in item["votes"].values()]
            said = [one for one in said if one is not None]
            if truth is not None:
                votes += len(said)
                missed += sum(one != truth for one in said)
            pairs = list(combinations(said, 2))
            if pairs:
                disputes.append(sum(one != other for one, other in pairs) / len(pairs))
        one = found[item["id"]]
        assert (one.n_votes, one.n_criteria) == (votes, len(disputes))
        assert one.difficulty == (pytest.approx(missed / votes) if votes else None)
        assert one.dispute == (pytest.approx(sum(disputes) / len(disputes)) if disputes else None)


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


def test_an_abstention_that_counts_as_unmet_is_an_outcome():
    rows = [stated("q1", "MET", 0.9), stated("q2", "CANNOT_ASSESS", 0.5)]
    value = votes_value(rows, criteria=[FACTS], judges=["a"])
    for mode in ("as_unmet", "as_category"):
        (found,) = judge_calibration(labelled_votes(value, ballots.AbstentionModes(mode, "exclude")))
        assert found.n_samples == 2
        assert found.brier == pytest.approx((0.01 + 0.25) / 2)


def test_options_are_scored_in_the_order_of_the_author():
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


def test_several_judges_come_one_by_one_and_then_together():
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
