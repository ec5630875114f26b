"""`deemster run`: runs a suite, stores the run, prints the report, applies the gate."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from deemster.cli._console import note, print_sections, show_progress, warn
from deemster.cli._interrupt_signals import interruptible
from deemster.cli._suite_options import override_options
from deemster.cli.main import complain, leave
from deemster.cli.options import (
    REDACT_LEVELS,
    ReportOptions,
    StorageOptions,
    dry_run_option,
    quiet_option,
    report_options,
    storage_options,
)
from deemster.errors import ExitCode, ReportError, visible

if TYPE_CHECKING:
    from deemster.cli._load_suite_job import Overrides
    from deemster.report import Report
    from deemster.results import GateDecision


@click.command("run", short_help="Run a suite, store the run, print the report, apply the gate.")
@click.argument("suite", type=click.Path())
@override_options
@report_options
@storage_options
@dry_run_option
@quiet_option
def command(
    *, suite: str, overrides: Overrides, reports: ReportOptions, storage: StorageOptions, dry_run: bool, quiet: bool
) -> None:
    """Run a suite, store the run, print the report, apply the gate.

    Exit codes: 0 all rules pass (or none is declared), 1 a gate rule fails, 2 bad input, 3 incomplete, 4 inconclusive.
    """
    from deemster.cli._load_suite_job import build_suite_job
    from deemster.runs.evaluate_dataset import run_job
    from deemster.runs.run_sync import run_sync
    from deemster.runs.stop_request import Stop
    from deemster.runs.suite import load_suite

    overrides = overrides._replace(discreet=reports.level != REDACT_LEVELS[0], calls=not (dry_run or overrides.offline))
    reports.check()
    storage.check()
    job = build_suite_job(load_suite(suite, calls_target=overrides.outputs is None and not dry_run), overrides)
    if dry_run:
        from deemster.cli._dry_run import print_job_requests

        print_job_requests(job)
        return
    stop = Stop()
    with storage.open() as stored:
        with interruptible(stop), show_progress(quiet=quiet) as progress:
            report = run_sync(run_job(job, stop=stop, warn=warn, progress=progress, storage=stored))
        shown = reports.redact(report, job.plan.metrics)
        again = f"deemster report {report.run.id}{storage.store_flag(stored)}" if stored is not None else None
        code = write_and_print(report, shown, reports, quiet=quiet, again=again)
        if stored is not None and _is_worth_resuming(report):
            note(f"To go on with it: deemster run {suite}{storage.store_flag(stored)} --resume")
    if stop.requested:
        leave(code)
    sys.exit(code)


def _is_worth_resuming(report: Report) -> bool:
    """Whether an incomplete run may come further when it is resumed."""
    from deemster.runs.resume_backlog import RETRIED_CAUSES

    causes = {cause for figures in report.metrics.values() for cause in figures.unscored_by_cause}
    helps = report.totals.not_run > 0 or not causes.isdisjoint({*RETRIED_CAUSES, "target_failed"})
    return report.run.status == "incomplete" and helps


def write_and_print(
    report: Report, shown: Report, reports: ReportOptions, *, quiet: bool, again: str | None
) -> ExitCode:
    """Write and print a report; returns the exit code.

    Args:
        report: The report.
        shown: The report without what the flags leave out.
        reports: Where it is written.
        quiet: Whether it is not printed on the terminal.
        again: The command that writes it again; None where it is not stored.
    """
    from deemster.report.report_sections import report_sections

    code = exit_code(report)
    try:
        reports.write(shown)
    except ReportError as error:
        complain(str(error))
        if again is not None:
            note(f"The run is stored. To write its report again: {again}")
        code = ExitCode.INCOMPLETE
    if not reports.takes_stdout and not quiet:
        print_sections(report_sections(shown))
    elif report.gate is not None:
        _print_verdict(report.gate)
    _warn_of_inconclusive(report.gate)
    if report.run.status != "complete":
        note(visible(f"{report.run.status}: {report.run.reason}."))
    return code


def exit_code(report: Report) -> ExitCode:
    """The exit code of a run: incomplete before failed before inconclusive, for marks that miss may change the rest."""
    if report.run.status == "incomplete":
        return ExitCode.INCOMPLETE
    return report.gate.exit_code if report.gate is not None else ExitCode.PASSED


def _print_verdict(gate: GateDecision) -> None:
    """Print the verdict of the gate where no report was printed."""
    from deemster.report.report_sections import gate_verdict
    from deemster.report.text_sections import format_number

    note(gate_verdict(gate))
    for check in gate.checks:
        if check.status in ("fail", "inconclusive"):
            numbers = f"{format_number(check.observed)}, required {check.required:.4g}"
            note("  " + visible(f"{check.status}: {check.name}: {numbers}: {check.because}"))


def _warn_of_inconclusive(gate: GateDecision | None) -> None:
    """Warn of inconclusive checks that a two-way gate counts as passed."""
    if gate is None or gate.mode == "three-way":
        return
    for check in gate.checks:
        if check.status == "inconclusive":
            warn(visible(f"the gate counts {check.name} as passed, though it is inconclusive: {check.because}"))
