from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import ConfigurationError
from deemster.metrics._text_normalization import normalize_passage, normalize_text, parse_normalize_option, word_tokens

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def plain_words(text):
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).lower())


@pytest.mark.parametrize(
    ("option", "steps"),
    [
        (None, ()),
        (False, ()),
        ((), ()),
        (True, ("nfc", "casefold", "strip")),
        ("strip", ("strip",)),
        (["strip", "nfc"], ("nfc", "strip")),
    ],
)
def test_steps_come_in_the_order_they_are_applied(option, steps):
    assert parse_normalize_option(option) == steps


@pytest.mark.parametrize("option", ["strips", ["nfd"], 3, [3], {"nfc": True}])
def test_unknown_step_is_a_configuration_error(option):
    with pytest.raises(ConfigurationError):
        parse_normalize_option(option)


def test_casefold_with_nfc_is_composed_again():
    # U+01F0 folds to a letter and a combining mark, which NFC joins again.
    assert normalize_text("\u01f0", ("nfc", "casefold")) == "\u01f0"
    assert normalize_text("\u01f0", ("casefold",)) == "j\u030c"


def test_loose_text_collapses_spaces_and_folds_case_by_default():
    assert normalize_passage(" A\u00a0 B\n") == "a b"
    assert normalize_passage(" A\tB ", fold=False) == "A B"


def test_words_are_runs_of_letters_and_digits():
    assert word_tokens("snake_case x2") == ["snake", "case", "x2"]
    assert word_tokens("Éa_b") == ["éa", "b"]
    assert word_tokens("...") == []


@given(st.one_of(texts, st.text(st.characters(codec="ascii"))))
def test_fast_tokenizer_equals_regular_expression(text):
    assert word_tokens(text) == plain_words(text)


@given(texts)
def test_normalization_is_idempotent(text):
    for steps in (("nfc",), ("strip",), ("nfc", "strip")):
        once = normalize_text(text, steps)
        assert normalize_text(once, steps) == once
