"""What judges see of a sample: the question, the reference, and the passages of the context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.formats.canonical_json import json_text
from deemster.formats.json_values import name_kind
from deemster.metrics.builtin_metric import UnscoredError, no_expected, unscorable_sample
from deemster.records import Output, Sample
from deemster.text.embedded_files import name_embedded_files


def question_text(sample: Sample) -> str:
    """The question: `input.question` where it is a text that is not empty, else the input as JSON.

    An embedded file is named by its kind and size: judges are sent text.

    Raises:
        UnscoredError: It cannot be written as JSON, or holds a lone surrogate.
    """
    question = sample.input.get("question")
    if isinstance(question, str) and question:
        return name_embedded_files(check_characters(question, called="`input.question`"))
    return name_embedded_files(json_or_text(sample.input, called="The input"))


def reference_text(sample: Sample) -> str:
    """The expected output: a text as it is, any other value as JSON.

    Raises:
        UnscoredError: There is none, it cannot be written as JSON, or it holds a lone surrogate.
    """
    if sample.expected_output is None:
        raise no_expected()
    return name_embedded_files(json_or_text(sample.expected_output, called="`expected_output`"))


def json_or_text(value: Any, *, called: str) -> str:
    """A text as it is, any other JSON value as JSON.

    Args:
        value: The value.
        called: How messages name it.

    Raises:
        UnscoredError: It cannot be written as JSON, or holds a lone surrogate.
    """
    if isinstance(value, str):
        return check_characters(value, called=called)
    try:
        written = json_text(value)
    except (TypeError, ValueError, RecursionError):
        # An integer of more than 4,300 digits, nesting without end, or what no JSON file can hold.
        raise unscorable_sample(f"{called} cannot be written as JSON.") from None
    return check_characters(written, called=called)


def check_characters(text: str, *, called: str) -> str:
    """Refuse a text with a lone surrogate, which cannot be sent.

    Args:
        text: The text.
        called: How messages name it.

    Raises:
        UnscoredError: It holds a lone surrogate.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise unscorable_sample(f"{called} is not valid Unicode at character {error.start}.") from None
    return text


PLACES = ("`output.retrieved` with texts", "`input.context`", "`metadata.context`")


def context_passages(sample: Sample, output: Output) -> tuple[str, ...]:
    """The passages of the context, in order.

    They are the texts that the output says were retrieved, else `input.context`, else `metadata.context`. An empty
    list of retrieved texts is a context without passages; ids without texts are no context.

    Raises:
        UnscoredError: There is none, or it is no text, list of texts or list of maps with a `text`.
    """
    retrieved = output.retrieved
    if retrieved is not None:
        if not isinstance(retrieved, (list, tuple)):
            raise UnscoredError("bad_output", f"What was retrieved is a list, not {name_kind(retrieved)}.")
        texts = [entry["text"] for entry in retrieved if isinstance(entry, Mapping) and entry.get("text") is not None]
        if texts or not retrieved:
            return tuple(_retrieved(text) for text in texts)
    found = sample_passages(sample)
    if found is None:
        raise unscorable_sample(
            f"There is no context: it is read from {PLACES[0]}, else {PLACES[1]}, else {PLACES[2]}."
        )
    return found


def sample_passages(sample: Sample) -> tuple[str, ...] | None:
    """The passages that a sample itself holds; None if it holds none.

    Raises:
        UnscoredError: They are no text, list of texts or list of maps with a `text`.
    """
    for called, room in (("`input.context`", sample.input), ("`metadata.context`", sample.metadata)):
        value = room.get("context")
        if value is None:
            continue
        if isinstance(value, str) and value.strip():
            return (check_characters(value, called=called),)
        if isinstance(value, (list, tuple)) and value:
            name = called.strip("`")
            return tuple(_passage(entry, called=f"`{name}[{place}]`") for place, entry in enumerate(value))
        what = "empty" if isinstance(value, (str, list, tuple)) else name_kind(value)
        raise unscorable_sample(f"{called} is a text or a list of texts; here it is {what}.")
    return None


def _passage(entry: Any, *, called: str) -> str:
    text = entry.get("text") if isinstance(entry, Mapping) else entry
    if not isinstance(text, str):
        raise unscorable_sample(f"{called} is a text or a map with a `text`, not {name_kind(entry)}.")
    return check_characters(text, called=called)


def _retrieved(text: Any) -> str:
    if not isinstance(text, str):
        raise UnscoredError("bad_output", f"The `text` of what was retrieved is text, not {name_kind(text)}.")
    try:
        return check_characters(text, called="A retrieved text")
    except UnscoredError as error:
        raise UnscoredError("bad_output", error.message) from None
