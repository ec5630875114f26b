"""A rubric: criteria in order, the text that goes with all of them, and the sections they stand in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TextIO

import msgspec
from msgspec.structs import force_setattr

from deemster.formats.json_values import Path as Keys
from deemster.rubrics.criterion import Criterion, refuse
from deemster.rubrics.criterion_issues import Issues, shown, text_issues
from deemster.rubrics.verdicts import folded


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
        refuse(chain(criteria_issues(self.criteria, "a section"), section_text_issues(self._texts())))
        force_setattr(self, "criteria", tuple(self.criteria))
        force_setattr(self, "description", text_or_none(self.description))

    def _texts(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description}


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
        refuse(self._issues())
        sections = tuple(_named_sections(self.sections))
        criteria = tuple(chain.from_iterable(section.criteria for section in sections))
        force_setattr(self, "sections", sections)
        force_setattr(self, "criteria", criteria or tuple(_named(self.criteria)))
        force_setattr(self, "guidelines", text_or_none(self.guidelines))

    def _issues(self) -> Issues:
        yield from head_issues({"name": self.name, "version": self.version, "guidelines": self.guidelines})
        criteria: Sequence[Criterion] = self.criteria
        if self.sections:
            wrong = [index for index, section in enumerate(self.sections) if not isinstance(section, Section)]
            for index in wrong:
                yield ("sections", index), f"A section is a `Section`, not {shown(self.sections[index])}."
            if wrong:
                return
            criteria = list(chain.from_iterable(section.criteria for section in self.sections))
            if self.criteria and tuple(_named(self.criteria)) != tuple(_named(criteria)):
                yield ("criteria",), "`criteria` is not what the sections hold; give one of the two."
        before = list(criteria_issues(criteria, "a rubric"))
        yield from before
        if not before:
            paths: list[Keys] = [("criteria", index) for index in range(len(criteria))]
            yield from name_issues(zip(paths, (criterion.name or None for criterion in criteria), strict=True))
            yield from weight_issues(criterion.weight for criterion in criteria)

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
        from deemster.rubrics.rubric_reader import load_rubric  # noqa: PLC0415 - the reader builds what is defined here

        return load_rubric(source)

    @classmethod
    def parse(cls, text: str, *, format: Literal["json", "yaml"] | None = None) -> Rubric:  # noqa: A002 - the user's word
        """Read a rubric from text.

        Args:
            text: JSON or YAML.
            format: Which of the two; by the first character where it is not told.

        Raises:
            RubricError: It cannot be read, or something in it cannot be used; all issues are listed.

        >>> Rubric.parse("- requirement: Every claim is supported.").names
        ('Criterion 1',)
        """
        from deemster.rubrics.rubric_reader import parse_rubric  # noqa: PLC0415 - the reader builds what is defined here

        return parse_rubric(text, format=format)

    def to_dict(self) -> dict[str, Any]:
        """The rubric as `deemster.rubric.v1` has it: keys in fixed order, defaults left out."""
        from deemster.rubrics.rubric_writer import rubric_dict  # noqa: PLC0415 - only who writes needs it

        return rubric_dict(self)

    def dump(self, path: str | Path) -> Path:
        """Write the rubric as YAML or JSON, by extension; equal rubrics give equal bytes.

        Returns:
            The path that was written.

        Raises:
            RubricError: The extension is none of these, or the file cannot be written.
        """
        from deemster.rubrics.rubric_writer import write_rubric  # noqa: PLC0415 - only who writes needs it

        return write_rubric(self, path)


def default_name(index: int) -> str:
    """The name of a criterion that has none, by its place in the rubric.

    >>> default_name(0)
    'Criterion 1'
    """
    return f"Criterion {index + 1}"


def text_or_none(text: str | None) -> str | None:
    """The text as it is, None where it is blank."""
    return text if text is not None and text.strip() else None


def _named(criteria: Iterable[Criterion], start: int = 0) -> Iterator[Criterion]:
    for index, criterion in enumerate(criteria, start):
        yield criterion if criterion.name else msgspec.structs.replace(criterion, name=default_name(index))


def _named_sections(sections: Iterable[Section]) -> Iterator[Section]:
    start = 0
    for section in sections:
        criteria = tuple(_named(section.criteria, start))
        start += len(criteria)
        yield section if criteria == section.criteria else msgspec.structs.replace(section, criteria=criteria)


def criteria_issues(criteria: Any, noun: str) -> Issues:
    """What is wrong with a list of criteria as a list."""
    if not isinstance(criteria, (list, tuple)):
        yield ("criteria",), f"`criteria` is a list of criteria, not {shown(criteria)}."
    elif not criteria:
        yield ("criteria",), f"`criteria` is empty: {noun} has at least one criterion."
    else:
        for index, entry in enumerate(criteria):
            if not isinstance(entry, Criterion):
                yield ("criteria", index), f"A criterion is a `Criterion`, not {shown(entry)}."


def section_text_issues(fields: Mapping[str, Any]) -> Issues:
    """What is wrong with the texts of a section."""
    if fields.get("name") is not None:
        yield from text_issues(fields["name"], "name")
    if fields.get("description") is not None:
        yield from text_issues(fields["description"], "description", blank=True)


def head_issues(fields: Mapping[str, Any]) -> Issues:
    """What is wrong with the texts of a rubric."""
    for key in ("name", "version"):
        if fields.get(key) is not None:
            yield from text_issues(fields[key], key)
    if fields.get("guidelines") is not None:
        yield from text_issues(fields["guidelines"], "guidelines", blank=True)


def name_issues(names: Iterable[tuple[Keys, str | None]]) -> Issues:
    """Names that stand twice, by the path and name of every criterion in order; None is a criterion without a name."""
    seen: dict[str, Keys] = {}
    for index, (path, given) in enumerate(names):
        name = default_name(index) if given is None else given
        first = seen.setdefault(folded(name), path)
        if first != path:
            yield (*path, "name"), f"The name {shown(name)} is already that of {_place(first)}."


def _place(path: Keys) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def weight_issues(weights: Iterable[float]) -> Issues:
    """Weights that are finite one by one, but not together."""
    if math.isinf(sum(map(abs, weights))):
        yield ("criteria",), "The weights of the criteria add up to more than a number can hold."
