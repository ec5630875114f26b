"""Imports traces of OpenTelemetry (OTLP as JSON): each trace is a sample with its output, tool calls and usage."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from deemster.errors import visible
from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.run_builder import (
    RunBuilder,
    add_up,
    as_list,
    as_map,
    as_maps,
    as_text,
    read_mark,
    read_usage,
)
from deemster.integrations.source_file import SourceFile
from deemster.records import Mark, Output, TargetFailure, Trajectory

_EVALUATION = "gen_ai.evaluation.result"
_VERDICTS = {"pass": True, "passed": True, "fail": False, "failed": False}
_ERRORS = (2, "STATUS_CODE_ERROR")
# Attributes of OpenInference and of the conventions for generative AI that are read, by the beginning of their names.
_READ = (
    *("input.", "output.", "openinference.span.kind", "llm.model_name", "llm.token_count.", "llm.cost.total"),
    *("llm.input_messages.", "llm.output_messages.", "tool.", "tool_call.", "retrieval.documents.", "gen_ai."),
    *("session.id", "user.id", "tag.tags", "metadata", "deemster."),
)


class _Span(NamedTuple):
    """A span with its attributes as plain values."""

    trace: str
    id: str
    parent: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: Sequence[dict[str, Any]]
    error: str | None

    @property
    def kind(self) -> str:
        """What the span is: `LLM`, `TOOL`, `RETRIEVER`, or another word of OpenInference."""
        named = as_text(self.attributes.get("openinference.span.kind"))
        if named is not None:
            return named.upper()
        operation = self.attributes.get("gen_ai.operation.name")
        if operation == "execute_tool":
            return "TOOL"
        return "LLM" if operation in ("chat", "generate_content", "text_completion") else ""


def is_otlp(source: SourceFile) -> bool:
    """Whether a file holds traces of OTLP, as one document or as JSON lines."""
    return any("resourceSpans" in document for document in _documents(source))


def _documents(source: SourceFile) -> Sequence[Mapping[str, Any]]:
    value = source.value
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list):
        return [entry for entry in value if isinstance(entry, dict)]
    return source.rows


def read_otlp(source: SourceFile) -> list[ExternalRun]:
    """The run in a file of traces. Traces with evaluation results are a run, others a recording of live traffic.

    Raises:
        InputError: Something in it cannot be kept.
    """
    documents = _documents(source)
    resources = [as_map(entry.get("resource")) for file in documents for entry in as_maps(file.get("resourceSpans"))]
    services = {as_text(_attributes(one.get("attributes")).get("service.name")) for one in resources} - {None}
    name = next(iter(services)) if len(services) == 1 else source.path.stem
    builder = RunBuilder("opentelemetry", name or source.path.stem)
    found = map(_read_span, _records(documents, "resourceSpans", "scopeSpans", "spans"))
    spans = sorted(found, key=lambda span: (span.start_ns, span.id))
    logged = _logged_evaluations(documents)
    trees = list(_trees(spans))
    is_marked = bool(logged) or any(_evaluations(span) for span in spans)
    for root, tree in trees:
        _add_trace(builder, root, tree, logged, is_marked=is_marked)
    models = {model for span in spans if (model := _model(span)) is not None}
    began = [span.start_ns for span in spans]
    started = _time(min(began)) if began else None
    lasted = (max(span.end_ns for span in spans) - min(began)) / 1e9 if began else None
    return [builder.build(target=", ".join(sorted(models)) or None, started=started, duration_s=lasted)]


def _records(
    documents: Iterable[Mapping[str, Any]], resources: str, scopes: str, records: str
) -> Iterator[dict[str, Any]]:
    """The spans or the log records of documents, each of which stands in a scope of a resource."""
    for document in documents:
        for resource in as_maps(document.get(resources)):
            for scope in as_maps(resource.get(scopes)):
                yield from as_maps(scope.get(records))


def _read_span(span: Mapping[str, Any]) -> _Span:
    status = as_map(span.get("status"))
    return _Span(
        trace=str(span.get("traceId")),
        id=str(span.get("spanId")),
        parent=as_text(span.get("parentSpanId")),
        name=str(span.get("name") or "span"),
        start_ns=_nanoseconds(span.get("startTimeUnixNano")),
        end_ns=_nanoseconds(span.get("endTimeUnixNano")),
        attributes=_attributes(span.get("attributes")),
        events=as_maps(span.get("events")),
        error=str(status.get("message") or "error") if status.get("code") in _ERRORS else None,
    )


def _nanoseconds(value: Any) -> int:
    return int(value) if str(value).isascii() and str(value).isdigit() and len(str(value)) < 20 else 0


def _attributes(value: Any) -> dict[str, Any]:
    return {str(entry.get("key")): _plain(entry.get("value")) for entry in as_maps(value)}


def _plain(value: Any) -> Any:
    """The value behind OTLP's `{"stringValue": ...}`."""
    for kind, held in as_map(value).items():
        if kind == "intValue":
            return int(held) if str(held).lstrip("-").isdigit() and len(str(held)) < 20 else None
        if kind == "arrayValue":
            return [_plain(entry) for entry in as_list(as_map(held).get("values"))]
        if kind == "kvlistValue":
            return _attributes(as_map(held).get("values"))
        return held
    return None


def _trees(spans: Sequence[_Span]) -> Iterator[tuple[_Span, list[_Span]]]:
    """Every span without a parent, with all spans below it in the order of their start."""
    known = {(span.trace, span.id) for span in spans}
    above = {(span.trace, span.id): (span.trace, span.parent or "") for span in spans}
    roots: dict[tuple[str, str], tuple[_Span, list[_Span]]] = {}
    for span in spans:
        if (span.trace, span.parent) not in known:
            roots[span.trace, span.id] = span, [span]
    for span in spans:
        key, seen = (span.trace, span.id), set()
        while key not in roots and key in above and key not in seen:
            # A span may name itself, or one below it, as its parent.
            seen.add(key)
            key = above[key]
        if key in roots and key != (span.trace, span.id):
            roots[key][1].append(span)
    yield from roots.values()


def _add_trace(
    builder: RunBuilder,
    root: _Span,
    tree: Sequence[_Span],
    logged: Mapping[tuple[str, str], list[dict[str, Any]]],
    *,
    is_marked: bool,
) -> None:
    facts = root.attributes
    asked = _said(root, "input", tree)
    further = {key: facts[key] for key in ("session.id", "user.id") if facts.get(key) is not None}
    told = _parsed(facts.get("metadata"))
    expected = facts.get("deemster.expected_output")
    sample = builder.add_sample(
        root.trace if facts.get("deemster.sample.id") is None else facts["deemster.sample.id"],
        asked if isinstance(asked, dict) else {"messages": asked} if isinstance(asked, list) else {"input": asked},
        expected_output=_parsed(expected),
        tags=as_list(facts.get("tag.tags")),
        metadata={**as_map(told), **further},
    )
    marks: dict[str, Mark] = {}
    for span in tree:
        _note_attributes(builder, span)
        for result in (*_evaluations(span), *logged.get((span.trace, span.id), ())):
            name = builder.add_metric(result.get("gen_ai.evaluation.name") or "evaluation")
            marks[name] = _mark(result)
    at = None if is_marked else f"{_time(root.end_ns):%Y-%m-%dT%H:%M:%S}.{root.end_ns // 1_000_000 % 1000:03d}Z"
    builder.add_execution(sample, _answer(root, tree), marks, at=at)


def _note_attributes(builder: RunBuilder, span: _Span) -> None:
    for key in span.attributes:
        if not key.startswith(_READ):
            builder.leave_out(f"the attribute `{visible(key, limit=80)}` of a span")
    others = sum(event.get("name") != _EVALUATION for event in span.events)
    if others:
        builder.leave_out("an event of a span that is no evaluation result", others)


def _mark(result: Mapping[str, Any]) -> Mark:
    label = str(result.get("gen_ai.evaluation.score.label", "")).lower()
    return read_mark(
        result.get("gen_ai.evaluation.score.value"),
        passed=_VERDICTS.get(label),
        reason=result.get("gen_ai.evaluation.explanation") or result.get("error.type"),
        threshold=result.get("deemster.threshold"),
    )


def _evaluations(span: _Span) -> list[dict[str, Any]]:
    return [_attributes(event.get("attributes")) for event in span.events if event.get("name") == _EVALUATION]


def _logged_evaluations(documents: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The evaluation results that were sent as log records, by the span they are about."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in _records(documents, "resourceLogs", "scopeLogs", "logRecords"):
        if record.get("eventName") == _EVALUATION:
            key = str(record.get("traceId")), str(record.get("spanId"))
            found.setdefault(key, []).append(_attributes(record.get("attributes")))
    return found


def _time(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(min(nanoseconds, 253_402_300_799 * 10**9) / 1e9, UTC)


def _parsed(value: Any) -> Any:
    """JSON that is kept as text, as a value; other values as they are."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _said(root: _Span, way: str, tree: Sequence[_Span]) -> Any:
    """What went into a trace, or came out of it: of its root, else of its first or last model call."""
    calls = [span for span in tree if span.kind == "LLM"]
    for span in (root, *(calls if way == "input" else reversed(calls))):
        facts = span.attributes
        if (value := facts.get(f"{way}.value")) is not None:
            return _parsed(value) if facts.get(f"{way}.mime_type") == "application/json" else value
        if (messages := _parsed(facts.get(f"gen_ai.{way}.messages"))) is not None:
            return [_message(as_map(message)) for message in messages] if isinstance(messages, list) else messages
        contents = [facts.get(f"llm.{way}_messages.{place}.message.content") for place in range(1000)]
        if texts := [text for text in contents if isinstance(text, str)]:
            return texts[-1] if way == "output" else "\n".join(texts)
    return None


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    parts = as_maps(message.get("parts"))
    texts = [str(part.get("content")) for part in parts if part.get("type") == "text"]
    return {"role": message.get("role"), "content": "\n".join(texts) if parts else message.get("content")}


def _answer(root: _Span, tree: Sequence[_Span]) -> Output | TargetFailure:
    if root.error is not None:
        return TargetFailure(visible(root.error, limit=500))
    said = _said(root, "output", tree)
    if isinstance(said, list) and said:
        said = as_map(said[-1]).get("content")
    text = said if isinstance(said, str) else "" if said is None else json.dumps(said, ensure_ascii=False)
    calls = [span for span in tree if span.kind == "LLM"]
    models = {model for span in calls if (model := _model(span)) is not None}
    model = " + ".join(sorted(models)) or None
    usage = read_usage(
        prompt=_total(calls, "llm.token_count.prompt", "gen_ai.usage.input_tokens"),
        completion=_total(calls, "llm.token_count.completion", "gen_ai.usage.output_tokens"),
        total=_total(calls, "llm.token_count.total"),
        cost_usd=_total(calls, "llm.cost.total"),
        latency_ms=(root.end_ns - root.start_ns) / 1e6,
        model=model,
    )
    return Output(text, retrieved=_passages(tree), trajectory=_trajectory(tree), usage=usage, model=model)


def _model(span: _Span) -> str | None:
    facts = span.attributes
    named = (facts.get(key) for key in ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model"))
    return next((name for name in named if isinstance(name, str)), None)


def _total(spans: Sequence[_Span], *keys: str) -> Any:
    return add_up(next((span.attributes[key] for key in keys if key in span.attributes), None) for span in spans)


def _passages(tree: Sequence[_Span]) -> list[dict[str, Any]] | None:
    found: list[dict[str, Any]] | None = None
    for span in tree:
        if span.kind != "RETRIEVER":
            continue
        found = found or []
        rank = 0
        while any(key.startswith(f"retrieval.documents.{rank}.") for key in span.attributes):
            at = f"retrieval.documents.{rank}.document"
            identity = span.attributes.get(f"{at}.id")
            text = span.attributes.get(f"{at}.content")
            found.append({"id": str(identity if identity is not None else rank + 1), "text": str(text or "")})
            rank += 1
    return found


def _trajectory(tree: Sequence[_Span]) -> Trajectory | None:
    calls = []
    for span in tree:
        if span.kind != "TOOL":
            continue
        facts = span.attributes
        given = facts.get("input.value", facts.get("gen_ai.tool.call.arguments", facts.get("tool.parameters")))
        arguments = _parsed(given)
        calls.append(
            {
                "name": str(facts.get("tool.name") or facts.get("gen_ai.tool.name") or span.name),
                "arguments": arguments if isinstance(arguments, dict) else {"input": arguments} if arguments else {},
                "result": facts.get("output.value", facts.get("gen_ai.tool.call.result")),
                "error": span.error,
                "duration_ms": (span.end_ns - span.start_ns) / 1e6 if span.end_ns >= span.start_ns else None,
            }
        )
    return Trajectory.read({"tool_calls": calls}) if calls else None
