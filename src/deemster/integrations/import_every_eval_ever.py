"""Imports instance-level results of Every Eval Ever (schema 0.3): each model and evaluation is a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from deemster.errors import InputError, Issue, visible
from deemster.formats.json_values import is_number
from deemster.integrations.run_builder import RunBuilder, as_map, as_text, parse_time, read_mark, read_usage
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, TargetFailure, Unscored
from deemster.runs.external_run import ExternalRun

_ROW_KEYS = frozenset(
    {"schema_version", "evaluation_id", "model_id", "evaluation_name", "evaluation_result_id", "sample_id"}
    | {"sample_hash", "interaction_type", "input", "output", "messages", "answer_attribution", "evaluation"}
    | {"token_usage", "performance", "error", "metadata"}
)
_SUFFIX = "_samples"
# What our own export keeps in a row's metadata, so that a run comes back as it was.
OWN = "deemster."


def is_every_eval_ever(source: SourceFile) -> bool:
    """Whether a file is an evaluation of Every Eval Ever, or the rows of its samples."""
    value = source.value
    if isinstance(value, dict) and {"evaluation_id", "evaluation_results", "model_info"} <= value.keys():
        return True
    rows = source.rows
    return bool(rows) and {"evaluation_id", "sample_id", "evaluation"} <= rows[0].keys()


def read_every_eval_ever(source: SourceFile) -> list[ExternalRun]:
    """The runs in a file of samples. The evaluation with the facts about its metrics lies beside it.

    Raises:
        InputError: There are no samples, or something in them cannot be kept.
    """
    if isinstance(source.value, dict) and "evaluation_results" in source.value:
        facts = source.value
        rows = _rows_beside(source, facts)
    else:
        beside = source.path.with_name(f"{source.path.stem.removesuffix(_SUFFIX)}.json")
        is_there = beside.is_file() and not beside.is_symlink()
        facts, rows = as_map(SourceFile(beside).value) if is_there else {}, source.rows
    evaluation = _Evaluation(facts)
    runs: dict[tuple[str, str], _Rows] = {}
    for row in rows:
        # One evaluation of one model is one run; each of its results is a metric.
        key = str(row.get("model_id")), str(row.get("evaluation_id"))
        if key not in runs:
            library = as_map(facts.get("eval_library"))
            tool = " ".join(str(library[part]) for part in ("name", "version") if library.get(part))
            builder = RunBuilder(tool or "every-eval-ever", str(row.get("evaluation_name") or source.path.stem))
            runs[key] = _Rows(builder, evaluation)
        runs[key].add(row)
    started = parse_time(_float(facts.get("evaluation_timestamp")))
    return [found.finish().build(target=model, started=started) for (model, _), found in runs.items()]


def _rows_beside(source: SourceFile, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of an evaluation. The path in the file may be any: only its last part counts."""
    named = as_map(facts.get("detailed_evaluation_results")).get("file_path")
    path = source.path.with_name(PurePosixPath(str(named)).name) if as_text(named) else None
    if path is None or not path.is_file() or path.is_symlink():
        message = "This evaluation has no samples beside it, so there is no run to take in."
        raise InputError(Issue(message, str(source.path)))
    return SourceFile(path).rows


def _float(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


class _Evaluation:
    """What an evaluation says about its metrics."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        listed = facts.get("evaluation_results")
        results = [as_map(each) for each in (listed if isinstance(listed, list) else ())]
        self._configs = {str(each.get("evaluation_result_id")): as_map(each.get("metric_config")) for each in results}

    def config(self, result: Any) -> dict[str, Any]:
        """The declaration of the metric of a result."""
        return self._configs.get(str(result), {})


class _Rows:
    """The rows of one run."""

    def __init__(self, builder: RunBuilder, evaluation: _Evaluation) -> None:
        self._builder, self._evaluation = builder, evaluation
        self._ids: dict[str, str] = {}
        self._found: dict[tuple[str, int], tuple[Output | TargetFailure, dict[str, Mark]]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add one result of one sample."""
        self._builder.leave_out_keys(row, _ROW_KEYS, of="a row")
        key, held = str(row.get("sample_id")), as_map(row.get("metadata"))
        if key not in self._ids:
            self._ids[key] = self._add_sample(key, row, held)
        config = self._evaluation.config(row.get("evaluation_result_id"))
        is_upwards = config.get("lower_is_better") is not True
        called = as_text(row.get("evaluation_result_id")) or as_text(config.get("metric_name")) or "score"
        metric = self._builder.add_metric(called, higher_is_better=is_upwards)
        repetition = held.get(f"{OWN}repetition")
        place = int(repetition) if isinstance(repetition, str) and repetition.isdigit() else None
        if place is None:
            place = 0
            while metric in self._found.get((key, place), (None, {}))[1]:
                place += 1
        answer, marks = self._found.setdefault((key, place), (_answer(row), {}))
        if isinstance(answer, TargetFailure):
            marks[metric] = Unscored("target_failed", answer.message)
        else:
            marks[metric] = _mark(row, config, held, higher_is_better=is_upwards)

    def finish(self) -> RunBuilder:
        """Add what was collected; the builder."""
        for (key, repetition), (answer, marks) in self._found.items():
            self._builder.add_execution(self._ids[key], answer, marks, repetition=repetition)
        return self._builder

    def _add_sample(self, key: str, row: Mapping[str, Any], held: Mapping[str, Any]) -> str:
        asked = as_map(row.get("input"))
        own = _parsed(held.get(f"{OWN}input"))
        shown: Any = {"input": asked.get("raw")}
        if asked.get("choices"):
            shown["choices"] = asked["choices"]
        reference = asked.get("reference")
        expected = reference[0] if isinstance(reference, list) and len(reference) == 1 else reference or None
        if f"{OWN}expected_output" in held:
            expected = _parsed(held[f"{OWN}expected_output"])
        kept = _parsed(held.get(f"{OWN}metadata"))
        others = {name: value for name, value in held.items() if not name.startswith(OWN)}
        return self._builder.add_sample(
            key, own if isinstance(own, dict) else shown, expected_output=expected, metadata={**others, **as_map(kept)}
        )


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _mark(
    row: Mapping[str, Any], config: Mapping[str, Any], held: Mapping[str, Any], *, higher_is_better: bool
) -> Mark:
    result = as_map(row.get("evaluation"))
    score, passed = result.get("score"), result.get("is_correct")
    low, high = config.get("min_score"), config.get("max_score")
    if is_number(score) and is_number(low) and is_number(high) and (low, high) != (0, 1) and low < high:  # type: ignore[operator]
        # The file states the scale, so the score has its place on it.
        score = (score - low) / (high - low)  # type: ignore[operator]
    return read_mark(
        score,
        passed=passed if isinstance(passed, bool) else None,
        threshold=_float(held.get(f"{OWN}threshold")),
        higher_is_better=higher_is_better,
        details=as_map(_parsed(held.get(f"{OWN}details"))),
    )


def _answer(row: Mapping[str, Any]) -> Output | TargetFailure:
    said, messages = as_map(row.get("output")).get("raw"), row.get("messages")
    if as_text(row.get("error")) is not None and not said:
        return TargetFailure(visible(str(row["error"]), limit=500))
    text = said[0] if isinstance(said, list) and said and isinstance(said[0], str) else ""
    if not text and isinstance(messages, list):
        turns = [as_map(message) for message in messages]
        spoken = [turn.get("content") for turn in turns if turn.get("role") == "assistant"]
        text = next((content for content in reversed(spoken) if isinstance(content, str)), "")
    tokens, speed = as_map(row.get("token_usage")), as_map(row.get("performance"))
    usage = read_usage(
        prompt=tokens.get("input_tokens"),
        completion=tokens.get("output_tokens"),
        total=tokens.get("total_tokens"),
        reasoning=tokens.get("reasoning_tokens"),
        latency_ms=speed.get("latency_ms"),
        model=as_text(row.get("model_id")),
    )
    return Output(text, usage=usage, model=as_text(row.get("model_id")))
