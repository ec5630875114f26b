"""`deemster run --outputs RUN`: scores what was answered before, as a run of its own or as a further scoring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from click.core import ParameterSource

from deemster.cli._console import note, show_progress, warn
from deemster.cli._interruption import TO_CONTINUE, leave, leave_interrupted
from deemster.cli._report_ending import write_and_print
from deemster.cli._run_and_report import RunWriting
from deemster.cli.store_options import is_run_name, open_run_store, place_of
from deemster.errors import ConfigurationError, ExitCode, Issue, plural

if TYPE_CHECKING:
    from deemster.engine.model_access import ModelCalls
    from deemster.engine.stop_request import Stop
    from deemster.evaluation.rescore_run import Rescoring
    from deemster.evaluation.suite import Suite
    from deemster.runs.run_storage import Storage
    from deemster.store import RunRow, Store
    from deemster.targets.saved_outputs import SavedOutputs

_DATASET = "dataset:"
# What a further scoring of a run heeds; everything else is as it was when the run was made.
_FLAGS = frozenset(
    ("--outputs", "--metric", "--store", "--cache", "--offline", "--quiet", "--to", "--without-text", "--full")
)


def is_stored(outputs: str) -> bool:
    """Whether outputs are those of a stored run, or of every recording of a dataset, and not those of a file.

    Raises:
        ConfigurationError: They are those of a run file, which no store holds yet.
    """
    is_run = outputs.startswith(_DATASET) or is_run_name(outputs)
    if is_run and Path(outputs).is_file():
        raise ConfigurationError(Issue(f"`deemster import {outputs}` takes in the runs of a run file.", outputs))
    return is_run


def outputs_to_judge(outputs: str, suite: str | None, storage: Storage | None) -> SavedOutputs | None:
    """The outputs of a stored run, where a suite that names a dataset judges them in a run of its own; else None.

    Args:
        outputs: The run, or `dataset:NAME`.
        suite: The suite that is named; None where none is.
        storage: Where the run is stored.

    Raises:
        InputError: The suite or the run cannot be read.
    """
    from deemster.evaluation.rescore_run import stored_outputs
    from deemster.evaluation.suite import load_suite

    if suite is None or outputs.startswith(_DATASET):
        return None
    if "dataset" not in load_suite(suite, calls_target=False, must_run=False).document.value:
        return None
    with open_run_store(place_of(storage)) as store:
        row = store.run(outputs)
        return stored_outputs(store, row) if row.kind == "run" else None


def score_stored_outputs(
    context: click.Context,
    outputs: str,
    *,
    suite: str | None,
    metrics: Sequence[str],
    limits: ModelCalls,
    writing: RunWriting,
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
        writing: Where the run is stored and reported.

    Raises:
        DeemsterError: There is no such run, or a metric cannot be made.
        Exit: Always, with the exit code.
    """
    from deemster.engine.stop_request import Stop
    from deemster.evaluation.rescore_run import find_runs
    from deemster.evaluation.suite import load_suite

    dataset = outputs.removeprefix(_DATASET) if outputs.startswith(_DATASET) else None
    run = outputs if dataset is None else None
    _refuse_flags(context, is_dataset=dataset is not None)
    loaded = None if suite is None else load_suite(suite, calls_target=False, must_run=False)

    stop = Stop()
    code = ExitCode.PASSED
    with open_run_store(place_of(writing.storage)) as store:
        for row in find_runs(store, run, dataset):
            context.meta[TO_CONTINUE] = "To continue: the same command."
            rescoring = _rescore(store, row, loaded, metrics, limits, stop=stop, quiet=writing.quiet)
            if dataset is None:
                code = _report(rescoring, store, loaded, row, writing)
            elif rescoring.missing is None:
                note(f"{row.id}: {plural(rescoring.report.totals.executions, 'output')} scored")
            if rescoring.missing is not None:
                note(f"incomplete: {rescoring.missing}. The same command continues.")
                code = max(code, ExitCode.INCOMPLETE)
            if stop.requested:
                break
    if stop.requested:
        leave(code)
    raise click.exceptions.Exit(code)


def _rescore(
    store: Store,
    row: RunRow,
    suite: Suite | None,
    metrics: Sequence[str],
    limits: ModelCalls,
    *,
    stop: Stop,
    quiet: bool,
) -> Rescoring:
    """Score the outputs of one run with its progress."""
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import interruptible
    from deemster.evaluation.rescore_run import rescore, rescoring_metrics, rescoring_models

    scorers = rescoring_metrics(row, metrics, suite=suite)
    access = rescoring_models(row, limits, suite=suite)
    with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
        work = rescore(store, row.id, metrics=scorers, access=access, stop=stop, warn=warn, progress=progress)
        return run_sync(work)


def _report(rescoring: Rescoring, store: Store, suite: Suite | None, row: RunRow, writing: RunWriting) -> ExitCode:
    """Write and print the report of one run; returns the exit code."""
    from deemster.evaluation.suite import stored_junit
    from deemster.report.overview import NamedRun
    from deemster.report.stored_report import quoted_details

    reports = writing.reports.with_junit(stored_junit(row) if suite is None else suite.junit)
    named = NamedRun(row.id, f" --store {store.where}")
    quotes = quoted_details(store, row.id)
    return write_and_print(rescoring.report, reports, quotes=quotes, quiet=writing.quiet, named=named)


def _refuse_flags(context: click.Context, *, is_dataset: bool) -> None:
    for option in context.command.params:
        if context.get_parameter_source(option.name or "") is not ParameterSource.COMMANDLINE:
            continue
        flag = option.opts[0]
        if isinstance(option, click.Option) and flag not in _FLAGS:
            raise ConfigurationError(f"`{flag}` is for a run of its own; stored outputs are only scored once more.")
        if is_dataset and flag == "--to":
            raise ConfigurationError("A report is of one run: name it in place of `dataset:NAME`.")
