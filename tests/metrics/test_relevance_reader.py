from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.metrics._relevance_reader import entry_ids, find_ranks
from deemster.metrics.builtin_metric import UnscoredError

names = st.sampled_from("abcdefghijklmnop")
rankings = st.lists(names, max_size=30)
relevances = st.dictionaries(names, st.just(1), min_size=1)


def plain_ranks(ranking):
    """Ranks from 1 of the distinct ids, by the plain rule."""
    ranks = {}
    for name in ranking:
        ranks.setdefault(name, len(ranks) + 1)
    return ranks


@given(rankings, relevances, st.integers(0, 40))
def test_ranks_count_distinct_ids(ranking, relevant, depth):
    found, seen = find_ranks(relevant, ranking, depth=depth)
    expected = {name: rank for name, rank in plain_ranks(ranking).items() if rank <= depth}
    assert seen == len(expected)
    assert [found.get(name, 0) for name in relevant] == [expected.get(name, 0) for name in relevant]


@given(rankings, relevances, st.integers(0, 40))
def test_first_relevant_id_is_found_at_any_rank(ranking, relevant, depth):
    found, seen = find_ranks(relevant, ranking, depth=depth, first=True)
    ranks = plain_ranks(ranking)
    deepest = max(depth, min((ranks[name] for name in relevant if name in ranks), default=0))
    expected = {name: rank for name, rank in ranks.items() if rank <= deepest}
    assert seen >= min(depth, len(ranks))
    assert [found.get(name, 0) for name in relevant] == [expected.get(name, 0) for name in relevant]


def test_ids_are_text_and_numbers_become_text():
    texts = ["b", "a", "b"]
    assert entry_ids(texts) is texts
    assert entry_ids(("b", 7, {"id": "c", "text": ""})) == ["b", "7", "c"]


@pytest.mark.parametrize("entries", [["a", ""], ["a", 1.5], ["a", None], ["", 1], [{"text": "x"}], [{"id": ""}]])
def test_entry_without_id_is_issue_with_position(entries):
    with pytest.raises(UnscoredError) as caught:
        entry_ids(entries)
    assert caught.value.cause == "bad_output"
    wrong = next(place for place, entry in enumerate(entries) if entry not in ("a", 1))
    assert caught.value.message.startswith(f"Entry {wrong} ")
