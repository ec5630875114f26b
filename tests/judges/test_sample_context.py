"""Where a context comes from."""

import pytest

from deemster.judges.sample_context import context_passages, question_text, reference_text, sample_passages
from deemster.metrics.builtin_metric import UnscoredError
from deemster.records import Output, Sample


def found(*, given=None, metadata=None, retrieved=None):
    return context_passages(Sample("s", given or {}, None, metadata or {}), Output("o", retrieved=retrieved))


def test_judge_is_told_of_an_image_and_not_sent_its_bytes():
    image = "data:image/png;base64,iVBORw0KGgo="
    turn = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": image}}]}
    sample = Sample("s", {"messages": [turn]}, image, {})
    assert '"url": "[image/png, 8 bytes]"' in question_text(sample)
    assert reference_text(sample) == "[image/png, 8 bytes]"
    assert question_text(Sample("s", {"question": f"What is {image}?"}, None, {})) == "What is [image/png, 8 bytes]?"


def test_context_comes_from_retrieved_then_input_then_metadata():
    given, metadata = {"context": "from the input"}, {"context": "from the metadata"}
    retrieved = [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}]
    assert found(given=given, metadata=metadata, retrieved=retrieved) == ("a", "b")
    assert found(given=given, metadata=metadata) == ("from the input",)
    assert found(metadata=metadata) == ("from the metadata",)


def test_context_is_a_text_or_a_list_of_texts_or_of_maps_with_a_text():
    assert found(given={"context": "a"}) == ("a",)
    assert found(given={"context": ["a", "b"]}) == ("a", "b")
    assert found(metadata={"context": [{"id": "x", "text": "a"}, "b"]}) == ("a", "b")


def test_retrieved_ids_without_texts_are_no_context():
    assert found(given={"context": "a"}, retrieved=["d1", "d2"]) == ("a",)
    assert found(given={"context": "a"}, retrieved=[{"id": "d1"}]) == ("a",)


def test_retrieved_entries_without_a_text_are_left_out_beside_others():
    assert found(retrieved=["d1", {"id": "d2", "text": "b"}, {"id": "d3", "text": None}]) == ("b",)


def test_nothing_retrieved_is_a_context_without_passages():
    assert found(given={"context": "a"}, retrieved=[]) == ()


@pytest.mark.parametrize(
    ("case", "cause", "message"),
    [
        ({}, "bad_sample", "There is no context"),
        ({"retrieved": ["d1"]}, "bad_sample", "There is no context"),
        ({"retrieved": "text"}, "bad_output", "is a list, not text"),
        ({"retrieved": [{"text": 7}]}, "bad_output", "is text, not a number"),
        ({"retrieved": [{"text": "\ud800"}]}, "bad_output", "not valid Unicode"),
        ({"given": {"context": 7}}, "bad_sample", "`input.context` is a text or a list of texts; here it is a number."),
        ({"given": {"context": " "}}, "bad_sample", "here it is empty"),
        (
            {"metadata": {"context": []}},
            "bad_sample",
            "`metadata.context` is a text or a list of texts; here it is empty.",
        ),
        ({"given": {"context": ["a", 7]}}, "bad_sample", "`input.context[1]` is a text or a map with a `text`"),
        ({"given": {"context": "\ud800"}}, "bad_sample", "not valid Unicode"),
    ],
)
def test_unreadable_context_is_issue_with_place_and_reason(case, cause, message):
    with pytest.raises(UnscoredError) as fault:
        found(**case)
    assert fault.value.cause == cause
    assert message in fault.value.message


def test_sample_without_context_is_no_issue():
    assert sample_passages(Sample("s", {"question": "q"})) is None
