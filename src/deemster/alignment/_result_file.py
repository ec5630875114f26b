"""Results of alignment as JSON files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from deemster.alignment.metrics_result import SCHEMA, MetricsResult
from deemster.errors import Issue, ReportError, did_you_mean, listing
from deemster.formats import Reading
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import kind_of
from deemster.formats.read_file import document_of, quick_value

_ENCODER = msgspec.json.Encoder(order="deterministic")
_PLACE = re.compile(r" - at `(key in )?\$(?P<path>[^`]*)`\Z")
_STEP = re.compile(r"\.([^.\[]+)|\[([0-9]+)\]")
_FIELDS = ("schema_version", *MetricsResult.__struct_fields__)
_REQUIRED = frozenset({"schema_version"}).union(
    field.name for field in msgspec.structs.fields(MetricsResult) if field.required
)


def json_of(result: MetricsResult) -> str:
    """A result as indented JSON, fields in their order, maps by key; equal results are equal text."""
    return msgspec.json.format(_ENCODER.encode(result).decode(), indent=2) + "\n"


def write(result: MetricsResult, path: str | Path) -> None:
    """Write a result beside its place, then rename it, so that a reader never sees half of it.

    Raises:
        ReportError: The file cannot be written.
    """
    place = Path(path)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_aside(place, [json_of(result).encode()])
    except OSError as error:
        raise ReportError(Issue(f"The result cannot be written: {error.strerror or error}.", str(path))) from None
    except UnicodeEncodeError:
        message = "The result cannot be written: a name holds a lone surrogate, which is no character."
        raise ReportError(Issue(message, str(path))) from None


def read(path: str | Path) -> MetricsResult:
    """Read a result that was written as JSON.

    Raises:
        ReportError: The file cannot be read, or does not have the shape of a result.
    """
    reading = Reading(str(path), error=ReportError)
    data = reading.content(path)
    try:
        value = quick_value(data, "json")
    except ValueError:
        value = document_of(data, "json", reading).value
    if issues := _issues(value, str(path)):
        raise ReportError(issues)
    try:
        return msgspec.convert(value, MetricsResult)
    except msgspec.ValidationError as error:
        message, steps = _told(error)
        where = document_of(data, "json", reading).where(steps)
        shape = f"The result does not have the shape of `{SCHEMA}`: {message}."
        raise ReportError(Issue(shape, where)) from None


def _issues(value: Any, where: str) -> list[Issue]:
    """What is wrong with a file at first sight: whether it is such a file, and a whole one."""
    if not isinstance(value, dict):
        return [Issue(f"A result of alignment is a map, not {kind_of(value)}.", where)]
    version = value.get("schema_version")
    if version != SCHEMA:
        found = f"not {version!r:.80}" if "schema_version" in value else "and this file has none"
        return [Issue(f"A result of alignment has the schema_version `{SCHEMA}`, {found}.", where)]
    issues = [
        Issue(f"There is no key `{key:.80}` in a result of alignment. {did_you_mean(key, _FIELDS)}", where)
        for key in value
        if key not in _FIELDS
    ]
    if missing := [name for name in _FIELDS if name in _REQUIRED and name not in value]:
        issues.append(Issue(f"The result is not whole; missing: {listing(missing)}.", where))
    return issues


def _told(error: msgspec.ValidationError) -> tuple[str, list[str | int]]:
    """The sentence of an error, and the path to the value it is about as far as it is known."""
    text = str(error)
    place = _PLACE.search(text)
    if place is None:
        return text, []
    known = place["path"].partition("[...]")[0]
    steps: list[str | int] = [int(index) if index else name for name, index in _STEP.findall(known)]
    return f"{text[: place.start()]} at `{place['path'].lstrip('.')}`", steps
