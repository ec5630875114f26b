"""`deemster agreement`: how far judges agree with people and with each other, and the numbers without their errors."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from click.core import ParameterSource

from deemster.cli._command import Verb
from deemster.cli._console import note, print_sections, warn
from deemster.cli.main import run_interruptible
from deemster.cli.model_options import cache_options
from deemster.cli.options import (
    Command,
    Decorator,
    Flags,
    NumberRange,
    columns_option,
    group_flags,
    quiet_option,
    read_settings,
    set_option,
    take_flags,
)
from deemster.cli.report_options import RESULT_FORMATS, ReportOptions, result_options, write_result
from deemster.cli.store_options import is_report_file, open_run, store_option
from deemster.errors import ConfigurationError, ExitCode, InputError, Issue, ReportError, visible

if TYPE_CHECKING:
    from deemster.agreement import JudgePair, MetricsResult
    from deemster.agreement.calibration_result import Calibration
    from deemster.calibration.calibrate_run import CalibrationBounds, CalibrationSettings
    from deemster.datasets import RubricDataset, Votes
    from deemster.engine.model_access import ModelCalls

_SHARE = NumberRange(0, 1)
# What a file is called that a person may take for one of votes or cases.
_SUFFIXES = (".json", ".jsonl", ".yml", ".yaml", ".csv", ".tsv", ".xlsx")
_OF_PAIRS = ("cannot_assess", "na_mode", "confidence")
_OF_CALIBRATION = ("confidence", "seed")
_MORE = "All tables: --full. Every number: --to FILE.json."
_REQUIRED = {"yes": "yes", "with-care": "with care"}


class InputOptions(NamedTuple):
    """Where verdicts and labels come from.

    Attributes:
        source: A votes file, the stored run whose verdicts and labels of the viewer are compared, or a file of cases.
        dataset: A rubric dataset with labels.
        labels: A spreadsheet of labels; of a run also `viewer`.
        verdicts: A spreadsheet of verdicts, in place of a votes file.
        rubric: The rubric of the spreadsheets.
        columns: Which column of a spreadsheet holds what.
        store: Where a run is stored.
    """

    source: str | None
    dataset: str | None
    labels: str | None
    verdicts: str | None
    rubric: str | None
    columns: dict[str, list[str]] | None
    store: str

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        paths = (self.source, self.dataset, self.labels, self.verdicts, self.rubric)
        return [path for path in paths if path is not None]

    def kind_of_source(self) -> Literal["votes", "run", "cases"]:
        """What the source is, by its name and content; votes where it cannot be read, whose reader says why."""
        from deemster.evaluation.check_file import find_kind
        from deemster.store.open_runs import is_run_file

        path = Path(self.source or "")
        if self.source is None or (path.suffix.lower() in _SUFFIXES and not path.is_file()):
            return "votes"
        if not path.is_file() or is_run_file(path):
            return "run"
        try:
            kind = find_kind(str(path))
        except InputError:
            return "votes"
        return "run" if kind == "report" else "cases" if kind == "calibration" else "votes"

    def check(self, *, is_run: bool) -> None:
        """Refuse flags that do not go together.

        Args:
            is_run: Whether the source is a run.

        Raises:
            ConfigurationError: Some were given, or no verdicts.
        """
        rules = (
            (
                is_run and not (self.verdicts is self.rubric is None),
                "A run has its verdicts: leave out `--verdicts` and `--rubric`.",
            ),
            (
                is_run and is_report_file(str(self.source)),
                "A report file holds no labels of people: name a sheet of them by `--labels FILE`.",
            ),
            (
                self.source is None and self.verdicts is None,
                "Give verdicts: a votes file, `--verdicts FILE`, or the run whose judges are compared with people.",
            ),
            (self.source is not None and self.verdicts is not None, "Give a votes file or `--verdicts`, not both."),
            (self.dataset is not None and self.labels is not None, "Give `--dataset` or `--labels`, not both."),
            (self.dataset is not None and self.verdicts is not None, "`--dataset` goes with a votes file."),
            (
                not is_run and self.source is not None and self.rubric is not None,
                "A votes file has its rubric; leave out `--rubric`.",
            ),
            (
                self.columns is not None and self.labels is None and self.verdicts is None,
                "`--columns` needs a spreadsheet: `--labels` or `--verdicts`.",
            ),
        )
        issues = [Issue(message) for is_wrong, message in rules if is_wrong]
        if issues:
            raise ConfigurationError(issues)

    def load(self, *, is_run: bool) -> tuple[Votes, RubricDataset | None]:
        """The votes, and the labels that win over those in the votes.

        Args:
            is_run: Whether the source is a run.

        Raises:
            InputError: A file cannot be used; all issues are listed.
        """
        from deemster.datasets import RubricDataset, Votes, read_spreadsheets

        labels: RubricDataset | None = None
        if is_run:
            from deemster.calibration.people_labels import labelled_votes, rubric_votes

            labels = None if self.dataset is None else RubricDataset.load(self.dataset)
            read_votes = labelled_votes if labels is None else rubric_votes
            with open_run(self.store, str(self.source)) as (opened, name):
                votes = read_votes(opened, opened.run(name))
        elif self.verdicts is not None:
            rubric, read, labels = read_spreadsheets(
                labels=self.labels, verdicts=self.verdicts, rubric=self.rubric, columns=self.columns
            )
            if read is None:
                raise AssertionError("a sheet of verdicts was read and holds none")
            votes = read
            if self.rubric is None:
                kinds = ", ".join(f"`{each.name}` is {each.kind}" for each in rubric.criteria)
                note(visible(f"no --rubric: by their values {kinds}."))
        else:
            votes = Votes.load(str(self.source))
            if self.labels is not None:
                rubrics = [block.rubric for block in votes.blocks]
                if len(rubrics) > 1:
                    message = "The votes have several rubrics; give the labels as a rubric dataset."
                    raise ConfigurationError(Issue(message, self.source))
                labels = read_spreadsheets(labels=self.labels, rubric=rubrics[0], columns=self.columns).labels
            elif self.dataset is not None:
                labels = RubricDataset.load(self.dataset)
        return votes, labels


def _input_options(command: Command) -> Command:
    """Add the flags of inputs; the command receives them, and the votes file, as one ``inputs``."""
    return group_flags(command, "inputs", lambda flags: take_flags(InputOptions, flags), _INPUTS)


class MeasureOptions(NamedTuple):
    """What is computed, and how: arguments of `compute_metrics`, those of `--set` as ``settings``."""

    judges: tuple[str, ...] | None
    per_judge: bool
    cluster: str | None
    per_slice: bool
    settings: dict[str, Any]

    def compute(self, votes: Votes, labels: RubricDataset | None) -> MetricsResult:
        """The result.

        Raises:
            InputError: The votes, the labels or a setting cannot be used.
        """
        from deemster.agreement import compute_metrics

        return compute_metrics(
            votes,
            labels,
            judges=self.judges,
            per_judge=self.per_judge,
            cluster=self.cluster,
            per_slice=self.per_slice,
            **self.settings,
        )

    def pair_judges(self, votes: Votes, labels: RubricDataset | None) -> tuple[JudgePair, ...]:
        """How often each two judges agree, under the settings of the result."""
        from deemster.agreement import judge_agreement

        shared = {name: value for name, value in self.settings.items() if name in _OF_PAIRS}
        return judge_agreement(votes, labels, judges=self.judges, cluster=self.cluster, **shared)

    def of_calibration(self) -> dict[str, Any]:
        """The settings, of a calibration.

        Raises:
            ConfigurationError: One of them is for votes alone.
        """
        for name in self.settings:
            if name not in _OF_CALIBRATION:
                raise ConfigurationError(f"`--set {name}=` is for votes.")
        return self.settings


def _measure_options(command: Command) -> Command:
    """Let the command receive what its flags say of the computation as one ``measures``."""
    return group_flags(command, "measures", _take_measures)


def _take_measures(flags: Flags) -> MeasureOptions:
    from deemster.agreement.agreement_settings import AgreementSettings

    flags["settings"] = read_settings(AgreementSettings, flags.pop("overrides")).stated
    measures: MeasureOptions = take_flags(MeasureOptions, flags)
    return measures._replace(judges=measures.judges or None)


def _bounds_options(command: Command) -> Command:
    """Let the command receive what a calibration is held to as one ``bounds``."""
    return group_flags(command, "bounds", _take_bounds)


def _take_bounds(flags: Flags) -> CalibrationBounds:
    from deemster.calibration.calibrate_run import CalibrationBounds

    bounds: CalibrationBounds = take_flags(CalibrationBounds, flags)
    return bounds


_INPUTS: Sequence[Decorator] = (
    click.option(
        "--dataset",
        metavar="FILE",
        help="A rubric dataset with people's labels; they win over those in the votes. Of a RUN, of its rubric.",
    ),
    click.option(
        "--labels",
        metavar="FILE|viewer",
        help="People's labels: a spreadsheet beside VOTES, a sheet or `viewer` for a RUN, whose numbers are corrected.",
    ),
    click.option("--verdicts", metavar="FILE", help="A spreadsheet of the judges' verdicts, in place of VOTES."),
    click.option("--rubric", metavar="FILE", help="With --verdicts: the rubric; derived from the values unless given."),
    columns_option,
    store_option,
)


# Flags by what they are for, as `_refuse_flags` names them.
_FOR_VOTES = (
    *("dataset", "verdicts", "rubric", "judges", "per_judge"),
    *("cluster", "per_slice", "require", "full"),
)
_FOR_METRICS = ("metrics", "min_agreement", "min_kappa", "max_length_bias", "quiet")
_FOR_CASES = ("suite", "repetitions", "cache", "offline")


@click.command(
    "agreement",
    cls=Verb,
    short_help="Can a judge be trusted? Compare judges with people, and correct the numbers of a run.",
    headings={
        "Verdicts and labels": ("--dataset", "--labels", "--verdicts", "--rubric", "--columns"),
        "Of a run or of cases": ("--metric", "--min-agreement", "--min-kappa", "--max-length-bias", "--quiet"),
        "Of cases": ("--suite", "--repetitions"),
        "Of votes": (*("--judge", "--per-judge", "--cluster", "--per-slice", "--require", "--full"),),
    },
    examples=[
        "deemster agreement --verdicts judge.csv --labels people.csv",
        "deemster agreement latest --labels labels.csv --to calibration.json",
        "deemster agreement cases.yml --suite suite.yml --min-kappa 0.6",
    ],
    see_also=["labels", "view", "audit judge"],
)
@click.argument("source", metavar="[VOTES|RUN|CASES]", required=False)
@_input_options
@click.option(
    "--judge", "judges", metavar="NAME", multiple=True, help="Look at this judge alone; repeat it for several."
)
@set_option(
    "seed=7, confidence=0.9; of votes also n_bootstrap=2000, bootstrap=bca, na_mode=as_unmet, "
    "cannot_assess=as_category, epsilon=0.1, pair=KEY, group=KEY or system=KEY"
)
@click.option("--per-judge", is_flag=True, help="Add the numbers of each judge.")
@click.option("--cluster", metavar="KEY", help="Draw whole clusters: items with the same value of this metadata key.")
@click.option("--per-slice", is_flag=True, help="Add the numbers of each tag.")
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
@click.option("--repetitions", type=click.IntRange(min=1), default=1, show_default=True, help="Judge each so often.")
@result_options(*RESULT_FORMATS, "votes")
@cache_options
@quiet_option
@_measure_options
@_bounds_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    inputs: InputOptions,
    measures: MeasureOptions,
    metrics: tuple[str, ...],
    bounds: CalibrationBounds,
    suite: str | None,
    repetitions: int,
    limits: ModelCalls,
    full: bool,
    require: str | None,
    reports: ReportOptions,
    quiet: bool,
) -> None:
    """Can a judge be trusted? Compare judges with people, and correct the numbers of a run.

    VOTES is a file of verdicts, with people's labels in it, in a rubric dataset, or in a spreadsheet (--labels). The
    verdicts may be a spreadsheet too (--verdicts, in place of VOTES): .csv, .tsv or .xlsx, with a column for each
    criterion or a line for each. Without --rubric the values decide what a criterion is.

    RUN is the id of a stored run, the beginning of one, a name, `latest`, a run file, or a report file. With --labels
    the judge's errors are measured and taken out of the run's pass-rates: --labels names the sheet that people filled
    in (`deemster labels sheet` writes one), or is `viewer`. The JSON file is what a suite names as `calibration: FILE`,
    so that later runs are corrected too. Without --labels the judges of the run are compared with the labels of the
    viewer as votes are.

    CASES is a file of outputs with people's verdicts (`deemster.calibration.v1`), which the metrics of --suite judge
    now; models are asked, which may cost money.

    What is printed of votes has the answer, why, what people reach among themselves (the ceiling), the weakest
    criteria, and what to do next. --full prints all tables; the files have them in any case. Exit codes: 0 done, 1 a
    bound is missed, or the answer is below the one that `--require` names, 2 bad input, 3 a result could not be
    written.
    """
    kind = inputs.kind_of_source()
    _check_votes_files(reports, has_votes=kind != "cases" and (kind != "run" or inputs.labels is None))
    if kind == "cases" or (kind == "run" and inputs.labels is not None):
        from deemster.calibration.calibrate_run import CalibrationSettings

        _refuse_flags(context, _FOR_VOTES, "votes")
        settings = CalibrationSettings(metrics, bounds, **measures.of_calibration())
        if kind == "cases":
            calibration = _judge_cases(inputs, settings, suite, repetitions, limits, quiet=quiet)
        else:
            _refuse_flags(context, _FOR_CASES, "a file of cases")
            calibration = _calibrate(inputs, settings)
        write_result(calibration, reports, quiet=quiet)
        if any(check.status == "fail" for check in calibration.checks):
            raise click.exceptions.Exit(ExitCode.GATE_FAILED)
        return
    _refuse_flags(context, _FOR_METRICS, "cases, or a run with `--labels`")
    _refuse_flags(context, _FOR_CASES, "a file of cases")
    _compare_votes(inputs, measures, reports, is_run=kind == "run", full=full, require=require)


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


def _calibrate(inputs: InputOptions, settings: CalibrationSettings) -> Calibration:
    """Compare the judges of a run with people's labels of its outputs."""
    from deemster.calibration.calibrate_run import calibrate_labelled

    run, labels = str(inputs.source), inputs.labels
    return calibrate_labelled(run, labels, settings, columns=inputs.columns, store=inputs.store, warn=warn)


def _judge_cases(
    inputs: InputOptions,
    settings: CalibrationSettings,
    suite: str | None,
    repetitions: int,
    limits: ModelCalls,
    *,
    quiet: bool,
) -> Calibration:
    """Judge cases by the metrics of a suite, and compare its judges with people."""
    from deemster.calibration.calibrate_run import calibrate_cases

    return run_interruptible(
        lambda watchers: calibrate_cases(
            str(inputs.source),
            inputs.labels,
            settings,
            suite=suite,
            repetitions=repetitions,
            limits=limits,
            watchers=watchers,
        ),
        quiet=quiet,
    )


def _compare_votes(
    inputs: InputOptions,
    measures: MeasureOptions,
    reports: ReportOptions,
    *,
    is_run: bool,
    full: bool,
    require: str | None,
) -> None:
    """Compare judges with people, and with each other, and print the answer."""
    inputs.check(is_run=is_run)
    _protect_inputs([destination.path for destination in reports.destinations if not destination.is_stdout], inputs)
    loaded, labels = inputs.load(is_run=is_run)
    reports = _write_votes(reports, loaded, labels)
    result = measures.compute(loaded, labels)
    # The correlations of groups and systems stand in the tables only.
    full = full or "group" in measures.settings or "system" in measures.settings
    pairs: tuple[JudgePair, ...] = ()
    if any(destination.format == "html" for destination in reports.destinations) and len(loaded.judges) > 1:
        pairs = measures.pair_judges(loaded, labels)
    _show(result, reports, pairs, full=full)
    if require is not None and not result.verdict.reaches(_REQUIRED[require]):  # type: ignore[arg-type]
        from deemster.agreement.agreement_report import verdict_reason

        answer = result.verdict.answer or "none"
        note(f"required is the answer `{_REQUIRED[require]}`; it is `{answer}`: {visible(verdict_reason(result))}")
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


def _protect_inputs(written: Sequence[str], inputs: InputOptions) -> None:
    """Refuse to write a result over a file that it is made from."""
    read = {Path(path).resolve() for path in inputs.files}
    for path in written:
        if Path(path).resolve() in read:
            raise ReportError(Issue("The result would overwrite the file that it is made from.", path))
