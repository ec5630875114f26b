"""How often the finders of vague and joined requirements are right, on requirements labelled by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.rubrics._compound_requirement import joint_of
from deemster.rubrics.wording_check import vague_words
from tests.rubrics.sample_requirements import SEEN, UNSEEN

FINDERS = {"d": lambda text: joint_of(text) is not None, "v": lambda text: any(vague_words(text))}


def counts(labelled, letter):
    """How many were found rightly, found in all, and are there."""
    said = [(FINDERS[letter](text), letter in labels) for text, labels in labelled]
    return sum(found and true for found, true in said), sum(found for found, _ in said), sum(true for _, true in said)


@pytest.mark.parametrize(
    ("labelled", "letter", "expected"),
    [(SEEN, "d", (54, 54, 58)), (SEEN, "v", (41, 41, 42)), (UNSEEN, "d", (8, 8, 11)), (UNSEEN, "v", (4, 5, 10))],
    ids=["joined, seen", "vague, seen", "joined, unseen", "vague, unseen"],
)
def test_the_finders_are_as_good_as_the_documents_say(labelled, letter, expected):
    assert counts(labelled, letter) == expected


def test_no_requirement_is_labelled_twice():
    texts = [text for text, _ in [*SEEN, *UNSEEN]]
    assert len(texts) == len(set(texts)) >= 60


@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(["and", "or", "the", "is", "it", ",", ";", ".", "if", "that", "both", "cites", "good"])
    ).map(" ".join)
)
def test_any_text_can_be_read(text):
    assert joint_of(text) == joint_of(text)
    assert all(remark.code == "vague-word" for remark in vague_words(text))


def test_a_vague_word_is_told_once_with_what_to_write_instead():
    remarks = list(vague_words("A good answer gives good reasons."))
    assert [remark.message for remark in remarks] == ["`good` means something else to every judge."]
    assert remarks[0].suggestion.startswith("Instead, ")
