"""Reading rubrics in every shape they come in, with the place of everything that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from deemster.errors import Issue, RubricError, did_you_mean, listing
from deemster.formats import Document, Reading, format_of, in_order, read_document
from deemster.formats.json_values import Path as Keys
from deemster.formats.strict_json import json_document
from deemster.rubrics.criterion import Check, Criterion, Option
from deemster.rubrics.criterion_issues import Issues, criterion_issues, is_number, key_issues, located, shown
from deemster.rubrics.rubric_definition import (
    Rubric,
    Section,
    head_issues,
    name_issues,
    section_text_issues,
    weight_issues,
)

SCHEMA = "deemster.rubric.v1"
FORMATS = ("json", "yaml")
_HEAD = ("schema_version", "name", "version", "guidelines")
_BODIES = ("criteria", "sections")
_SECTION_KEYS = ("name", "description", "criteria")


def load_rubric(source: Any) -> Rubric:
    """Read a rubric from a path, an open text file, a map or a list.

    Raises:
        RubricError: It cannot be read, or something in it cannot be used; all issues are listed.
    """
    if isinstance(source, (str, Path)):
        return _rubric(read_document(source, error=RubricError))
    if isinstance(source, (Mapping, list, tuple)):
        rubric, issues = read_rubric(source, None)
        if rubric is None:
            raise RubricError(issues)
        return rubric
    if not hasattr(source, "read"):
        raise RubricError(f"A rubric is loaded from a path, an open text file, a map or a list, not {shown(source)}.")
    return _from_file(source)


def _from_file(file: TextIO) -> Rubric:
    name = getattr(file, "name", None)
    called = name if isinstance(name, str) else "<file>"
    text = file.read()
    if not isinstance(text, str):
        raise RubricError(Issue("The file is open as bytes; open it as text.", called))
    known = Path(called).suffix.lower() in {".json", ".yaml", ".yml"}
    kind = format_of(called, Reading(called, error=RubricError), known=FORMATS) if known else None
    return parse_rubric(text, format=kind, file=called)


def parse_rubric(text: str, *, format: str | None = None, file: str = "<text>") -> Rubric:  # noqa: A002 - the user's word
    """Read a rubric from text.

    Args:
        text: JSON or YAML.
        format: `json` or `yaml`; by the first character where it is not told.
        file: How issues name the text.

    Raises:
        RubricError: It cannot be read, or something in it cannot be used; all issues are listed.
    """
    reading = Reading(file, error=RubricError)
    if not isinstance(text, str):
        reading.refuse(f"A rubric is parsed from text, not {shown(text)}.")
    if format is not None and format not in FORMATS:
        reading.refuse(f"{shown(format)} is no format. {did_you_mean(str(format), FORMATS)}")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        reading.refuse("The text is empty.")
    if format == "json" or (format is None and text.lstrip().startswith(("{", "["))):
        return _rubric(json_document(text, reading))
    from deemster.formats.strict_yaml import yaml_document  # noqa: PLC0415 - JSON needs no YAML parser

    return _rubric(yaml_document(text, reading))


def _rubric(document: Document) -> Rubric:
    rubric, issues = read_rubric(document.value, document)
    if rubric is None:
        raise RubricError(in_order(issues))
    return rubric


def read_rubric(value: Any, document: Document | None, path: Keys = ()) -> tuple[Rubric | None, list[Issue]]:
    """Read a rubric that may stand inside another file.

    Args:
        value: The map or list.
        document: The file it stands in, for the lines of issues; None for a value from memory.
        path: The keys and positions from the root of the file to the value.

    Returns:
        The rubric and no issues, or None and everything that is wrong.
    """
    reader = _Reader(document)
    body = reader.body(value, path)
    sections = reader.sections(body)
    if reader.issues:
        return None, reader.issues
    facts: dict[str, Any] = {key: body.facts.get(key) for key in ("name", "version", "guidelines")}
    if any(section.grouped for section in sections):
        return Rubric(sections=tuple(_section(section) for section in sections), **facts), []
    return Rubric(criteria=tuple(_criterion(raw) for section in sections for _, raw in section.criteria), **facts), []


def criterion_paths(value: Any) -> list[Keys]:
    """The keys and positions from the root of a file to each criterion, in the order of the rubric.

    Args:
        value: What the file holds, a rubric that can be read.

    >>> criterion_paths({"sections": [{"criteria": [{"requirement": "Is it right?"}]}]})
    [('sections', 0, 'criteria', 0)]
    """
    reader = _Reader(None)
    return [path for group in reader.sections(reader.body(value, ())) for path, _ in group.criteria]


class _Body(NamedTuple):
    """The facts of a rubric, and the list its criteria or sections stand in."""

    facts: Mapping[str, Any]
    entries: Any
    path: Keys
    key: str


class _Group(NamedTuple):
    """Raw criteria that stand together, each with its path."""

    criteria: Sequence[tuple[Keys, Any]]
    grouped: bool
    fields: Mapping[str, Any]


class _Reader:
    """Finds the criteria of a rubric and collects what is wrong with it."""

    def __init__(self, document: Document | None) -> None:
        self.document = document
        self.issues: list[Issue] = []

    def add(self, path: Keys, issues: Issues | Iterable[tuple[Keys, str]]) -> None:
        for rest, message in issues:
            full = (*path, *rest)
            where = self.document.where(full) if self.document else None
            self.issues.append(Issue(located(full, message), where))

    def body(self, value: Any, path: Keys) -> _Body:
        """The list of a rubric, and what stands beside it."""
        if isinstance(value, (list, tuple)):
            return _Body({}, value, path, "")
        if not isinstance(value, Mapping):
            message = "A rubric is a list of criteria or a map with `criteria`, `sections` or `rubric`, not "
            self.add(path, [((), f"{message}{shown(value)}.")])
            return _Body({}, None, path, "")
        self.add(path, key_issues(value, (*_HEAD, *_BODIES, "rubric"), "a rubric"))
        facts = self._facts(value, path)
        given = [key for key in (*_BODIES, "rubric") if key in value]
        if len(given) != 1:
            found = f"not {listing(given)} together" if given else "and none of them is there"
            self.add(path, [((), f"A rubric has one of `criteria`, `sections` and `rubric`, {found}.")])
            return _Body(facts, None, path, "")
        key = given[0]
        if key != "rubric" or isinstance(value[key], (list, tuple)):
            return _Body(facts, value[key], (*path, key), "" if key == "rubric" else key)
        inner = value[key]
        if isinstance(inner, Mapping) and "rubric" in inner:
            self.add((*path, key), [(("rubric",), "`rubric` stands inside another `rubric`; one is enough.")])
            return _Body(facts, None, path, "")
        body = self.body(inner, (*path, key))
        twice = [name for name in facts if name in body.facts]
        self.add(path, [((name,), f"`{name}` is given twice: beside `rubric` and inside it.") for name in twice])
        return body._replace(facts={**facts, **body.facts})

    def _facts(self, value: Mapping[str, Any], path: Keys) -> dict[str, Any]:
        facts = {key: value[key] for key in _HEAD if value.get(key) is not None}
        version = facts.get("schema_version", SCHEMA)
        if version != SCHEMA:
            self.add(path, [(("schema_version",), f"`schema_version` is `{SCHEMA}`, not {shown(version)}.")])
        self.add(path, head_issues(facts))
        return facts

    def sections(self, body: _Body) -> list[_Group]:
        """The criteria of a rubric in their groups, checked one by one and together."""
        if body.entries is None:
            if not self.issues:
                self.add(body.path, [((), f"`{body.key}` is a list, not null.")])
            return []
        if not isinstance(body.entries, (list, tuple)) or not body.entries:
            found = "is empty" if isinstance(body.entries, (list, tuple)) else f"is {shown(body.entries)}, not a list"
            name = f"`{body.key}`" if body.key else "The rubric"
            self.add(body.path, [((), f"{name} {found}: a rubric has at least one criterion.")])
            return []
        entries = [((*body.path, index), entry) for index, entry in enumerate(body.entries)]
        groups = self._groups(entries, body.key)
        every = [pair for group in groups for pair in group.criteria]
        for path, raw in every:
            self.add(path, criterion_issues(raw))
        self._check_together(every, body.path)
        return groups

    def _check_together(self, every: Sequence[tuple[Keys, Any]], path: Keys) -> None:
        self.add((), name_issues((at, _name(raw)) for at, raw in every))
        weights = [raw.get("weight", 10.0) for _, raw in every if isinstance(raw, Mapping)]
        for _, message in weight_issues(float(weight) for weight in weights if is_number(weight)):
            self.add(path, [((), message)])

    def _groups(self, entries: Sequence[tuple[Keys, Any]], key: str) -> list[_Group]:
        groups: list[_Group] = []
        sectioned = key == "sections" or (not key and any(_is_section(entry) for _, entry in entries))
        if not sectioned:
            return [_Group(entries, False, {})]
        for path, entry in entries:
            if key == "sections" or _is_section(entry):
                groups.append(self._group(path, entry))
            elif groups and not groups[-1].fields:
                groups[-1] = groups[-1]._replace(criteria=[*groups[-1].criteria, (path, entry)])
            else:
                groups.append(_Group([(path, entry)], True, {}))
        return groups

    def _group(self, path: Keys, entry: Any) -> _Group:
        if not isinstance(entry, Mapping):
            self.add(path, [((), f"A section is a map with `criteria`, not {shown(entry)}.")])
            return _Group([], True, {"criteria": ()})
        self.add(path, key_issues(entry, _SECTION_KEYS, "a section", need=("criteria",)))
        self.add(path, section_text_issues(entry))
        criteria = entry.get("criteria", ())
        if not isinstance(criteria, (list, tuple)):
            self.add(path, [(("criteria",), f"`criteria` is a list of criteria, not {shown(criteria)}.")])
            criteria = ()
        elif not criteria and "criteria" in entry:
            self.add(path, [(("criteria",), "`criteria` is empty: a section has at least one criterion.")])
        return _Group([((*path, "criteria", index), raw) for index, raw in enumerate(criteria)], True, entry)


def _name(raw: Any) -> str | None:
    name = raw.get("name") if isinstance(raw, Mapping) else None
    return name if isinstance(name, str) and name.strip() else None


def _is_section(entry: Any) -> bool:
    return isinstance(entry, Mapping) and "criteria" in entry


def _section(group: _Group) -> Section:
    criteria = tuple(_criterion(raw) for _, raw in group.criteria)
    return Section(criteria, group.fields.get("name"), group.fields.get("description"))


def _criterion(raw: Mapping[str, Any]) -> Criterion:
    fields = {key: value for key, value in raw.items() if value is not None}
    if "options" in fields:
        fields["options"] = tuple(Option(**option) for option in fields["options"])
    if "check" in fields:
        fields["check"] = Check(**fields["check"])
    return Criterion(**fields)
