"""Mutators of attacks: deterministic, distinct, and read back to the request."""

from __future__ import annotations

import pytest

from deemster.attack.adversarial_dataset import QUESTION, load_adversarial_seeds
from deemster.datasets.attack_mutators import MUTATORS, decode_base64_words, mutate_text, reveal_tags
from tests.builders.mutator_decoders import DECODERS

TEXTS = {sample.id: sample.input[QUESTION] for sample in load_adversarial_seeds()}


@pytest.mark.parametrize("name", MUTATORS)
def test_mutated_text_is_another_one_and_decodes_back_to_the_request(name):
    mutator = MUTATORS[name]
    found = {key: mutate_text(mutator, text, seed=3, key=key) for key, text in TEXTS.items()}
    assert sum(mutated is not None for mutated in found.values()) >= 40
    for key, mutated in found.items():
        if mutated is not None:
            assert mutated != TEXTS[key]
            assert DECODERS[name](mutated) == TEXTS[key]


@pytest.mark.parametrize("name", MUTATORS)
def test_same_seed_gives_the_same_text(name):
    mutate = [[mutate_text(MUTATORS[name], text, seed=5, key=key) for key, text in TEXTS.items()] for _ in range(2)]
    assert mutate[0] == mutate[1]


def test_mutators_write_one_request_in_distinct_ways():
    text = TEXTS["jailbreak-2"]
    written = [mutate_text(mutator, text, seed=0, key="a") for mutator in MUTATORS.values()]
    assert None not in written
    assert len(set(written)) == len(MUTATORS) == 9


def test_what_is_drawn_depends_on_seed_and_key():
    drawn = {mutate_text(MUTATORS["many-shot"], "Hello", seed=seed, key=key) for seed in (1, 2) for key in "ab"}
    assert len(drawn) == 4


@pytest.mark.parametrize("name", ["base64", "tag-characters"])
def test_hidden_request_is_not_readable_as_it_stands(name):
    mutated = mutate_text(MUTATORS[name], TEXTS["jailbreak-1"], seed=0, key="a")
    assert "OPAL" not in mutated


def test_text_that_has_hidden_characters_already_is_not_hidden_again():
    assert mutate_text(MUTATORS["tag-characters"], "a\U000e0062", seed=0, key="a") is None
    assert mutate_text(MUTATORS["zero-width"], "a\u200bb", seed=0, key="a") is None


def test_hidden_words_of_an_output_are_revealed():
    assert reveal_tags("x\U000e0041\U000e0042") == "xAB"
    assert decode_base64_words("R1JBSU4tNDQxNw and nothing-else!") == ["GRAIN-4417"]
