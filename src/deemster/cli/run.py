"""`deemster run`: runs a suite, stores the run, prints the report, applies the gate."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Protocol

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, show_progress, warn
from deemster.cli._report_ending import is_worth_resuming, steps_after_crashes, write_and_print
from deemster.cli._stored_outputs import is_stored, score_stored_outputs
from deemster.cli.main import complain, leave, leave_interrupted
from deemster.cli.model_options import CACHE_OPTIONS, budget_option, collect_limits
from deemster.cli.options import (
    Command,
    Decorator,
    Flags,
    group_flags,
    only_option,
    quiet_option,
    take_flags,
    take_only,
)
from deemster.cli.report_options import ReportOptions, run_report_options
from deemster.cli.store_options import StorageOptions, open_run_store, storage_options
from deemster.errors import (
    ConfigurationError,
    ExitCode,
    StorageError,
    StoreError,
    plural,
    visible,
)

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.datasets.only_expression import Only
    from deemster.engine.kept_prompts import WhichPrompts
    from deemster.engine.stop_request import Stop
    from deemster.evaluation.resolve_evaluation import SuiteOverrides
    from deemster.evaluation.resolved_evaluation import Evaluation
    from deemster.evaluation.run_part import RunPart
    from deemster.evaluation.suite import Suite
    from deemster.records import Execution
    from deemster.report import Report
    from deemster.report.overview import NamedRun
    from deemster.runs.run_storage import StoredOrNot
    from deemster.store import Store


def _override_options(command: Command) -> Command:
    """Add the flags; the command receives them as one ``overrides``, and those that select samples as ``part``."""
    command = group_flags(command, "part", _take_part)
    return group_flags(command, "overrides", take_overrides, (*_PART, *_OVERRIDES))


def _take_part(flags: Flags) -> PartOptions:
    flags["only"] = take_only(flags)
    part: PartOptions = take_flags(PartOptions, flags)
    return part


def take_overrides(flags: Flags) -> SuiteOverrides:
    """What is given as flags, which wins over the suite; it takes these flags out."""
    from deemster.evaluation.resolve_evaluation import SuiteOverrides

    flags["limits"] = collect_limits(flags)
    flags["thresholds"] = _parse_thresholds(flags.get("thresholds", ()))
    overrides: SuiteOverrides = take_flags(SuiteOverrides, flags)
    return overrides


def _parse_thresholds(given: tuple[str, ...]) -> dict[str, float]:
    parsed = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        try:
            parsed[name] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise ConfigurationError(f"`--threshold` is NAME=T, such as rouge-l=0.7, not `{text}`.")
    return parsed


class PartOptions(NamedTuple):
    """Which samples are run.

    Attributes:
        only: What `--only` says of them.
        sample: So many at random.
        seed: The seed of these; None unless given.
        limit: The first so many.
    """

    only: Only
    sample: int | None
    seed: int | None
    limit: int | None

    def find(self, storage: StorageOptions, suite: Suite) -> RunPart:
        """The part that the flags select, or that of the run which is resumed without any of them.

        Raises:
            InputError: The flags contradict each other, or a run that they name cannot be read.
        """
        from deemster.datasets import Dataset
        from deemster.datasets.only_expression import LATEST
        from deemster.evaluation.run_part import RunPart, failed_samples, resumed_samples

        if self.seed is not None and self.sample is None:
            raise ConfigurationError("`--seed` is for `--sample`, which draws samples at random.")
        if LATEST in self.only.failed and storage.resume:
            raise ConfigurationError("Beside `--resume`, name the run: `--only failed:RUN`. The last one is resumed.")
        choose = functools.partial(
            Dataset.select,
            tags=self.only.tags,
            ids=self.only.ids,
            where=self.only.where,
            sample=self.sample,
            # With another seed only the draw changes; the suite's seed stays that of the models.
            seed=suite.seed if self.seed is None else self.seed,
            limit=self.limit,
        )
        narrows = self.only.tags or self.only.ids or self.only.where
        has_chosen = bool(narrows) or self.sample is not None or self.limit is not None
        if self.only.failed:
            with open_run_store(storage.store) as store:
                kept = failed_samples(store, self.only.failed, suite=suite.name)
            return RunPart(kept, choose if has_chosen else None)
        if has_chosen or not storage.resume:
            return RunPart(choose=choose if has_chosen else None)
        with open_run_store(storage.store, create=True) as store:
            return RunPart(resumed_samples(store, storage.resume, suite=suite.name))


_PART: Sequence[Decorator] = (
    only_option,
    click.option("--sample", type=int, metavar="N", help="Only N samples, drawn at random."),
    click.option("--seed", type=int, metavar="S", help="The seed of --sample, in place of the suite's."),
    click.option("--limit", type=int, metavar="N", help="Only the first N samples."),
)
name_option = click.option("--name", "label", metavar="TEXT", help="What you call this run; other commands take it.")
repetitions_option = click.option("--repetitions", type=int, metavar="R", help="Run each sample R times.")
concurrency_option = click.option("--concurrency", type=int, metavar="N", help="How many calls of the target at once.")
timeout_option = click.option(
    "--timeout", "timeout_s", type=float, metavar="SECONDS", help="Stop the run after so long; it can be resumed."
)
as_baseline_option = click.option(
    "--as-baseline", is_flag=True, help="Make it the baseline of its suite, if it may be one."
)
_OVERRIDES: Sequence[Decorator] = (
    name_option,
    click.option(
        "--outputs",
        metavar="FILE|RUN",
        help="Score earlier answers, call no target: `help outputs`.",
    ),
    repetitions_option,
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="SPEC",
        help="Use this metric, not the suite's; repeatable.",
    ),
    click.option(
        "--threshold", "thresholds", multiple=True, metavar="NAME=T", help="Set a metric's pass mark; repeatable."
    ),
    concurrency_option,
    timeout_option,
    budget_option,
    *CACHE_OPTIONS,
)


# The headings of flags that choose samples, and of those that say how they are run.
RUN_HEADINGS = {
    "Which samples": ("--sample", "--limit", "--seed"),
    "How": ("--outputs", "--metric", "--threshold", "--repetitions", "--concurrency", "--timeout", "--confirm"),
}


@click.command(
    "run",
    cls=Verb,
    short_help="Run a suite, store the run, print the report, apply the gate.",
    headings=RUN_HEADINGS,
    examples=[
        "deemster run",
        "deemster run suite.yml --only failed --to report.html --to junit.xml",
        "deemster run --outputs latest --metric 'length-within(max=80, unit=words)'",
    ],
    see_also=["check", "show", "compare", "help exit-codes"],
)
@click.argument("suite", type=click.Path(), required=False)
@_override_options
@run_report_options
@storage_options
@as_baseline_option
@click.option(
    "--confirm",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run newly failing samples up to N times more.",
)
@quiet_option
@click.option("--verbose", is_flag=True, help="Print the tracebacks of a Python target.")
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    suite: str | None,
    overrides: SuiteOverrides,
    part: PartOptions,
    reports: ReportOptions,
    storage: StorageOptions,
    as_baseline: bool,
    confirm: int | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run a suite, store the run, print the report, apply the gate."""
    from deemster.evaluation.resolve_evaluation import resolve_evaluation
    from deemster.evaluation.suite import load_suite

    if overrides.outputs is not None and is_stored(str(overrides.outputs)):
        score_stored_outputs(
            context,
            str(overrides.outputs),
            suite=suite,
            metrics=overrides.metrics,
            limits=overrides.limits,
            reports=reports,
            store=storage.store,
            quiet=quiet,
        )
    if suite is None:
        suite = "suite.yml"
    overrides = overrides._replace(redact_warnings=reports.without_text)
    writing = RunWriting(reports, storage, as_baseline, confirm=confirm or 0, quiet=quiet, verbose=verbose)
    writing.check()
    loaded = load_suite(suite, calls_target=overrides.outputs is None)
    writing = writing.for_suite(loaded)
    overrides = overrides._replace(select=part.find(storage, loaded).select, partial=part.only.answered)
    resolve = functools.partial(resolve_evaluation, loaded, overrides)
    run_and_report(resolve, writing, call=f"deemster run {suite}", after_fix=f"deemster run {suite} --only failed")


class Resolve(Protocol):
    """Resolves an evaluation together with its storage."""

    def __call__(self, *, storage: StoredOrNot) -> Evaluation:
        """The evaluation."""
        ...


class RunWriting(NamedTuple):
    """Where a run is stored and reported.

    Attributes:
        reports: Where its report is written, and what it leaves out.
        storage: Where it is stored, and what it resumes.
        as_baseline: Whether it becomes the baseline of its suite.
        confirm: How often samples that newly fail are run again.
        quiet: Whether nothing is printed.
        verbose: Whether the tracebacks of a target are printed.
        keep_prompts: Whose prompts are stored.
        on: The address of the cluster it runs on; None for this process.
    """

    reports: ReportOptions
    storage: StorageOptions
    as_baseline: bool = False
    confirm: int = 0
    quiet: bool = False
    verbose: bool = False
    keep_prompts: WhichPrompts = "failed"
    on: str | None = None

    def for_suite(self, suite: Suite) -> RunWriting:
        """The same, with what the suite says of it."""
        return self._replace(
            reports=self.reports.with_junit(suite.junit),
            storage=self.storage._replace(durable=suite.durable),
            keep_prompts=suite.keep_prompts,
            on=suite.on,
        )

    def check(self) -> None:
        """Refuse flags that contradict each other, before anything runs.

        Raises:
            DeemsterError: They do.
        """
        self.storage.check()
        if self.as_baseline and self.storage.stores_nothing:
            raise ConfigurationError("`--as-baseline` is for a stored run, and `--store none` stores none.")


def run_and_report(
    resolve: Resolve,
    writing: RunWriting,
    *,
    call: str,
    after_fix: str | None = None,
    conclude: Callable[[Store, Report], None] | None = None,
) -> NoReturn:
    """Run an evaluation with its progress, store and report it, and end the command with its exit code.

    Args:
        resolve: Resolves what to run together with its storage.
        writing: Where it is stored and reported.
        call: The command, as the user repeats it to continue the run.
        after_fix: The command that runs again what failed; the same unless given.
        conclude: Called with the store and the report, once a stored run has ended.

    Raises:
        DeemsterError: The run cannot go on.
        Exit: Always, with the exit code.
    """
    from deemster.engine.stop_request import Stop
    from deemster.evaluation.confirm_run import check_confirmation

    reports, stop, raised = writing.reports, Stop(), RaisedErrors()
    with writing.storage.open(call, keep_prompts=writing.keep_prompts) as storage:
        evaluation = resolve(storage=storage)
        check_confirmation(evaluation, writing.confirm)
        report, comparison = _run(evaluation, writing, storage, stop=stop, raised=raised)
        flag = writing.storage.store_flag(storage)
        named = None if storage.store is None else _named_run(storage.store, report, flag)
        quotes = {card.name: card.quotes for card in evaluation.plan.cards}
        code = write_and_print(report, reports, quotes=quotes, quiet=writing.quiet, named=named, comparison=comparison)
        if writing.verbose:
            raised.print(without_text=reports.without_text)
        if storage.store is not None:
            row = storage.store.run(report.run.id)
            for step in steps_after_crashes(
                report, row, show=f"deemster show latest{flag} --failed", run=f"{after_fix or call}{flag}"
            ):
                note(step)
            if is_worth_resuming(report, row):
                note(f"To continue: {call}{flag} --resume")
            if conclude is not None:
                conclude(storage.store, report)
            if writing.as_baseline:
                code = _choose_baseline(storage.store, report, code)
    if stop.requested:
        leave(code)
    raise click.exceptions.Exit(code)


def _run(
    evaluation: Evaluation, writing: RunWriting, storage: StoredOrNot, *, stop: Stop, raised: RaisedErrors
) -> tuple[Report, Comparison | None]:
    """Run an evaluation with its progress, and what newly fails again where that is wanted."""
    import msgspec

    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import interruptible
    from deemster.evaluation.confirm_run import confirm_report
    from deemster.evaluation.run_evaluation import find_backend, run_evaluation

    compared: list[Comparison] = []
    with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=writing.quiet) as progress:
        running = run_evaluation(
            evaluation,
            storage=storage,
            backend=find_backend(writing.on),
            stop=stop,
            warn=warn,
            progress=progress,
            watch=raised.add if writing.verbose else None,
            tell_comparison=compared.append,
        )
        report = run_sync(running)
        if not compared or not writing.confirm:
            return report, next(iter(compared), None)

        confirming = confirm_report(
            report, compared[0], evaluation, writing.confirm, storage, stop=stop, progress=progress
        )
        report = run_sync(confirming)
        return report, msgspec.structs.replace(compared[0], gate=report.gate)


def _named_run(store: Store, report: Report, store_flag: str) -> NamedRun:
    """How commands find a run that has just ended."""
    from deemster.report.overview import NamedRun

    baseline = store.baseline(report.run.suite, report.dataset.name)
    has_baseline = baseline is not None and baseline.run != report.run.id
    return NamedRun("latest", store_flag, has_baseline=has_baseline)


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
