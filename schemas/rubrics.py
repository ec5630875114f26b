"""The schemas of rubrics, rubric datasets and votes; `make.py` writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from deemster.datasets.vote_columns import FAILURES
from deemster.rubrics.rubric_scoring import STRATEGIES
from deemster.rubrics.verdicts import RULES

Share = Annotated[float, Meta(ge=0, le=1)]
Metadata = dict[str, str | float | int | bool | None]


class OptionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One answer of a multi-choice criterion."""

    label: str
    value: Share | None = None
    na: bool = False


class CheckEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A metric that answers a criterion in place of a judge."""

    metric: str
    args: dict[str, Any] = {}
    threshold: Share = 1.0


class CriterionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """One requirement of a rubric."""

    requirement: str
    weight: float = 10.0
    name: str | None = None
    options: Annotated[list[OptionEntry], Meta(min_length=2)] | None = None
    scale_type: Literal["ordinal", "nominal"] | None = None
    order: list[str] | None = None
    aggregation: str | None = None
    fatal: bool = False
    check: CheckEntry | None = None


class SectionEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A group of criteria."""

    criteria: Annotated[list[CriterionEntry], Meta(min_length=1)]
    name: str | None = None
    description: str | None = None


class RubricFile(msgspec.Struct, forbid_unknown_fields=True):
    """A rubric: one of `criteria`, `sections` and `rubric`."""

    criteria: Annotated[list[Any], Meta(min_length=1)] | None = None
    sections: Annotated[list[SectionEntry], Meta(min_length=1)] | None = None
    rubric: Any = None
    guidelines: str | None = None
    name: str | None = None
    version: str | None = None
    schema_version: Literal["deemster.rubric.v1"] = "deemster.rubric.v1"


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
    kinds = [RubricFile, CriterionEntry, *([kind] if kind else []), *([VoteCell, FailureCell] * (kind is VotesFile))]
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    _rubric_parts(parts)
    if kind is RubricDatasetFile:
        for name in ("RubricDatasetFile", "RubricItemEntry"):
            parts[name]["properties"]["rubric"] = {"anyOf": [_ref("Rubric"), {"type": "null"}]}
    if kind is VotesFile:
        _votes_parts(parts)
    root = _ref(kind.__name__ if kind else "Rubric")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": dict(sorted(parts.items()))}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _rubric_parts(parts: dict[str, Any]) -> None:
    """Every shape that a rubric may have."""
    entry = {"anyOf": [_ref("CriterionEntry"), _ref("SectionEntry")]}
    listed = {"type": "array", "items": entry, "minItems": 1}
    parts["Rubric"] = {"anyOf": [_ref("RubricFile"), listed]}
    known = parts["RubricFile"]["properties"]
    known["criteria"] = {"type": "array", "items": _ref("CriterionEntry"), "minItems": 1}
    known["sections"] = {"type": "array", "items": _ref("SectionEntry"), "minItems": 1}
    known["rubric"] = _ref("Rubric")
    parts["RubricFile"]["oneOf"] = [{"required": [key]} for key in ("criteria", "sections", "rubric")]
    rules = sorted({rule for names in RULES.values() for rule in names})
    parts["CriterionEntry"]["properties"]["aggregation"] = {"enum": [*rules, None], "default": None}


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
