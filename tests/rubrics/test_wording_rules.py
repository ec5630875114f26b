"""How often the rules for vague and joined requirements are right, on requirements labelled by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.rubrics import Criterion
from deemster.rubrics._wording_rules import wording_issues
from tests.rubrics.sample_requirements import SEEN, UNSEEN

CODES = {"d": "double-barrelled", "v": "vague-word"}


def codes(text):
    return [issue.code for issue in wording_issues(Criterion(text))]


def counts(labelled, letter):
    """How many were found rightly, found in all, and are there."""
    said = [(CODES[letter] in codes(text), letter in labels) for text, labels in labelled]
    return sum(found and true for found, true in said), sum(found for found, _ in said), sum(true for _, true in said)


@pytest.mark.parametrize(
    ("labelled", "letter", "expected"),
    [(SEEN, "d", (51, 53, 58)), (SEEN, "v", (40, 40, 42)), (UNSEEN, "d", (11, 11, 11)), (UNSEEN, "v", (4, 4, 10))],
    ids=["joined, seen", "vague, seen", "joined, unseen", "vague, unseen"],
)
def test_rules_find_numbers_of_decision_record(labelled, letter, expected):
    assert counts(labelled, letter) == expected


def test_no_requirement_is_labelled_twice():
    texts = [text for text, _ in [*SEEN, *UNSEEN]]
    assert len(texts) == len(set(texts)) >= 60


@given(
    st.text(min_size=1, max_size=80).filter(str.strip)
    | st.lists(
        st.sampled_from(["and", "or", "the", "is", "it", ",", ";", ".", "if", "that", "both", "cites", "good"]),
        min_size=1,
    ).map(" ".join)
)
def test_any_text_is_checked_without_error(text):
    assert codes(text) == codes(text)


def test_repeated_vague_word_is_reported_once_with_what_to_write_instead():
    (issue,) = wording_issues(Criterion("A good answer gives good reasons."))
    assert issue.message == "`good` means something else to every judge."
    assert issue.suggestion.startswith("Instead, ")


def test_defined_vague_word_is_no_issue():
    assert codes("Is concise: at most 50 words.") == []
