"""`deemster run` of a suite with variants: all of them side by side, or one as an ordinary run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from deemster.cli._console import complain, note, print_sections, show_progress, warn
from deemster.cli._interruption import leave, leave_interrupted
from deemster.cli._report_ending import exit_code, note_what_is_missing, print_verdict, warn_of_open_checks
from deemster.cli._run_and_report import NextSteps, RunWriting, run_and_report
from deemster.cli.store_options import open_run_store, open_storage, store_flag
from deemster.errors import ConfigurationError, ExitCode, Issue, ReportError, list_names, visible

if TYPE_CHECKING:
    from deemster.cli._run_flags import PartOptions
    from deemster.evaluation.resolve_evaluation import SuiteOverrides
    from deemster.evaluation.resolved_evaluation import Evaluation
    from deemster.evaluation.run_experiment import FinishedVariant, ResolvedExperiment
    from deemster.evaluation.suite import Suite
    from deemster.runs.run_storage import Storage, StoredOrNot

# The order in which the codes of several runs count: marks that miss may change all the rest.
_CODES = (ExitCode.INCOMPLETE, ExitCode.GATE_FAILED, ExitCode.INCONCLUSIVE)
# What is written about the samples of one run.
_FOR_ONE_RUN = frozenset({"junit", "junit-samples", "brief"})


class WantedVariants(NamedTuple):
    """Which variants of a suite are run, and how.

    Attributes:
        patterns: Their names or globs; all without any.
        overrides: What flags say in place of the suite.
        part: Which samples are run.
        prepare: What flags change of the suite of each.
    """

    patterns: Sequence[str]
    overrides: SuiteOverrides
    part: PartOptions
    prepare: Callable[[Suite], Suite]


def run_variants(suite: Suite, wanted: WantedVariants, writing: RunWriting, steps: NextSteps) -> NoReturn:
    """Run variants of a suite, store and report them, and end the command with its exit code.

    Raises:
        DeemsterError: Nothing can be run.
        Exit: Always, with the exit code.
    """
    from deemster.evaluation.run_experiment import resolve_experiment
    from deemster.evaluation.variants import choose_variants, suite_variants

    if suite.variants is None:
        raise ConfigurationError(Issue("This suite has no `variants`.", suite.document.where()))
    variants = suite_variants(suite, calls_target=wanted.overrides.outputs is None)
    chosen = choose_variants(variants, wanted.patterns)
    if len(chosen) > 1:
        _check_flags([variant.name for variant in chosen], suite, wanted.overrides, writing)

    select = wanted.part.find(suite, _with_one_run(writing.storage)).select
    overrides = wanted.overrides._replace(select=select)

    resolve = partial(resolve_experiment, suite, variants, overrides, patterns=wanted.patterns, prepare=wanted.prepare)

    def resolve_one(*, storage: StoredOrNot) -> Evaluation:
        return resolve(storage=storage).arms[0].evaluation

    if len(chosen) == 1:
        run_and_report(wanted.prepare(chosen[0].suite_of(suite)), resolve_one, writing, steps)

    storage = None if writing.storage is None else writing.storage._replace(durable=suite.durable)
    with open_storage(storage, steps.call, keep_prompts=suite.calls.keep_prompts) as stored:
        experiment = resolve(storage=stored)
        finished, is_stopped = _run(experiment, writing, stored)
        code = _report(experiment, finished, writing, stored)
        if code is ExitCode.INCOMPLETE and stored.store is not None:
            note(f"To continue: {steps.call}{store_flag(stored)} --resume")
    if is_stopped:
        leave(code)
    raise click.exceptions.Exit(code)


def _with_one_run(storage: Storage | None) -> Storage | None:
    """The storage, where one of its runs stands for the experiment that is resumed: all have the same samples."""
    if storage is None or not isinstance(storage.resume, str):
        return storage
    with open_run_store(str(storage.where)) as store:
        experiment = store.find_experiment(storage.resume)
        runs = [] if experiment is None else store.runs(experiment=experiment, kind="run", limit=1)
    return storage._replace(resume=runs[0].id) if runs else storage


def _check_flags(names: Sequence[str], suite: Suite, overrides: SuiteOverrides, writing: RunWriting) -> None:
    """Refuse what is for one variant where several are run.

    Raises:
        ConfigurationError: There is some of it.
    """
    if suite.settings.on is not None:
        raise ConfigurationError("Variants run side by side in this process: `on` is for one, with `--variant NAME`.")

    written = {destination.format for destination in writing.reports.destinations} & _FOR_ONE_RUN
    flags = {
        "--outputs": overrides.outputs is not None,
        "--as-baseline": writing.as_baseline,
        "--confirm": bool(suite.settings.confirm),
        "--name": overrides.label is not None,
        "--verbose": writing.verbose,
        **{f"--to {name}:FILE": True for name in sorted(written)},
    }
    for_one = [flag for flag, is_given in flags.items() if is_given]
    if for_one:
        verb = "is" if len(for_one) == 1 else "are"
        message = f"{list_names(for_one)} {verb} for one variant: `--variant NAME`. There are {list_names(names)}."
        raise ConfigurationError(message)


def _run(
    experiment: ResolvedExperiment, writing: RunWriting, storage: StoredOrNot
) -> tuple[list[FinishedVariant], bool]:
    """Run an experiment with its progress; what came of it, and whether it was asked to stop."""
    from deemster.comparison.experiment_report import FEW_SAMPLES, describe_resolution
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible
    from deemster.evaluation.run_experiment import run_experiment
    from deemster.runs.run_storage import RunStorage

    samples = min(len(arm.evaluation.plan.dataset) for arm in experiment.arms)
    if samples < FEW_SAMPLES:
        warn(describe_resolution(samples, len(experiment.arms)))
    if isinstance(storage, RunStorage):
        storage.begun(experiment.id)
    stop = Stop()
    with (
        interruptible(stop, tell=note, leave=leave_interrupted),
        show_progress(quiet=writing.quiet) as progress,
    ):
        return run_sync(run_experiment(experiment, stop=stop, warn=warn, progress=progress)), stop.requested


def _report(
    experiment: ResolvedExperiment, finished: Sequence[FinishedVariant], writing: RunWriting, storage: StoredOrNot
) -> ExitCode:
    """Write and print what an experiment shows; the exit code of the command."""
    from deemster.comparison.experiment_report import experiment_overview, gate_lines
    from deemster.comparison.without_text import experiment_without_text
    from deemster.evaluation.run_experiment import conclude_experiment

    reports = writing.reports
    codes = [_tell_variant(variant) for variant in finished]
    if all(variant.error is not None and variant.error.exit_code is ExitCode.BAD_INPUT for variant in finished):
        return ExitCode.BAD_INPUT
    code = next((known for known in _CODES if known in codes), ExitCode.PASSED)

    try:
        answer = conclude_experiment(experiment, finished, storage.store)
        shown = experiment_without_text(answer) if reports.without_text else answer
        reports.write_each(shown.write)
    except ReportError as error:
        complain(str(error))
        return ExitCode.INCOMPLETE

    if not writing.quiet:
        reports.note_files()
    if writing.quiet or reports.takes_stdout:
        for line in gate_lines(shown):
            note(visible("".join(line)))
    else:
        name = None if storage.store is None else "latest"
        print_sections(experiment_overview(shown, name, store_flag=store_flag(storage)))
    return code


def _tell_variant(variant: FinishedVariant) -> ExitCode:
    """Say what of a variant needs to be known beside the answer; its exit code."""
    if variant.report is None:
        complain(f"{variant.name}: {variant.error}")
        return ExitCode.INCOMPLETE

    report = variant.report
    code = exit_code(report)
    if code is not ExitCode.PASSED:
        note(visible(f"{variant.name}:"))
        if report.gate is not None and report.gate.checks:
            print_verdict(report.gate, report.run.part)
        note_what_is_missing(report, is_printed=False)
    warn_of_open_checks(report.gate)
    return code
