"""Graded items, read one by one from the executions of their run."""

from __future__ import annotations

import pytest

from deemster.grading._grading_run import GradedItems
from deemster.judges.item_grading import CriterionGrading, ItemGrading
from deemster.judges.vote import Vote, vote_failure
from deemster.records import Usage
from deemster.store import spool


def item(number):
    failed = Vote(judge="b", failure=vote_failure("not_run", "Stopped."), shown_order=(2, 0, 1))
    vote = Vote(judge="a", verdict="fair", option_index=1, value=0.5, reason="ä" * number, usage=Usage(cost_usd=1))
    criterion = CriterionGrading(criterion="depth", verdict="fair", option_index=1, votes=(vote, failed))
    return ItemGrading(id=f"i{number}", score=number / 10, criteria=(criterion,), judge_scores={"a": 0.5, "b": None})


@pytest.mark.parametrize("room", [1, 2**20])
def test_items_return_in_dataset_order(room, monkeypatch):
    monkeypatch.setattr(spool, "_IN_MEMORY", room)
    kept = GradedItems(10)
    for number in (3, 1, 9, 0, 2, 8, 7, 4, 6, 5):
        kept.put(number, item(number))
    assert list(kept) == [item(number) for number in range(10)]
    assert kept[-1] == item(9)
    assert kept[2:8:3] == [item(2), item(5)]
    assert len(kept) == 10
    with pytest.raises(IndexError):
        kept[10]
