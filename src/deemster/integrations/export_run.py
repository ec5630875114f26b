"""Exports stored runs to other tools: OpenTelemetry, MLflow."""

from __future__ import annotations

from collections.abc import Callable

from deemster.errors import Issue, ReportError
from deemster.integrations.export_mlflow import export_mlflow
from deemster.integrations.export_opentelemetry import export_opentelemetry
from deemster.report import Report
from deemster.report.stored_report import stored_report
from deemster.store import Store

EXPORTERS: dict[str, Callable[[Store, Report, str], str]] = {
    "otel": export_opentelemetry,
    "mlflow": export_mlflow,
}


def export_run(store: Store, run: str, *, kind: str, to: str) -> str:
    """Export a stored run to another tool; where it went.

    Args:
        store: Where it is stored.
        run: Its id, a unique beginning of it, its label, or `latest`.
        kind: The tool.
        to: A file, a URL or a tracking URI, as the tool needs it.

    Raises:
        StoreError: There is no such run, or it cannot be read.
        ReportError: It has no marks, or the place cannot be written.
        MissingExtraError: The tool needs an extra that is not installed.
    """
    report = stored_report(store, run)
    try:
        return EXPORTERS[kind](store, report, to)
    except OSError as error:
        raise ReportError(Issue(f"The export cannot be written: {error.strerror or error}.", to)) from None
