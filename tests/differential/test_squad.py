"""token-f1 against the rule of SQuAD, written out plainly."""

from __future__ import annotations

import re
import string
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.metrics.rouge_and_token_f1 import TokenF1, squad_tokens
from deemster.records import Output, Sample

answers = st.lists(
    st.sampled_from(["the", "The", "a", "an", "Eiffel", "tower,", "U.S.", "x-ray", "1999", "...", "than"]), max_size=8
).map(" ".join)
pieces = ["a", "An", "the", " ", "\u00a0", "\u3000", "é", "\u0301", "ß", "İ", "Σ", "€", "°", "²", "漢字", "кот", "\x00"]
foreign = st.lists(st.sampled_from(pieces) | st.characters(exclude_categories=["Cs"]), max_size=8).map("".join)
# SQuAD's script leaves it in; it is dropped here, as the docs say.
unicode_punctuation = st.characters(categories=["P"], min_codepoint=128)
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


def without_unicode_punctuation(text):
    return "".join(each for each in text if each.isascii() or not unicodedata.category(each).startswith("P"))


@given(foreign | st.text(st.sampled_from("a the “„«»–—…¿。、") | unicode_punctuation, max_size=20))
def test_tokens_are_those_of_squad_but_for_unicode_punctuation(text):
    assert squad_tokens(text) == squad_words(without_unicode_punctuation(text))


@pytest.mark.parametrize(
    ("expected", "actual", "score"),
    [
        ("the €", "a €", 1.0),
        ("5 €", "the€ 5", 1.0),
        ("«кот»", "кот", 1.0),
        ("“naïve”", "naïve", 1.0),
        ("ΣΑΣ", "σας", 1.0),
    ],
)
def test_non_ascii_answers(expected, actual, score):
    assert TokenF1().score(Sample("s", {}, expected), Output(actual)).score == score


@given(st.lists(st.one_of(answers, printable), min_size=1, max_size=3), st.one_of(answers, printable))
def test_best_reference_scores_as_in_squad(expected, actual):
    mark = TokenF1().score(Sample("s", {}, expected), Output(actual))
    assert mark.score == pytest.approx(max(squad_f1(text, actual) for text in expected), abs=1e-12)
