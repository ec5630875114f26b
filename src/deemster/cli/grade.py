"""`deemster grade`: grades submissions by a rubric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deemster.cli._command import Verb
from deemster.cli._console import note, print_planned_calls, print_sections, warn
from deemster.cli.main import complain, run_interruptible
from deemster.cli.model_options import ModelOptions, dry_run_option, model_options
from deemster.cli.options import (
    Command,
    Decorator,
    columns_option,
    group_flags,
    override_settings,
    quiet_option,
    set_option,
    take_flags,
)
from deemster.cli.report_options import ReportOptions, text_file_options
from deemster.cli.store_options import StorageOptions, storage_options
from deemster.errors import (
    ConfigurationError,
    DeemsterError,
    ExitCode,
    Issue,
    ReportError,
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
        overrides: Settings as `KEY=VALUE`, which win over the file.
    """

    judges: tuple[str, ...]
    settings: str | None
    overrides: tuple[str, ...]

    def build_grader(self) -> tuple[CriterionGrader, bool]:
        """The grader, and whether every vote is committed by itself, which the same settings say.

        Raises:
            ConfigurationError: Something in the flags or the file cannot be used; all issues are listed.
        """
        from deemster.judges.grader_section import build_grader

        given, folder = ({}, None) if self.settings is None else _read_settings(self.settings)
        override_settings(given, self.overrides)
        if self.judges:
            given["judges"] = [_judge_entry(text) for text in self.judges]
        given.setdefault("judges", [JUDGE])
        durable = given.pop("durable", False)
        if not isinstance(durable, bool):
            raise ConfigurationError(Issue("`durable` is true or false.", self.settings))
        try:
            return build_grader(given, folder=folder), durable
        except ConfigurationError as error:
            raise ConfigurationError(
                issue._replace(where=issue.where or self.settings) for issue in error.issues
            ) from None


def _judge_entry(text: str) -> Any:
    name, sign, role = text.partition("=")
    return {"id": name, "model": role} if sign else text


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
    command = group_flags(command, "grader", lambda flags: take_flags(GraderOptions, flags))
    return group_flags(command, "inline", lambda flags: take_flags(InlineModel, flags), _OPTIONS)


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
    click.option("--settings", metavar="FILE", help="Settings of the grader as a map."),
    set_option("calls=per_item, quorum=2, cascade.unsure_below=0.8 or durable=true; it wins over the file"),
)


@click.command(
    "grade",
    cls=Verb,
    short_help="Grade submissions by a rubric, with one judge or a panel.",
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
    """Grade submissions by a rubric, with one judge or a panel.

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
    if allowance.samples:
        raise ConfigurationError("`--max-failed` counts verdicts: a count such as 3, or a share such as 2%.")
    for destination in reports.destinations:
        if destination.format == "votes" and Path(destination.path).suffix.lower() not in _VOTES:
            raise ReportError(Issue("Votes are written as .json or .jsonl.", destination.path))
    items = RubricDataset.load(dataset, rubric=None if rubric is None else Rubric.load(rubric), columns=columns)
    built, durable = grader.build_grader()
    access = complete_model_access(
        inline.access(models, calls=not dry_run), [built, *build_criterion_checks(items.rubrics).values()]
    )
    if dry_run:
        _print_planned_calls(items, built, access, reports.destinations)
        return
    with storage._replace(durable=durable).open(f"deemster grade {dataset} ...") as stored:
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
