"""Writing datasets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.dataset.aside import write_aside
from deemster.dataset.document import Reading
from deemster.dataset.files import format_of
from deemster.dataset.header import SCHEMA
from deemster.errors import DatasetError

if TYPE_CHECKING:
    from deemster.dataset.golden import Dataset

# What libyaml refuses as it stands, or takes for a line end; inside JSON text such a character is always in a string.
_UNWRITABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_KEY = 1000


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as YAML, JSON or JSONL, by extension.

    Raises:
        DatasetError: The extension is none of these, or the file cannot be written.
    """
    reading = Reading(str(path), error=DatasetError)
    kind = format_of(path, reading, known=("yaml", "json", "jsonl"))
    write = {"yaml": _yaml, "json": _json, "jsonl": _jsonl}[kind]
    try:
        write_aside(Path(path), (part.encode() for part in write(dataset)))
    except OSError as error:
        reading.refuse(f"The file cannot be written: {error.strerror}.")


def _header(dataset: Dataset) -> dict[str, Any]:
    header = {
        "schema_version": SCHEMA,
        "name": dataset.name,
        "description": dataset.description,
        "repetitions": dataset.repetitions,
    }
    return {key: value for key, value in header.items() if value is not None}


def _rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for sample in dataset:
        row = {"id": sample.id, "input": sample.input, "expected_output": sample.expected_output}
        yield {**row, "metadata": sample.metadata} if sample.metadata else row


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _jsonl(dataset: Dataset) -> Iterator[str]:
    yield _text(_header(dataset)) + "\n"
    for row in _rows(dataset):
        yield _text(row) + "\n"


def _json(dataset: Dataset) -> Iterator[str]:
    yield "{\n"
    for key, value in _header(dataset).items():
        yield f"  {_text(key)}: {_text(value)},\n"
    yield '  "samples": [\n'
    separator = ""
    for row in _rows(dataset):
        yield f"{separator}    {_text(row)}"
        separator = ",\n"
    yield "\n  ]\n}\n"


def _yaml(dataset: Dataset) -> Iterator[str]:
    for key, value in _header(dataset).items():
        yield f"{key}: {_flow(value)}\n"
    yield "samples:\n"
    for row in _rows(dataset):
        mark = "-"
        for key, value in row.items():
            yield f"  {mark} {key}: {_flow(value)}\n"
            mark = " "


def _flow(value: Any) -> str:
    """A value in the flow style of YAML: JSON, but for what libyaml cannot read in it."""
    return _UNWRITABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", _flow_text(value))


def _flow_text(value: Any) -> str:
    if isinstance(value, dict):
        entries = (
            f"{'? ' * (len(key) > _LONGEST_KEY)}{_text(key)}: {_flow_text(entry)}" for key, entry in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow_text, value)) + "]"
    return _text(value)
