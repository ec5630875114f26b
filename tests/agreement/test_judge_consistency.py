from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement._judge_consistency import judge_consistency
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import CRITERIA, FACTS, JUDGES, MODES, graded, labelled_votes, votes_value

FAILURE = {"failure": "parse"}


def test_judge_that_repeats_itself_is_stable():
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


def test_judge_without_repeats_has_no_consistency():
    rows = [graded("q1", ["MET"], a=["MET"])]
    assert judge_consistency(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


def test_repeats_on_unlabelled_items_do_not_count():
    rows = [graded("q1", ["MET"], a=["MET"]), {"id": "q2", "votes": {"a": [["MET", "UNMET"]]}}]
    assert judge_consistency(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


@given(ballots.panels(), st.sampled_from(MODES))
def test_consistency_equals_loop_over_repeats(value, modes):
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
