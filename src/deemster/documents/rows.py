"""Writing a file that is a few facts and then many rows, in any of its formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deemster.documents.aside import write_aside
from deemster.documents.document import Reading
from deemster.documents.files import format_of
from deemster.documents.flow import flow, json_text
from deemster.errors import InputError


def write_rows(
    path: str | Path,
    header: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    *,
    key: str,
    known: Sequence[str],
    error: type[InputError],
) -> None:
    """Write a file as YAML, JSON or JSONL, by extension; a reader never sees half of it.

    Args:
        path: Where it goes.
        header: The facts, in order.
        rows: The rows.
        key: What the list of rows is called; JSONL has a row a line instead.
        known: The formats this kind of file has.
        error: The class of error that is raised.

    Raises:
        InputError: The extension is none of these, or the file cannot be written.
    """
    reading = Reading(str(path), error=error)
    kind = format_of(path, reading, known=known)
    pieces = {"yaml": _yaml, "json": _json, "jsonl": _jsonl}[kind](header, rows, key)
    try:
        write_aside(Path(path), (piece.encode() for piece in pieces))
    except OSError as failure:
        reading.refuse(f"The file cannot be written: {failure.strerror}.")


def _jsonl(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], _: str) -> Iterator[str]:
    yield json_text(header) + "\n"
    for row in rows:
        yield json_text(row) + "\n"


def _json(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], key: str) -> Iterator[str]:
    yield "{\n"
    for name, value in header.items():
        yield f"  {json_text(name)}: {json_text(value)},\n"
    yield f"  {json_text(key)}: ["
    separator = "\n"
    for row in rows:
        yield f"{separator}    {json_text(row)}"
        separator = ",\n"
    yield "\n  ]\n}\n"


def _yaml(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], key: str) -> Iterator[str]:
    for name, value in header.items():
        yield f"{name}: {flow(value)}\n"
    yield f"{key}:\n"
    for row in rows:
        mark = "-"
        for name, value in row.items():
            yield f"  {mark} {name}: {flow(value)}\n"
            mark = " "
