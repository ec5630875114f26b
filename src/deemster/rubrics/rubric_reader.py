"""Reads the entries of a rubric in every shape it comes in, with the place of everything that is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from deemster.errors import Issue, RubricError, did_you_mean
from deemster.formats import Document, Reading, file_format, read_document
from deemster.formats.json_values import Path as Keys
from deemster.formats.json_values import name_kind, pointer, to_json_value
from deemster.formats.schema_validation import shape_issues
from deemster.formats.strict_json import json_document
from deemster.rubrics.rubric_format import (
    CriterionEntry,
    RubricFile,
    RubricHead,
    SectionEntry,
    criterion_issues,
    default_name,
    name_issues,
)

FORMATS: Final = ("json", "yaml")
_HEAD: Final = ("schema_version", *RubricHead.__struct_fields__)
_BODIES: Final = RubricFile.one_of


class EntryGroup(NamedTuple):
    """The criteria of a section, or of a rubric without sections, each with its path.

    Attributes:
        criteria: Raw criteria that have the declared shape.
        section: The raw section; None where criteria stand in none.
    """

    criteria: Sequence[tuple[Keys, Mapping[str, Any]]]
    section: Mapping[str, Any] | None


class RubricEntries(NamedTuple):
    """What a rubric file holds, checked; plain data.

    Attributes:
        head: `name`, `version` and `guidelines`, where they are given.
        groups: The criteria, in order.
    """

    head: Mapping[str, Any]
    groups: Sequence[EntryGroup]


def load_document(source: Any) -> Document:
    """Read the file of a rubric.

    Args:
        source: A path, or an open text file.

    Raises:
        RubricError: It cannot be read.
    """
    if isinstance(source, (str, Path)):
        return read_document(source, error=RubricError)
    if not hasattr(source, "read"):
        message = "A rubric is loaded from a path, an open text file, a map or a list"
        raise RubricError(f"{message}, not {name_kind(source)}.")
    name = getattr(source, "name", None)
    file = name if isinstance(name, str) else "<file>"
    text = source.read()
    if not isinstance(text, str):
        raise RubricError(Issue("The file is open as bytes; open it as text.", file))
    known = Path(file).suffix.lower() in {".json", ".yaml", ".yml"}
    kind = file_format(file, Reading(file, error=RubricError), known=FORMATS) if known else None
    return parse_document(text, format=kind, file=file)


def parse_document(text: str, *, format: str | None = None, file: str = "<text>") -> Document:  # noqa: A002 - the user's word
    """Read the text of a rubric.

    Args:
        text: JSON or YAML.
        format: `json` or `yaml`; by the first character where it is not given.
        file: How issues name the text.

    Raises:
        RubricError: It cannot be read.
    """
    reading = Reading(file, error=RubricError)
    if not isinstance(text, str):
        reading.refuse(f"A rubric is parsed from text, not {name_kind(text)}.")
    if format is not None and format not in FORMATS:
        reading.refuse(f"`{format}` is no format. {did_you_mean(str(format), FORMATS)}")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        reading.refuse("The text is empty.")
    if format == "json" or (format is None and text.lstrip().startswith(("{", "["))):
        return json_document(text, reading)
    from deemster.formats.strict_yaml import yaml_document  # noqa: PLC0415 - JSON needs no YAML parser

    return yaml_document(text, reading)


def read_entries(value: Any, document: Document | None, path: Keys = ()) -> tuple[RubricEntries, list[Issue]]:
    """Read the entries of a rubric that may stand inside another file.

    Args:
        value: The map or list.
        document: The file it stands in, for the lines of issues; None for a value from memory.
        path: The keys and positions from the root of the file to the value.

    Returns:
        The entries, and everything that is wrong; with issues the entries are incomplete.
    """
    reader = _Reader(document)
    if document is None:
        try:
            value = to_json_value(value)
        except RecursionError:
            return RubricEntries({}, []), [Issue("The rubric is nested too deep.")]
    head, groups = reader.rubric(value, path)
    reader.check_criteria([pair for group in groups for pair in group.criteria], path)
    return RubricEntries(head, groups), reader.issues


def criterion_paths(value: Any) -> list[Keys]:
    """The keys and positions from the root of a file to each criterion, in the order of the rubric.

    Args:
        value: What the file holds, a rubric that can be read.

    >>> criterion_paths({"sections": [{"criteria": [{"requirement": "Is it right?"}]}]})
    [('sections', 0, 'criteria', 0)]
    """
    entries, _ = read_entries(value, None)
    return [path for group in entries.groups for path, _ in group.criteria]


class _Reader:
    """Finds the criteria of a rubric and collects what is wrong with it."""

    def __init__(self, document: Document | None) -> None:
        self.document = document
        self.issues: list[Issue] = []

    def rubric(self, value: Any, path: Keys) -> tuple[dict[str, Any], list[EntryGroup]]:
        """The head and the groups of a rubric in any shape."""
        if isinstance(value, list):
            if not value:
                self._add(path, "The rubric is empty: it has at least one criterion.")
            return {}, self._read_list(value, path)
        if not isinstance(value, dict):
            shapes = "a list of criteria or a map with `criteria`, `sections` or `rubric`"
            self._add(path, f"A rubric is {shapes}, not {name_kind(value)}.")
            return {}, []
        self._check(value, RubricFile, path)
        head = {key: value[key] for key in _HEAD if value.get(key) is not None}
        given = [key for key in _BODIES if key in value]
        if given != ["rubric"]:
            sections = value.get("sections") if given == ["sections"] else None
            criteria = value.get("criteria") if given == ["criteria"] else None
            groups = [self._section(each, (*path, "sections", at)) for at, each in enumerate(_list(sections))]
            return head, groups or [EntryGroup(_criteria(criteria, path), None)]
        inner = value["rubric"]
        if isinstance(inner, dict) and "rubric" in inner:
            self._add((*path, "rubric", "rubric"), "A rubric stands inside another `rubric`; one is enough.")
            return head, []
        within, groups = self.rubric(inner, (*path, "rubric"))
        for key in head.keys() & within.keys():
            self._add((*path, key), f"`{key}` is given twice: beside `rubric` and inside it.")
        return {**head, **within}, groups

    def _read_list(self, entries: Sequence[Any], path: Keys) -> list[EntryGroup]:
        """The groups of a list of criteria and sections."""
        groups: list[EntryGroup] = []
        for at, entry in enumerate(entries):
            here = (*path, at)
            is_section = isinstance(entry, dict) and "criteria" in entry
            self._check(entry, SectionEntry if is_section else CriterionEntry, here)
            if is_section:
                groups.append(self._section(entry, here))
            elif groups and groups[-1].section is None:
                groups[-1] = EntryGroup([*groups[-1].criteria, (here, entry)], None)
            else:
                groups.append(EntryGroup([(here, entry)], None))
        return groups

    @staticmethod
    def _section(entry: Any, path: Keys) -> EntryGroup:
        fields = entry if isinstance(entry, dict) else {}
        return EntryGroup(_criteria(fields.get("criteria"), path), fields)

    def check_criteria(self, criteria: Sequence[tuple[Keys, Any]], path: Keys) -> None:
        """Check the criteria across their fields and across each other, as far as their shape is right."""
        weights = 0.0
        names: list[tuple[Keys, str]] = []
        for index, (at, raw) in enumerate(criteria):
            name = raw.get("name") if isinstance(raw, dict) else None
            names.append((at, name if isinstance(name, str) and name.strip() else default_name(index)))
            try:
                entry = msgspec.convert(raw, CriterionEntry)
            except msgspec.ValidationError:
                continue
            weights += abs(entry.weight)
            for rest, message in criterion_issues(entry):
                self._add((*at, *rest), f"{pointer((*at, *rest))}: {message}")
        for at, message in name_issues(names):
            self._add(at, f"{pointer(at)}: {message}")
        if math.isinf(weights):
            self._add(path, "The weights of the criteria add up to more than a number can hold.")

    def _check(self, value: Any, shape: Any, path: Keys) -> None:
        self.issues += shape_issues(value, shape, document=self.document, path=path)

    def _add(self, path: Keys, message: str) -> None:
        self.issues.append(Issue(message, self.document.where(path) if self.document else None))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _criteria(value: Any, path: Keys) -> list[tuple[Keys, Any]]:
    return [((*path, "criteria", at), each) for at, each in enumerate(_list(value))]
