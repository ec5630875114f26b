"""`deemster rescore`: marks the stored outputs of a run by other metrics."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._console import note, show_progress, warn
from deemster.cli.main import leave
from deemster.cli.options import (
    ModelOptions,
    ReportOptions,
    cache_options,
    open_run_store,
    quiet_option,
    report_options,
    store_option,
)
from deemster.errors import ConfigurationError, ExitCode, StoreError, did_you_mean, plural

if TYPE_CHECKING:
    from deemster.records import Metric
    from deemster.runs.model_access import ModelAccess
    from deemster.runs.rescore_run import Rescoring
    from deemster.runs.suite import Suite
    from deemster.store import RunRow, Store


@click.command("rescore", short_help="Mark the stored outputs of a run by other metrics.")
@click.argument("run", required=False)
@click.option("--metric", "metrics", multiple=True, metavar="SPEC", help="Mark by this metric; repeatable.")
@click.option("--suite", metavar="FILE", help="Take models, and metrics where no --metric is given, from this suite.")
@click.option("--dataset", metavar="NAME", help="In place of RUN: mark every recording of this dataset.")
@report_options
@store_option
@cache_options
@quiet_option
def command(
    *,
    run: str | None,
    metrics: tuple[str, ...],
    suite: str | None,
    dataset: str | None,
    reports: ReportOptions,
    store: str,
    cache: str,
    no_cache: bool,
    offline: bool,
    quiet: bool,
) -> None:
    """Mark the stored outputs of a run by other metrics.

    The target is never called, and the run's report is printed. RUN is the id of a stored run, the beginning of one, or
    `latest`. A metric of a name that the run has replaces that one; others are added. After an interruption the same
    command goes on where it stopped.
    """
    from deemster.cli._interrupt_signals import interruptible
    from deemster.runs.rescore_run import rescore
    from deemster.runs.run_sync import run_sync
    from deemster.runs.stop_request import Stop
    from deemster.runs.suite import load_suite

    _check(run, dataset, reports)
    stop = Stop()
    given = None if suite is None else load_suite(suite, calls_target=False)
    models = ModelOptions(None, None if no_cache else Path(cache), None, None, offline)
    code = ExitCode.PASSED
    with open_run_store(store) as opened:
        for row in _find_runs(opened, run, dataset):
            wanted = _metrics(metrics, given, row)
            access = _model_access(models, given, row)
            with interruptible(stop), show_progress(quiet=quiet) as progress:
                work = rescore(opened, row.id, metrics=wanted, access=access, stop=stop, warn=warn, progress=progress)
                rescoring = run_sync(work)
            ending = _write_and_print(rescoring, opened, reports if run is not None else None, quiet=quiet)
            code = max(code, ending)
            if stop.requested:
                break
    if stop.requested:
        leave(code)
    sys.exit(code)


def _check(run: str | None, dataset: str | None, reports: ReportOptions) -> None:
    if (run is None) == (dataset is None):
        raise ConfigurationError("Name a run, or `--dataset NAME` for every recording of a dataset.")
    if run is None and reports.destinations:
        raise ConfigurationError("A report is of one run: name it in place of `--dataset`.")
    reports.check()


def _find_runs(store: Store, run: str | None, dataset: str | None) -> list[RunRow]:
    """The run of a name, or every recording of a dataset."""
    if run is not None:
        return [store.run(run)]
    rows = store.runs(dataset=dataset, kind="recording")
    if not rows:
        names = sorted({row.dataset for row in store.runs(kind="recording")})
        near = f" {did_you_mean(dataset or '', names)}" if names else ""
        raise StoreError(f"{store.where}: There is no recording of the dataset `{dataset}`.{near}")
    return rows


def _write_and_print(rescoring: Rescoring, store: Store, reports: ReportOptions | None, *, quiet: bool) -> ExitCode:
    """Write and print the report of one run, or a line about one of several; returns the exit code."""
    from deemster.cli.run import write_and_print
    from deemster.runs.build_report import quoted_details

    report, code = rescoring.report, ExitCode.PASSED
    if reports is not None:
        shown = reports.redact(report, quotes=quoted_details(store, report.run.id))
        again = f"deemster report {report.run.id} --store {store.where}"
        code = write_and_print(report, shown, reports, quiet=quiet, again=again)
    elif rescoring.missing is None:
        note(f"{report.run.id}: {plural(report.totals.executions, 'output')} marked")
    if rescoring.missing is not None:
        note(f"incomplete: {rescoring.missing}. The same command goes on with it.")
        return ExitCode.INCOMPLETE
    return code


def _metrics(given: tuple[str, ...], suite: Suite | None, row: RunRow) -> tuple[Metric, ...]:
    from deemster.cli._load_suite_job import metrics_of_suite
    from deemster.runs import metric_catalog

    if given:
        return metric_catalog.resolve_all(given, search=suite.folder if suite is not None else _suite_folder(row))
    return () if suite is None else metrics_of_suite(suite)


def _model_access(models: ModelOptions, suite: Suite | None, row: RunRow) -> ModelAccess:
    """Access to the models of the suite that is given, or of the one that is stored with the run."""
    if suite is not None:
        return models.access_to(suite.models, place=suite.document.where, calls=True, folder=suite.folder)
    stored = _stored_suite(row)
    section = stored.get("document", {}).get("models")

    def place(path: Any) -> str:
        return f"{stored.get('file', row.id)}: {'.'.join(map(str, path))}"

    return models.access_to(section, place=place, calls=section is not None, folder=_suite_folder(row))


def _suite_folder(row: RunRow) -> Path | None:
    file = _stored_suite(row).get("file")
    return None if file is None else Path(file).parent


def _stored_suite(row: RunRow) -> Mapping[str, Any]:
    """The suite that is stored with the run.

    An imported run may come from anywhere. Its suite names no model that is called, and no folder to load code from.
    """
    from deemster.store.run_file_format import IMPORTED_FACT

    return {} if row.facts.get(IMPORTED_FACT) else row.facts.get("suite") or {}
