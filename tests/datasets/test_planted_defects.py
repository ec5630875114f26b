"""Defects are what they say, differ from the output, and depend on the seed alone."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import Dataset
from deemster.datasets.planted_defects import (
    DEFECTS,
    GoodOutput,
    OutputPool,
    change_number,
    plant_defect,
    reference_output,
)
from deemster.records import Output, Sample

EXAMPLES = Path(__file__).parents[2] / "examples"
RAIN = {"id": "rain", "text": "In rain the shed is closed. Members get a mail."}


def good(text, *, metadata=None, name="a", **output):
    return GoodOutput(Sample(name, {"question": "?"}, text, metadata or {}), Output(text, **output))


def planted(defect, here, *others, seed=0):
    return plant_defect(DEFECTS[defect], here, OutputPool([here, *others]), seed=seed)


@pytest.mark.parametrize(
    ("defect", "text", "expected"),
    [
        ("negation", "The shed is open.", "The shed is not open."),
        ("negation", "It cannot be changed.", "It can be changed."),
        ("negation", "You may not park here.", "You may park here."),
        ("negation", "Yes, on Sundays.", "No, on Sundays."),
        ("citation-dropped", "It is free [fees].", "It is free."),
        ("citation-moved", "Free [a]; open [b].", "Free [b]; open [a]."),
        ("citation-moved", "It is free [a]. It is open.", "It is free. It is open [a]."),
        ("truncation", "one two three four five", "one two"),
        ("wrong-language", "We send it to you within a week.", "Wir senden es zu Sie innerhalb ein Woche."),
        ("broken-json", '{"a": [1]}', '{"a": [1]'),
    ],
)
def test_defect_is_planted_in_the_text(defect, text, expected):
    assert planted(defect, good(text)).text == expected


@pytest.mark.parametrize(
    ("defect", "text"),
    [
        ("negation", "Red paint."),
        ("citation-dropped", "It is free."),
        ("citation-moved", "It is free [a]."),
        ("truncation", "one two three"),
        ("wrong-language", "Rome"),
        ("broken-json", "no JSON"),
        ("unsupported-sentence", '{"a": 1}'),
        ("number-changed", "See [12]."),
        ("entity-swapped", "We ship to Norway."),
        ("other-answer", "We ship to Norway."),
        ("passage-not-used", "One. Two."),
        ("passage-not-retrieved", "One."),
        ("tool-call-missing", "One."),
    ],
)
def test_defect_that_cannot_be_planted_is_not_applicable(defect, text):
    assert planted(defect, good(text)) is None


def test_entity_comes_from_another_sample():
    there = good("It is in Rome, near Mill Lane.", name="b")
    assert planted("entity-swapped", good("We ship to Norway."), there).text in (
        "We ship to Rome.",
        "We ship to Mill Lane.",
    )


def test_refusal_is_no_defect_where_it_is_expected():
    assert planted("refusal", good("I cannot say.", metadata={"refusal_expected": True})) is None
    assert (
        "cannot" in planted("refusal", good("It is 5.")).text or "not able" in planted("refusal", good("It is 5.")).text
    )


def test_sentence_that_rests_on_a_passage_is_left_out():
    here = good("Bring a lock. In rain the shed is closed.", retrieved=[RAIN])
    assert planted("passage-not-used", here).text == "Bring a lock."


def test_best_relevant_passage_is_not_retrieved():
    here = good("x", metadata={"relevant": ["b", "c"]}, retrieved=["a", {"id": "b"}, "c"])
    assert planted("passage-not-retrieved", here).retrieved == ["a", "c"]


def test_tool_call_is_missing():
    here = good("booked", trajectory={"tool_calls": ["search", "book"], "steps": 2})
    assert [call.name for call in planted("tool-call-missing", here).trajectory.tool_calls] in (["search"], ["book"])


def test_reference_holds_what_metadata_expects():
    trajectory = {
        "tools": ["book"],
        "order": ["search", "book"],
        "tool_arguments": [{"tool": "search", "arguments": {"to": "FCO"}}],
        "requires_approval": ["book"],
    }
    sample = Sample("a", {}, {"x": 1}, {"relevant": {"p": 1, "q": 3, "r": 0}, "trajectory": trajectory})
    found = reference_output(sample)
    assert (found.text, found.retrieved) == ('{"x": 1}', ["q", "p"])
    assert [(call.name, dict(call.arguments)) for call in found.trajectory.tool_calls] == [
        ("search", {"to": "FCO"}),
        ("book", {}),
    ]
    assert found.trajectory.approvals == ("book",)
    assert reference_output(Sample("a", {})) is None


@pytest.mark.parametrize("example", ["quickstart", "rag", "citations", "agent", "retrieval", "triage"])
def test_no_defect_leaves_an_output_as_it_was_and_seeds_repeat(example):
    goods = [GoodOutput(each, reference_output(each)) for each in Dataset.load(EXAMPLES / example / "golden.yml")]
    pool = OutputPool(goods)
    for defect in DEFECTS.values():
        for one in goods:
            found = plant_defect(defect, one, pool, seed=3)
            assert found != one.output
            assert found == plant_defect(defect, one, pool, seed=3)


@given(st.text(max_size=60), st.integers(0, 50))
def test_any_text_can_be_tried(text, seed):
    here, there = good(text), good("Ask Anna in Rome [1]. It costs 5.", name="b")
    for defect in DEFECTS.values():
        found = plant_defect(defect, here, OutputPool([here, there]), seed=seed)
        assert found is None or found != here.output


@pytest.mark.parametrize("text", ["It costs 4.90 euros.", "At 1,200 mg.", "In 007.", "Three days.", "0 points"])
def test_changed_number_is_another_one_of_the_same_form(text):
    for seed in range(20):
        found = change_number(text, Random(seed))
        assert found != text
        assert len(found.split()) == len(text.split())
        assert found[0].isupper() == text[0].isupper()
