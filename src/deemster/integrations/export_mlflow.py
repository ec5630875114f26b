"""Exports a run to MLflow: its numbers as metrics, its facts as parameters and tags, its report as an artifact."""

from __future__ import annotations

import re

from deemster.errors import MissingExtraError
from deemster.report import Report
from deemster.runs.external_run import ExternalRun

_OTHER = re.compile(r"[^A-Za-z0-9_\-. /:]")


def export_mlflow(run: ExternalRun, report: Report, to: str) -> str:
    """Log a run to a tracking server or store of MLflow; the id of MLflow's run.

    The experiment is called as the suite, else as the dataset.

    Args:
        run: The run.
        report: Its report.
        to: The tracking URI, such as `http://localhost:5000` or `sqlite:///mlflow.db`.

    Raises:
        MissingExtraError: The extra `mlflow` is not installed.
    """
    try:
        from mlflow import MlflowClient  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("The export to MLflow", extra="mlflow") from None
    client = MlflowClient(tracking_uri=to)
    name = report.run.suite or run.dataset.name
    known = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if known is None else known.experiment_id
    began = None if run.started is None else int(run.started.timestamp() * 1000)
    tags = {"deemster.run": report.run.id, "deemster.status": report.run.status, "deemster.tool": run.tool}
    logged = client.create_run(experiment, start_time=began, tags=tags, run_name=report.run.label or report.run.id)
    identity = logged.info.run_id
    parameters = {
        "dataset": run.dataset.name,
        "fingerprint": run.dataset.fingerprint,
        "samples": len(run.dataset),
        "repetitions": run.repetitions,
        "target": run.target,
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
