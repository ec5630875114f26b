"""Declares the shape of files of saved outputs, and reads one entry of them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import Issue
from deemster.formats.json_values import value_issues
from deemster.formats.schema_validation import Located, NonBlank, any_shape, check_shape
from deemster.records import Output, TargetFailure, Usage

SCHEMA: Final = "deemster.outputs.v1"
MOST_REPETITIONS = 1_000_000
Answer: TypeAlias = Output | TargetFailure
_Text = Annotated[str, Meta(title="text (a failure is an `error`)")]
_Texts = Annotated[list[_Text], Meta(min_length=1)]


class SavedAnswer(NamedTuple):
    """One answer that was saved.

    Attributes:
        sample_id: The sample that it is an answer to.
        repetition: From 0.
        answer: What the target said.
        where: Where it stands, for messages.
    """

    sample_id: str
    repetition: int
    answer: Answer
    where: str | None


class SavedOutput(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A saved output: what a target said to one sample."""

    one_of: ClassVar = ("output", "actual_output", "outputs", "error")

    output: _Text | UnsetType = UNSET
    actual_output: _Text | UnsetType = UNSET
    outputs: _Texts | UnsetType = UNSET
    error: str | UnsetType = UNSET
    repetition: Annotated[int, Meta(ge=0, lt=MOST_REPETITIONS)] | UnsetType = UNSET
    retrieved: Any = None
    # The record reads it, with the other names that its keys may have.
    trajectory: Any = None
    usage: Usage | None = None
    model: str | None = None


class OutputEntry(SavedOutput, forbid_unknown_fields=True, kw_only=True):
    """A saved output: what a target said to one sample."""

    id: NonBlank


OutputById = Annotated[
    Any, any_shape(_Text, _Texts, SavedOutput, title="text, a list of texts or a map", noun="A saved output")
]
_Outputs = Annotated[Any, any_shape(dict[NonBlank, OutputById], list[OutputEntry], title="a map or a list")]


class OutputsFile(msgspec.Struct, forbid_unknown_fields=True):
    """A file of saved outputs: entries by sample id, or a list of entries."""

    outputs: _Outputs
    schema_version: Literal["deemster.outputs.v1"] = SCHEMA


def read_entry(
    entry: Any, *, name: str | None = None, where: str | None = None, is_json: bool = False
) -> list[SavedAnswer] | None:
    """The answers of an entry, at least one; None where the entry does not have its declared shape.

    Args:
        entry: A map; where the id stands outside, also a text or a list of texts.
        name: The id, where it stands outside the entry.
        where: Where the entry stands.
        is_json: Whether everything in it is known to be JSON that nests no deeper than allowed.

    Raises:
        ValueError: The shape is right, and what a field holds is not; the message says what.
    """
    if name is not None and isinstance(entry, (str, list)):
        entry = {"outputs" if isinstance(entry, list) else "output": entry}
    try:
        decoded = msgspec.convert(entry, OutputEntry if name is None else SavedOutput)
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None

    if decoded.retrieved is not None and not is_json:
        for _, message in value_issues(decoded.retrieved, ("retrieved",)):
            raise ValueError(message)

    sample_id = decoded.id if isinstance(decoded, OutputEntry) else name
    is_one_answer = sum(key in entry for key in SavedOutput.one_of) == 1
    if sample_id is None or not sample_id.strip() or not is_one_answer:
        return None

    if decoded.outputs is not UNSET:
        if decoded.repetition is not UNSET:
            raise ValueError("`outputs` holds all repetitions; leave `repetition` out.")
        return [
            SavedAnswer(sample_id, repetition, _build_output(decoded, text), where)
            for repetition, text in enumerate(decoded.outputs)
        ]

    repetition = 0 if decoded.repetition is UNSET else decoded.repetition
    if decoded.error is not UNSET:
        return [SavedAnswer(sample_id, repetition, TargetFailure(decoded.error), where)]
    text = decoded.actual_output if decoded.output is UNSET else decoded.output
    return [SavedAnswer(sample_id, repetition, _build_output(decoded, str(text)), where)]


def _build_output(decoded: SavedOutput, text: str) -> Output:
    return Output(text, decoded.retrieved, decoded.trajectory, decoded.usage, decoded.model)


def entry_issues(entry: Any, document: Located) -> list[Issue]:
    """What is wrong with an entry of a list, which stands alone in its document.

    Args:
        entry: An entry that `read_entry` does not take.
        document: Knows its line.
    """
    return check_shape(entry, OutputEntry, document=document, is_item=True, surrogates=True)
