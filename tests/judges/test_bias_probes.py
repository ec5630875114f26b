"""Pairs that differ in one thing only."""

from __future__ import annotations

import re

import pytest

from deemster.judges.bias_probes import PROBES, make_pair

TEXT = "The shed opens at 9. It holds 12 bikes [shed]."
WORDS = re.compile(r"\w+")


def pair(name, text=TEXT, *, model="gpt-x", sample="a", seed=0):
    return make_pair(PROBES[name], text, model=model, sample=sample, seed=seed)


@pytest.mark.parametrize("name", sorted(set(PROBES) - {"length"}))
def test_pairs_of_all_probes_but_length_have_equally_many_words(name):
    # So a judge that counts words is flagged by the probe of length alone.
    control, variant = pair(name, model="model")
    assert abs(len(WORDS.findall(control)) - len(WORDS.findall(variant))) <= (name == "self-reference")


@pytest.mark.parametrize("name", sorted(set(PROBES) - {"numbers-changed"}))
def test_both_texts_hold_every_word_of_the_answer_in_order(name):
    for text in pair(name):
        assert " ".join(WORDS.findall(TEXT)) in " ".join(WORDS.findall(text))


def test_changed_number_leaves_all_other_words():
    control, variant = pair("numbers-changed")
    assert control == TEXT
    assert sum(a != b for a, b in zip(WORDS.findall(control), WORDS.findall(variant), strict=True)) == 1


def test_self_reference_names_the_model_of_the_judge():
    assert pair("self-reference").variant.startswith("gpt-x wrote")
    assert "gpt-x" not in pair("self-reference").control


def test_choice_depends_on_seed_and_sample_alone():
    languages = {pair("language", sample=f"s{number}").variant.split()[0] for number in range(30)}
    assert languages == {"Voici", "Hier", "Esta"}
    assert pair("language") == pair("language")


@pytest.mark.parametrize("text", ["", "  ", '{"answer": 5}', '["a"]'])
def test_no_pair_is_made_of_empty_text_and_json(text):
    assert all(pair(name, text) is None for name in PROBES)


def test_number_cannot_be_changed_where_there_is_none():
    assert pair("numbers-changed", "No.") is None
