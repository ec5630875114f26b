"""Exports a run as results of promptfoo, which its viewer and its tools read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deemster.formats.atomic_write import write_aside
from deemster.formats.json_values import to_json_value
from deemster.records import Execution, Mark, MetricScore, NotApplicable, Output, Sample, TargetFailure
from deemster.report import Report
from deemster.runs.external_run import ExternalRun


def export_promptfoo(run: ExternalRun, report: Report, to: str) -> list[str]:
    """Write a file of results, version 3; its path. A mark without a score is an assertion without a result.

    Args:
        run: The run.
        report: Its report.
        to: The file.

    Raises:
        OSError: The file cannot be written.
    """
    rows = list(_rows(run))
    passed = sum(row["success"] for row in rows)
    errors = sum(row["failureReason"] == 2 for row in rows)
    prompt = {"raw": "{{input}}", "label": run.target or report.run.id, "provider": run.target or "deemster"}
    document = {
        "evalId": report.run.id,
        "results": {
            "version": 3,
            "timestamp": report.run.started_at,
            "prompts": [prompt],
            "results": rows,
            "stats": {"successes": passed, "failures": len(rows) - passed - errors, "errors": errors},
        },
        "config": {"description": run.dataset.name},
        "shareableUrl": None,
        "runtimeOptions": {"repeat": run.repetitions},
    }
    write_aside(Path(to), [json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"])
    return [to]


def _rows(run: ExternalRun) -> Iterator[dict[str, Any]]:
    samples = list(run.dataset)
    for execution in run.executions:
        sample = samples[execution.position]
        marks = {
            card.name: mark
            for card, mark in zip(run.cards, execution.marks, strict=True)
            if not isinstance(mark, NotApplicable)
        }
        yield _row(run, sample, execution, marks)


def _row(run: ExternalRun, sample: Sample, execution: Execution, marks: Mapping[str, Mark]) -> dict[str, Any]:
    answer, expected = execution.answer, to_json_value(sample.expected_output)
    failed = answer.message if isinstance(answer, TargetFailure) else None
    variables, called = to_json_value(sample.input), run.target or "deemster"
    parts = [_part(name, expected, mark) for name, mark in marks.items() if isinstance(mark, MetricScore)]
    is_good = failed is None and len(parts) == len(marks) and all(part["pass"] for part in parts)
    reason = next((part["reason"] for part in parts if not part["pass"]), "All assertions passed")
    graded = {"pass": is_good, "score": float(is_good), "reason": reason, "componentResults": parts}
    return {
        "promptIdx": 0,
        "testIdx": execution.position * run.repetitions + execution.repetition,
        "provider": {"id": called, "label": called},
        "prompt": {"raw": json.dumps(variables, ensure_ascii=False), "label": called},
        "vars": variables,
        "testCase": {
            "description": sample.id,
            "vars": variables,
            "assert": [_assertion(name, expected) for name in marks],
            "metadata": to_json_value(sample.metadata),
        },
        "response": {"error": failed} if failed is not None else _response(answer),
        "gradingResult": None if failed is not None else graded,
        "success": is_good,
        "score": float(is_good),
        "namedScores": {part["assertion"]["metric"]: part["score"] for part in parts},
        "latencyMs": answer.usage.latency_ms if isinstance(answer, Output) and answer.usage is not None else None,
        "error": failed,
        "failureReason": 2 if failed is not None else 0 if is_good else 1,
    }


def _response(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, Output):
        return {}
    usage, found = answer.usage, {"output": answer.text}
    if usage is None:
        return found
    tokens = {
        "prompt": usage.prompt_tokens,
        "completion": usage.completion_tokens,
        "total": usage.total_tokens,
    }
    known = {key: count for key, count in tokens.items() if count is not None}
    cost = {} if usage.cost_usd is None else {"cost": float(usage.cost_usd)}
    return {**found, **cost, **({"tokenUsage": known} if known else {})}


def _assertion(name: str, expected: Any) -> dict[str, Any]:
    return {"type": "equals", "metric": name, "value": expected}


def _part(name: str, expected: Any, mark: MetricScore) -> dict[str, Any]:
    reason = mark.details.get("reason") or mark.details.get("judge_reason")
    said = reason if isinstance(reason, str) else "Assertion passed" if mark.success else "Assertion failed"
    assertion = {**_assertion(name, expected), "threshold": mark.threshold}
    return {"pass": mark.success, "score": mark.score, "reason": said, "assertion": assertion}
