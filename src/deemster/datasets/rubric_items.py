"""Declares the items of rubric datasets: one struct is both record and shape of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from deemster.datasets.label_codebook import Codebook, annotation_codes, check_id_and_tags
from deemster.formats.item_files import IssueList
from deemster.formats.json_values import Path, to_json_value
from deemster.formats.schema_validation import MOST_TAGS, Id, NonBlank
from deemster.records import FrozenDict
from deemster.rubrics.rubric_definition import Rubric

_KEYS_IN_FILE_ORDER = (
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
_LABEL = Annotated[str | float | bool | None, Meta(title="a label, a number, a boolean or null")]
Labels = Annotated[tuple[_LABEL, ...], Meta(title="a list with an entry for each criterion")]
Reasons = Annotated[tuple[str | None, ...], Meta(title="a list with a text or null for each criterion")]
Annotations = Annotated[Mapping[NonBlank, Labels], Meta(title="a map from annotators to lists")]
Tags = Annotated[tuple[NonBlank, ...], Meta(title="a list of texts", max_length=MOST_TAGS)]
_FLAT = "text, a number, a boolean or null (metadata is flat)"
FlatMetadata = Mapping[str, Annotated[str | float | int | bool | None, Meta(title=_FLAT)]]


class Submission(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A submission in two parts; judges see only the output.

    Attributes:
        output: What was handed in.
        thinking: How its author came to it.
    """

    output: str
    thinking: str | None = None


class RubricItem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An item: something to be judged by a rubric, and what people said of it.

    Labels are checked when the item becomes part of a dataset, which knows the rubric.

    Attributes:
        submission: What is judged.
        id: Unique in the dataset, which gives one where there is none.
        description: For people only.
        prompt: What was asked for, in place of the dataset's.
        rubric: What it is judged by, in place of the dataset's.
        reference_submission: A good answer, in place of the dataset's.
        ground_truth: A label or None for every criterion; a number for a numeric one.
        ground_truth_reasons: Why, for every criterion.
        annotations: Labels by annotator.
        tags: The slices it belongs to.
        metadata: A flat map.
    """

    submission: str | Submission
    id: Id | None = None
    description: str | None = None
    prompt: str | None = None
    rubric: Any = None
    reference_submission: str | None = None
    ground_truth: Labels | None = None
    ground_truth_reasons: Reasons | None = None
    annotations: Annotations | None = FrozenDict()
    tags: Tags = ()
    metadata: FlatMetadata = FrozenDict()

    __hash__ = None  # type: ignore[assignment]


def item_dict(item: RubricItem) -> dict[str, Any]:
    """What a file has for an item; a rubric stays as it is."""
    held: dict[str, Any] = {}
    for key in _KEYS_IN_FILE_ORDER:
        value = getattr(item, key)
        if value is None or (key in ("annotations", "tags", "metadata") and not value):
            continue
        if isinstance(value, Submission):
            value = {"output": value.output} | ({} if value.thinking is None else {"thinking": value.thinking})
        held[key] = value if isinstance(value, Rubric) else to_json_value(value)
    return held


def check_item(
    row: dict[str, Any], item: RubricItem | None, book: Codebook | None, path: Path, found: IssueList
) -> RubricItem | None:
    """An item with labels as its rubric spells them; None where something is wrong.

    Args:
        row: What the file has; it has an id.
        item: The same decoded, None where the file does not have the declared shape.
        book: The codes of its rubric, None where that cannot be read.
        path: Where it stands.
        found: Takes what is wrong across fields.
    """
    before = len(found.issues)
    check_id_and_tags(row, path, found)
    if book is None:
        return None
    truth = book.codes(row.get("ground_truth"), (*path, "ground_truth"), found)
    annotations = annotation_codes(book, row.get("annotations"), (*path, "annotations"), found)
    if isinstance(row.get("ground_truth_reasons"), list):
        book.check_length(row["ground_truth_reasons"], (*path, "ground_truth_reasons"), found)
    if item is None or len(found.issues) > before:
        return None
    return msgspec.structs.replace(
        item,
        rubric=book.rubric if row.get("rubric") is not None else None,
        ground_truth=None if truth is None else tuple(book.labels(truth)),
        annotations=FrozenDict({name: tuple(book.labels(codes)) for name, codes in annotations.items()}),
        metadata=FrozenDict(item.metadata),
    )
