"""`deemster rescore`: marks the stored outputs of a run by other metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, show_progress, warn
from deemster.cli.main import TO_CONTINUE, leave, leave_interrupted
from deemster.cli.options import (
    ReportOptions,
    cache_options,
    open_run_store,
    quiet_option,
    report_options,
    store_option,
)
from deemster.errors import ConfigurationError, ExitCode, plural

if TYPE_CHECKING:
    from deemster.engine.model_access import ModelLimits
    from deemster.evaluation.rescore_run import Rescoring
    from deemster.store import Store


@click.command("rescore", cls=Verb, short_help="Mark the stored outputs of a run by other metrics.")
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
    limits: ModelLimits,
    quiet: bool,
) -> None:
    """Mark the stored outputs of a run by other metrics.

    The target is never called, and the run's report is printed. RUN is the id of a stored run, the beginning of one, or
    `latest`. A metric of a name that the run has replaces that one; others are added. The file of `--suite` needs only
    `metrics` or `models`: the samples come from the run. After an interruption the same command goes on where it
    stopped.
    """
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible
    from deemster.evaluation.rescore_run import find_runs, rescore, rescoring_metrics, rescoring_models
    from deemster.evaluation.suite import load_suite, stored_junit

    _check(run, dataset, reports)
    stop = Stop()
    given = None if suite is None else load_suite(suite, calls_target=False, must_run=False)
    code = ExitCode.PASSED
    with open_run_store(store) as opened:
        for row in find_runs(opened, run, dataset):
            wanted = rescoring_metrics(row, metrics, suite=given)
            access = rescoring_models(row, limits, suite=given)
            with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
                work = rescore(opened, row.id, metrics=wanted, access=access, stop=stop, warn=warn, progress=progress)
                click.get_current_context().meta[TO_CONTINUE] = "To continue: the same command."
                rescoring = run_sync(work)
            written = reports.with_junit(stored_junit(row) if given is None else given.junit)
            ending = _write_and_print(rescoring, opened, written if run is not None else None, quiet=quiet)
            code = max(code, ending)
            if stop.requested:
                break
    if stop.requested:
        leave(code)
    raise click.exceptions.Exit(code)


def _check(run: str | None, dataset: str | None, reports: ReportOptions) -> None:
    if (run is None) == (dataset is None):
        raise ConfigurationError("Name a run, or `--dataset NAME` for every recording of a dataset.")
    if run is None and reports.destinations:
        raise ConfigurationError("A report is of one run: name it in place of `--dataset`.")


def _write_and_print(rescoring: Rescoring, store: Store, reports: ReportOptions | None, *, quiet: bool) -> ExitCode:
    """Write and print the report of one run, or a line about one of several; returns the exit code."""
    from deemster.cli.run import write_and_print
    from deemster.report.build_report import quoted_details

    report, code = rescoring.report, ExitCode.PASSED
    if reports is not None:
        quotes = quoted_details(store, report.run.id)
        again = f"deemster show {report.run.id} --store {store.where}"
        code = write_and_print(report, reports, quotes=quotes, quiet=quiet, again=again)
    elif rescoring.missing is None:
        note(f"{report.run.id}: {plural(report.totals.executions, 'output')} marked")
    if rescoring.missing is not None:
        note(f"incomplete: {rescoring.missing}. The same command continues.")
        return ExitCode.INCOMPLETE
    return code
