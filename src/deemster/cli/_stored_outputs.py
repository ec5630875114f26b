"""`deemster run --outputs RUN`: scores once more what was answered before, as a further scoring of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from deemster.cli._console import note, show_progress, warn
from deemster.cli._report_ending import write_and_print
from deemster.cli.main import TO_CONTINUE, leave, leave_interrupted
from deemster.cli.report_options import ReportOptions
from deemster.cli.store_options import is_run_name, open_run_store
from deemster.errors import ConfigurationError, ExitCode, Issue, plural

if TYPE_CHECKING:
    from deemster.engine.model_access import ModelCalls
    from deemster.evaluation.rescore_run import Rescoring
    from deemster.store import Store

_DATASET = "dataset:"
# What a further scoring of a run heeds; everything else is as it was when the run was made.
_FLAGS = frozenset(("--outputs", "--metric", "--store", "--cache", "--offline", "--quiet", "--to", "--without-text"))


def is_stored(outputs: str) -> bool:
    """Whether outputs are those of a stored run, or of every recording of a dataset, and not those of a file.

    Raises:
        ConfigurationError: They are those of a run file, which no store holds yet.
    """
    is_run = outputs.startswith(_DATASET) or is_run_name(outputs)
    if is_run and Path(outputs).is_file():
        raise ConfigurationError(Issue(f"`deemster import {outputs}` takes in the runs of a run file.", outputs))
    return is_run


def score_stored_outputs(
    context: click.Context,
    outputs: str,
    *,
    suite: str | None,
    metrics: Sequence[str],
    limits: ModelCalls,
    reports: ReportOptions,
    store: str,
    quiet: bool,
) -> NoReturn:
    """Score the outputs of a stored run, or of every recording of a dataset, and end the command.

    The target is never called, and the samples are those of the run. A metric of a name that the run has replaces that
    one; others are added.

    Args:
        context: The command, whose other flags are refused.
        outputs: The run, or `dataset:NAME`.
        suite: The suite that has the models, and the metrics where none is given.
        metrics: Specs of metrics.
        limits: Cache and network.
        reports: Where the report is written, and what it leaves out.
        store: Where the run is stored.
        quiet: Whether nothing is printed.

    Raises:
        DeemsterError: There is no such run, or a metric cannot be made.
        Exit: Always, with the exit code.
    """
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible
    from deemster.evaluation.rescore_run import find_runs, rescore, rescoring_metrics, rescoring_models
    from deemster.evaluation.suite import load_suite, stored_junit

    dataset = outputs.removeprefix(_DATASET) if outputs.startswith(_DATASET) else None
    _refuse_flags(context, is_dataset=dataset is not None)
    loaded = None if suite is None else load_suite(suite, calls_target=False, must_run=False)

    stop = Stop()
    code = ExitCode.PASSED
    with open_run_store(store) as opened:
        for row in find_runs(opened, None if dataset is not None else outputs, dataset):
            scorers = rescoring_metrics(row, metrics, suite=loaded)
            access = rescoring_models(row, limits, suite=loaded)
            with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
                work = rescore(opened, row.id, metrics=scorers, access=access, stop=stop, warn=warn, progress=progress)
                context.meta[TO_CONTINUE] = "To continue: the same command."
                rescoring = run_sync(work)
            written = reports.with_junit(stored_junit(row) if loaded is None else loaded.junit)
            ending = _write_and_print(rescoring, opened, written if dataset is None else None, quiet=quiet)
            code = max(code, ending)
            if stop.requested:
                break
    if stop.requested:
        leave(code)
    raise click.exceptions.Exit(code)


def _refuse_flags(context: click.Context, *, is_dataset: bool) -> None:
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is not ParameterSource.COMMANDLINE:
            continue
        flag = option.opts[0]
        if isinstance(option, click.Option) and flag not in _FLAGS:
            raise ConfigurationError(f"`{flag}` is for a run of its own; stored outputs are only scored once more.")
        if is_dataset and flag == "--to":
            raise ConfigurationError("A report is of one run: name it in place of `dataset:NAME`.")


def _write_and_print(rescoring: Rescoring, store: Store, reports: ReportOptions | None, *, quiet: bool) -> ExitCode:
    """Write and print the report of one run, or a line about one of several; returns the exit code."""
    from deemster.report.build_report import quoted_details
    from deemster.report.overview import NamedRun

    report, code = rescoring.report, ExitCode.PASSED
    if reports is not None:
        quotes = quoted_details(store, report.run.id)
        named = NamedRun(report.run.id, f" --store {store.where}")
        code = write_and_print(report, reports, quotes=quotes, quiet=quiet, named=named)
    elif rescoring.missing is None:
        note(f"{report.run.id}: {plural(report.totals.executions, 'output')} marked")
    if rescoring.missing is not None:
        note(f"incomplete: {rescoring.missing}. The same command continues.")
        return ExitCode.INCOMPLETE
    return code
