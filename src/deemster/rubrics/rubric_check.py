"""What makes judges disagree about a rubric, found by reading it: no model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from deemster.formats import Document
from deemster.formats.json_values import Path
from deemster.rubrics._option_scale_check import scale_remarks
from deemster.rubrics.criteria_overlap import WORDS, Likeness, lacks_issues, overlaps, weights
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric, default_name
from deemster.rubrics.rubric_reader import criterion_paths
from deemster.rubrics.wording_check import Remark, phrasing

Severity = Literal["warning", "hint"]

# A warning is likely to cost agreement; a hint is worth a look.
CODES: Final[dict[str, Severity]] = {
    "vague-word": "warning",
    "double-barrelled": "warning",
    "double-negative": "warning",
    "negated-issue": "warning",
    "negated": "hint",
    "outside-knowledge": "warning",
    "long-requirement": "hint",
    "duplicate": "warning",
    "overlap": "warning",
    "no-negative": "hint",
    "dominant-weight": "warning",
    "zero-weight": "hint",
    "bare-number": "warning",
    "bare-label": "hint",
    "few-levels": "warning",
    "many-levels": "warning",
    "uneven-scale": "hint",
    "open-scale": "warning",
    "no-na-option": "hint",
    "unnamed": "hint",
}


class Finding(msgspec.Struct, frozen=True):
    """Something in a rubric that judges are likely to read differently.

    Attributes:
        code: What kind of thing it is: one of `CODES`, or one that a judge found.
        severity: `warning` or `hint`.
        where: The place as `file:line`; None for a rubric from memory.
        path: The keys and positions to it, such as `criteria[2].requirement`.
        message: What is wrong.
        suggestion: What to do.
    """

    code: str
    severity: Severity
    where: str | None
    path: str
    message: str
    suggestion: str


def rubric_findings(
    rubric: Rubric, *, document: Document | None = None, likeness: Likeness = WORDS
) -> tuple[Finding, ...]:
    """What in a rubric is likely to make judges disagree, in the order of the criteria; the whole rubric comes first.

    Args:
        rubric: The rubric.
        document: The file it was read from, for places.
        likeness: How alike requirements are; by common words where no model is at hand.

    >>> [finding.code for finding in rubric_findings(Rubric.parse("- {name: tone, requirement: The tone is nice.}"))]
    ['vague-word']
    """
    paths = paths_of(rubric, document)
    found = [*_remarks(rubric, paths, document, likeness)]
    return tuple(finding_of(path, remark, document) for path, remark in found)


def paths_of(rubric: Rubric, document: Document | None) -> Sequence[Path]:
    """The path of every criterion.

    Args:
        rubric: The rubric.
        document: The file it was read from; None for a rubric from memory.
    """
    if document is not None:
        return criterion_paths(document.value)
    if not rubric.sections:
        return [("criteria", place) for place in range(len(rubric.criteria))]
    return [
        ("sections", number, "criteria", place)
        for number, section in enumerate(rubric.sections)
        for place in range(len(section.criteria))
    ]


def _remarks(
    rubric: Rubric, paths: Sequence[Path], document: Document | None, likeness: Likeness
) -> Iterator[tuple[Path, Remark]]:
    whole = lacks_issues(rubric.criteria)
    if whole is not None:
        yield (), whole
    alike = dict(overlaps(rubric.criteria, likeness))
    heavy = dict(weights(rubric.criteria))
    for place, (path, criterion) in enumerate(zip(paths, rubric.criteria, strict=True)):
        if not _has_name(criterion, place, path, document):
            message = (
                f"The criterion has no name; reports call it `{criterion.name}`, and one put before it renames it."
            )
            yield path, Remark("unnamed", message, "Give it a short `name`.")
        for remark in phrasing(criterion):
            yield (*path, "requirement"), remark
        if place in alike:
            yield (*path, "requirement"), alike[place]
        if place in heavy:
            yield (*path, "weight"), heavy[place]
        for spot in scale_remarks(criterion):
            yield (*path, *spot.path), spot.remark


def _has_name(criterion: Criterion, place: int, path: Path, document: Document | None) -> bool:
    """Whether the author gave a name; a rubric from memory has lost that, unless the name tells."""
    if document is None:
        return criterion.name != default_name(place)
    raw: Any = document.value
    for step in path:
        raw = raw[step]
    return bool(raw.get("name"))


def finding_of(path: Path, remark: Remark, document: Document | None, *, severity: Severity | None = None) -> Finding:
    """A remark at its place.

    Args:
        path: The keys and positions to it.
        remark: What is wrong.
        document: The file it was read from, for places.
        severity: How grave it is; that of its code unless given.
    """
    return Finding(
        code=remark.code,
        severity=severity or CODES[remark.code],
        where=document.where(path) if document is not None else None,
        path=shown_path(path),
        message=remark.message,
        suggestion=remark.suggestion,
    )


def shown_path(path: Path) -> str:
    """The keys and positions to a value, as findings write them.

    >>> shown_path(("criteria", 2, "requirement"))
    'criteria[2].requirement'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
