"""`deemster grade`: grades submissions by a rubric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, print_planned_calls, print_sections, warn
from deemster.cli.main import complain, run_interruptible
from deemster.cli.options import (
    Command,
    Decorator,
    Flags,
    ModelOptions,
    ReportOptions,
    StorageOptions,
    columns_option,
    dry_run_option,
    group_flags,
    model_options,
    quiet_option,
    storage_options,
    take_flags,
    text_file_options,
)
from deemster.errors import (
    ConfigurationError,
    DeemsterError,
    ExitCode,
    Issue,
    ReportError,
    did_you_mean,
    plural,
    visible,
)

if TYPE_CHECKING:
    from deemster.datasets import RubricDataset
    from deemster.engine.model_access import ModelAccess
    from deemster.gate import Allowance
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.report import Destination
    from deemster.report.grading_result import Grading
    from deemster.report.grading_summary import GradingSummary

_VOTES = (".json", ".jsonl")


# The role of a judge that no file names.
JUDGE = "judge"
# What `CriterionGrader`, its `abstention` and a `Cascade` know.
CALLS = ("per_criterion", "per_item")
ABSTENTIONS = ("skip", "zero", "partial", "fail")
CASCADE_WAYS = ("probability", "consistency")


class InlineModel(NamedTuple):
    """A model that is named by flags alone.

    Attributes:
        base_url: Where its server is.
        model: What the server calls it.
        api_key_env: The variable that holds the key.
    """

    base_url: str | None
    model: str | None
    api_key_env: str | None

    def access(self, models: ModelOptions, *, calls: bool) -> ModelAccess:
        """Access to the models of a file, or to the one of the flags, as `judge`.

        Args:
            models: What the other flags say.
            calls: Whether they are going to be called.

        Raises:
            ConfigurationError: Both are given, or neither, or one cannot be used.
        """
        given = {key: value for key, value in self._asdict().items() if value is not None}
        if not given and models.models is not None:
            return models.access(calls=calls)
        issues = models.limits.issues()
        if not given:
            issues.append(Issue("A judge needs a model: `--base-url URL --model NAME`, or `--models FILE`."))
        elif models.models is not None:
            issues = [
                Issue(f"`{_flag(key)}` names a model, and `--models` names a file of them; give one of the two.")
                for key in given
            ] + issues
        if issues:
            raise ConfigurationError(issues)
        from deemster.engine.model_access import read_model_access

        return read_model_access({JUDGE: given}, models.limits, place=lambda path: _flag(str(path[-1])), calls=calls)


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


class GraderOptions(NamedTuple):
    """What the flags say about a grader.

    Attributes:
        judges: Roles, or `ID=ROLE`.
        settings: A file of settings.
        flags: Settings that were given as flags.
        cascade: The judge that is asked first; None where all judges are asked.
        unsure_below: The confidence below which the other judges are asked too.
        cascade_by: How the confidence of the first judge is measured.
        cascade_repeats: How often the first judge is asked.
    """

    judges: tuple[str, ...]
    settings: str | None
    flags: Mapping[str, Any]
    cascade: str | None
    unsure_below: float | None
    cascade_by: str | None
    cascade_repeats: int | None

    def build_grader(self) -> CriterionGrader:
        """The grader.

        Raises:
            ConfigurationError: Something in the flags or the file cannot be used; all issues are listed.
        """
        from deemster.judges.grader_section import build_grader

        given, folder = ({}, None) if self.settings is None else _read_settings(self.settings)
        given |= self.flags
        if self.judges:
            given["judges"] = [_judge_entry(text) for text in self.judges]
        given.setdefault("judges", [JUDGE])
        cascade = {"unsure_below": self.unsure_below, "by": self.cascade_by, "repeats": self.cascade_repeats}
        if self.cascade is not None:
            given["judges"] = _put_first(self.cascade, given["judges"])
            given["cascade"] = {key: value for key, value in cascade.items() if value is not None}
        else:
            names = ("unsure_below", "cascade_by", "cascade_repeats")
            stray = [name for name in names if getattr(self, name) is not None]
            if stray:
                raise ConfigurationError([Issue(f"`{_flag(name)}` needs `--cascade JUDGE`.") for name in stray])
        try:
            return build_grader(given, folder=folder)
        except ConfigurationError as error:
            raise ConfigurationError(
                issue._replace(where=issue.where or self.settings) for issue in error.issues
            ) from None


def _judge_entry(text: str) -> Any:
    name, sign, role = text.partition("=")
    return {"id": name, "model": role} if sign else text


def _put_first(judge: str, judges: Any) -> Any:
    """The judges of a grader with one of them first: the order in which a cascade asks."""
    if not isinstance(judges, list):
        return judges
    names = [entry.get("id", entry.get("model")) if isinstance(entry, Mapping) else entry for entry in judges]
    if judge not in names:
        known = [name for name in names if isinstance(name, str)]
        raise ConfigurationError(f"`--cascade` names no judge of this panel. {did_you_mean(judge, known)}")
    first = names.index(judge)
    return [judges[first], *judges[:first], *judges[first + 1 :]]


def _read_settings(path: str) -> tuple[dict[str, Any], Path]:
    """The settings of a file, and the folder its paths are relative to."""
    from deemster.formats import read_document
    from deemster.formats.json_values import name_kind

    document = read_document(path, error=ConfigurationError)
    if not isinstance(document.value, dict):
        message = f"Settings of a grader are a map with keys such as `repeats`, not {name_kind(document.value)}."
        raise ConfigurationError(Issue(message, document.where()))
    return dict(document.value), Path(path).parent


def _grader_options(command: Command) -> Command:
    """Add the flags; the command receives them as one ``grader`` and one ``inline``."""
    command = group_flags(command, "grader", _take_grader)
    return group_flags(command, "inline", lambda flags: take_flags(InlineModel, flags), _OPTIONS)


def _take_grader(flags: Flags) -> GraderOptions:
    flags["flags"] = {key: value for key in SETTINGS if (value := flags.pop(key)) is not None}
    grader: GraderOptions = take_flags(GraderOptions, flags)
    return grader


# Flags that are settings of a grader as they are.
SETTINGS = (
    "calls",
    "aggregation",
    "ordinal_aggregation",
    "nominal_aggregation",
    "numeric_aggregation",
    "abstention",
    "partial_credit",
    "normalize",
    "shuffle_options",
    "auto_na",
    "repeats",
    "quorum",
    "seed",
    "temperature",
    "max_tokens",
    "probabilities",
)
_OPTIONS: Sequence[Decorator] = (
    click.option(
        "--judge",
        "judges",
        metavar="ROLE",
        multiple=True,
        help="Ask this model role, or ID=ROLE; repeat it for a panel. `judge` unless given.",
    ),
    click.option("--base-url", metavar="URL", help="Without --models: where the server of the judge is."),
    click.option("--model", metavar="NAME", help="Without --models: what that server calls the model."),
    click.option("--api-key-env", metavar="VARIABLE", help="Without --models: the variable with the key."),
    click.option("--settings", metavar="FILE", help="Settings of the grader as a map; flags win over them."),
    click.option("--calls", type=click.Choice(CALLS), help="A call for each criterion, or for the whole rubric."),
    click.option("--aggregation", metavar="RULE", help="How votes on binary criteria become one; majority."),
    click.option("--ordinal-aggregation", metavar="RULE", help="How votes on ordinal criteria become one; mean."),
    click.option("--nominal-aggregation", metavar="RULE", help="How votes on nominal criteria become one; mode."),
    click.option("--numeric-aggregation", metavar="RULE", help="How votes on numeric criteria become one; mean."),
    click.option("--abstention", type=click.Choice(ABSTENTIONS), help="What an abstention does; skip."),
    click.option("--partial-credit", type=float, metavar="SHARE", help="What `partial` grants; 0.5."),
    click.option("--normalize/--raw", default=None, help="Scores in [0, 1], or weighted sums."),
    click.option("--shuffle-options/--no-shuffle-options", default=None, help="Show options in varied orders."),
    click.option("--auto-na/--no-auto-na", default=None, help="Offer an abstention where the rubric has none."),
    click.option("--repeats", type=int, metavar="K", help="Ask each judge K times; 1."),
    click.option("--quorum", type=int, metavar="K", help="Votes on each criterion that make a score; every one."),
    click.option("--seed", type=int, metavar="N", help="The seed of everything random; 0."),
    click.option("--temperature", type=float, metavar="T", help="The judges' temperature; 0, or 0.7 if repeated."),
    click.option("--max-tokens", type=int, metavar="N", help="The longest reply."),
    click.option(
        "--probabilities/--no-probabilities", default=None, help="Ask for log-probabilities: how sure judges are."
    ),
    click.option(
        "--cascade", metavar="JUDGE", help="Ask this judge first, and the others only where it is not sure enough."
    ),
    click.option(
        "--unsure-below",
        type=float,
        metavar="CONFIDENCE",
        help="With --cascade: ask the others below this confidence; 0.8.",
    ),
    click.option("--cascade-by", type=click.Choice(CASCADE_WAYS), help="With --cascade: how sure it is; probability."),
    click.option("--cascade-repeats", type=int, metavar="K", help="With --cascade: ask the first judge K times."),
)


@click.command(
    "grade",
    cls=Verb,
    short_help="Grade submissions by a rubric, and tell how judges agree with people.",
    examples=[
        "deemster grade essays.yml --models suite.yml",
        "deemster grade essays.yml --models suite.yml --rubric rubric.yml --to votes.json",
    ],
    see_also=["rubric check", "agreement", "check"],
)
@click.argument("dataset", type=click.Path())
@click.option("--rubric", metavar="FILE", help="Grade by this rubric, in place of the dataset's if it has one.")
@columns_option
@_grader_options
@model_options
@storage_options
@click.option("--durable", is_flag=True, help="Commit every vote by itself: slower, and no kill loses one.")
@click.option("--max-failed", metavar="COUNT|SHARE%", default="0", help="Failed verdicts allowed; default 0.")
@text_file_options("json", "html", "votes")
@dry_run_option
@quiet_option
def command(
    *,
    dataset: str,
    rubric: str | None,
    columns: dict[str, list[str]] | None,
    grader: GraderOptions,
    inline: InlineModel,
    models: ModelOptions,
    storage: StorageOptions,
    max_failed: str,
    reports: ReportOptions,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Grade submissions by a rubric, and tell how judges agree with people.

    DATASET is a rubric dataset, or a spreadsheet (.csv, .tsv, .xlsx) with the columns `id` and `submission`, which
    needs --rubric; columns with the names of criteria hold labels of people. Every judge votes on every criterion. The
    results are the score, each criterion and each judge, and, where the dataset has labels, how far the judges agree
    with them. The grading is stored and can be resumed: votes that are there are not asked for again, votes that failed
    are. Exit codes: 0 done, 2 bad input, 3 incomplete, or more failed verdicts than --max-failed allows.
    """
    from deemster.datasets import RubricDataset
    from deemster.engine.model_access import complete_model_access
    from deemster.gate import read_allowance
    from deemster.grading.grade_dataset import run_grading
    from deemster.judges.rubric_metric import build_criterion_checks
    from deemster.rubrics.rubric_definition import Rubric

    storage.check()
    allowance = read_allowance(max_failed)
    for destination in reports.destinations:
        if destination.format == "votes" and Path(destination.path).suffix.lower() not in _VOTES:
            raise ReportError(Issue("Votes are written as .json or .jsonl.", destination.path))
    items = RubricDataset.load(dataset, rubric=None if rubric is None else Rubric.load(rubric), columns=columns)
    built = grader.build_grader()
    access = complete_model_access(
        inline.access(models, calls=not dry_run), [built, *build_criterion_checks(items.rubrics).values()]
    )
    if dry_run:
        _print_planned_calls(items, built, access, reports.destinations)
        return
    with storage.open(f"deemster grade {dataset} ...") as stored:
        grading = run_interruptible(
            lambda watchers: run_grading(
                items,
                built,
                access=access,
                warn=lambda message: warn(visible(message)),
                progress=watchers.progress,
                stop=watchers.stop,
                storage=stored,
                name=items.name or Path(dataset).stem,
            ),
            quiet=quiet,
        )
        code = _write_and_print(grading, reports, allowance=allowance, quiet=quiet)
        if stored.store is not None and code is ExitCode.INCOMPLETE:
            note(f"To continue: the same command with --resume={grading.run}")
    raise click.exceptions.Exit(code)


def _write_and_print(
    grading: Grading,
    reports: ReportOptions,
    *,
    allowance: Allowance,
    quiet: bool,
) -> ExitCode:
    """Write and print the results; returns the exit code."""
    from deemster.text.destination import write_pieces

    status, reason = grading.status, grading.reason
    reasons = not reports.without_text
    code = ExitCode.INCOMPLETE if status == "incomplete" else ExitCode.PASSED
    try:
        for destination in reports.destinations:
            if destination.format == "votes":
                grading.to_votes(destination.path, reasons=reasons)
            elif destination.format == "html":
                write_pieces((grading.to_html(reasons=reasons).encode(),), destination)
            else:
                grading.write(destination)
    except DeemsterError as error:
        complain(str(error))
        code = ExitCode.INCOMPLETE
    if not quiet and not reports.takes_stdout:
        print_sections(grading.sections())
    if reason is not None:
        failed = (item for item in grading.items if item.error is not None)
        first = next(failed, None) if grading.n_failed_items else None
        why = "" if first is None else f" The first is `{first.id}`: {first.error}"
        note(visible(f"{status}: {reason}.{why}"))
    elif (failed_verdicts := _describe_failed_verdicts(grading.figures, allowance)) is not None:
        note(visible(failed_verdicts))
        code = ExitCode.INCOMPLETE
    return code


def _describe_failed_verdicts(figures: GradingSummary, allowance: Allowance) -> str | None:
    """Which verdicts failed, where they are more than allowed."""
    failed = {name: each for name, each in figures.criteria.items() if each.n_failed}
    lost = sum(each.n_failed for each in failed.values())
    verdicts = sum(each.n for each in figures.criteria.values())
    if not lost or not allowance.exceeded(lost, verdicts):
        return None
    where = ", ".join(f"`{name}` {each.n_failed:,} of {each.n:,}" for name, each in failed.items())
    return f"{lost:,} of {plural(verdicts, 'verdict')} failed, above the {allowance} allowed: {where}."


def _print_planned_calls(
    dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess, destinations: Sequence[Destination]
) -> None:
    from deemster.engine.run_sync import run_sync
    from deemster.grading.grade_dataset import plan_grading_calls

    print_planned_calls(run_sync(plan_grading_calls(dataset, grader, access)), destinations)
    if grader.cascade is not None:
        most = sum(map(grader.count_requests, dataset.rubrics))
        note(f"With every answer of `{grader.cascade.cheap.id}` escalated it is {most:,} requests in all.")
