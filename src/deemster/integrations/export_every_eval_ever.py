"""Exports a run as an evaluation of Every Eval Ever (schema 0.3), with a row for each score."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deemster.formats.atomic_write import write_aside
from deemster.formats.canonical_json import json_text
from deemster.formats.json_values import to_json_value
from deemster.integrations.import_every_eval_ever import OWN
from deemster.records import Execution, MetricScore, Output, Sample
from deemster.report import Report
from deemster.runs.external_run import ExternalRun

_VERSION = "0.3.0"


def export_every_eval_ever(run: ExternalRun, report: Report, to: str) -> list[str]:
    """Write the evaluation and the rows of its samples into a folder; the paths.

    A mark without a score has no row: the schema has no place for it. The evaluation says how many there are.

    Args:
        run: The run.
        report: Its report.
        to: The folder.

    Raises:
        OSError: A file cannot be written.
    """
    developer, _, model = (run.target or "").partition("/")
    if not model or "/" in model:
        developer, model = "unknown", run.target or "unknown"
    # The collection of Every Eval Ever has this layout, and its validator asks for it.
    place = "/".join(("data", *map(_path_part, (run.dataset.name, developer, model))))
    folder = Path(to, place)
    folder.mkdir(parents=True, exist_ok=True)
    name = uuid.UUID(bytes=hashlib.sha256(report.run.id.encode()).digest()[:16], version=4)
    identity = f"{developer}/{model}"
    evaluation = f"{run.dataset.name}/{identity}/{report.run.id}"
    rows = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in _rows(run, evaluation, identity))
    beside = folder / f"{name}_samples.jsonl"
    write_aside(beside, [rows])
    facts = _evaluation(run, report, evaluation, identity)
    facts["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": f"{place}/{beside.name}",
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(rows).hexdigest(),
        "total_rows": rows.count(b"\n"),
    }
    path = folder / f"{name}.json"
    write_aside(path, [json.dumps(facts, ensure_ascii=False, indent=2).encode() + b"\n"])
    return [str(path), str(beside)]


def _path_part(text: str) -> str:
    """A name as a part of a path: whatever it holds, it stays one part."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._") or "unknown"


def _evaluation(run: ExternalRun, report: Report, evaluation: str, model: str) -> dict[str, Any]:
    began = "0" if run.started is None else str(run.started.timestamp())
    return {
        "schema_version": _VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": began,
        "retrieved_timestamp": began,
        "source_metadata": {
            "source_name": "deemster",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "deemster", "version": report.tool_version},
        "model_info": {
            "name": model.partition("/")[2],
            "id": model,
            "developer": model.partition("/")[0],
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [
            _result(run, report, name) for name in report.metric_order if report.metrics[name].n_scored
        ],
    }


def _result(run: ExternalRun, report: Report, name: str) -> dict[str, Any]:
    found = report.metrics[name]
    uncertainty: dict[str, Any] = {"num_samples": found.n_scored}
    if found.stdev is not None:
        uncertainty["standard_deviation"] = found.stdev
    if found.mean_interval is not None:
        low, high = found.mean_interval
        uncertainty["confidence_interval"] = {"lower": low, "upper": high, "confidence_level": 0.95}
    return {
        "evaluation_result_id": name,
        "evaluation_name": run.dataset.name,
        "source_data": {"dataset_name": run.dataset.name, "source_type": "other"},
        "metric_config": {
            "evaluation_description": found.identity,
            "metric_name": name,
            "lower_is_better": not found.higher_is_better,
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": 1.0,
        },
        "score_details": {
            "score": found.mean,
            "details": {"pass_rate": str(found.pass_rate), "unscored": str(found.n_unscored + found.n_not_run)},
            "uncertainty": uncertainty,
        },
    }


def _rows(run: ExternalRun, evaluation: str, model: str) -> Iterator[dict[str, Any]]:
    samples = {sample.id: sample for sample in run.dataset}
    for execution in run.executions:
        if not isinstance(execution.answer, Output):
            continue
        for card, mark in zip(run.cards, execution.marks, strict=True):
            if isinstance(mark, MetricScore):
                yield {
                    "schema_version": _VERSION,
                    "evaluation_id": evaluation,
                    "model_id": model,
                    "evaluation_name": run.dataset.name,
                    "evaluation_result_id": card.name,
                    **_row(samples[execution.id], execution, execution.answer, mark),
                }


def _row(sample: Sample, execution: Execution, answer: Output, mark: MetricScore) -> dict[str, Any]:
    question = next(iter(sample.input.values()), "") if len(sample.input) == 1 else None
    raw = question if isinstance(question, str) else json_text(to_json_value(sample.input))
    expected = sample.expected_output
    reference = (
        [] if expected is None else [expected if isinstance(expected, str) else json_text(to_json_value(expected))]
    )
    usage = answer.usage
    tokens = None
    if usage is not None and usage.prompt_tokens is not None and usage.completion_tokens is not None:
        total = usage.total_tokens if usage.total_tokens is not None else usage.prompt_tokens + usage.completion_tokens
        tokens = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens, "total_tokens": total}
    return {
        "sample_id": sample.id,
        "sample_hash": hashlib.sha256((raw + "".join(reference)).encode()).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": reference},
        "output": {"raw": [answer.text]},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": answer.text,
                "extraction_method": "none",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": mark.score, "is_correct": mark.success},
        "token_usage": tokens,
        "performance": None if usage is None or usage.latency_ms is None else {"latency_ms": usage.latency_ms},
        "metadata": {
            f"{OWN}input": json_text(to_json_value(sample.input)),
            f"{OWN}expected_output": json_text(to_json_value(expected)),
            f"{OWN}metadata": json_text(to_json_value(sample.metadata)),
            f"{OWN}repetition": str(execution.repetition),
            f"{OWN}threshold": str(mark.threshold),
            f"{OWN}details": json_text(to_json_value(mark.details)),
        },
    }
