"""What a dataset file must hold: the keys beside its samples, and the keys of one sample."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deemster.errors import did_you_mean, listing
from deemster.formats.canonical_json import is_odd, is_plain
from deemster.formats.json_values import ROW_DEPTH, SURROGATE, Path, kind_of, value_issues
from deemster.records import Sample

SCHEMA = "deemster.dataset.v1"
LEGACY = "eval-harness.dataset.v1"
SCHEMAS = (SCHEMA, LEGACY)
KEYS = ("schema_version", "name", "description", "repetitions")


class Header(NamedTuple):
    """The facts of a dataset that are not samples."""

    name: str
    description: str | None = None
    repetitions: int | None = None
    schema_version: str = SCHEMA
    warnings: tuple[str, ...] = ()


def header_of(root: Mapping[str, Any], *, file: str, name: str | None = None) -> Header:
    """The header of a root without issues.

    Args:
        root: The map that holds the facts.
        file: How warnings name the file.
        name: The name where the root gives none.
    """
    unknown = [key for key in root if key not in (*KEYS, "samples")]
    warnings = tuple(f"{file}: the unknown key `{key}` is ignored." for key in unknown)
    given: str = root.get("name", name)
    version = root.get("schema_version", SCHEMA)
    return Header(given, root.get("description"), root.get("repetitions"), version, warnings)


def header_issues(root: Mapping[str, Any], *, keys: tuple[str, ...], named: bool) -> Iterator[tuple[Path, str]]:
    """Everything that is wrong beside the samples, each with the path to it.

    Args:
        root: The map that holds the facts.
        keys: The keys it may have.
        named: Whether it must give a name.
    """
    version = root.get("schema_version", SCHEMA)
    if not isinstance(version, str):
        yield ("schema_version",), f"schema_version is text, not {kind_of(version)}. Supported: {listing(SCHEMAS)}."
    elif version not in SCHEMAS:
        yield ("schema_version",), f"schema_version `{version}` is not supported. Supported: {listing(SCHEMAS)}."
    if "name" not in root:
        if named:
            yield (), "The name of the dataset is missing."
    elif not isinstance(root["name"], str):
        yield ("name",), f"name is text, not {kind_of(root['name'])}."
    elif not root["name"].strip():
        yield ("name",), "name is blank."
    if not isinstance(root.get("description"), (str, type(None))):
        yield ("description",), f"description is text, not {kind_of(root['description'])}."
    repetitions = root.get("repetitions")
    if "repetitions" in root and (type(repetitions) is not int or repetitions < 1):
        yield ("repetitions",), f"repetitions is a whole number of at least 1, not {repetitions!r:.40}."
    if version != LEGACY:
        for key in root:
            if key not in keys:
                yield (key,), f"`{key}` is no key of a dataset. {did_you_mean(str(key), keys)}"


KEYS_ROWS = ("id", "input", "expected_output", "metadata")
LONGEST_ID = 256
_KNOWN = frozenset(KEYS_ROWS)
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def is_good_id(text: str) -> bool:
    """Whether a text can be the id of a sample."""
    if text.isprintable():
        return 0 < len(text) <= LONGEST_ID and not text.isspace()
    return not any(id_issues(text))


def are_good_tags(tags: Any) -> bool:
    """Whether the value of `tags` is a tag or a list of tags."""
    if type(tags) is list:
        return all(type(tag) is str and tag.strip() for tag in tags)
    return type(tags) is str and bool(tags.strip())


def sample_of(row: Any) -> tuple[Sample, bool] | None:
    """The sample that a map describes, and whether it holds odd floats; None where something is wrong."""
    if type(row) is not dict or not row.keys() <= _KNOWN or "expected_output" not in row:
        return None
    name, given, metadata = row.get("id"), row.get("input"), row.get("metadata", _KNOWN)
    if type(name) is not str or not is_good_id(name) or type(given) is not dict:
        return None
    floats: list[float] = []
    if not is_plain(given, ROW_DEPTH - 1, floats) or not is_plain(row["expected_output"], ROW_DEPTH - 1, floats):
        return None
    odd = any(map(is_odd, floats))
    if metadata is _KNOWN:
        return Sample(name, given, row["expected_output"]), odd
    if type(metadata) is not dict or not is_plain(metadata, ROW_DEPTH - 1, floats):
        return None
    if "tags" in metadata and not are_good_tags(metadata["tags"]):
        return None
    return Sample(name, given, row["expected_output"], metadata), odd


def row_issues(row: Any) -> Iterator[tuple[Path, str]]:
    """Everything that is wrong with a map that should be a sample, each with the path to it."""
    if not isinstance(row, dict):
        yield (), f"A sample is a map, not {kind_of(row)}."
        return
    for key in row:
        if key not in _KNOWN:
            yield (key,), f"`{key}` is no key of a sample. {did_you_mean(str(key), KEYS_ROWS)}"
    if "id" not in row:
        yield (), "The id is missing."
    else:
        yield from ((("id",), message) for message in id_issues(row["id"]))
    if "input" not in row:
        yield (), "The input is missing."
    elif not isinstance(row["input"], dict):
        yield ("input",), f"The input is a map, not {kind_of(row['input'])}."
    else:
        yield from value_issues(row["input"], ("input",))
    if "expected_output" not in row:
        yield (), "expected_output is missing; write null where there is none."
    else:
        yield from value_issues(row["expected_output"], ("expected_output",))
    yield from _metadata_issues(row.get("metadata", {}))


def id_issues(value: Any) -> Iterator[str]:
    """What is wrong with a value that should be an id."""
    if not isinstance(value, str):
        hint = " Quote it." if isinstance(value, (int, float)) else ""
        yield f"The id is a string, not {kind_of(value)}.{hint}"
    elif not value.strip():
        yield "The id is blank."
    elif _CONTROL.search(value):
        yield "The id holds control characters."
    elif SURROGATE.search(value):
        yield "The id holds a lone surrogate, which is no character."
    elif len(value) > LONGEST_ID:
        yield f"The id has {len(value)} characters; at most {LONGEST_ID} are allowed."


def _metadata_issues(metadata: Any) -> Iterator[tuple[Path, str]]:
    if not isinstance(metadata, dict):
        yield ("metadata",), f"metadata is a map, not {kind_of(metadata)}."
        return
    yield from value_issues(metadata, ("metadata",))
    if "tags" not in metadata:
        return
    tags = metadata["tags"]
    if not isinstance(tags, (str, list)) or (isinstance(tags, list) and not all(isinstance(tag, str) for tag in tags)):
        yield ("metadata", "tags"), "tags is one string or a list of strings. Quote numbers."
    elif any(not tag.strip() for tag in ([tags] if isinstance(tags, str) else tags)):
        yield ("metadata", "tags"), "A tag is blank."
