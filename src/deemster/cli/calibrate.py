"""`deemster calibrate`: how far the judges of a run agree with people, where they are biased, and corrected numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._console import note, print_sections, show_progress, warn
from deemster.cli.options import (
    REDACT_LEVELS,
    NumberRange,
    ReportOptions,
    cache_options,
    columns_option,
    file_option,
    open_run_store,
    quiet_option,
    store_option,
)
from deemster.errors import ConfigurationError, ExitCode

if TYPE_CHECKING:
    from deemster.alignment.calibration_result import Calibration
    from deemster.runs.model_access import ModelLimits

_SHARE = NumberRange(0, 1)
# What stands for the labels that people gave in the viewer.
VIEWER = "viewer"


@click.command("calibrate", short_help="Compare the judges of a run with people, and correct its numbers.")
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
@file_option("json", "the calibration as JSON, which a suite can name")
@file_option("markdown", "it as Markdown")
@file_option("html", "it as one HTML page that loads nothing")
@store_option
@cache_options
@quiet_option
def command(
    *,
    source: str,
    labels: str | None,
    metrics: tuple[str, ...],
    suite: str | None,
    repetitions: int,
    columns: dict[str, list[str]] | None,
    json: str | None,
    markdown: str | None,
    html: str | None,
    store: str,
    limits: ModelLimits,
    quiet: bool,
    confidence: float,
    seed: int,
    **bounds: Any,
) -> None:
    """Compare the judges of a run with people, and correct its numbers.

    RUN is the id of a stored run, the beginning of one, a label, `latest`, or a report file; --labels names the sheet
    that people filled in (`deemster labels sheet` writes one): the columns `id` and `verdict`, and if wanted `metric`,
    `criterion`, `annotator`, `inclusion_probability` and `stratum`. A verdict is pass or fail, a score from 0 to 1, or
    an option of a criterion. CASES is a file of outputs with people's verdicts (`deemster.calibration.v1`), which the
    metrics of --suite judge now.

    The report has agreement and kappa, the judge's errors, its biases, and the pass-rate of the run corrected for the
    errors. The JSON file is what a suite names as `calibration: FILE`, so that later runs are corrected too. Exit
    codes: 0 done, 1 a bound is missed, 2 bad input, 3 a result could not be written.
    """
    from deemster.runs.calibrate_run import CalibrationBounds

    reports = _reports(json=json, markdown=markdown, html=html)
    settings: dict[str, Any] = {
        "metrics": metrics,
        "bounds": CalibrationBounds(**bounds),
        "confidence": confidence,
        "seed": seed,
    }
    if _is_cases(source):
        if labels is not None:
            raise ConfigurationError("Cases hold the labels of people; leave out `--labels`.")
        calibration = _calibrate_cases(source, suite, repetitions, limits, quiet=quiet, settings=settings)
    else:
        if labels is None:
            raise ConfigurationError("Name the labels of people: `--labels FILE`, or `--labels viewer`.")
        if suite is not None:
            raise ConfigurationError("`--suite` is for cases; a run has its metrics.")
        calibration = _calibrate_run(source, labels, columns, store, settings)
    _write_and_print(calibration, reports, quiet=quiet)
    if any(check.status == "fail" for check in calibration.checks):
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


def _reports(**files: str | None) -> ReportOptions:
    from deemster.report.report_files import Destination

    destinations = tuple(Destination(name, path) for name, path in files.items() if path is not None)
    reports = ReportOptions(destinations, REDACT_LEVELS[0], include_input=False)
    reports.check()
    return reports


def _write_and_print(calibration: Calibration, reports: ReportOptions, *, quiet: bool) -> None:
    from deemster.report.calibration_page import calibration_page
    from deemster.report.calibration_report import calibration_json, calibration_sections
    from deemster.report.markdown_report import render_markdown
    from deemster.report.report_files import write_pieces

    sections = calibration_sections(calibration)
    texts = {
        "json": lambda: calibration_json(calibration),
        "markdown": lambda: render_markdown(sections).encode(),
        "html": lambda: calibration_page(calibration).encode(),
    }
    reports.write_each(lambda destination: write_pieces((texts[destination.format](),), destination))
    if not reports.takes_stdout and not quiet:
        print_sections(sections)


def _is_cases(source: str) -> bool:
    """Whether the argument is a file of cases: it says so, or has cases."""
    from deemster.runs.check_file import find_kind

    path = Path(source)
    return path.is_file() and path.suffix.lower() in (".yml", ".yaml", ".json") and find_kind(source) == "calibration"


def _calibrate_run(
    source: str, file: str, columns: dict[str, list[str]] | None, store: str, settings: dict[str, Any]
) -> Calibration:
    from deemster.datasets.human_labels import read_label_sheet
    from deemster.report import load_report
    from deemster.runs.build_report import stored_report
    from deemster.runs.calibrate_run import calibrate_report, target_models, viewer_labels

    labels = None if file == VIEWER else read_label_sheet(file, columns=columns)
    if Path(source).is_file():
        if labels is None:
            raise ConfigurationError("The labels of the viewer are in the store; name the stored run.")
        return calibrate_report(load_report(source), labels, **settings)
    with open_run_store(store) as opened:
        run = opened.run(source, kind="run").id
        found = viewer_labels(opened, run, warn=warn) if labels is None else labels
        report = stored_report(opened, run, warn=warn)
        return calibrate_report(report, found, target_models=target_models(opened, run), **settings)


def _calibrate_cases(
    file: str, suite: str | None, repetitions: int, limits: ModelLimits, *, quiet: bool, settings: dict[str, Any]
) -> Calibration:
    from deemster.datasets.calibration_cases import load_calibration_cases
    from deemster.runs.calibrate_run import calibrate_report, case_judges, judge_cases
    from deemster.runs.run_sync import run_sync
    from deemster.runs.stop_request import Stop, interruptible
    from deemster.runs.suite import load_suite

    if suite is None:
        raise ConfigurationError("Name the suite whose metrics judge the cases: `--suite FILE`.")
    cases = load_calibration_cases(file)
    metrics, access = case_judges(load_suite(suite, calls_target=False, must_run=False), settings["metrics"], limits)
    stop = Stop()
    with interruptible(stop, tell=note), show_progress(quiet=quiet) as progress:
        work = judge_cases(
            cases, metrics, access=access, repetitions=repetitions, stop=stop, warn=warn, progress=progress
        )
        report = run_sync(work)
    return calibrate_report(report, cases.labels, is_cases=True, **{**settings, "metrics": ()})
