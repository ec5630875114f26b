"""Exports a run to OpenTelemetry: a span for each output, and an event `gen_ai.evaluation.result` for each mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import MissingExtraError
from deemster.formats.canonical_json import json_text
from deemster.formats.json_values import to_json_value
from deemster.records import Execution, Mark, MetricScore, NotApplicable, Output, Sample, TargetFailure
from deemster.report import Report
from deemster.report.stored_report import StoredSamples
from deemster.store import Store

EVENT = "gen_ai.evaluation.result"
_EXTRA = "otel"


def export_opentelemetry(store: Store, report: Report, to: str) -> str:
    """Send a run to a collector over OTLP, or write it as OTLP's JSON lines; where it went.

    Args:
        store: Where the run is stored.
        report: Its report.
        to: The URL of a collector, such as `http://localhost:4318`, or a file.

    Raises:
        MissingExtraError: The extra `otel` is not installed.
    """
    try:
        from opentelemetry.sdk._logs import LoggerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("The export to OpenTelemetry", extra=_EXTRA) from None
    spans, logs = _exporters(to)
    resource = Resource({"service.name": report.dataset.name, "deemster.run.id": report.run.id})
    tracers, loggers = TracerProvider(resource=resource), LoggerProvider(resource=resource)
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    _send_marks(store, report.run.id, tracers.get_tracer("deemster"), loggers.get_logger("deemster"))
    tracers.shutdown()
    loggers.shutdown()
    return to


def _exporters(to: str) -> tuple[Any, Any]:
    """What sends spans and log records to a collector or a file."""
    try:
        if to.startswith(("http://", "https://")):
            from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415 - an extra
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
                OTLPSpanExporter,
            )

            base = to.rstrip("/")
            return OTLPSpanExporter(endpoint=f"{base}/v1/traces"), OTLPLogExporter(endpoint=f"{base}/v1/logs")
        from opentelemetry.exporter.otlp.json.file._log_exporter import FileLogExporter  # noqa: PLC0415 - an extra
        from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter  # noqa: PLC0415 - an extra

        return FileSpanExporter(to), FileLogExporter(to)
    except ImportError:
        raise MissingExtraError("The export to OpenTelemetry", extra=_EXTRA) from None


def _send_marks(store: Store, run: str, tracer: Any, logger: Any) -> None:
    """Send every output as a span and every mark as an event."""
    from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

    cards, samples = store.cards(run), list(StoredSamples(store, store.run(run)))
    for execution in store.executions(run):
        sample = samples[execution.position]
        with tracer.start_as_current_span("evaluate") as span:
            for key, value in _span_attributes(sample, execution).items():
                span.set_attribute(key, value)
            if isinstance(execution.answer, TargetFailure):
                span.set_status(Status(StatusCode.ERROR, execution.answer.message))
            for card, mark in zip(cards, execution.marks, strict=True):
                if not isinstance(mark, NotApplicable):
                    # It is emitted inside the span, so that it carries the span's ids.
                    _emit(logger, card.name, mark)


def _emit(logger: Any, name: str, mark: Mark) -> None:
    from opentelemetry._logs import LogRecord  # noqa: PLC0415 - an extra

    facts: dict[str, Any] = {"gen_ai.evaluation.name": name}
    if isinstance(mark, MetricScore):
        facts["gen_ai.evaluation.score.value"] = mark.score
        facts["gen_ai.evaluation.score.label"] = "pass" if mark.success else "fail"
        facts["deemster.threshold"] = mark.threshold
        reason = mark.details.get("reason") or mark.details.get("judge_reason")
        if isinstance(reason, str):
            facts["gen_ai.evaluation.explanation"] = reason
    elif not isinstance(mark, NotApplicable):
        facts["error.type"] = mark.cause
        facts["gen_ai.evaluation.explanation"] = mark.message
    logger.emit(LogRecord(event_name=EVENT, attributes=facts))


def _span_attributes(sample: Sample, execution: Execution) -> Mapping[str, Any]:
    facts: dict[str, Any] = {
        "deemster.sample.id": sample.id,
        "deemster.repetition": execution.repetition,
        "input.value": json_text(to_json_value(sample.input)),
        "input.mime_type": "application/json",
        "tag.tags": list(sample.tags),
        "metadata": json_text(to_json_value(sample.metadata)),
    }
    if sample.expected_output is not None:
        facts["deemster.expected_output"] = json_text(to_json_value(sample.expected_output))
    answer = execution.answer
    if isinstance(answer, Output):
        facts["output.value"] = answer.text
        usage = answer.usage
        if usage is not None:
            known = {
                "gen_ai.request.model": answer.model or usage.model,
                "gen_ai.usage.input_tokens": usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage.completion_tokens,
                "gen_ai.operation.name": "chat",
            }
            facts |= {key: value for key, value in known.items() if value is not None}
    return facts
