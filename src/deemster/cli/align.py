"""`deemster align`: how judges agree with people, and with each other."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, print_sections, warn
from deemster.cli.options import (
    RESULT_FORMATS,
    Command,
    Decorator,
    Flags,
    NumberRange,
    ReportOptions,
    columns_option,
    group_flags,
    open_run,
    result_options,
    store_option,
    take_flags,
)
from deemster.errors import ConfigurationError, ExitCode, InputError, Issue, ReportError, visible

if TYPE_CHECKING:
    from deemster.agreement import JudgePair, MetricsResult
    from deemster.agreement.result_models import AbstentionMode
    from deemster.datasets import RubricDataset, Votes

_METHODS = ("smoothed", "percentile", "bca")
_MODES = click.Choice(["exclude", "as_unmet", "as_category"])
_MORE = "All tables: --full. Every number: --to FILE.json."
_REQUIRED = {"yes": "yes", "with-care": "with care"}


def _check_confidence(_context: click.Context, _parameter: click.Parameter, value: float) -> float:
    if not 0 < value < 1:
        raise click.BadParameter(f"{value} does not lie strictly between 0 and 1.")
    return value


class InputOptions(NamedTuple):
    """Where verdicts and labels come from.

    Attributes:
        votes: A votes file.
        dataset: A rubric dataset with labels.
        labels: A spreadsheet of labels.
        verdicts: A spreadsheet of verdicts, in place of a votes file.
        rubric: The rubric of the spreadsheets.
        columns: Which column of a spreadsheet holds what.
        to_votes: Where a votes file is written that holds all that was read.
        run: The stored run whose verdicts and labels of the viewer are compared.
        store: Where it is stored.
    """

    votes: str | None
    dataset: str | None
    labels: str | None
    verdicts: str | None
    rubric: str | None
    columns: dict[str, list[str]] | None
    to_votes: str | None
    run: str | None
    store: str

    @property
    def files(self) -> list[str]:
        """The files that are read."""
        given = (self.votes, self.dataset, self.labels, self.verdicts, self.rubric)
        return [path for path in given if path is not None]

    def check(self) -> None:
        """Refuse flags that do not go together.

        Raises:
            ConfigurationError: Some were given, or no verdicts.
        """
        others = (self.votes, self.labels, self.verdicts, self.rubric)
        rules = (
            (
                self.run is not None and any(path is not None for path in others),
                "A run has its verdicts and labels: `--run` goes with no other input but `--dataset`.",
            ),
            (
                self.run is None and self.votes is None and self.verdicts is None,
                "Give verdicts: a votes file, `--verdicts FILE`, or `--run RUN`.",
            ),
            (self.votes is not None and self.verdicts is not None, "Give a votes file or `--verdicts`, not both."),
            (self.dataset is not None and self.labels is not None, "Give `--dataset` or `--labels`, not both."),
            (self.dataset is not None and self.verdicts is not None, "`--dataset` goes with a votes file."),
            (self.votes is not None and self.rubric is not None, "A votes file has its rubric; leave out `--rubric`."),
            (
                self.columns is not None and self.labels is None and self.verdicts is None,
                "`--columns` needs a spreadsheet: `--labels` or `--verdicts`.",
            ),
        )
        issues = [Issue(message) for is_wrong, message in rules if is_wrong]
        if issues:
            raise ConfigurationError(issues)
        if self.to_votes is not None and Path(self.to_votes).suffix.lower() not in (".json", ".jsonl"):
            raise ReportError(Issue("Votes are written as .json or .jsonl.", self.to_votes))

    def load(self) -> tuple[Votes, RubricDataset | None]:
        """The votes, and the labels that win over those in the votes.

        Raises:
            InputError: A file cannot be used; all issues are listed.
        """
        from deemster.datasets import RubricDataset, Votes, read_spreadsheets, with_ground_truth

        labels: RubricDataset | None = None
        if self.run is not None:
            from deemster.calibration.people_labels import labelled_votes, rubric_votes

            labels = None if self.dataset is None else RubricDataset.load(self.dataset)
            read_votes = labelled_votes if labels is None else rubric_votes
            with open_run(self.store, self.run) as (opened, name):
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
            votes = Votes.load(str(self.votes))
            if self.labels is not None:
                rubrics = [block.rubric for block in votes.blocks]
                if len(rubrics) > 1:
                    message = "The votes have several rubrics; give the labels as a rubric dataset."
                    raise ConfigurationError(Issue(message, self.votes))
                labels = read_spreadsheets(labels=self.labels, rubric=rubrics[0], columns=self.columns).labels
            elif self.dataset is not None:
                labels = RubricDataset.load(self.dataset)
        if self.to_votes is not None:
            (votes if labels is None else with_ground_truth(votes, labels)).save(self.to_votes)
        return votes, labels


def _input_options(command: Command) -> Command:
    """Add the flags of inputs; the command receives them, and the votes file, as one ``inputs``."""
    return group_flags(command, "inputs", lambda flags: take_flags(InputOptions, flags), _INPUTS)


class MeasureOptions(NamedTuple):
    """What is computed, and how: arguments of `compute_metrics` under their own names."""

    judges: tuple[str, ...] | None
    bootstrap: Literal["smoothed", "percentile", "bca"]
    n_bootstrap: int
    confidence: float
    seed: int
    per_judge: bool
    cannot_assess: AbstentionMode
    na_mode: AbstentionMode
    cluster: str | None
    per_slice: bool
    pair: str | None
    epsilon: float
    group: str | None
    system: str | None

    def compute(self, votes: Votes, labels: RubricDataset | None) -> MetricsResult:
        """The result.

        Raises:
            InputError: The votes, the labels or a flag cannot be used.
        """
        from deemster.agreement import compute_metrics

        try:
            return compute_metrics(
                votes,
                labels,
                judges=self.judges,
                bootstrap=self.bootstrap,
                n_bootstrap=self.n_bootstrap,
                confidence=self.confidence,
                seed=self.seed,
                per_judge=self.per_judge,
                cannot_assess=self.cannot_assess,
                na_mode=self.na_mode,
                cluster=self.cluster,
                per_slice=self.per_slice,
                pair=self.pair,
                epsilon=self.epsilon,
                group=self.group,
                system=self.system,
            )
        except InputError as error:
            raise type(error)([issue._replace(message=_name_flag(issue.message)) for issue in error.issues]) from None

    def pair_judges(self, votes: Votes, labels: RubricDataset | None) -> tuple[JudgePair, ...]:
        """How often each two judges agree, under the settings of the result."""
        from deemster.agreement import judge_agreement

        return judge_agreement(
            votes,
            labels,
            judges=self.judges,
            cannot_assess=self.cannot_assess,
            na_mode=self.na_mode,
            confidence=self.confidence,
            cluster=self.cluster,
        )


def _measure_options(command: Command) -> Command:
    """Let the command receive what its flags say of the computation as one ``measures``."""
    return group_flags(command, "measures", _take_measures)


def _take_measures(flags: Flags) -> MeasureOptions:
    measures: MeasureOptions = take_flags(MeasureOptions, flags)
    return measures._replace(judges=measures.judges or None)


_INPUTS: Sequence[Decorator] = (
    click.option(
        "--dataset",
        metavar="FILE",
        help="A rubric dataset with people's labels; they win over those in the votes. With --run, of its rubric.",
    ),
    click.option("--labels", metavar="FILE", help="A spreadsheet of people's labels, in place of --dataset."),
    click.option("--verdicts", metavar="FILE", help="A spreadsheet of the judges' verdicts, in place of VOTES."),
    click.option("--rubric", metavar="FILE", help="With --verdicts: the rubric; derived from the values unless given."),
    columns_option,
    click.option("--votes", "to_votes", metavar="FILE", help="Write all that was read as a votes file."),
    click.option(
        "--run",
        metavar="RUN",
        help="In place of VOTES: a stored run or a run file, with the labels it was given in the viewer.",
    ),
    store_option,
)


@click.command("align", cls=Verb, short_help="Tell how judges agree with people, and with each other.")
@click.argument("votes", type=click.Path(), required=False)
@_input_options
@click.option(
    "--judge", "judges", metavar="NAME", multiple=True, help="Look at this judge alone; repeat it for several."
)
@click.option(
    "--bootstrap",
    type=click.Choice(_METHODS),
    default=_METHODS[0],
    show_default=True,
    help="How every number gets its interval.",
)
@click.option(
    "--n-bootstrap",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="How many bootstrap replicates are drawn.",
)
@click.option(
    "--confidence",
    type=float,
    callback=_check_confidence,
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="The level of the intervals.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="The seed of the draws; the same seed gives the same bytes.",
)
@click.option("--per-judge", is_flag=True, help="Add the numbers of each judge.")
@click.option(
    "--cannot-assess", type=_MODES, default="exclude", show_default=True, help="What CANNOT_ASSESS counts as."
)
@click.option("--na-mode", type=_MODES, default="exclude", show_default=True, help="What an NA option counts as.")
@click.option("--cluster", metavar="KEY", help="Draw whole clusters: items with the same value of this metadata key.")
@click.option("--per-slice", is_flag=True, help="Add the numbers of each tag.")
@click.option(
    "--pair",
    metavar="KEY",
    help="Show position bias: two items with the same value of this metadata key are one pair in both orders.",
)
@click.option(
    "--epsilon",
    type=NumberRange(0, 1, max_open=True),
    default=0.2,
    show_default=True,
    metavar="SHARE",
    help="How much worse than a person the judge may be in the alternative annotator test.",
)
@click.option("--group", metavar="KEY", help="Correlate numbers inside each value of this metadata key: sample level.")
@click.option("--system", metavar="KEY", help="Correlate the mean numbers of each value of this metadata key.")
@click.option("--require", type=click.Choice(list(_REQUIRED)), help="Exit with 1 where the answer is below this one.")
@click.option("--full", is_flag=True, help="Show all tables, in place of the short form.")
@result_options(*RESULT_FORMATS)
@_measure_options
def command(
    *,
    inputs: InputOptions,
    full: bool,
    reports: ReportOptions,
    require: str | None,
    measures: MeasureOptions,
) -> None:
    """Tell how judges agree with people, and with each other.

    VOTES is a file of verdicts, with people's labels in it, in a rubric dataset, or in a spreadsheet (--labels). The
    verdicts may be a spreadsheet too (--verdicts, in place of VOTES): .csv, .tsv or .xlsx, with a column for each
    criterion or a line for each. Without --rubric the values decide what a criterion is.

    The short form that is printed has the answer, why, what people reach among themselves (the ceiling), the weakest
    criteria, and what to do next. --full prints all tables; the files have them in any case. Exit codes: 0 done, 1 the
    answer is below the one that `--require` names, 2 bad input, 3 a result could not be written.
    """
    inputs.check()
    _protect_inputs([destination.path for destination in reports.destinations if not destination.is_stdout], inputs)
    loaded, labels = inputs.load()
    result = measures.compute(loaded, labels)
    # The correlations of groups and systems stand in the tables only.
    full = full or measures.group is not None or measures.system is not None
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


def _protect_inputs(written: Sequence[str], inputs: InputOptions) -> None:
    """Refuse to write a result over a file that it is made from."""
    read = {Path(path).resolve() for path in inputs.files}
    for path in (*written, *([] if inputs.to_votes is None else [inputs.to_votes])):
        if Path(path).resolve() in read:
            raise ReportError(Issue("The result would overwrite the file that it is made from.", path))


def _name_flag(message: str) -> str:
    """Put the name of a flag in place of that of an argument."""
    return message.replace("`na_mode='as_category'`", "`--na-mode as_category`")
