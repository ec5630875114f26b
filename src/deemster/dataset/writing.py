"""Writing datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.dataset.header import SCHEMA
from deemster.documents.aside import write_aside
from deemster.documents.document import Reading
from deemster.documents.files import format_of
from deemster.documents.flow import flow, json_text
from deemster.errors import DatasetError

if TYPE_CHECKING:
    from deemster.dataset.golden import Dataset


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


def _jsonl(dataset: Dataset) -> Iterator[str]:
    yield json_text(_header(dataset)) + "\n"
    for row in _rows(dataset):
        yield json_text(row) + "\n"


def _json(dataset: Dataset) -> Iterator[str]:
    yield "{\n"
    for key, value in _header(dataset).items():
        yield f"  {json_text(key)}: {json_text(value)},\n"
    yield '  "samples": [\n'
    separator = ""
    for row in _rows(dataset):
        yield f"{separator}    {json_text(row)}"
        separator = ",\n"
    yield "\n  ]\n}\n"


def _yaml(dataset: Dataset) -> Iterator[str]:
    for key, value in _header(dataset).items():
        yield f"{key}: {flow(value)}\n"
    yield "samples:\n"
    for row in _rows(dataset):
        mark = "-"
        for key, value in row.items():
            yield f"  {mark} {key}: {flow(value)}\n"
            mark = " "
