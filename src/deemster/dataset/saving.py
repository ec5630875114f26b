"""Writing rubric datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.dataset.items import item_dict
from deemster.dataset.labelled import FORMATS, SCHEMA, TEXTS
from deemster.dataset.source import ITEMS
from deemster.documents.rows import write_rows
from deemster.errors import DatasetError
from deemster.rubrics.rubric import Rubric

if TYPE_CHECKING:
    from deemster.dataset.labelled import RubricDataset


def write_rubric_dataset(dataset: RubricDataset, path: str | Path) -> None:
    """Write a rubric dataset as JSON, YAML or JSONL, by extension.

    Raises:
        DatasetError: The extension is none of these, or the file cannot be written.
    """
    write_rows(path, _header(dataset), _rows(dataset), key=ITEMS, known=FORMATS, error=DatasetError)


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
