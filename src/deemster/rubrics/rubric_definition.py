"""A rubric: criteria in order, the text that goes with all of them, and the sections they stand in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TextIO

import msgspec
from msgspec.structs import force_setattr

from deemster.errors import Issue, RubricError
from deemster.formats import Document, Reading, file_format, sort_issues
from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import Path as Keys
from deemster.formats.json_values import name_kind, to_json_value
from deemster.formats.schema_validation import decode_struct
from deemster.formats.yaml_flow import yaml_flow
from deemster.rubrics.criterion import Check, Criterion, Option, refuse_issues
from deemster.rubrics.rubric_format import SCHEMA, PathMessages, RubricHead, SectionHead, default_name, name_issues
from deemster.rubrics.rubric_reader import FORMATS, load_document, parse_document, read_entries

# Text that YAML needs no quotes for.
_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_ .,;()/'-]*[A-Za-z0-9_.,;()/'])?\Z")
# Words that some reader of YAML takes for a boolean or nothing.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


class Section(msgspec.Struct, frozen=True):
    """A group of criteria.

    Attributes:
        criteria: At least one.
        name: What the group is called, if anything.
        description: What it is about.

    Raises:
        RubricError: There is no criterion, or a text is none.
    """

    criteria: tuple[Criterion, ...]
    name: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        decode_struct(self, SectionHead, error=RubricError)
        refuse_issues(_criteria_issues(self.criteria, "a section"))
        force_setattr(self, "criteria", tuple(self.criteria))
        force_setattr(self, "description", _text_or_none(self.description))


class Rubric(msgspec.Struct, frozen=True, dict=True):
    """What a submission is judged by.

    Attributes:
        criteria: In order, at least one; those of the sections where there are sections.
        guidelines: Text that goes with every criterion, verbatim.
        sections: The groups the criteria stand in.
        name: What the rubric is called.
        version: Which edition of it this is.

    Raises:
        RubricError: A name stands twice, there is no criterion, or a text is none; all issues are listed.
    """

    criteria: tuple[Criterion, ...] = ()
    guidelines: str | None = None
    sections: tuple[Section, ...] = ()
    name: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        decode_struct(self, RubricHead, error=RubricError)
        refuse_issues(self._issues())
        sections = tuple(_name_sections(self.sections))
        criteria = tuple(chain.from_iterable(section.criteria for section in sections))
        force_setattr(self, "sections", sections)
        force_setattr(self, "criteria", criteria or tuple(_name_criteria(self.criteria)))
        force_setattr(self, "guidelines", _text_or_none(self.guidelines))

    def _issues(self) -> PathMessages:
        criteria: Sequence[Criterion] = self.criteria
        if self.sections:
            wrong = [index for index, section in enumerate(self.sections) if not isinstance(section, Section)]
            for index in wrong:
                yield ("sections", index), f"A section is a `Section`, not {name_kind(self.sections[index])}."
            if wrong:
                return
            criteria = list(chain.from_iterable(section.criteria for section in self.sections))
            if self.criteria and tuple(_name_criteria(self.criteria)) != tuple(_name_criteria(criteria)):
                yield ("criteria",), "They are not what the sections hold; give one of the two."
        before = list(_criteria_issues(criteria, "a rubric"))
        yield from before
        if not before:
            names = ((("criteria", at), each.name or default_name(at)) for at, each in enumerate(criteria))
            yield from name_issues(names)
            if math.isinf(sum(abs(each.weight) for each in criteria)):
                yield ("criteria",), "The weights add up to more than a number can hold."

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the criteria in order."""
        return tuple(criterion.name for criterion in self.criteria)

    @classmethod
    def load(cls, source: str | Path | TextIO | Mapping[str, Any] | Sequence[Any]) -> Rubric:
        """Read a rubric in any of its shapes.

        Args:
            source: A path (`.json`, `.yaml`, `.yml`), an open text file, or the map or list such a file would hold.

        Raises:
            RubricError: It cannot be read, or something in it cannot be used; all issues are listed.
        """
        if isinstance(source, (Mapping, list, tuple)):
            return _require_rubric(*read_rubric(source, None))
        document = load_document(source)
        return _require_rubric(*read_rubric(document.value, document))

    # The name that users of autorubric look for.
    from_file = load

    @classmethod
    def parse(cls, text: str, *, format: Literal["json", "yaml"] | None = None) -> Rubric:  # noqa: A002 - the user's word
        """Read a rubric from text.

        Args:
            text: JSON or YAML.
            format: Which of the two; the first character decides where it is not given.

        Raises:
            RubricError: It cannot be read, or something in it cannot be used; all issues are listed.

        >>> Rubric.parse("- requirement: Every claim is supported.").names
        ('Criterion 1',)
        """
        document = parse_document(text, format=format)
        return _require_rubric(*read_rubric(document.value, document))

    def to_dict(self) -> dict[str, Any]:
        """The rubric as `deemster.rubric.v1` has it: keys in fixed order, defaults left out.

        >>> Rubric((Criterion("It is right.", weight=2),)).to_dict()
        {'schema_version': 'deemster.rubric.v1', 'criteria': [{'weight': 2, 'requirement': 'It is right.'}]}
        """
        head = _drop_none({"name": self.name, "version": self.version, "guidelines": self.guidelines})
        dicts = [_criterion_dict(criterion, index) for index, criterion in enumerate(self.criteria)]
        if not self.sections:
            return {"schema_version": SCHEMA, **head, "criteria": dicts}
        left = iter(dicts)
        sections = [
            {
                **_drop_none({"name": section.name, "description": section.description}),
                "criteria": [next(left) for _ in section.criteria],
            }
            for section in self.sections
        ]
        return {"schema_version": SCHEMA, **head, "sections": sections}

    def to_text(self, kind: Literal["json", "yaml"]) -> str:
        """The rubric as it is written to a file, without the last line end.

        >>> print(Rubric((Criterion("It is right."),)).to_text("yaml"))
        schema_version: deemster.rubric.v1
        criteria:
          - requirement: It is right.
        """
        value = self.to_dict()
        return "\n".join(_yaml_lines(value)) if kind == "yaml" else json.dumps(value, ensure_ascii=False, indent=2)

    def dump(self, path: str | Path) -> Path:
        """Write the rubric as YAML or JSON, by extension; equal rubrics give equal bytes.

        Returns:
            The path that was written.

        Raises:
            RubricError: The extension is none of these, or the file cannot be written.
        """
        reading = Reading(str(path), error=RubricError)
        kind = file_format(path, reading, known=FORMATS)
        try:
            write_aside(Path(path), [self.to_text("yaml" if kind == "yaml" else "json").encode(), b"\n"])
        except OSError as error:
            reading.refuse(f"The file cannot be written: {error.strerror}.")
        return Path(path)


def read_rubric(value: Any, document: Document | None, path: Keys = ()) -> tuple[Rubric | None, list[Issue]]:
    """Read a rubric that may stand inside another file.

    Args:
        value: The map or list.
        document: The file it stands in, for the lines of issues; None for a value from memory.
        path: The keys and positions from the root of the file to the value.

    Returns:
        The rubric and no issues, or None and everything that is wrong.
    """
    entries, issues = read_entries(value, document, path)
    if issues:
        return None, issues
    head: dict[str, Any] = {key: entries.head.get(key) for key in ("name", "version", "guidelines")}
    groups = [tuple(_criterion(raw) for _, raw in group.criteria) for group in entries.groups]
    if all(group.section is None for group in entries.groups):
        return Rubric(tuple(chain.from_iterable(groups)), **head), []
    sections = []
    for criteria, group in zip(groups, entries.groups, strict=True):
        fields = group.section or {}
        sections.append(Section(criteria, fields.get("name"), fields.get("description")))
    return Rubric(sections=tuple(sections), **head), []


def _require_rubric(rubric: Rubric | None, issues: list[Issue]) -> Rubric:
    if rubric is None:
        raise RubricError(sort_issues(issues))
    return rubric


def _criterion(raw: Mapping[str, Any]) -> Criterion:
    return msgspec.convert({key: value for key, value in raw.items() if value is not None}, Criterion)


def _text_or_none(text: str | None) -> str | None:
    return text if text is not None and text.strip() else None


def _name_criteria(criteria: Iterable[Criterion], start: int = 0) -> Iterator[Criterion]:
    for index, criterion in enumerate(criteria, start):
        yield criterion if criterion.name else msgspec.structs.replace(criterion, name=default_name(index))


def _name_sections(sections: Iterable[Section]) -> Iterator[Section]:
    start = 0
    for section in sections:
        criteria = tuple(_name_criteria(section.criteria, start))
        start += len(criteria)
        yield section if criteria == section.criteria else msgspec.structs.replace(section, criteria=criteria)


def _criteria_issues(criteria: Any, noun: str) -> PathMessages:
    if not isinstance(criteria, (list, tuple)):
        yield ("criteria",), f"They are a list of criteria, not {name_kind(criteria)}."
    elif not criteria:
        yield ("criteria",), f"The list is empty: {noun} has at least one criterion."
    else:
        for index, entry in enumerate(criteria):
            if not isinstance(entry, Criterion):
                yield ("criteria", index), f"A criterion is a `Criterion`, not {name_kind(entry)}."


def _drop_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _criterion_dict(criterion: Criterion, index: int) -> dict[str, Any]:
    return _drop_none(
        {
            "name": None if criterion.name == default_name(index) else criterion.name,
            "weight": None if criterion.weight == 10 else _number(criterion.weight),
            "requirement": criterion.requirement,
            "scale_type": "nominal" if criterion.scale_type == "nominal" else None,
            "options": [_option_dict(option) for option in criterion.options] or None,
            "order": None if criterion.order is None else list(criterion.order),
            "aggregation": criterion.aggregation,
            "fatal": criterion.fatal or None,
            "check": None if criterion.check is None else _check_dict(criterion.check),
            **{
                key: None if (value := getattr(criterion, key)) is None else _number(value)
                for key in ("minimum", "maximum", "step")
            },
        }
    )


def _option_dict(option: Option) -> dict[str, Any]:
    value = None if option.value is None else _number(option.value)
    return _drop_none({"label": option.label, "value": value, "na": option.na or None})


def _check_dict(check: Check) -> dict[str, Any]:
    threshold = None if check.threshold == 1 else _number(check.threshold)
    return _drop_none({"metric": check.metric, "args": to_json_value(check.args) or None, "threshold": threshold})


def _number(value: float) -> float | int:
    # Above 2**53 a float is whole, but not the number that was written.
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _yaml_lines(fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a map in the block style of YAML; an option or the arguments of a check take one line."""
    for key, value in fields.items():
        if key in {"criteria", "sections"}:
            yield f"{key}:"
            for entry in value:
                yield from _indent(_yaml_lines(entry), "- ")
        elif key == "options":
            yield f"{key}:"
            for entry in value:
                yield f"  - {{{', '.join(f'{name}: {_inline(one)}' for name, one in entry.items())}}}"
        elif key == "check":
            yield f"{key}:"
            yield from _indent((f"{name}: {_scalar(one)}" for name, one in value.items()), "")
        else:
            yield f"{key}: {_scalar(value)}"


def _indent(lines: Iterator[str], mark: str) -> Iterator[str]:
    first = True
    for line in lines:
        yield f"  {mark if first else ' ' * len(mark)}{line}"
        first = False


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.casefold() not in _WORDS:
        return value
    return yaml_flow(value)


def _inline(value: Any) -> str:
    # Inside braces a comma ends a plain scalar.
    return yaml_flow(value) if isinstance(value, str) and "," in value else _scalar(value)
