"""Runs an evaluation for a command: with its progress, its report, what to do next, and its exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

import click

from deemster.cli._console import complain, note, show_progress, warn
from deemster.cli._interruption import leave, leave_interrupted
from deemster.cli._report_ending import is_worth_resuming, name_run, steps_after_crashes, write_and_print
from deemster.cli.options import Command, Flags, group_flags, quiet_option, take_flags
from deemster.cli.report_options import ReportOptions, run_report_options
from deemster.cli.store_options import check_storage, open_storage, storage_options, store_flag
from deemster.errors import ConfigurationError, ExitCode, StorageError, StoreError, plural, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.engine.stop_request import Stop
    from deemster.evaluation.resolved_evaluation import Evaluation
    from deemster.evaluation.suite import Suite
    from deemster.records import Execution
    from deemster.report import Report
    from deemster.runs.run_storage import Storage, StoredOrNot
    from deemster.store import Store


class Resolve(Protocol):
    """Resolves an evaluation together with its storage."""

    def __call__(self, *, storage: StoredOrNot) -> Evaluation:
        """The evaluation."""
        ...


class RunWriting(NamedTuple):
    """Where a run is stored and reported.

    Attributes:
        reports: Where its report is written, and what it leaves out.
        storage: Where it is stored, and what it resumes; None for nowhere.
        as_baseline: Whether it becomes the baseline of its suite.
        quiet: Whether nothing is printed.
        verbose: Whether the tracebacks of a target are printed.
    """

    reports: ReportOptions
    storage: Storage | None
    as_baseline: bool = False
    quiet: bool = False
    verbose: bool = False


def writing_options(command: Command) -> Command:
    """Add the flags of storing and reporting a run; the command receives them as one ``writing``."""
    command = group_flags(command, "writing", _take_writing, _WRITING)
    return run_report_options(storage_options(command))


def _take_writing(flags: Flags) -> RunWriting:
    writing: RunWriting = take_flags(RunWriting, flags)
    check_storage(writing.storage)
    if writing.as_baseline and writing.storage is None:
        raise ConfigurationError("`--as-baseline` is for a stored run, and `--store none` stores none.")
    return writing


_WRITING = (
    click.option("--as-baseline", is_flag=True, help="Make it the baseline of its suite, if it may be one."),
    quiet_option,
    click.option("--verbose", is_flag=True, help="Print the tracebacks of a Python target."),
)


class NextSteps(NamedTuple):
    """What the user types after a run.

    Attributes:
        call: The command, as it is repeated to continue the run.
        after_fix: The command that runs again what failed.
    """

    call: str
    after_fix: str


class ReportedRun(NamedTuple):
    """What came of a run.

    Attributes:
        report: Its report.
        comparison: Its comparison with the baseline of its gate; None where there is none.
    """

    report: Report
    comparison: Comparison | None


def run_and_report(
    suite: Suite,
    resolve: Resolve,
    writing: RunWriting,
    steps: NextSteps,
    *,
    conclude: Callable[[Store, Report], None] | None = None,
) -> NoReturn:
    """Run an evaluation with its progress, store and report it, and end the command with its exit code.

    Args:
        suite: The suite, which says how the run is stored and reported.
        resolve: Resolves what to run together with its storage.
        writing: Where it is stored and reported.
        steps: What the user types next.
        conclude: Called with the store and the report, once a stored run has ended.

    Raises:
        DeemsterError: The run cannot go on.
        Exit: Always, with the exit code.
    """
    from deemster.engine.stop_request import Stop

    storage = writing.storage
    if storage is not None:
        storage = storage._replace(durable=suite.durable)
    writing = writing._replace(reports=writing.reports.with_junit(suite.junit))
    stop = Stop()
    raised = RaisedErrors()

    with open_storage(storage, steps.call, keep_prompts=suite.calls.keep_prompts) as stored:
        evaluation = resolve(storage=stored)
        if suite.settings.confirm:
            from deemster.evaluation.confirm_run import check_confirmation

            check_confirmation(evaluation, suite.settings.confirm)

        finished = _run(evaluation, suite, writing, stored, stop=stop, raised=raised)
        code = _report(finished, evaluation, writing, stored)
        if writing.verbose:
            raised.print(without_text=writing.reports.without_text)

        if stored.store is not None:
            _say_next_steps(finished.report, stored, steps)
            if conclude is not None:
                conclude(stored.store, finished.report)
            if writing.as_baseline:
                code = _choose_baseline(stored.store, finished.report, code)
    if stop.requested:
        leave(code)
    raise click.exceptions.Exit(code)


def _run(
    evaluation: Evaluation,
    suite: Suite,
    writing: RunWriting,
    storage: StoredOrNot,
    *,
    stop: Stop,
    raised: RaisedErrors,
) -> ReportedRun:
    """Run an evaluation with its progress, and what newly fails again where that is wanted."""
    import msgspec

    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import interruptible
    from deemster.evaluation.run_evaluation import find_backend, run_evaluation

    compared: list[Comparison] = []
    confirm = suite.settings.confirm
    with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=writing.quiet) as progress:
        running = run_evaluation(
            evaluation,
            storage=storage,
            backend=find_backend(suite.settings.on),
            stop=stop,
            warn=warn,
            progress=progress,
            watch=raised.add if writing.verbose else None,
            tell_comparison=compared.append,
        )
        report = run_sync(running)
        if not compared or not confirm:
            return ReportedRun(report, next(iter(compared), None))

        from deemster.evaluation.confirm_run import confirm_report

        confirming = confirm_report(report, compared[0], evaluation, confirm, storage, stop=stop, progress=progress)
        report = run_sync(confirming)
        return ReportedRun(report, msgspec.structs.replace(compared[0], gate=report.gate))


def _report(finished: ReportedRun, evaluation: Evaluation, writing: RunWriting, storage: StoredOrNot) -> ExitCode:
    """Write and print the report of a run; the exit code of the command."""
    report = finished.report
    named = None if storage.store is None else name_run(storage.store, report, "latest", store_flag=store_flag(storage))
    quotes = {card.name: card.quotes for card in evaluation.plan.cards}
    return write_and_print(
        report, writing.reports, quotes=quotes, quiet=writing.quiet, named=named, comparison=finished.comparison
    )


def _say_next_steps(report: Report, storage: StoredOrNot, steps: NextSteps) -> None:
    """Say what to type where code crashed, or where the run may come further."""
    if storage.store is None:
        return
    flag = store_flag(storage)
    row = storage.store.run(report.run.id)

    for step in steps_after_crashes(report, row, store_flag=flag, run=f"{steps.after_fix}{flag}"):
        note(step)
    if is_worth_resuming(report, row):
        note(f"To continue: {steps.call}{flag} --resume")


def _choose_baseline(store: Store, report: Report, code: ExitCode) -> ExitCode:
    """Make a run the baseline; the exit code of the command where that is refused."""
    from deemster.cli.baseline import choose_baseline

    try:
        choose_baseline(store, report.run.id)
    except StorageError:
        raise
    except StoreError as error:
        complain(str(error))
        return code or ExitCode.BAD_INPUT
    return code


class RaisedErrors:
    """The tracebacks of a target, each distinct one once, with the samples that it stands for."""

    _MOST = 10

    def __init__(self) -> None:
        self._ids: dict[str, list[str]] = {}

    def add(self, executions: Sequence[Execution]) -> None:
        """Note what the target raised."""
        for execution in executions:
            traceback = getattr(execution.answer, "traceback", None)
            if traceback is not None:
                self._ids.setdefault(traceback, []).append(execution.id)

    def print(self, *, without_text: bool) -> None:
        """Print the tracebacks, the most frequent first.

        Args:
            without_text: Whether the report leaves texts out; a traceback holds them.
        """
        if without_text:
            if self._ids:
                note("`--without-text` leaves out tracebacks too.")
            return
        ordered = sorted(self._ids.items(), key=lambda each: -len(each[1]))
        for traceback, ids in ordered[: self._MOST]:
            note(visible(f"{plural(len(ids), 'time')}, such as for the sample {min(ids)}:"))
            for line in traceback.splitlines():
                text = line.lstrip(" ")
                note(" " * (len(line) - len(text) + 2) + visible(text))
        if len(ordered) > self._MOST:
            note(f"{plural(len(ordered) - self._MOST, 'other traceback')}: `deemster show RUN SAMPLE` shows each.")
