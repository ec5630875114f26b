"""Imports the logs of Inspect, as `.eval` archives or JSON: each scorer is a metric, each epoch a repetition."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from deemster.errors import InputError, Issue, visible
from deemster.evaluation.external_run import ExternalRun
from deemster.formats.json_values import is_number
from deemster.integrations.run_builder import (
    RunBuilder,
    add_up,
    as_list,
    as_map,
    as_maps,
    as_text,
    describe,
    parse_time,
    read_mark,
    read_usage,
)
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, TargetFailure, Trajectory, Unscored

# What Inspect's own `value_to_float` makes of the letters of a grade, and of words.
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_HEADER, _START, _SAMPLES = "header.json", "_journal/start.json", "samples/"
_SAMPLE_KEYS = frozenset(
    {"id", "epoch", "input", "choices", "target", "messages", "output", "scores", "metadata", "error", "model_usage"}
    | {"total_time", "working_time", "started_at", "completed_at", "uuid", "attachments", "turn_count", "role_usage"}
)
_ATTACHMENT = "attachment://"


def is_inspect(source: SourceFile) -> bool:
    """Whether a file is a log of Inspect."""
    if source.is_zip:
        return _HEADER in source.members or _START in source.members
    value = source.value
    return isinstance(value, dict) and "eval" in value and "samples" in value and "task" in as_map(value["eval"])


def read_inspect(source: SourceFile) -> list[ExternalRun]:
    """The run in a log of Inspect.

    Raises:
        InputError: Something in it cannot be kept.
        MissingExtraError: The archive is compressed by Zstandard, and the extra `inspect` is not installed.
    """
    header = _header(source)
    facts, stats = as_map(header.get("eval")), as_map(header.get("stats"))
    version = as_map(facts.get("packages")).get("inspect_ai")
    builder = RunBuilder(f"inspect {version}" if version else "inspect", str(facts.get("task") or source.path.stem))
    if header.get("status") not in (None, "success"):
        builder.leave_out(f"the log ended with the status `{visible(str(header.get('status')), limit=40)}`")
    scorers = _scorers(facts)
    log = _Log(builder, scorers, _graders(facts))
    samples = sorted(_samples(source), key=_order(as_map(facts.get("dataset")).get("sample_ids")))
    for sample in samples:
        log.add(sample)
    if not samples:
        raise InputError(Issue("The log has no samples: it was written without them.", str(source.path)))
    began, ended = parse_time(stats.get("started_at") or facts.get("created")), parse_time(stats.get("completed_at"))
    lasted = (ended - began).total_seconds() if began is not None and ended is not None else None
    return [builder.build(target=as_text(facts.get("model")), started=began, duration_s=lasted)]


def _header(source: SourceFile) -> dict[str, Any]:
    if not source.is_zip:
        return as_map(source.value)
    # A log that was not finished has only what it began with.
    return as_map(source.member(_HEADER if _HEADER in source.members else _START))


def _samples(source: SourceFile) -> Iterator[dict[str, Any]]:
    if source.is_zip:
        for name in source.members:
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                yield as_map(source.member(name))
    else:
        yield from as_maps(source.value["samples"])


def _order(ids: Any) -> Any:
    """The order of the dataset, then of the epochs."""
    places = {str(name): place for place, name in enumerate(as_list(ids))}
    return lambda sample: (places.get(str(sample.get("id")), len(places)), sample.get("epoch") or 0)


def _scorers(facts: Mapping[str, Any]) -> dict[str, str]:
    """The options of each scorer, by its name."""
    found = {}
    for entry in as_maps(facts.get("scorers")):
        options = as_map(entry.get("options"))
        words = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(options.items()))
        found[str(entry.get("name"))] = visible(", ".join(words), limit=500)
    return found


def _graders(facts: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """The models of a panel of graders, by their scorer and place; a model that is there twice is numbered."""
    found: dict[tuple[str, int], str] = {}
    for entry in as_maps(facts.get("scorers")):
        models = as_list(as_map(entry.get("options")).get("model"))
        names = [as_text(as_map(one).get("model") or one) for one in models]
        for place, name in enumerate(names):
            if name is not None:
                shown = visible(name, limit=200)
                found[str(entry.get("name")), place] = f"{shown}-{place + 1}" if names.count(name) > 1 else shown
    return found


class _Log:
    """The samples of one log."""

    def __init__(self, builder: RunBuilder, scorers: Mapping[str, str], graders: Mapping[tuple[str, int], str]) -> None:
        self._builder, self._scorers, self._graders = builder, scorers, graders
        self._ids: dict[str, str] = {}

    def add(self, sample: Mapping[str, Any]) -> None:
        """Add one sample in one epoch."""
        key = str(sample.get("id"))
        if key not in self._ids:
            self._ids[key] = self._add_sample(key, sample)
        self._builder.leave_out_keys(sample, _SAMPLE_KEYS, of="a sample")
        answer = _answer(sample)
        marks = self._marks(sample)
        if isinstance(answer, TargetFailure) and not marks:
            marks = {self._metric(name): Unscored("target_failed", answer.message) for name in self._scorers}
        epoch = sample.get("epoch")
        repetition = epoch - 1 if type(epoch) is int and epoch > 0 else 0
        self._builder.add_execution(self._ids[key], answer, marks, repetition=repetition)

    def _add_sample(self, key: str, sample: Mapping[str, Any]) -> str:
        asked, held = sample.get("input"), as_map(sample.get("attachments"))
        shown: dict[str, Any] = {"input": _resolve(asked, held)}
        if isinstance(asked, list):
            shown = {"messages": [_message(as_map(each), held) for each in asked]}
        if sample.get("choices"):
            shown["choices"] = sample["choices"]
        target = sample.get("target")
        expected = target[0] if isinstance(target, list) and len(target) == 1 else target
        return self._builder.add_sample(
            key, shown, expected_output=expected or None, metadata=as_map(sample.get("metadata"))
        )

    def _marks(self, sample: Mapping[str, Any]) -> dict[str, Mark]:
        marks: dict[str, Mark] = {}
        for name, score in as_map(sample.get("scores")).items():
            score = as_map(score)  # noqa: PLW2901 - the same score, as a map
            value = score.get("value")
            for part, single in value.items() if isinstance(value, dict) else ((None, value),):
                called = self._metric(name, part)
                votes = self._panel_votes(name, part, score)
                details = {"votes": votes} if votes else None
                marks[called] = read_mark(_number(single), reason=score.get("explanation"), details=details)
                if votes and isinstance(marks[called], Unscored):
                    self._builder.leave_out("a vote of one grader where the panel has no majority", len(votes))
        return marks

    def _panel_votes(self, scorer: str, part: str | None, score: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What each grader of a panel said, as metrics keep the votes of judges; empty where there is no panel."""
        found = []
        for place, vote in enumerate(as_list(as_map(as_map(score.get("metadata")).get("panel")).get("votes"))):
            seat = {"role": self._graders.get((scorer, place), f"grader-{place + 1}"), "sample": 0}
            value = _number(as_map(vote).get(part) if part is not None else vote)
            if (isinstance(value, bool) or is_number(value)) and 0 <= value <= 1:
                found.append({**seat, "score": float(value), "reason": None, "model": None})
            else:
                found.append({**seat, "cause": "unreadable", "message": f"The grader gave {describe(value)}."})
        return found

    def _metric(self, scorer: str, part: str | None = None) -> str:
        called = scorer if part is None else f"{scorer}/{part}"
        return self._builder.add_metric(called, options=self._scorers.get(scorer, ""))


def _number(value: Any) -> Any:
    """A score as Inspect's `value_to_float` reads it; another value stays what it is, and gives no score."""
    if not isinstance(value, str):
        return value
    grade = _GRADES.get(value, _GRADES.get(value.lower()))
    try:
        return float(value) if grade is None else grade
    except ValueError:
        return value


def _resolve(value: Any, held: Mapping[str, Any]) -> Any:
    """Text that Inspect keeps as an attachment, in its place."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return held.get(value.removeprefix(_ATTACHMENT), value)
    return value


def _text(content: Any, held: Mapping[str, Any]) -> str:
    if isinstance(content, list):
        parts = (as_map(part) for part in content)
        return "\n".join(str(_resolve(part["text"], held)) for part in parts if isinstance(part.get("text"), str))
    resolved = _resolve(content, held)
    return resolved if isinstance(resolved, str) else ""


def _message(message: Mapping[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": message.get("role"), "content": _text(message.get("content"), held)}


def _answer(sample: Mapping[str, Any]) -> Output | TargetFailure:
    error = as_map(sample.get("error"))
    if error:
        return TargetFailure(visible(str(error.get("message") or "The sample failed."), limit=500))
    output, held = as_map(sample.get("output")), as_map(sample.get("attachments"))
    choices = as_maps(output.get("choices"))
    first = as_map(choices[0].get("message")) if choices else {}
    said = output.get("completion")
    text = str(_resolve(said, held)) if isinstance(said, str) else _text(first.get("content"), held)
    spent = as_maps([*as_map(sample.get("model_usage")).values()])
    seconds = sample.get("working_time") or sample.get("total_time")
    usage = read_usage(
        prompt=add_up(usage.get("input_tokens") for usage in spent),
        completion=add_up(usage.get("output_tokens") for usage in spent),
        total=add_up(usage.get("total_tokens") for usage in spent),
        reasoning=add_up(usage.get("reasoning_tokens") for usage in spent),
        latency_ms=seconds * 1000 if isinstance(seconds, (int, float)) else None,
        model=as_text(output.get("model")),
    )
    return Output(text, trajectory=_trajectory(sample, held), usage=usage, model=as_text(output.get("model")))


def _trajectory(sample: Mapping[str, Any], held: Mapping[str, Any]) -> Trajectory | None:
    """The tool calls of the sample's messages, with their results."""
    messages = as_maps(sample.get("messages"))
    results = {message.get("tool_call_id"): message for message in messages if message.get("role") == "tool"}
    calls = []
    for message in messages:
        for call in map(as_map, message.get("tool_calls") or ()):
            result = results.get(call.get("id"), {})
            failed = as_map(result.get("error")).get("message")
            calls.append(
                {
                    "name": str(call.get("function") or "tool"),
                    "arguments": as_map(call.get("arguments")),
                    "result": _text(result.get("content"), held) or None,
                    "error": as_text(failed),
                }
            )
    return Trajectory.read({"tool_calls": calls}) if calls else None
