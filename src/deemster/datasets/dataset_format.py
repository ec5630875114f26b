"""Declares the shape of golden dataset files: the facts beside the samples, and one sample."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from deemster.formats.schema_validation import MOST_TAGS, Id, NonBlank

SCHEMA: Final = "deemster.dataset.v1"
LEGACY = "eval-harness.dataset.v1"
_TagList = Annotated[list[NonBlank], Meta(max_length=MOST_TAGS)]
Tags = Annotated[str, Meta(extra_json_schema={"pattern": r"\S"})] | _TagList
Metadata = Annotated[dict[str, Any], Meta(extra_json_schema={"properties": {"tags": msgspec.json.schema(Tags)}})]


class SampleRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A sample: what goes in and what should come out."""

    id: Id
    input: dict[str, Any]
    expected_output: Any
    metadata: Metadata | msgspec.UnsetType = msgspec.UNSET


class _Facts(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    schema_version: Literal["deemster.dataset.v1", "eval-harness.dataset.v1"] = SCHEMA
    description: str | None = None
    repetitions: Annotated[int, Meta(ge=1)] | None = None
    cluster: NonBlank | None = None


class DatasetHeader(_Facts, forbid_unknown_fields=True, kw_only=True):
    """A dataset header: the first line of a JSONL dataset, which may be left out."""

    name: NonBlank | None = None


class DatasetFile(_Facts, forbid_unknown_fields=True, kw_only=True):
    """A dataset: golden samples, called as their file where they have no name."""

    name: NonBlank | msgspec.UnsetType = msgspec.UNSET
    samples: Annotated[list[SampleRow], Meta(min_length=1)]


class DatasetFacts(NamedTuple):
    """The facts of a dataset that are not samples."""

    name: str
    description: str | None = None
    repetitions: int | None = None
    schema_version: str = SCHEMA
    warnings: tuple[str, ...] = ()
    cluster: str | None = None


def split_legacy_keys(root: Any, *, file: str) -> tuple[Any, tuple[str, ...]]:
    """A root without its unknown keys, and a warning for each, where the root is marked with the older format."""
    if not isinstance(root, dict) or root.get("schema_version") != LEGACY:
        return root, ()
    known = DatasetFile.__struct_fields__
    warnings = tuple(f"{file}: the unknown key `{key}` is ignored." for key in root if key not in known)
    return {key: value for key, value in root.items() if key in known}, warnings


def build_header(facts: DatasetHeader | DatasetFile, *, name: str, warnings: tuple[str, ...] = ()) -> DatasetFacts:
    """The header of a dataset.

    Args:
        facts: What the file says.
        name: The name where the file gives none.
        warnings: What was ignored while reading.
    """
    known = (facts.description, facts.repetitions, facts.schema_version, warnings, facts.cluster)
    return DatasetFacts(facts.name or name, *known)


def has_good_tags(row: SampleRow) -> bool:
    """Whether the tags of a decoded row have their declared shape, which the typed decoder does not check."""
    if row.metadata is msgspec.UNSET or "tags" not in row.metadata:
        return True
    tags = row.metadata["tags"]
    if type(tags) is list:
        return len(tags) <= MOST_TAGS and all(type(tag) is str and tag.strip() for tag in tags)
    return type(tags) is str and bool(tags.strip())
