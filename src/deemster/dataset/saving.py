"""Writing rubric datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.dataset.items import item_dict
from deemster.dataset.labelled import FORMATS, SCHEMA, TEXTS
from deemster.dataset.source import ITEMS
from deemster.documents.aside import write_aside
from deemster.documents.document import Reading
from deemster.documents.files import format_of
from deemster.documents.flow import flow, json_text
from deemster.errors import DatasetError
from deemster.rubrics.rubric import Rubric

if TYPE_CHECKING:
    from deemster.dataset.labelled import RubricDataset


def write_rubric_dataset(dataset: RubricDataset, path: str | Path) -> None:
    """Write a rubric dataset as JSON, YAML or JSONL, by extension.

    Raises:
        DatasetError: The extension is none of these, or the file cannot be written.
    """
    reading = Reading(str(path), error=DatasetError)
    kind = format_of(path, reading, known=FORMATS)
    write = {"yaml": _yaml, "json": _json, "jsonl": _jsonl}[kind]
    try:
        write_aside(Path(path), (piece.encode() for piece in write(dataset)))
    except OSError as error:
        reading.refuse(f"The file cannot be written: {error.strerror}.")


def dataset_dict(dataset: RubricDataset) -> dict[str, Any]:
    """The map of a rubric dataset file."""
    return {**_header(dataset), ITEMS: list(_rows(dataset))}


def _header(dataset: RubricDataset) -> dict[str, Any]:
    header: dict[str, Any] = {"schema_version": SCHEMA}
    header |= {key: getattr(dataset, key) for key in TEXTS if getattr(dataset, key) is not None}
    if dataset.rubric is not None:
        header["rubric"] = dataset.rubric.to_dict()
    return header


def _rows(dataset: RubricDataset) -> Iterator[dict[str, Any]]:
    for item in dataset.items:
        row = item_dict(item)
        if isinstance(item.rubric, Rubric):
            row["rubric"] = item.rubric.to_dict()
        yield row


def _jsonl(dataset: RubricDataset) -> Iterator[str]:
    yield json_text(_header(dataset)) + "\n"
    for row in _rows(dataset):
        yield json_text(row) + "\n"


def _json(dataset: RubricDataset) -> Iterator[str]:
    yield "{\n"
    for key, value in _header(dataset).items():
        yield f"  {json_text(key)}: {json_text(value)},\n"
    yield f'  "{ITEMS}": ['
    separator = "\n"
    for row in _rows(dataset):
        yield f"{separator}    {json_text(row)}"
        separator = ",\n"
    yield "\n  ]\n}\n"


def _yaml(dataset: RubricDataset) -> Iterator[str]:
    for key, value in _header(dataset).items():
        yield f"{key}: {flow(value)}\n"
    yield f"{ITEMS}:\n"
    for row in _rows(dataset):
        mark = "-"
        for key, value in row.items():
            yield f"  {mark} {key}: {flow(value)}\n"
            mark = " "
