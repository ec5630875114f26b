"""Writing datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.dataset.header import SCHEMA
from deemster.documents.rows import write_rows
from deemster.errors import DatasetError

if TYPE_CHECKING:
    from deemster.dataset.golden import Dataset


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as YAML, JSON or JSONL, by extension.

    Raises:
        DatasetError: The extension is none of these, or the file cannot be written.
    """
    known = ("yaml", "json", "jsonl")
    write_rows(path, _header(dataset), _rows(dataset), key="samples", known=known, error=DatasetError)


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
