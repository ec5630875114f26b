"""`deemster run`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from deemster.cli._console import note, progress_shown, show_report, warn
from deemster.cli._dry_run import show_rehearsal
from deemster.cli._load_suite_job import Overrides, job_of_suite
from deemster.cli._suite_options import overriding_options
from deemster.cli.main import complain, leave
from deemster.cli.options import Kept, Rendering, keeping_options, rendering_options
from deemster.errors import ExitCode, ReportError, visible
from deemster.report import LEVELS, Report
from deemster.report.report_sections import gate_verdict
from deemster.report.text_sections import format_number
from deemster.results import GateDecision
from deemster.runs.evaluate_dataset import run_job
from deemster.runs.evaluation_job import Job
from deemster.runs.resume_backlog import RETRIED_CAUSES
from deemster.runs.run_lifecycle import RunStorage
from deemster.runs.run_sync import run_sync
from deemster.runs.stop_request import Stop
from deemster.runs.suite import load_suite


@click.command("run", short_help="Run a suite, store the run, print the report, apply the gate.")
@click.argument("suite", type=click.Path())
@overriding_options
@rendering_options
@keeping_options
@click.option("--dry-run", is_flag=True, help="Count what the models would be asked and what that costs; ask nothing.")
@click.option("--quiet", is_flag=True, help="Show no progress and no report on the terminal.")
def command(*, suite: str, overrides: Overrides, rendering: Rendering, kept: Kept, dry_run: bool, quiet: bool) -> None:
    """Run a suite, store the run, print the report, apply the gate.

    Exit codes: 0 all rules pass (or none is declared), 1 a gate rule fails, 2 bad input, 3 incomplete, 4 inconclusive.
    """
    overrides = overrides._replace(discreet=rendering.level != LEVELS[0], calls=not (dry_run or overrides.offline))
    rendering.check()
    kept.check()
    job = job_of_suite(load_suite(suite, calls_target=overrides.outputs is None and not dry_run), overrides)
    if dry_run:
        show_rehearsal(job)
        return
    stop = Stop()
    with kept.opened() as storage:
        report = _run(job, stop, storage, quiet=quiet)
        view = rendering.view(report, job.plan.metrics)
        again = f"deemster report {report.run.id}{kept.hint(storage)}" if storage is not None else None
        code = delivered(report, view, rendering, quiet=quiet, again=again)
        if storage is not None and _goes_on(report):
            note(f"To go on with it: deemster run {suite}{kept.hint(storage)} --resume")
    if stop.requested:
        leave(code)
    sys.exit(code)


def _run(job: Job, stop: Stop, storage: RunStorage | None, *, quiet: bool) -> Report:
    with interruptible(stop), progress_shown(quiet=quiet) as progress:
        return run_sync(run_job(job, stop=stop, warn=warn, progress=progress, storage=storage))


def _goes_on(report: Report) -> bool:
    """Whether an incomplete run may come further when it is resumed."""
    causes = {cause for figures in report.metrics.values() for cause in figures.unscored_by_cause}
    worth = report.totals.not_run > 0 or not causes.isdisjoint({*RETRIED_CAUSES, "target_failed"})
    return report.run.status == "incomplete" and worth


def delivered(report: Report, view: Report, rendering: Rendering, *, quiet: bool, again: str | None) -> ExitCode:
    """Write and show a report as it was asked for; how the run ends.

    Args:
        report: The report.
        view: The report as it is to be shown.
        rendering: Where it goes.
        quiet: Whether it is not shown on the terminal.
        again: The command that writes it again; None where it is not stored.
    """
    code = exit_code(report)
    try:
        rendering.write(view)
    except ReportError as error:
        complain(str(error))
        if again is not None:
            note(f"The run is stored. To write its report again: {again}")
        code = ExitCode.INCOMPLETE
    if not rendering.takes_stdout and not quiet:
        show_report(view)
    elif report.gate is not None:
        _conclude(report.gate)
    _warn_of_inconclusive(report.gate)
    if report.run.status != "complete":
        note(visible(f"{report.run.status}: {report.run.reason}."))
    return code


def exit_code(report: Report) -> ExitCode:
    """How the run ends: incomplete before failed before inconclusive, since a decision over missing marks is none."""
    if report.run.status == "incomplete":
        return ExitCode.INCOMPLETE
    return report.gate.exit_code if report.gate is not None else ExitCode.PASSED


def _conclude(gate: GateDecision) -> None:
    """Say the verdict where no report was shown."""
    note(gate_verdict(gate))
    for check in gate.checks:
        if check.status in ("fail", "inconclusive"):
            numbers = f"{format_number(check.observed)}, required {check.required:.4g}"
            note("  " + visible(f"{check.status}: {check.name}: {numbers}: {check.because}"))


def _warn_of_inconclusive(gate: GateDecision | None) -> None:
    """Warn of what counts as passed only because the gate knows two ways."""
    if gate is None or gate.mode == "three-way":
        return
    for check in gate.checks:
        if check.status == "inconclusive":
            warn(visible(f"the gate counts {check.name} as passed, though it is inconclusive: {check.because}"))


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Let the first signal ask the run to stop; the second one leaves at once."""

    def ask(number: int, _: FrameType | None) -> None:
        # Before a word is said, and for both: the second one may come at once, and be of the other kind.
        for each, handler in before.items():
            signal.signal(each, handler)
        known = signal.Signals(number)
        note(f"{known.name}: finishing what is under way; once more to leave at once")
        stop.request(f"interrupted by {known.name}")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
