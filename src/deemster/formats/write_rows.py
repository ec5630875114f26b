"""Writes and extends files of a few facts and many rows as YAML, JSON or JSONL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from deemster.errors import InputError
from deemster.formats.atomic_write import write_aside
from deemster.formats.canonical_json import json_text
from deemster.formats.document import Reading
from deemster.formats.read_file import file_format, parse_document
from deemster.formats.yaml_flow import yaml_flow


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
    kind = file_format(path, reading, known=known)
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
        yield f"{name}: {yaml_flow(value)}\n"
    yield f"{key}:\n"
    yield from _yaml_rows(rows, indent="  ")


def _yaml_rows(rows: Iterable[Mapping[str, Any]], *, indent: str) -> Iterator[str]:
    for row in rows:
        mark = "-"
        for name, value in row.items():
            yield f"{indent}{mark} {name}: {yaml_flow(value)}\n"
            mark = " "


def extend_rows(
    path: str | Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    key: str,
    known: Sequence[str],
    error: type[InputError],
) -> None:
    """Add rows at the end of a file; comments and everything else in it stay as they are.

    Args:
        path: The file.
        rows: What is added.
        key: What the list of rows is called.
        known: The formats this kind of file has.
        error: The class of error that is raised.

    Raises:
        InputError: The file cannot be read or written, or rows cannot be added to it as it is written.
    """
    reading = Reading(str(path), error=error)
    kind = file_format(path, reading, known=known)
    try:
        text = Path(path).read_text("utf-8")
        if kind == "jsonl":
            longer = _ended(text) + "".join(json_text(row) + "\n" for row in rows)
        else:
            value = parse_document(text.encode(), kind, reading).value
            longer = _longer(text, value, rows, kind=kind, key=key)
            read_back = parse_document(longer.encode(), kind, reading).value if longer else None
            if read_back is None or read_back != {**value, key: [*value[key], *rows]}:
                reading.refuse(f"Nothing can be added to `{key}` as the file is written; name a new file.")
        write_aside(Path(path), [longer.encode()])
    except (OSError, UnicodeDecodeError) as failure:
        reading.refuse(f"The file cannot be extended: {getattr(failure, 'strerror', None) or failure}.")


def _longer(text: str, value: Any, rows: Sequence[Mapping[str, Any]], *, kind: str, key: str) -> str:
    """The text with rows added, or none; whether it then means that is checked by the caller."""
    if not isinstance(value, dict) or not isinstance(value.get(key), list):
        return ""
    if kind == "json":
        header = {name: entry for name, entry in value.items() if name != key}
        return "".join(_json(header, [*value[key], *rows], key))
    start = re.search(rf"^{re.escape(key)}:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*([ ]*)-[ ]", text, re.MULTILINE)
    return "" if start is None else _ended(text) + "".join(_yaml_rows(rows, indent=start[1]))


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
