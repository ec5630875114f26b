"""Items of a rubric dataset: what they hold, and what is wrong with a map that should be one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.datasets.item_files import Finding, key_findings, text_findings
from deemster.datasets.label_codebook import Codebook, annotation_codes, id_findings, metadata_findings, tag_findings
from deemster.formats.json_values import Path, kind_of, thawed
from deemster.records import FrozenDict
from deemster.rubrics.rubric_definition import Rubric

ITEM_KEYS = (
    "id",
    "submission",
    "description",
    "prompt",
    "rubric",
    "reference_submission",
    "ground_truth",
    "ground_truth_reasons",
    "annotations",
    "tags",
    "metadata",
)
TEXTS = ("description", "prompt", "reference_submission")
Labels = tuple[str | None, ...]


class Submission(msgspec.Struct, frozen=True):
    """A submission in two parts; judges see only the output.

    Attributes:
        output: What was handed in.
        thinking: How its author came to it.
    """

    output: str
    thinking: str | None = None


class RubricItem(msgspec.Struct, frozen=True):
    """Something to be judged by a rubric, and what people said of it.

    Labels are checked when the item becomes part of a dataset, which knows the rubric.

    Attributes:
        submission: What is judged.
        id: Unique in the dataset, which gives one where there is none.
        description: For people only.
        prompt: What was asked for, in place of the dataset's.
        rubric: What it is judged by, in place of the dataset's.
        reference_submission: A good answer, in place of the dataset's.
        ground_truth: A label or None for every criterion.
        ground_truth_reasons: Why, for every criterion.
        annotations: Labels by annotator.
        tags: The slices it belongs to.
        metadata: A flat map.
    """

    submission: str | Submission
    id: str | None = None
    description: str | None = None
    prompt: str | None = None
    rubric: Rubric | None = None
    reference_submission: str | None = None
    ground_truth: Labels | None = None
    ground_truth_reasons: Labels | None = None
    annotations: Mapping[str, Labels] = FrozenDict()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = FrozenDict()

    __hash__ = None  # type: ignore[assignment]


def item_dict(item: RubricItem) -> dict[str, Any]:
    """What a file has for an item; a rubric stays as it is."""
    held: dict[str, Any] = {}
    for key in ITEM_KEYS:
        value = getattr(item, key)
        if value is None or (key in ("annotations", "tags", "metadata") and not value):
            continue
        if isinstance(value, Submission):
            value = {"output": value.output} | ({} if value.thinking is None else {"thinking": value.thinking})
        held[key] = value if isinstance(value, Rubric) else thawed(value)
    return held


def checked_item(row: dict[str, Any], book: Codebook | None, path: Path, found: list[Finding]) -> RubricItem | None:
    """The item that a map describes, or None with everything that is wrong added to what was found.

    Args:
        row: The map; it has an id.
        book: The codes of its rubric, None where that cannot be read.
        path: Where it stands.
        found: What is wrong so far.
    """
    before = len(found)
    found += key_findings(row, ITEM_KEYS, path, what="an item")
    found += id_findings(row["id"], (*path, "id"))
    submission = _submission(row, path, found)
    for key in TEXTS:
        if row.get(key) is not None:
            found += text_findings(row[key], (*path, key))
    if "tags" in row:
        found += tag_findings(row["tags"], (*path, "tags"))
    if "metadata" in row:
        found += metadata_findings(row["metadata"], (*path, "metadata"))
    truth: list[int] | None = None
    annotations: dict[str, list[int]] = {}
    if book is not None:
        if row.get("ground_truth") is not None:
            truth = book.codes(row["ground_truth"], (*path, "ground_truth"), found)
        if row.get("annotations") is not None:
            annotations = annotation_codes(book, row["annotations"], (*path, "annotations"), found)
        if row.get("ground_truth_reasons") is not None:
            _check_reasons(row["ground_truth_reasons"], book, (*path, "ground_truth_reasons"), found)
    if len(found) > before or book is None:
        return None
    reasons = row.get("ground_truth_reasons")
    return RubricItem(
        submission,
        row["id"],
        **{key: row.get(key) for key in TEXTS},
        rubric=book.rubric if row.get("rubric") is not None else None,
        ground_truth=None if truth is None else tuple(book.labels(truth)),
        ground_truth_reasons=None if reasons is None else tuple(reasons),
        annotations=FrozenDict({name: tuple(book.labels(codes)) for name, codes in annotations.items()}),
        tags=tuple(row.get("tags", ())),
        metadata=FrozenDict(row.get("metadata", {})),
    )


def _submission(row: dict[str, Any], path: Path, found: list[Finding]) -> Any:
    here = (*path, "submission")
    if "submission" not in row:
        found.append(Finding(path, "The submission is missing."))
        return None
    given = row["submission"]
    if not isinstance(given, dict):
        if not isinstance(given, str):
            message = f"submission is text or a map with `thinking` and `output`, not {kind_of(given)}."
            found.append(Finding(here, message))
        else:
            found += text_findings(given, here)
        return given
    found += key_findings(given, ("thinking", "output"), here, what="a submission")
    if "output" not in given:
        found.append(Finding(here, "The output of the submission is missing."))
    for key in ("thinking", "output"):
        if key in given and not (key == "thinking" and given[key] is None):
            found += text_findings(given[key], (*here, key))
    return Submission(given.get("output", ""), given.get("thinking"))


def _check_reasons(reasons: Any, book: Codebook, path: Path, found: list[Finding]) -> None:
    if not isinstance(reasons, list):
        message = f"ground_truth_reasons is a list with a text or null for each criterion, not {kind_of(reasons)}."
        found.append(Finding(path, message))
        return
    if wrong := book.length_issue(reasons):
        found.append(Finding(path, f"ground_truth_reasons {wrong}"))
    for position, reason in enumerate(reasons):
        if reason is not None:
            found += text_findings(reason, (*path, position))
