"""Votes of some judges of a panel."""

from __future__ import annotations

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import Votes
from deemster.datasets.judge_selection import select_judges
from tests.datasets.loop_reference import votes_files


def without(value, gone):
    """The same file as if some judges had never been there, and nothing was recorded."""
    fewer = copy.deepcopy(value)
    fewer["judges"] = [judge for judge in fewer["judges"] if judge["id"] not in gone]
    for item in fewer["items"]:
        for key in ("final", "score"):
            item.pop(key, None)
        if "votes" in item:
            item["votes"] = {judge: cells for judge, cells in item["votes"].items() if judge not in gone}
    return fewer


@given(votes_files(), st.randoms(use_true_random=False))
def test_selected_judges_equal_file_without_the_others(value, random):
    names = [judge["id"] for judge in value["judges"]]
    kept = random.sample(names, random.randint(1, len(names)))
    votes = Votes.parse(value)
    fewer, dropped = select_judges(votes, kept)
    if len(kept) == len(names):
        assert (fewer, dropped) == (votes, 0)
        return
    assert fewer == Votes.parse(without(value, set(names) - set(kept)))
    recorded = sum(item.get("score") is not None or any(item.get("final") or ()) for item in value["items"])
    assert dropped == recorded
    assert Votes.parse(json.loads(json.dumps(fewer.to_dict()))) == fewer
