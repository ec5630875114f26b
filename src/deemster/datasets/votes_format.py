"""Declares the shape of votes files: judges, grading settings, items, and the cells of votes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.datasets.rubric_items import Annotations, FlatMetadata, Labels, Tags
from deemster.datasets.vote_block import Juror
from deemster.formats.schema_validation import Id, Share, any_shape
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.vote_aggregation import Rules

SCHEMA: Final = "deemster.votes.v1"
_LABELS = (str, float, bool)
Label = Annotated[str | float | bool, Meta(title="a label or a number")]


# The settings are those of the rubrics' own structs, so that they are declared once.
GradingSection = msgspec.defstruct(
    "GradingSection",
    [(field.name, field.type, field.default) for kind in (Rules, Scoring) for field in msgspec.structs.fields(kind)],
    forbid_unknown_fields=True,
    namespace={"__doc__": "The grading section: how votes become verdicts, and verdicts scores."},
)


# How the labelled items were drawn: at random, or chosen because they looked hard.
Sampling = Literal["random", "chosen"]


class VoteCell(msgspec.Struct, forbid_unknown_fields=True):
    """A vote: a verdict with details."""

    verdict: Label
    p: Share | list[Share] | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class FailureCell(msgspec.Struct, forbid_unknown_fields=True):
    """A failed call: it gave no verdict."""

    failure: Literal["infrastructure", "parse", "unknown"]
    message: str | UnsetType = UNSET


_MAPS = "a map with `verdict` or `failure`"
Cell = Annotated[Any, any_shape(*_LABELS, None, VoteCell, FailureCell, title=f"a label, a number, null, or {_MAPS}")]
Repeats = Annotated[list[Cell], Meta(min_length=1)]
CellOrRepeats = Annotated[
    Any,
    any_shape(
        *_LABELS, None, VoteCell, FailureCell, Repeats, title=f"a label, a number, null, {_MAPS}, or a list of repeats"
    ),
]
Cells = Annotated[list[CellOrRepeats], Meta(title="a list with a cell for each criterion")]
FinalCell = Annotated[
    Any, any_shape(*_LABELS, None, FailureCell, title="a label, a number, null, or a map with `failure`")
]


class VotesItem(msgspec.Struct, forbid_unknown_fields=True):
    """An item: what judges and people said of one submission."""

    one_of: ClassVar = ("votes", "error")

    id: Id
    rubric: Annotated[str, Meta(title="a key of `rubrics`")] | UnsetType = UNSET
    ground_truth: Labels | None = None
    annotations: Annotations | None = None
    tags: Tags = ()
    metadata: FlatMetadata = {}
    votes: Annotated[dict[str, Cells], Meta(title="a map from judges to lists")] | UnsetType = UNSET
    error: str | UnsetType = UNSET
    penalty: Annotated[float, Meta(ge=0)] | None = None
    final: list[FinalCell] | None = None
    score: float | None = None


class VotesFile(msgspec.Struct, forbid_unknown_fields=True):
    """A votes file: what judges said about items, and what people did."""

    one_of: ClassVar = ("rubric", "rubrics")

    schema_version: Literal["deemster.votes.v1"]
    judges: Annotated[list[Juror], Meta(min_length=1)]
    items: Annotated[list[VotesItem], Meta(min_length=1)]
    name: str | None = None
    dataset_fingerprint: str | None = None
    cluster: str | None = None
    sampling: Sampling | None = None
    rubric: Any = None
    rubrics: Annotated[dict[str, Any], Meta(min_length=1)] | UnsetType = UNSET
    grading: Annotated[Any, any_shape(GradingSection)] = UNSET
