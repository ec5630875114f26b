"""token-f1 against the rule of SQuAD, written out plainly."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.metrics.rouge_and_token_f1 import TokenF1
from deemster.records import Output, Sample

answers = st.lists(
    st.sampled_from(["the", "The", "a", "an", "Eiffel", "tower,", "U.S.", "x-ray", "1999", "...", "than"]), max_size=8
).map(" ".join)
printable = st.text(st.sampled_from(string.ascii_letters + string.digits + string.punctuation + " \t\n"), max_size=30)


def squad_words(text):
    kept = "".join(character for character in text.lower() if character not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def squad_f1(expected, actual):
    wanted, given_words = squad_words(expected), squad_words(actual)
    if not wanted or not given_words:
        return float(wanted == given_words)
    common = 0
    left = list(wanted)
    for word in given_words:
        if word in left:
            left.remove(word)
            common += 1
    if not common:
        return 0.0
    precision, recall = common / len(given_words), common / len(wanted)
    return 2 * precision * recall / (precision + recall)


@given(st.lists(st.one_of(answers, printable), min_size=1, max_size=3), st.one_of(answers, printable))
def test_the_best_reference_scores_as_in_squad(expected, actual):
    mark = TokenF1().score(Sample("s", {}, expected), Output(actual))
    assert mark.score == pytest.approx(max(squad_f1(text, actual) for text in expected), abs=1e-12)
