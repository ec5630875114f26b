"""What stands beside the samples of a dataset: its name, version and repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deemster.documents.values import Path, kind_of
from deemster.errors import did_you_mean, listing

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
    """The header of a root without faults.

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


def header_faults(root: Mapping[str, Any], *, keys: tuple[str, ...], named: bool) -> Iterator[tuple[Path, str]]:
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
