from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.agreement._item_difficulty import disputed_items
from tests.agreement import make_votes as ballots
from tests.agreement.make_votes import CRITERIA, FACTS, MODES, graded, labelled_votes, votes_value


def test_most_disputed_item_comes_first_then_the_hardest_then_by_id():
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


def test_without_usable_vote_there_are_no_items_to_inspect():
    rows = [{"id": "q1", "ground_truth": ["MET"], "final": ["MET"], "votes": {"a": ["CANNOT_ASSESS"]}}]
    assert disputed_items(labelled_votes(votes_value(rows, criteria=[FACTS], judges=["a"]))) is None


@given(ballots.panels(), st.sampled_from(MODES))
def test_difficulty_and_dispute_equal_loop_over_votes(value, modes):
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
