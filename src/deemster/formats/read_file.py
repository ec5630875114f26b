"""Reads a file by its format: YAML or JSON with lines, or JSON fast without lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deemster.errors import ConfigurationError, InputError, did_you_mean, list_names
from deemster.formats.document import Document, Reading
from deemster.formats.read_table import TABLES
from deemster.formats.strict_json import json_document, json_value

FORMATS = ("yaml", "json", "jsonl", *TABLES, "parquet")
EXTENSIONS = {".yml": "yaml", ".ndjson": "jsonl", ".pq": "parquet"} | {f".{name}": name for name in FORMATS}


def file_format(path: str | Path, reading: Reading, *, known: Sequence[str], format: str | None = None) -> str:  # noqa: A002
    """The format of a file, by its extension where it is not told.

    Raises:
        InputError: The extension or the format is not a known one.
    """
    if format is not None:
        if format not in known:
            reading.refuse(f"`{format}` is no format. {did_you_mean(format, known)}")
        return format
    extension = Path(path).suffix.lower()
    found = EXTENSIONS.get(extension)
    if found not in known:
        shown = f"The extension `{extension}`" if extension else "A file without an extension"
        reading.refuse(f"{shown} does not say how to read it. Known formats: {list_names(known)}.")
    return str(found)


def parse_document(data: bytes, kind: str, reading: Reading) -> Document:
    """Read YAML or JSON with the place of every value.

    Raises:
        InputError: The bytes are not UTF-8, not of that format, or hold what is refused.
    """
    text = reading.text(data)
    if kind == "json":
        return json_document(text, reading)
    from deemster.formats.strict_yaml import yaml_document  # noqa: PLC0415 - JSON needs no YAML parser

    return yaml_document(text, reading)


def quick_json(data: bytes) -> Any:
    """Read a JSON file fast, without places.

    Raises:
        ValueError: The precise reader must decide.
    """
    return json_value(data.removeprefix(b"\xef\xbb\xbf"))


def read_value(path: str | Path, *, error: type[InputError]) -> Any:
    """Read a JSON file of any length, whose issues beyond its syntax need no line.

    Args:
        path: The file.
        error: The class of error that is raised.

    Raises:
        InputError: The file cannot be read.
    """
    reading = Reading(str(path), error=error)
    kind = file_format(path, reading, known=("json",))
    data = reading.content(path)
    try:
        return quick_json(data)
    except ValueError:
        return parse_document(data, kind, reading).value


def read_document(path: str | Path, *, error: type[InputError] = ConfigurationError) -> Document:
    """Read a YAML or JSON file whose issues will be reported by line.

    Args:
        path: The file; its extension says the format.
        error: The class of error that is raised.

    Raises:
        InputError: The file cannot be read.
    """
    reading = Reading(str(path), error=error)
    kind = file_format(path, reading, known=("yaml", "json"))
    return parse_document(reading.content(path), kind, reading)
