"""Reads saved outputs that are one value: a file of JSON or YAML, or what a program gives."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from deemster.errors import Issue
from deemster.formats.document import Document, Reading
from deemster.formats.json_values import pointer
from deemster.formats.read_file import parse_document, quick_json
from deemster.formats.schema_validation import check_shape
from deemster.targets._answers_in_memory import AnswersInMemory, answers_from_texts, join_answers
from deemster.targets.saved_output_format import OutputsFile, SavedAnswer, read_entry

_BEGINNING = 4096


def format_by_content(path: str | Path, reading: Reading) -> str:
    """The format of a file whose name does not say it: JSON where it begins as JSON does, else YAML."""
    with reading.open(path) as file:
        beginning = file.read(_BEGINNING).removeprefix(BOM_UTF8).lstrip()
    return "json" if beginning.startswith(b"{") else "yaml"


def read_value(value: Any) -> AnswersInMemory:
    """Read saved outputs that a program gives.

    Args:
        value: A map by sample id, or a list of entries.

    Raises:
        OutputsError: An entry is wrong; every issue is given.
    """
    return answers_from_texts(value) or AnswersInMemory(join_answers(_read_root({"outputs": value}, None), file=None))


def read_outputs_document(data: bytes, kind: str, reading: Reading) -> AnswersInMemory:
    """Read a file whose root is a map with `outputs`.

    Args:
        data: What the file holds.
        kind: `json` or `yaml`.
        reading: How messages name it.

    Raises:
        OutputsError: The file or an entry in it is wrong; every issue is given.
    """
    if kind == "json":
        # What is no plain JSON is parsed once more, by the parser that knows lines.
        with suppress(ValueError):
            return _read_quickly(quick_json(data), reading)
    document = parse_document(data, kind, reading)
    return AnswersInMemory(join_answers(_read_root(document.value, document), file=reading.file))


def _read_quickly(root: Any, reading: Reading) -> AnswersInMemory:
    answers = None
    if isinstance(root, dict) and root.keys() == {"outputs"}:
        answers = answers_from_texts(root["outputs"])
    return answers or AnswersInMemory(join_answers(_read_root(root, None), file=reading.file))


def _read_root(root: Any, document: Document | None) -> Iterator[SavedAnswer | Issue]:
    """Every saved answer of a root, or what is wrong with it."""
    outputs = root.get("outputs") if isinstance(root, dict) else None
    is_malformed = not isinstance(outputs, (dict, list))
    try:
        msgspec.convert(root, OutputsFile)
    except (msgspec.ValidationError, UnicodeEncodeError):
        is_malformed = True

    for step, name, entry in _entries(outputs):
        where = document.where(("outputs", step)) if document else pointer(("outputs", step))
        try:
            answers = read_entry(entry, name=name, where=where)
        except ValueError as error:
            yield Issue(str(error), where, entry.get("id") if name is None else name)
            continue
        if answers is None:
            is_malformed = True
        else:
            yield from answers

    if is_malformed:
        yield from check_shape(root, OutputsFile, document=document, items="outputs", surrogates=True)


def _entries(outputs: Any) -> Iterator[tuple[str | int, str | None, Any]]:
    """The key or index of each entry, the id that is its key, and the entry."""
    if isinstance(outputs, dict):
        yield from ((name, name, entry) for name, entry in outputs.items())
    elif isinstance(outputs, list):
        yield from ((index, None, entry) for index, entry in enumerate(outputs))
