"""`deemster agreement`: how far judges agree with people and with each other, and the numbers without their errors."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from click.core import ParameterSource

from deemster.cli._agreement_inputs import AgreementInputs, Source, input_options
from deemster.cli._command import Verb
from deemster.cli._console import note, print_sections, warn
from deemster.cli._interruption import run_interruptible
from deemster.cli.model_options import cache_options
from deemster.cli.options import NumberRange, quiet_option, read_settings, set_option
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.errors import ConfigurationError, ExitCode, Issue, ReportError, visible

if TYPE_CHECKING:
    from deemster.agreement import JudgePair, MetricsResult
    from deemster.agreement.agreement_settings import AgreementSettings
    from deemster.agreement.calibration_result import Calibration
    from deemster.agreement.trust_verdict import Answer
    from deemster.calibration.calibrate_run import CalibrationSettings
    from deemster.datasets import RubricDataset, Votes
    from deemster.engine.model_access import ModelCalls

_SHARE = NumberRange(0, 1)
_OF_PAIRS = ("cannot_assess", "na_mode", "confidence", "cluster")
_MORE = "All tables: --full. Every number: --to FILE.json."
_REQUIRED: dict[str, Answer] = {"yes": "yes", "with-care": "with care"}


class MeasureOptions(NamedTuple):
    """What is computed of votes: arguments of `compute_metrics`."""

    judges: tuple[str, ...]
    per_judge: bool
    settings: AgreementSettings

    def compute(self, votes: Votes, labels: RubricDataset | None) -> MetricsResult:
        """The result.

        Raises:
            InputError: The votes, the labels or a setting cannot be used.
        """
        from deemster.agreement import compute_metrics

        judges = self.judges or None
        return compute_metrics(votes, labels, judges=judges, per_judge=self.per_judge, **self.settings.arguments)

    def pair_judges(self, votes: Votes, labels: RubricDataset | None) -> tuple[JudgePair, ...]:
        """How often each two judges agree, under the settings of the result."""
        from deemster.agreement import judge_agreement

        shared = {name: value for name, value in self.settings.stated.items() if name in _OF_PAIRS}
        return judge_agreement(votes, labels, judges=self.judges or None, **shared)

    @property
    def has_tables_only(self) -> bool:
        """Whether something was asked for that stands in the tables only: correlations of groups and systems."""
        return not {"group", "system"}.isdisjoint(self.settings.stated)


# Flags by what they are for, as `_refuse_flags` names them.
_FOR_VOTES = ("rubric", "judges", "per_judge", "require", "full")
_FOR_METRICS = ("metrics", "min_agreement", "min_kappa", "max_length_bias", "quiet")
_FOR_CASES = ("suite", "cache", "offline")


@click.command(
    "agreement",
    cls=Verb,
    headings={
        "Verdicts and labels": ("--labels", "--rubric", "--columns"),
        "Of a run or of cases": ("--metric", "--min-agreement", "--min-kappa", "--max-length-bias", "--quiet"),
        "Of cases": ("--suite",),
        "Of votes": ("--judge", "--per-judge", "--require", "--full"),
    },
    examples=[
        "deemster agreement judge.csv --labels people.csv",
        "deemster agreement latest --labels labels.csv --to calibration.json",
        "deemster agreement cases.yml --suite suite.yml --min-kappa 0.6",
    ],
    see_also=["labels", "view", "audit judge"],
)
@click.argument("source", metavar="VOTES|RUN|CASES")
@input_options
@click.option(
    "--judge", "judges", metavar="NAME", multiple=True, help="Look at this judge alone; repeat it for several."
)
@set_option(
    "seed=7, confidence=0.9; of cases also repetitions=3; of votes cluster=KEY (draw items with the same metadata "
    "KEY together), per_slice=true (add the numbers of each tag), n_bootstrap=2000, bootstrap=bca, na_mode=as_unmet, "
    "cannot_assess=as_category, epsilon=0.1, pair=KEY, group=KEY or system=KEY"
)
@click.option("--per-judge", is_flag=True, help="Add the numbers of each judge.")
@click.option("--require", type=click.Choice(list(_REQUIRED)), help="Exit with 1 where the answer is below this one.")
@click.option("--full", is_flag=True, help="Show all tables, in place of the short form.")
@click.option("--metric", "metrics", metavar="NAME", multiple=True, help="Look at this metric alone; repeatable.")
@click.option("--min-agreement", type=_SHARE, metavar="A", help="Exit with 1 where the agreement is below this.")
@click.option("--min-kappa", type=NumberRange(-1, 1), metavar="K", help="Exit with 1 where kappa is below this.")
@click.option(
    "--max-length-bias",
    type=_SHARE,
    metavar="R",
    help="Exit with 1 where length and score correlate by more, among outputs that people judge alike.",
)
@click.option("--suite", metavar="FILE", help="The suite whose metrics and models judge the cases now.")
@result_options(*RESULT_FORMATS, "votes")
@cache_options
@quiet_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    inputs: AgreementInputs,
    judges: tuple[str, ...],
    per_judge: bool,
    overrides: tuple[str, ...],
    metrics: tuple[str, ...],
    min_agreement: float | None,
    min_kappa: float | None,
    max_length_bias: float | None,
    suite: str | None,
    limits: ModelCalls,
    full: bool,
    require: str | None,
    reports: ReportOptions,
    quiet: bool,
) -> None:
    """Can a judge be trusted? Compare judges with people.

    VOTES is a file of verdicts, with people's labels in it or in the file of --labels: a votes file, or a spreadsheet
    (.csv, .tsv or .xlsx) with a column for each criterion or a line for each. Without --rubric the values of a
    spreadsheet decide what a criterion is.

    RUN is the id of a stored run, the beginning of one, a name, `latest`, a run file, or a report file. With --labels
    the judge's errors are measured and taken out of the run's pass-rates: --labels names the sheet that people filled
    in (`deemster labels sheet` writes one), or is `viewer`. The JSON file is what a suite names as `calibration: FILE`,
    so that later runs are corrected too. Without --labels the judges of the run are compared with the labels of the
    viewer as votes are, and with those of a rubric dataset (`--labels essays.yml`) likewise.

    CASES is a file of outputs with people's verdicts (`deemster.calibration.v1`), which the metrics of --suite judge
    now; models are asked, which may cost money.

    What is printed of votes has the answer, why, what people reach among themselves (the ceiling), the weakest
    criteria, and what to do next. --full prints all tables; the files have them in any case. Exit codes: 0 done, 1 a
    bound is missed, or the answer is below the one that `--require` names, 2 bad input, 3 a result could not be
    written.
    """
    kind = inputs.kind_of_source()
    corrects_run = kind == "run" and inputs.labels is not None and not inputs.has_labelled_dataset
    _check_votes_files(reports, has_votes=kind != "cases" and not corrects_run)

    if kind == "cases" or corrects_run:
        from deemster.calibration.calibrate_run import CalibrationSettings

        _refuse_flags(context, _FOR_VOTES, "votes")
        settings = read_settings(
            CalibrationSettings,
            overrides,
            metrics=metrics,
            min_agreement=min_agreement,
            min_kappa=min_kappa,
            max_length_bias=max_length_bias,
        )
        if kind == "cases":
            calibration = _judge_cases(inputs, settings, suite, limits, quiet=quiet)
        else:
            _refuse_flags(context, _FOR_CASES, "a file of cases")
            calibration = _correct_run(inputs, settings)
        _end_calibration(calibration, reports, quiet=quiet)
        return

    from deemster.agreement.agreement_settings import AgreementSettings

    _refuse_flags(context, _FOR_METRICS, "cases, or a run with `--labels`")
    _refuse_flags(context, _FOR_CASES, "a file of cases")
    measures = MeasureOptions(judges, per_judge, read_settings(AgreementSettings, overrides))
    _compare_votes(inputs, kind, measures, reports, full=full, require=require)


def _check_votes_files(reports: ReportOptions, *, has_votes: bool) -> None:
    """Refuse a votes file where there are no votes, or that has another ending than votes have."""
    for destination in reports.destinations:
        if destination.format == "votes" and not has_votes:
            raise ReportError(Issue("A votes file is written of votes, not of labelled outputs.", destination.path))
        if destination.format == "votes" and Path(destination.path).suffix.lower() not in (".json", ".jsonl"):
            raise ReportError(Issue("Votes are written as .json or .jsonl.", destination.path))


def _refuse_flags(context: click.Context, names: Sequence[str], purpose: str) -> None:
    """Refuse flags that would not be heeded."""
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise ConfigurationError(f"`{option.opts[0]}` is for {purpose}.")


def _correct_run(inputs: AgreementInputs, settings: CalibrationSettings) -> Calibration:
    """Compare the judges of a run with people's labels of its outputs, and correct its numbers."""
    from deemster.calibration.calibrate_run import calibrate_labelled

    return calibrate_labelled(
        inputs.source, inputs.labels, settings, columns=inputs.columns, store=inputs.store, warn=warn
    )


def _judge_cases(
    inputs: AgreementInputs, settings: CalibrationSettings, suite: str | None, limits: ModelCalls, *, quiet: bool
) -> Calibration:
    """Judge cases by the metrics of a suite, and compare its judges with people."""
    from deemster.calibration.calibrate_run import calibrate_cases

    return run_interruptible(
        lambda watchers: calibrate_cases(
            inputs.source, inputs.labels, settings, suite=suite, limits=limits, watchers=watchers
        ),
        quiet=quiet,
    )


def _end_calibration(calibration: Calibration, reports: ReportOptions, *, quiet: bool) -> None:
    """Write and print a calibration; where a bound is missed, the command fails."""
    write_result(calibration, reports, quiet=quiet)
    if any(check.status == "fail" for check in calibration.checks):
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


def _compare_votes(
    inputs: AgreementInputs,
    kind: Source,
    measures: MeasureOptions,
    reports: ReportOptions,
    *,
    full: bool,
    require: str | None,
) -> None:
    """Compare judges with people, and with each other, and print the answer."""
    inputs.check(kind)
    _protect_inputs([destination.path for destination in reports.destinations if not destination.is_stdout], inputs)

    votes, labels = inputs.load(kind)
    reports = _write_votes(reports, votes, labels)

    result = measures.compute(votes, labels)
    has_page = any(destination.format == "html" for destination in reports.destinations)
    pairs = measures.pair_judges(votes, labels) if has_page and len(votes.judges) > 1 else ()
    _show(result, reports, pairs, full=full or measures.has_tables_only)

    if require is not None:
        _require(result, _REQUIRED[require])


def _require(result: MetricsResult, required: Answer) -> None:
    """Fail where the answer is below the one that is required."""
    from deemster.agreement.agreement_sentences import verdict_reason

    if result.verdict.reaches(required):
        return
    answer = result.verdict.answer or "none"
    note(f"required is the answer `{required}`; it is `{answer}`: {visible(verdict_reason(result))}")
    raise click.exceptions.Exit(ExitCode.GATE_FAILED)


def _show(
    result: MetricsResult,
    reports: ReportOptions,
    pairs: tuple[JudgePair, ...],
    *,
    full: bool,
) -> None:
    """Write the result to its destinations, and print it unless standard output is taken."""
    from deemster.agreement.agreement_page import agreement_page
    from deemster.agreement.agreement_report import short_agreement_sections
    from deemster.text.destination import write_pieces

    prints = not reports.takes_stdout
    if not prints or not _shares_terminal():
        for warning in result.warnings:
            warn(visible(warning))
    for destination in reports.destinations:
        if destination.format == "html":
            write_pieces((agreement_page(result, pairs).encode(),), destination)
        else:
            result.write(destination)
    if prints:
        print_sections(result.sections() if full else short_agreement_sections(result, more=_MORE))


def _shares_terminal() -> bool:
    """Whether standard output and standard error go to the same place, so that a warning is printed once."""
    try:
        return sys.stdout.isatty() or os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, io.UnsupportedOperation):
        return False


def _write_votes(reports: ReportOptions, votes: Votes, labels: RubricDataset | None) -> ReportOptions:
    """Write all that was read as votes, where that is asked for; the destinations that are left."""
    from deemster.datasets import with_ground_truth

    for destination in reports.destinations:
        if destination.format == "votes":
            (votes if labels is None else with_ground_truth(votes, labels)).save(destination.path)
    results = tuple(destination for destination in reports.destinations if destination.format != "votes")
    return reports._replace(destinations=results)


def _protect_inputs(written: Sequence[str], inputs: AgreementInputs) -> None:
    """Refuse to write a result over a file that it is made from."""
    read = {Path(path).resolve() for path in inputs.files}
    for path in written:
        if Path(path).resolve() in read:
            raise ReportError(Issue("The result would overwrite the file that it is made from.", path))
