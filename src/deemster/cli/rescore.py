"""`deemster rescore`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from deemster.cli._console import note, progress_shown, warn
from deemster.cli._load_suite_job import metrics_of_suite, roles_of_suite
from deemster.cli.main import leave
from deemster.cli.options import CACHE, Rendering, opened, rendering_options, store_option
from deemster.cli.run import delivered, interruptible
from deemster.errors import ConfigurationError, ExitCode, StoreError, counted, did_you_mean
from deemster.models import read_models
from deemster.records import Metric
from deemster.runs import metric_catalog as catalog
from deemster.runs.build_report import quoted_details
from deemster.runs.import_user_code import import_object
from deemster.runs.model_access import ModelAccess
from deemster.runs.rescore_run import Rescoring, rescore
from deemster.runs.run_sync import run_sync
from deemster.runs.stop_request import Stop
from deemster.runs.suite import Suite, load_suite
from deemster.store import RunRow, Store
from deemster.store.run_file_format import IMPORTED_FACT


@click.command("rescore", short_help="Mark the stored outputs of a run by other metrics.")
@click.argument("run", required=False)
@click.option("--metric", "metrics", multiple=True, metavar="SPEC", help="Mark by this metric; repeatable.")
@click.option("--suite", metavar="FILE", help="Take models, and metrics where no --metric is given, from this suite.")
@click.option("--dataset", metavar="NAME", help="In place of RUN: mark every recording of this dataset.")
@rendering_options
@store_option
@click.option("--cache", metavar="FILE", default=CACHE, show_default=True, help="Where the models' answers are kept.")
@click.option("--no-cache", is_flag=True, help="Ask the models anew, and keep nothing.")
@click.option("--offline", is_flag=True, help="Ask nothing over the network.")
@click.option("--quiet", is_flag=True, help="Show no progress and no report on the terminal.")
def command(
    *,
    run: str | None,
    metrics: tuple[str, ...],
    suite: str | None,
    dataset: str | None,
    rendering: Rendering,
    store: str,
    cache: str,
    no_cache: bool,
    offline: bool,
    quiet: bool,
) -> None:
    """Mark the stored outputs of a run by other metrics.

    The target is never called, and the run's report is printed. RUN is the id of a stored run, the beginning of one, or
    `latest`. A metric of a name that the run has replaces that one; others are added. Interrupted, the same command
    goes on where it was.
    """
    _check(run, dataset, rendering)
    stop = Stop()
    given = None if suite is None else load_suite(suite, calls_target=False)
    code = ExitCode.PASSED
    with opened(store) as held:
        rows = [held.run(run)] if run is not None else held.runs(dataset=dataset, kind="recording")
        if not rows:
            names = sorted({row.dataset for row in held.runs(kind="recording")})
            near = f" {did_you_mean(dataset or '', names)}" if names else ""
            raise StoreError(f"{held.where}: There is no recording of the dataset `{dataset}`.{near}")
        for row in rows:
            wanted = _metrics(metrics, given, row)
            roles = _roles(given, row, calls=not offline)
            asking = ModelAccess(roles, None if no_cache else Path(cache), offline=offline)
            with interruptible(stop), progress_shown(quiet=quiet) as progress:
                work = rescore(held, row.id, metrics=wanted, access=asking, stop=stop, warn=warn, progress=progress)
                made = run_sync(work)
            code = max(code, _told(made, held, rendering if run is not None else None, quiet=quiet))
            if stop.requested:
                break
    if stop.requested:
        leave(code)
    sys.exit(code)


def _check(run: str | None, dataset: str | None, rendering: Rendering) -> None:
    if (run is None) == (dataset is None):
        raise ConfigurationError("Name a run, or `--dataset NAME` for every recording of a dataset.")
    if run is None and rendering.destinations:
        raise ConfigurationError("A report is of one run: name it in place of `--dataset`.")
    rendering.check()


def _told(made: Rescoring, store: Store, rendering: Rendering | None, *, quiet: bool) -> ExitCode:
    """Deliver the report of one run, or say of one among several that it is done; how it ends."""
    report, code = made.report, ExitCode.PASSED
    if rendering is not None:
        view = rendering.view(report, quotes=quoted_details(store, report.run.id))
        again = f"deemster report {report.run.id} --store {store.where}"
        code = delivered(report, view, rendering, quiet=quiet, again=again)
    elif made.missing is None:
        note(f"{report.run.id}: {counted(report.totals.executions, 'output')} marked")
    if made.missing is not None:
        note(f"incomplete: {made.missing}. The same command goes on with it.")
        return ExitCode.INCOMPLETE
    return code


def _metrics(given: tuple[str, ...], suite: Suite | None, row: RunRow) -> tuple[Metric, ...]:
    if given:
        return catalog.resolve_all(given, search=suite.folder if suite is not None else _folder(row))
    return () if suite is None else metrics_of_suite(suite)


def _roles(suite: Suite | None, row: RunRow, *, calls: bool) -> dict[str, Any]:
    """The models of the suite that is given, or of the one that was kept with the run."""
    if suite is not None:
        return dict(roles_of_suite(suite, calls=calls))
    kept = _suite(row)
    section = kept.get("document", {}).get("models")
    folder = _folder(row)
    return dict(
        read_models(
            section,
            place=lambda path: f"{kept.get('file', row.id)}: {'.'.join(map(str, path))}",
            environ=os.environ,
            folder=folder,
            load=lambda path: import_object(path, called="The client", search=folder),
            calls=calls and section is not None,
        )
    )


def _folder(row: RunRow) -> Path | None:
    file = _suite(row).get("file")
    return None if file is None else Path(file).parent


def _suite(row: RunRow) -> Mapping[str, Any]:
    """What was kept of the run's suite.

    A run file may have been written by anybody: it names no model that is asked, no folder that code is loaded from.
    """
    return {} if row.facts.get(IMPORTED_FACT) else row.facts.get("suite") or {}
