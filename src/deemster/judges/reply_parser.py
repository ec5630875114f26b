"""The strict parser of judges' replies: one JSON object with exactly the keys that were asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from deemster.errors import InputError, list_names, visible
from deemster.formats.canonical_json import json_text
from deemster.formats.document import Reading
from deemster.formats.strict_json import json_document, json_value
from deemster.records import Answer, FrozenDict, freeze
from deemster.rubrics.rubric_format import is_on_grid

DEPTH = 8
LONGEST = 100_000
# A character has at most four bytes, so this stays below the 64 KiB that a report keeps of one text.
LONGEST_TEXT = 16_000
_FENCE = re.compile(r"```(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n[ \t]*```", re.DOTALL)
_NESTED = (dict, list)
# The schema of a field that holds text.
TEXT: Mapping[str, Any] = {"type": "string"}
_READING = Reading("reply", error=InputError)


def reply_schema(fields: Mapping[str, Any]) -> FrozenDict:
    """The JSON Schema of a reply: one object with exactly these fields.

    Args:
        fields: The schema of each field, in the order in which the judge should write them.
    """
    found: FrozenDict = freeze(
        {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}
    )
    return found


class UnreadableReplyError(Exception):
    """A reply that holds no verdict in the form that was asked for.

    Attributes:
        message: What was wrong and what was expected.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def parse_json_object(text: str) -> dict[str, Any]:
    r"""The one JSON object that a reply consists of; one code fence around it is taken off.

    Raises:
        UnreadableReplyError: The reply is anything else: prose, two objects, a list, a repeated key, NaN, deep nesting.

    >>> parse_json_object('```json\n{"score": 0.5}\n```')
    {'score': 0.5}
    """
    body = text.strip(" \t\r\n")
    if not body:
        raise UnreadableReplyError("The reply is empty; one JSON object was expected.")
    if len(body) > LONGEST:
        raise UnreadableReplyError(f"The reply has {len(body):,} characters; at most {LONGEST:,} are read.")
    if body.startswith("```") and (fenced := _FENCE.fullmatch(body)):
        body = fenced[1].strip(" \t\r\n")
    if not body.startswith("{"):
        raise UnreadableReplyError(f"The reply is not one JSON object: it begins with `{visible(body, limit=40)}`.")
    value: dict[str, Any] = _value(body)
    if not _within(value, DEPTH):
        raise UnreadableReplyError(f"The reply is nested deeper than {DEPTH}.")
    return value


def reply_entries(answer: Answer, keys: Sequence[str]) -> dict[str, Any]:
    """The object of a reply, where it has exactly the keys that were asked for.

    Args:
        answer: What the judge said.
        keys: Every key; each is needed and no other is allowed.

    Raises:
        UnreadableReplyError: The reply is no such object.
    """
    try:
        entries = parse_json_object(answer.text)
    except UnreadableReplyError as error:
        if answer.finish == "length":
            raise UnreadableReplyError(f"{error.message} The model was cut off: raise `max_tokens`.") from None
        raise
    for key in keys:
        if key not in entries:
            raise UnreadableReplyError(f"The reply has no `{key}`; expected are {list_names(keys)}.")
    if len(entries) > len(keys):
        unknown = list_names([visible(key, limit=40) for key in entries if key not in keys], limit=5)
        raise UnreadableReplyError(f"The reply has unknown keys: {unknown}. Expected are {list_names(keys)}.")
    return entries


def number_entry(entries: Mapping[str, Any], key: str, *, low: float, high: float, step: float | None = None) -> float:
    """A number within limits; where there is a step, a whole number of steps above the lower one.

    Raises:
        UnreadableReplyError: It is something else: text, a boolean, a number outside.
    """
    value = entries[key]
    if type(value) not in (int, float) or not low <= value <= high:
        raise UnreadableReplyError(f"`{key}` is a number from {low:g} to {high:g}, not {_json_text(value)}.")
    if step is not None and not is_on_grid(value, low, step):
        raise UnreadableReplyError(f"`{key}` is {low:g} to {high:g} in steps of {step:g}, not {_json_text(value)}.")
    return float(value)


def integer_entry(entries: Mapping[str, Any], key: str, *, low: int, high: int) -> int:
    """A whole number within limits; 7.0 is one, 7.5 is not.

    Raises:
        UnreadableReplyError: It is something else.
    """
    value = entries[key]
    if type(value) not in (int, float) or not low <= value <= high or value != int(value):
        raise UnreadableReplyError(f"`{key}` is a whole number from {low} to {high}, not {_json_text(value)}.")
    return int(value)


def text_entry(entries: Mapping[str, Any], key: str) -> str:
    """A text that is not blank, truncated if it is very long.

    Raises:
        UnreadableReplyError: It is blank, or no text.
    """
    value = entries[key]
    if type(value) is not str or not value.strip():
        raise UnreadableReplyError(f"`{key}` is text that is not blank, not {_json_text(value)}.")
    return truncate_text(value.strip())


def truncate_text(text: str) -> str:
    """The text, or as much of it as a mark may keep.

    >>> len(truncate_text("x" * 99_000)), truncate_text("x" * 99_000)[-1]
    (16000, '…')
    """
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def choice_entry(entries: Mapping[str, Any], key: str, known: Iterable[str]) -> str:
    """One of the known words, letter by letter.

    Raises:
        UnreadableReplyError: It is something else.
    """
    value = entries[key]
    options = tuple(known)
    if type(value) is not str or value not in options:
        raise UnreadableReplyError(f"`{key}` is one of {list_names(options)}, not {_json_text(value)}.")
    return value


def _value(body: str) -> Any:
    try:
        return json_value(body.encode())
    except UnicodeEncodeError:
        raise UnreadableReplyError("The reply is not valid Unicode.") from None
    except ValueError:
        pass
    try:
        return json_document(body, _READING).value
    except InputError as error:
        # The sentences after the first advise the author of a file.
        why = error.issues[0].message.partition(". ")[0].rstrip(".")
        raise UnreadableReplyError(f"The reply is not one JSON object. {visible(why, limit=160)}.") from None


def _within(value: dict[str, Any] | list[Any], depth: int) -> bool:
    """Whether a map or a list is nested no deeper than so many levels, itself one of them."""
    if depth == 0:
        return False
    parts: Iterable[Any] = value.values() if isinstance(value, dict) else value
    nested = [part for part in parts if type(part) in _NESTED]
    return not nested or all(_within(part, depth - 1) for part in nested)


def _json_text(value: Any) -> str:
    # As JSON, for so the judge wrote it: `true`, not `True`.
    return visible(json_text(value), limit=60)
