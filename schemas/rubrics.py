"""The schemas of rubrics, rubric datasets and votes; `make.py` writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from deemster.datasets.vote_columns import FAILURES
from deemster.rubrics.rubric_format import RULES, RubricFile, add_rubric_shapes
from deemster.rubrics.rubric_scoring import STRATEGIES

Share = Annotated[float, Meta(ge=0, le=1)]
Metadata = dict[str, str | float | int | bool | None]


class SubmissionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A submission in two parts."""

    output: str
    thinking: str | None = None


class RubricItemEntry(msgspec.Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """Something to be judged, and what people said of it."""

    submission: str | SubmissionEntry
    id_: str | None = None
    description: str | None = None
    prompt: str | None = None
    rubric: Any = None
    reference_submission: str | None = None
    ground_truth: list[str | None] | None = None
    ground_truth_reasons: list[str | None] | None = None
    annotations: dict[str, list[str | None]] | None = None
    tags: list[str] = []
    metadata: Metadata = {}


class RubricDatasetFile(msgspec.Struct, forbid_unknown_fields=True):
    """A rubric dataset."""

    items: Annotated[list[RubricItemEntry], Meta(min_length=1)]
    schema_version: Literal["deemster.rubric_dataset.v1"] = "deemster.rubric_dataset.v1"
    name: str | None = None
    prompt: str | None = None
    rubric: Any = None
    reference_submission: str | None = None


class JudgeEntry(msgspec.Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """A judge of a panel."""

    id_: str
    weight: Annotated[float, Meta(gt=0)] = 1.0
    model: str | None = None


class GradingSection(msgspec.Struct, forbid_unknown_fields=True):
    """How votes become verdicts, and verdicts scores."""

    aggregation: str = "majority"
    ordinal_aggregation: str = "mean"
    nominal_aggregation: str = "mode"
    abstention: str = "skip"
    partial_credit: Share = 0.5
    normalize: bool = True


class VoteCell(msgspec.Struct, forbid_unknown_fields=True):
    """A vote with details."""

    verdict: str
    p: Share | list[Share] | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class FailureCell(msgspec.Struct, forbid_unknown_fields=True):
    """A failed call."""

    failure: str
    message: str | msgspec.UnsetType = msgspec.UNSET


class VotesItem(msgspec.Struct, forbid_unknown_fields=True, rename={"id_": "id"}):
    """What judges said of one item; one of `votes` and `error`."""

    id_: str
    rubric: str | msgspec.UnsetType = msgspec.UNSET
    ground_truth: list[str | None] | None = None
    annotations: dict[str, list[str | None]] | None = None
    tags: list[str] = []
    metadata: Metadata = {}
    votes: dict[str, list[Any]] | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET
    penalty: Annotated[float, Meta(ge=0)] | None = None
    final: list[str | None] | None = None
    score: float | None = None


class VotesFile(msgspec.Struct, forbid_unknown_fields=True):
    """Votes of judges; one of `rubric` and `rubrics`."""

    schema_version: Literal["deemster.votes.v1"]
    judges: Annotated[list[JudgeEntry], Meta(min_length=1)]
    items: Annotated[list[VotesItem], Meta(min_length=1)]
    name: str | None = None
    dataset_fingerprint: str | None = None
    rubric: Any = None
    rubrics: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    grading: GradingSection | msgspec.UnsetType = msgspec.UNSET


def schemas() -> dict[str, Any]:
    """The schema of every file about rubrics, by file name."""
    return {
        "deemster.rubric.v1.json": _schema(None),
        "deemster.rubric_dataset.v1.json": _schema(RubricDatasetFile),
        "deemster.votes.v1.json": _schema(VotesFile),
    }


def _schema(kind: type | None) -> dict[str, Any]:
    kinds = [RubricFile, *([kind] if kind else []), *([VoteCell, FailureCell] * (kind is VotesFile))]
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    parts["RubricFile"]["oneOf"] = [{"required": [key]} for key in RubricFile.one_of]
    add_rubric_shapes(parts)
    if kind is RubricDatasetFile:
        for name in ("RubricDatasetFile", "RubricItemEntry"):
            parts[name]["properties"]["rubric"] = {"anyOf": [_ref("Rubric"), {"type": "null"}]}
    if kind is VotesFile:
        _votes_parts(parts)
    root = _ref(kind.__name__ if kind else "Rubric")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": dict(sorted(parts.items()))}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _votes_parts(parts: dict[str, Any]) -> None:
    """What the records cannot say: cells, rules by kind, and which keys exclude each other."""
    parts["FailureCell"]["properties"]["failure"] = {"enum": list(FAILURES)}
    one = {"anyOf": [{"type": ["string", "null"]}, _ref("VoteCell"), _ref("FailureCell")]}
    parts["Cell"] = {"anyOf": [*one["anyOf"], {"type": "array", "items": one, "minItems": 1}]}
    item, root = parts["VotesItem"], parts["VotesFile"]
    cells = {"type": "array", "items": _ref("Cell")}
    item["properties"]["votes"] = {"type": "object", "additionalProperties": cells}
    verdicts = {"anyOf": [{"type": ["string", "null"]}, _ref("FailureCell")]}
    final = {"type": "array", "items": verdicts}
    item["properties"]["final"] = {"anyOf": [final, {"type": "null"}], "default": None}
    item["oneOf"] = [{"required": ["votes"]}, {"required": ["error"]}]
    root["properties"]["rubric"] = _ref("Rubric")
    root["properties"]["rubrics"] = {"type": "object", "additionalProperties": _ref("Rubric"), "minProperties": 1}
    root["oneOf"] = [{"required": ["rubric"]}, {"required": ["rubrics"]}]
    grading = parts["GradingSection"]["properties"]
    for key, kind in (("", "binary"), ("ordinal_", "ordinal"), ("nominal_", "nominal")):
        grading[f"{key}aggregation"] = {"enum": list(RULES[kind]), "default": grading[f"{key}aggregation"]["default"]}
    grading["abstention"] = {"enum": list(STRATEGIES), "default": "skip"}
