"""The parts of a sample that judges are shown, as text."""

from __future__ import annotations

from typing import Any

from deemster.documents.flow import json_text
from deemster.metrics.contract import absent, no_expected
from deemster.records import Sample


def question_of(sample: Sample) -> str:
    """The question: `input.question` where it is a text that is not empty, else the input as JSON.

    Raises:
        Fault: It cannot be written as JSON, or holds a lone surrogate.
    """
    question = sample.input.get("question")
    if isinstance(question, str) and question:
        return whole(question, called="`input.question`")
    return as_text(sample.input, called="The input")


def reference_of(sample: Sample) -> str:
    """The expected output: a text as it is, any other value as JSON.

    Raises:
        Fault: There is none, it cannot be written as JSON, or it holds a lone surrogate.
    """
    if sample.expected_output is None:
        raise no_expected()
    return as_text(sample.expected_output, called="`expected_output`")


def as_text(value: Any, *, called: str) -> str:
    """A text as it is, any other JSON value as JSON.

    Args:
        value: The value.
        called: How messages name it.

    Raises:
        Fault: It cannot be written as JSON, or holds a lone surrogate.
    """
    if isinstance(value, str):
        return whole(value, called=called)
    try:
        written = json_text(value)
    except (TypeError, ValueError, RecursionError):
        # An integer of more than 4,300 digits, nesting without end, or what no JSON file can hold.
        raise absent(f"{called} cannot be written as JSON.") from None
    return whole(written, called=called)


def whole(text: str, *, called: str) -> str:
    """The text, where all of it is characters.

    Args:
        text: The text.
        called: How messages name it.

    Raises:
        Fault: It holds a lone surrogate.
    """
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise absent(f"{called} is not valid Unicode at character {error.start}.") from None
    return text
