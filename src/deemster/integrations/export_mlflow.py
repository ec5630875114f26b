"""Exports a run to MLflow: its numbers as metrics, its facts as parameters and tags, its report as an artifact."""

from __future__ import annotations

import re
from datetime import datetime

from deemster.errors import MissingExtraError
from deemster.report import Report
from deemster.store import Store

_OTHER = re.compile(r"[^A-Za-z0-9_\-. /:]")


def export_mlflow(_store: Store, report: Report, to: str) -> str:
    """Log a run to a tracking server or store of MLflow; the id of MLflow's run.

    The experiment is called as the suite, else as the dataset.

    Args:
        report: The report of the run, which has everything that MLflow takes.
        to: The tracking URI, such as `http://localhost:5000` or `sqlite:///mlflow.db`.

    Raises:
        MissingExtraError: The extra `mlflow` is not installed.
    """
    try:
        from mlflow import MlflowClient  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("The export to MLflow", extra="mlflow") from None
    client = MlflowClient(tracking_uri=to)
    name = report.run.suite or report.dataset.name
    known = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if known is None else known.experiment_id
    began = int(datetime.fromisoformat(report.run.started_at).timestamp() * 1000)
    tool = f"deemster {report.tool_version}"
    tags = {"deemster.run": report.run.id, "deemster.status": report.run.status, "deemster.tool": tool}
    logged = client.create_run(experiment, start_time=began, tags=tags, run_name=report.run.label or report.run.id)
    identity = logged.info.run_id
    parameters = {
        "dataset": report.dataset.name,
        "fingerprint": report.dataset.fingerprint,
        "samples": report.totals.samples,
        "repetitions": report.totals.repetitions,
        "target": report.run.target,
        "seed": report.run.seed,
    }
    for key, value in parameters.items():
        if value is not None:
            client.log_param(identity, key, str(value)[:500])
    for key, number in _numbers(report).items():
        client.log_metric(identity, key, number)
    client.log_text(identity, report.to_json(), "report.json")
    client.log_text(identity, report.to_markdown(), "report.md")
    client.set_terminated(identity, status="FINISHED" if report.run.status == "complete" else "FAILED")
    return f"{to}, run {identity}"


def _numbers(report: Report) -> dict[str, float]:
    """Every number of a report that is defined, by MLflow's names."""
    found: dict[str, float | None] = {"macro_f1": report.macro_f1, "pass_rate": report.pass_rate}
    for name, metric in report.metrics.items():
        # MLflow allows letters, digits and some signs.
        called = _OTHER.sub("_", name)
        found[f"{called}/mean"] = metric.mean
        found[f"{called}/pass_rate"] = metric.pass_rate
        found[f"{called}/unscored"] = float(metric.n_unscored + metric.n_not_run)
        if metric.pass_rate_interval is not None:
            found[f"{called}/pass_rate_low"], found[f"{called}/pass_rate_high"] = metric.pass_rate_interval
    return {name: number for name, number in found.items() if number is not None}
