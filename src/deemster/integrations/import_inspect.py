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
from deemster.records import Mark, Output, TargetFailure, Trajectory, Unscored, Usage

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
    facts = as_map(header.get("eval"))
    version = as_map(facts.get("packages")).get("inspect_ai")
    tool = f"inspect {version}" if version else "inspect"
    builder = RunBuilder(tool, str(facts.get("task") or source.path.stem))
    if header.get("status") not in (None, "success"):
        builder.leave_out(f"the log ended with the status `{visible(str(header.get('status')), limit=40)}`")

    samples = _ordered_samples(source, facts)
    if not samples:
        raise InputError(Issue("The log has no samples: it was written without them.", str(source.path)))
    log = _Log(builder, _options_by_scorer(facts), _graders(facts))
    for sample in samples:
        log.add(sample)

    stats = as_map(header.get("stats"))
    started = parse_time(stats.get("started_at") or facts.get("created"))
    finished = parse_time(stats.get("completed_at"))
    duration_s = None
    if started is not None and finished is not None:
        duration_s = (finished - started).total_seconds()
    return [builder.build(target=as_text(facts.get("model")), started=started, duration_s=duration_s)]


def _header(source: SourceFile) -> dict[str, Any]:
    if not source.is_zip:
        return as_map(source.value)
    # A log that was not finished has only what it began with.
    return as_map(source.member(_HEADER if _HEADER in source.members else _START))


def _ordered_samples(source: SourceFile, facts: Mapping[str, Any]) -> list[_Sample]:
    """The samples in the order of the dataset, each by its epochs."""
    ids = as_list(as_map(facts.get("dataset")).get("sample_ids"))
    index_by_id = {str(name): index for index, name in enumerate(ids)}

    def dataset_order(sample: _Sample) -> tuple[int, int]:
        return index_by_id.get(sample.id, len(ids)), sample.values.get("epoch") or 0

    return sorted(map(_Sample, _samples(source)), key=dataset_order)


def _samples(source: SourceFile) -> Iterator[dict[str, Any]]:
    """The samples as the file has them: an archive has a member for each, in no useful order."""
    if source.is_zip:
        for name in source.members:
            if name.startswith(_SAMPLES) and name.endswith(".json"):
                yield as_map(source.member(name))
    else:
        yield from as_maps(source.value["samples"])


def _options_by_scorer(facts: Mapping[str, Any]) -> dict[str, str]:
    """The options of each scorer as text, by its name."""
    options_by_scorer = {}
    for scorer in as_maps(facts.get("scorers")):
        options = as_map(scorer.get("options"))
        words = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(options.items()))
        options_by_scorer[str(scorer.get("name"))] = visible(", ".join(words), limit=500)
    return options_by_scorer


def _graders(facts: Mapping[str, Any]) -> dict[tuple[str, int], str]:
    """The models of a panel of graders, by their scorer and index; a model that is there twice is numbered."""
    graders: dict[tuple[str, int], str] = {}
    for scorer in as_maps(facts.get("scorers")):
        models = as_list(as_map(scorer.get("options")).get("model"))
        names = [as_text(as_map(model).get("model") or model) for model in models]
        for index, name in enumerate(names):
            if name is not None:
                number = f"-{index + 1}" if names.count(name) > 1 else ""
                graders[str(scorer.get("name")), index] = f"{visible(name, limit=200)}{number}"
    return graders


class _Sample:
    """One sample in one epoch; a long text of it is an attachment, which stands in its place here."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.id = str(values.get("id"))
        self._attachments = as_map(values.get("attachments"))

    @property
    def input(self) -> dict[str, Any]:
        """The input as a golden dataset has it: a text or messages, and the choices that were offered."""
        input_value = self.values.get("input")
        sample_input: dict[str, Any] = {"input": self._resolve(input_value)}
        if isinstance(input_value, list):
            sample_input = {"messages": [self._message(as_map(message)) for message in input_value]}
        if self.values.get("choices"):
            sample_input["choices"] = self.values["choices"]
        return sample_input

    @property
    def expected_output(self) -> Any:
        """The target; one alone is no list."""
        target = self.values.get("target")
        if isinstance(target, list) and len(target) == 1:
            target = target[0]
        return target or None

    def answer(self) -> Output | TargetFailure:
        """The output with the tool calls that led to it, or why there is none."""
        error = as_map(self.values.get("error"))
        if error:
            return TargetFailure(visible(str(error.get("message") or "The sample failed."), limit=500))

        output = as_map(self.values.get("output"))
        model = as_text(output.get("model"))
        return Output(self._output_text(output), trajectory=self._trajectory(), usage=self._usage(model), model=model)

    def _output_text(self, output: Mapping[str, Any]) -> str:
        """The completion; a log without one has the message of the first choice."""
        completion = output.get("completion")
        if isinstance(completion, str):
            return str(self._resolve(completion))
        choices = as_maps(output.get("choices"))
        message = as_map(choices[0].get("message")) if choices else {}
        return self._text(message.get("content"))

    def _usage(self, model: str | None) -> Usage | None:
        """The tokens of all models that the sample asked, and how long it took."""
        usages = as_maps([*as_map(self.values.get("model_usage")).values()])
        seconds = self.values.get("working_time") or self.values.get("total_time")
        return read_usage(
            prompt=add_up(usage.get("input_tokens") for usage in usages),
            completion=add_up(usage.get("output_tokens") for usage in usages),
            total=add_up(usage.get("total_tokens") for usage in usages),
            reasoning=add_up(usage.get("reasoning_tokens") for usage in usages),
            latency_ms=seconds * 1000 if isinstance(seconds, (int, float)) else None,
            model=model,
        )

    def _trajectory(self) -> Trajectory | None:
        """The tool calls of the sample's messages, with their results."""
        messages = as_maps(self.values.get("messages"))
        results = {message.get("tool_call_id"): message for message in messages if message.get("role") == "tool"}
        calls = []
        for message in messages:
            for call in map(as_map, message.get("tool_calls") or ()):
                result = results.get(call.get("id"), {})
                calls.append(
                    {
                        "name": str(call.get("function") or "tool"),
                        "arguments": as_map(call.get("arguments")),
                        "result": self._text(result.get("content")) or None,
                        "error": as_text(as_map(result.get("error")).get("message")),
                    }
                )
        return Trajectory.read({"tool_calls": calls}) if calls else None

    def _message(self, message: Mapping[str, Any]) -> dict[str, Any]:
        return {"role": message.get("role"), "content": self._text(message.get("content"))}

    def _text(self, content: Any) -> str:
        """The text of a message, whose content may be a list of texts, images and more."""
        if isinstance(content, list):
            texts = (part["text"] for part in map(as_map, content) if isinstance(part.get("text"), str))
            return "\n".join(str(self._resolve(text)) for text in texts)
        resolved = self._resolve(content)
        return resolved if isinstance(resolved, str) else ""

    def _resolve(self, value: Any) -> Any:
        """The attachment that a text names; any other value as it is."""
        if isinstance(value, str) and value.startswith(_ATTACHMENT):
            return self._attachments.get(value.removeprefix(_ATTACHMENT), value)
        return value


class _Log:
    """The samples of one log, as they are added to a run."""

    def __init__(self, builder: RunBuilder, scorers: Mapping[str, str], graders: Mapping[tuple[str, int], str]) -> None:
        self._builder = builder
        self._scorers = scorers
        self._graders = graders
        self._ids: dict[str, str] = {}

    def add(self, sample: _Sample) -> None:
        """Add one sample in one epoch.

        One that failed and has no scores is unscored by every scorer, so that it counts where the others are counted.
        """
        values = sample.values
        if sample.id not in self._ids:
            self._ids[sample.id] = self._builder.add_sample(
                sample.id,
                sample.input,
                expected_output=sample.expected_output,
                metadata=as_map(values.get("metadata")),
            )
        self._builder.leave_out_keys(values, _SAMPLE_KEYS, of="a sample")

        answer = sample.answer()
        marks = self._marks(as_map(values.get("scores")))
        if isinstance(answer, TargetFailure) and not marks:
            marks = {self._metric(name): Unscored("target_failed", answer.message) for name in self._scorers}

        epoch = values.get("epoch")
        repetition = epoch - 1 if type(epoch) is int and epoch > 0 else 0
        self._builder.add_execution(self._ids[sample.id], answer, marks, repetition=repetition)

    def _marks(self, scores: Mapping[str, Any]) -> dict[str, Mark]:
        """The marks by metric; a score that is a map is one for each of its keys."""
        marks: dict[str, Mark] = {}
        for scorer, score in scores.items():
            value = as_map(score).get("value")
            subscores = value if isinstance(value, dict) else {None: value}
            for subscore, number in subscores.items():
                metric = self._metric(scorer, subscore)
                marks[metric] = self._mark(scorer, subscore, number, as_map(score))
        return marks

    def _mark(self, scorer: str, subscore: str | None, number: Any, score: Mapping[str, Any]) -> Mark:
        votes = self._panel_votes(scorer, subscore, score)
        details = {"votes": votes} if votes else None
        mark = read_mark(_number(number), reason=score.get("explanation"), details=details)
        if votes and isinstance(mark, Unscored):
            self._builder.leave_out("a vote of one grader where the panel has no majority", len(votes))
        return mark

    def _panel_votes(self, scorer: str, subscore: str | None, score: Mapping[str, Any]) -> list[dict[str, Any]]:
        """What each grader of a panel said, as metrics keep the votes of judges; empty where there is no panel."""
        panel = as_map(as_map(score.get("metadata")).get("panel"))
        votes = []
        for index, vote in enumerate(as_list(panel.get("votes"))):
            grader = {"role": self._graders.get((scorer, index), f"grader-{index + 1}"), "sample": 0}
            value = _number(vote if subscore is None else as_map(vote).get(subscore))
            if (isinstance(value, bool) or is_number(value)) and 0 <= value <= 1:
                votes.append({**grader, "score": float(value), "reason": None, "model": None})
            else:
                votes.append({**grader, "cause": "unreadable", "message": f"The grader gave {describe(value)}."})
        return votes

    def _metric(self, scorer: str, subscore: str | None = None) -> str:
        name = scorer if subscore is None else f"{scorer}/{subscore}"
        return self._builder.add_metric(name, options=self._scorers.get(scorer, ""))


def _number(value: Any) -> Any:
    """A score as Inspect's `value_to_float` reads it; another value stays what it is, and gives no score."""
    if not isinstance(value, str):
        return value

    grade = _GRADES.get(value, _GRADES.get(value.lower()))
    try:
        return float(value) if grade is None else grade
    except ValueError:
        return value
