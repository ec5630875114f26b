from __future__ import annotations

import sys

import pytest

from deemster.datasets import RubricDataset
from deemster.errors import InputError, MissingExtraError
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.vote import Vote, vote_failure
from deemster.report.grading_result import Grading


def grading(name="facts"):
    votes = (
        Vote(judge="a", verdict="MET", value=1.0, reason="Seen."),
        Vote(judge="b", failure=vote_failure("judge", "no answer")),
    )
    items = (
        ItemGrading(id="i0", score=1.0, criteria=(CriterionGrading(criterion=name, verdict="MET", votes=votes),)),
        ItemGrading(id="i1", score=None, error="timeout"),
    )
    dataset = RubricDataset(
        [{"id": "i0", "submission": "x", "tags": ["t"]}, {"id": "i1", "submission": "y"}],
        rubric=[{"name": name, "requirement": "It is right."}],
    )
    return Grading(items=items, judges=(), settings={}, dataset=dataset, n_failed_items=1)


def test_votes_are_long_and_items_are_wide():
    pytest.importorskip("pandas")
    votes, items = grading().to_dataframe(), grading().to_dataframe("items")
    assert votes[["item_id", "criterion", "judge", "verdict"]].fillna("").values.tolist() == [
        ["i0", "facts", "a", "MET"],
        ["i0", "facts", "b", ""],
    ]
    assert items[["item_id", "facts", "error"]].fillna("").values.tolist() == [["i0", "MET", ""], ["i1", "", "timeout"]]
    assert items["tags"].tolist() == [["t"], []]


def test_unknown_form_is_error_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean `votes`"):
        grading().to_dataframe("vote")


def test_without_pandas_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="dataframe"):
        grading().to_dataframe()
