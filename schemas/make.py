"""Writes the JSON Schema of every file format, from the records; `tests/test_schemas.py` keeps them true."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from deemster.agreement.calibration_result import Calibration
from deemster.agreement.metrics_result import MetricsResult
from deemster.audit.dataset_health import DatasetAudit
from deemster.audit.gate_error_rates import GateAudit
from deemster.audit.judge_bias import JudgeAudit
from deemster.audit.mutation_score import MetricAudit
from deemster.comparison.comparison import Comparison
from deemster.comparison.experiment import Experiment
from deemster.comparison.ranking import Ranking
from deemster.datasets.calibration_cases import CalibrationFile
from deemster.datasets.dataset_format import DatasetFile
from deemster.datasets.rubric_dataset import RubricDatasetFile
from deemster.datasets.votes_format import VotesFile
from deemster.evaluation.suite import SuiteFile
from deemster.formats.schema_validation import DRAFT, json_schema
from deemster.records import ToolCall, Trajectory
from deemster.report import Report, ScoreEntry, UnscoredEntry
from deemster.report.grading_summary import GradingSummary
from deemster.rubrics.rubric_format import RubricFile, add_rubric_shapes
from deemster.targets.saved_output_format import OutputsFile

HERE = Path(__file__).parent


class GradedItem(msgspec.Struct, forbid_unknown_fields=True):
    """What the verdicts on one item come to."""

    id: str
    score: float | None
    raw_score: float | None
    failed_votes: int
    unscored: str | None
    verdicts: dict[str, str | None]
    judge_scores: dict[str, float | None]


class GradingFile(msgspec.Struct, forbid_unknown_fields=True):
    """The results of a grading."""

    schema_version: str
    run: str | None
    status: Literal["complete", "incomplete", "mixed"]
    reason: str | None
    mixed: list[str]
    dataset: str | None
    dataset_fingerprint: str
    settings: dict[str, Any]
    figures: GradingSummary
    alignment: MetricsResult | None
    items: list[GradedItem]


def schemas() -> dict[str, str]:
    """The text of every schema, by file name."""
    return {
        "deemster.alignment.v1.json": _written(MetricsResult),
        "deemster.calibration.v1.json": _written(CalibrationFile),
        "deemster.calibration_report.v1.json": _written(Calibration),
        "deemster.comparison.v1.json": _written(Comparison),
        "deemster.dataset.v1.json": _written(DatasetFile),
        "deemster.dataset_audit.v1.json": _written(DatasetAudit),
        "deemster.experiment.v1.json": _written(Experiment),
        "deemster.gate_audit.v1.json": _written(GateAudit),
        "deemster.grading.v1.json": _written(GradingFile),
        "deemster.judge_audit.v1.json": _written(JudgeAudit),
        "deemster.metric_audit.v1.json": _written(MetricAudit),
        "deemster.outputs.v1.json": _written(OutputsFile),
        "deemster.ranking.v1.json": _written(Ranking),
        "deemster.report.v1.json": _written(Report),
        "deemster.rubric.v1.json": _text(_trimmed(_rubric_schema(None))),
        "deemster.rubric_dataset.v1.json": _text(_trimmed(_rubric_schema(RubricDatasetFile))),
        "deemster.suite.v1.json": _written(SuiteFile),
        "deemster.votes.v1.json": _text(_trimmed(_rubric_schema(VotesFile))),
    }


def _written(kind: type) -> str:
    schema = json_schema(kind)
    parts = schema["$defs"]
    if kind in (Report, Comparison):
        _, marks = msgspec.json.schema_components([ScoreEntry, UnscoredEntry], ref_template="#/$defs/{name}")
        parts |= marks
        either = [{"$ref": "#/$defs/ScoreEntry"}, {"$ref": "#/$defs/UnscoredEntry"}]
        parts["ExecutionEntry"]["properties"]["marks"] = {"type": "object", "additionalProperties": {"anyOf": either}}
    if kind is SuiteFile:
        parts["SuiteFile"]["anyOf"] = [{"required": ["metrics"]}, {"required": ["group"]}]
    if kind is OutputsFile:
        _, records = msgspec.json.schema_components([Trajectory], ref_template="#/$defs/{name}")
        parts |= records
        for name in ("SavedOutput", "OutputEntry"):
            parts[name]["properties"]["trajectory"] = {"anyOf": [{"$ref": "#/$defs/Trajectory"}, {"type": "null"}]}
        # Names and shorthand that are read beside the canonical ones.
        parts["ToolCall"] = {"anyOf": [{"type": "string"}, {"type": "object", "properties": _call_keys(parts)}]}
        parts["Trajectory"]["properties"]["tools"] = parts["Trajectory"]["properties"]["tool_calls"]
    return _text(_trimmed({**schema, "$defs": dict(sorted(parts.items()))}))


def _rubric_schema(kind: type | None) -> dict[str, Any]:
    """The schema of a rubric, or of a file that holds rubrics: readers check these apart from the rest of the file."""
    rubric = {"$ref": "#/$defs/Rubric"}
    parts = json_schema(RubricFile)["$defs"]
    add_rubric_shapes(parts)
    schema = json_schema(kind) if kind else {"$schema": DRAFT, **rubric, "$defs": {}}
    for name in ("RubricDatasetFile", "RubricItem") if kind is RubricDatasetFile else ():
        schema["$defs"][name]["properties"]["rubric"] = {"anyOf": [rubric, {"type": "null"}]}
    if kind is VotesFile:
        known = schema["$defs"]["VotesFile"]["properties"]
        known["rubric"] = rubric
        known["rubrics"] = {"type": "object", "additionalProperties": rubric, "minProperties": 1}
    return {**schema, "$defs": dict(sorted({**parts, **schema["$defs"]}.items()))}


def _text(schema: Any) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _call_keys(parts: dict[str, Any]) -> dict[str, Any]:
    known = parts[ToolCall.__name__]["properties"]
    return {**known, "tool": known["name"], "args": known["arguments"]}


def _trimmed(value: Any) -> Any:
    """Descriptions cut to their first line, and money as the number that reports write."""
    if isinstance(value, dict) and value.get("format") == "decimal":
        return {"type": "number", "minimum": 0}
    if isinstance(value, dict):
        return {
            key: entry.partition("\n")[0] if key == "description" and isinstance(entry, str) else _trimmed(entry)
            for key, entry in value.items()
        }
    return [_trimmed(entry) for entry in value] if isinstance(value, list) else value


if __name__ == "__main__":
    for name, text in schemas().items():
        (HERE / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote {name}\n")
