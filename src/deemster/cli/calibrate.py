"""`deemster calibrate`: how far the judges of a run agree with people, where they are biased, and corrected numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, show_progress, warn
from deemster.cli.main import leave_interrupted
from deemster.cli.options import (
    RESULT_FORMATS,
    Command,
    Flags,
    NumberRange,
    ReportOptions,
    cache_options,
    columns_option,
    group_flags,
    quiet_option,
    result_options,
    store_option,
    take_flags,
    write_result,
)
from deemster.errors import ExitCode

if TYPE_CHECKING:
    from deemster.calibration.calibrate_run import CalibrationSettings
    from deemster.engine.model_access import ModelLimits

_SHARE = NumberRange(0, 1)


def _settings_option(command: Command) -> Command:
    """Let the command receive what its flags say of the calibration as one ``settings``."""
    return group_flags(command, "settings", _take_settings)


def _take_settings(flags: Flags) -> CalibrationSettings:
    from deemster.calibration.calibrate_run import CalibrationBounds, CalibrationSettings

    flags["bounds"] = take_flags(CalibrationBounds, flags)
    settings: CalibrationSettings = take_flags(CalibrationSettings, flags)
    return settings


@click.command("calibrate", cls=Verb, short_help="Compare the judges of a run with people, and correct its numbers.")
@click.argument("source", metavar="RUN|CASES")
@click.option(
    "--labels",
    metavar="FILE|viewer",
    help="A sheet of people's labels of the run's outputs, or `viewer` for those given in `deemster view`.",
)
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Look at this metric alone; repeatable.")
@click.option("--suite", metavar="FILE", help="With CASES: the suite whose metrics and models judge them.")
@click.option(
    "--repetitions", type=click.IntRange(min=1), default=1, show_default=True, help="With CASES: judge each so often."
)
@columns_option
@click.option("--min-agreement", type=_SHARE, metavar="A", help="Exit with 1 where the agreement is below this.")
@click.option("--min-kappa", type=NumberRange(-1, 1), metavar="K", help="Exit with 1 where kappa is below this.")
@click.option(
    "--max-length-bias",
    type=_SHARE,
    metavar="R",
    help="Exit with 1 where length and score correlate by more, among outputs that people judge alike.",
)
@click.option("--confidence", type=NumberRange(0, 1, min_open=True, max_open=True), default=0.95,
              show_default=True, metavar="LEVEL", help="The level of the intervals.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The seed of what is drawn.")
@result_options(*RESULT_FORMATS)
@store_option
@cache_options
@quiet_option
@_settings_option
def command(
    *,
    source: str,
    labels: str | None,
    settings: CalibrationSettings,
    suite: str | None,
    repetitions: int,
    columns: dict[str, list[str]] | None,
    reports: ReportOptions,
    store: str,
    limits: ModelLimits,
    quiet: bool,
) -> None:
    """Compare the judges of a run with people, and correct its numbers.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, a run file, or a report file; --labels names
    the sheet that people filled in (`deemster labels sheet` writes one): the columns `id` and `verdict`, and if wanted
    `metric`, `criterion`, `annotator`, `inclusion_probability` and `stratum`. A verdict is pass or fail, a score from 0
    to 1, or an option of a criterion. CASES is a file of outputs with people's verdicts (`deemster.calibration.v1`),
    which the metrics of --suite judge now.

    The report has agreement and kappa, the judge's errors, its biases, and the pass-rate of the run corrected for the
    errors. The JSON file is what a suite names as `calibration: FILE`, so that later runs are corrected too. Exit
    codes: 0 done, 1 a bound is missed, 2 bad input, 3 a result could not be written.
    """
    from deemster.calibration.calibrate_run import calibrate_cases, calibrate_labelled, is_cases_file
    from deemster.engine.run_sync import run_sync
    from deemster.engine.stop_request import Stop, interruptible

    if is_cases_file(source):
        stop = Stop()
        with interruptible(stop, tell=note, leave=leave_interrupted), show_progress(quiet=quiet) as progress:
            work = calibrate_cases(
                source,
                labels,
                settings,
                suite=suite,
                repetitions=repetitions,
                limits=limits,
                stop=stop,
                warn=warn,
                progress=progress,
            )
            calibration = run_sync(work)
    else:
        calibration = calibrate_labelled(source, labels, settings, suite=suite, columns=columns, store=store, warn=warn)
    write_result(calibration, reports, quiet=quiet)
    if any(check.status == "fail" for check in calibration.checks):
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)
