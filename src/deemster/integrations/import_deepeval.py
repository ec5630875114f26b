"""Imports the test runs of DeepEval (`test_run_*.json`): each test case is a sample, each metric a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import visible
from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.run_builder import (
    RunBuilder,
    as_list,
    as_map,
    as_maps,
    as_text,
    parse_time,
    read_mark,
    read_usage,
)
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, Trajectory, Unscored

_RUN_KEYS = frozenset(
    {"testCases", "conversationalTestCases", "metricsScores", "testPassed", "testFailed", "runDuration", "identifier"}
    | {"hyperparameters", "evaluationCost", "official", "testFile", "datasetAlias"}
)
_CASE_KEYS = frozenset(
    {"name", "input", "actualOutput", "expectedOutput", "context", "retrievalContext", "toolsCalled", "expectedTools"}
    | {"success", "metricsData", "runDuration", "order", "completionTime", "tokenCost", "additionalMetadata", "tags"}
    | {"comments", "evaluationCost", "metadata"}
)
_METRIC_KEYS = frozenset(
    {"name", "threshold", "success", "score", "reason", "strictMode", "evaluationModel", "error", "evaluationCost"}
    | {"verboseLogs", "flaky"}
)


def is_deepeval(source: SourceFile) -> bool:
    """Whether a file is a test run of DeepEval."""
    value = source.value
    return isinstance(value, dict) and "testCases" in value and ("metricsScores" in value or "testPassed" in value)


def read_deepeval(source: SourceFile) -> list[ExternalRun]:
    """The run in a file of DeepEval.

    Raises:
        InputError: Something in it cannot be kept.
    """
    root = source.value
    settings = as_map(root.get("hyperparameters"))
    builder = RunBuilder("deepeval", str(root.get("datasetAlias") or root.get("identifier") or source.path.stem))
    builder.leave_out_keys(root, _RUN_KEYS, of="the test run")
    if talks := root.get("conversationalTestCases"):
        builder.leave_out("a conversational test case", len(talks) if isinstance(talks, list) else 1)
    for number, case in enumerate(as_maps(root["testCases"]), 1):
        _add_case(builder, case, number)
    words = ", ".join(f"{key}={value}" for key, value in settings.items() if isinstance(value, (str, int, float)))
    named = as_text(settings.get("model")) or (visible(words, limit=120) if words else None)
    started = parse_time(source.path.stem.removeprefix("test_run_").replace("_", "T"))
    return [builder.build(target=named, started=started, duration_s=root.get("runDuration"))]


def _add_case(builder: RunBuilder, case: Mapping[str, Any], number: int) -> None:
    builder.leave_out_keys(case, _CASE_KEYS, of="a test case")
    further = {key: case[key] for key in ("context", "expectedTools", "comments") if case.get(key)}
    sample = builder.add_sample(
        as_text(case.get("name")) or f"test-{number}",
        case.get("input"),
        expected_output=case.get("expectedOutput"),
        tags=as_list(case.get("tags")),
        metadata={**as_map(case.get("additionalMetadata")), **as_map(case.get("metadata")), **further},
    )
    seconds = case.get("completionTime")
    usage = read_usage(
        latency_ms=seconds * 1000 if isinstance(seconds, (int, float)) else None, cost_usd=case.get("tokenCost")
    )
    said = case.get("actualOutput")
    output = Output(
        said if isinstance(said, str) else "",
        retrieved=_passages(case.get("retrievalContext")),
        trajectory=_trajectory(case.get("toolsCalled")),
        usage=usage,
    )
    marks: dict[str, Mark] = {}
    for metric in as_maps(case.get("metricsData")):
        builder.leave_out_keys(metric, _METRIC_KEYS, of="a metric")
        judge = as_text(metric.get("evaluationModel"))
        options = [*([f"judge={judge}"] if judge else []), *(["strict"] if metric.get("strictMode") else [])]
        name = builder.add_metric(
            metric.get("name") or "metric", options=", ".join(options), threshold=metric.get("threshold")
        )
        marks[name] = _mark(metric)
    builder.add_execution(sample, output, marks)


def _mark(metric: Mapping[str, Any]) -> Mark:
    if (error := as_text(metric.get("error"))) is not None:
        return Unscored("metric_failed", visible(error, limit=500))
    passed = metric.get("success")
    return read_mark(
        metric.get("score"),
        passed=passed if isinstance(passed, bool) and metric.get("score") is not None else None,
        threshold=metric.get("threshold"),
        reason=metric.get("reason"),
    )


def _passages(value: Any) -> list[dict[str, str]] | None:
    """Retrieved passages by rank: DeepEval has their texts only."""
    if not isinstance(value, list):
        return None
    return [{"id": str(rank), "text": text} for rank, text in enumerate(value, 1) if isinstance(text, str)]


def _trajectory(value: Any) -> Trajectory | None:
    calls = as_maps(value)
    if not calls:
        return None
    return Trajectory.read(
        {
            "tool_calls": [
                {
                    "name": str(call.get("name") or "tool"),
                    "arguments": as_map(call.get("inputParameters")),
                    "result": call.get("output"),
                }
                for call in calls
            ]
        }
    )
