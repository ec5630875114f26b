"""`deemster grade`: grades submissions by a rubric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from deemster.cli._command import Verb
from deemster.cli._console import complain, note, print_planned_calls, print_sections, warn
from deemster.cli._interruption import run_interruptible
from deemster.cli.model_options import ModelOptions, dry_run_option, model_options
from deemster.cli.options import (
    Command,
    Flags,
    columns_option,
    group_flags,
    override_settings,
    quiet_option,
    set_option,
)
from deemster.cli.report_options import ReportOptions, text_file_options
from deemster.cli.store_options import check_storage, open_storage, storage_options
from deemster.errors import ConfigurationError, DeemsterError, ExitCode, Issue, ReportError, plural, visible

if TYPE_CHECKING:
    from deemster.datasets import RubricDataset
    from deemster.engine.model_access import ModelAccess
    from deemster.gate import Allowance
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.report import Destination
    from deemster.report.grading_result import Grading
    from deemster.report.grading_summary import GradingSummary
    from deemster.runs.run_storage import Storage

_VOTES = (".json", ".jsonl")


# Settings that are about a grading as a whole, and not about its grader.
_DURABLE, _MAX_FAILED = "durable", "max_failed"


class GradingOptions(NamedTuple):
    """How submissions are graded.

    Attributes:
        grader: The judges, and how they are asked.
        is_durable: Whether every vote is committed by itself.
        allowance: How many verdicts may fail before the grading counts as incomplete.
    """

    grader: CriterionGrader
    is_durable: bool
    allowance: Allowance


def _grading_options(command: Command) -> Command:
    """Add the flags of judges and settings; the command receives them as one ``options``."""
    flags = (
        click.option(
            "--judge",
            "judges",
            metavar="ROLE",
            multiple=True,
            help="Ask this model role, or ID=ROLE; repeat it for a panel. `judge` unless given.",
        ),
        click.option("--settings", metavar="FILE", help="Settings of the grader as a map."),
        set_option(
            "calls=per_item, quorum=2, cascade.unsure_below=0.8, durable=true or max_failed=2% (of the verdicts, or a "
            "count, 0 unless given); it wins over the file"
        ),
    )
    return group_flags(command, "options", _take_grading_options, flags)


def _take_grading_options(flags: Flags) -> GradingOptions:
    from deemster.gate import NONE_UNSCORED, read_allowance
    from deemster.judges.grader_section import build_grader
    from deemster.records.model_requests import JUDGE

    file = flags.pop("settings")
    settings, folder = ({}, None) if file is None else _read_settings(file)
    override_settings(settings, flags.pop("overrides"))
    if judges := flags.pop("judges"):
        settings["judges"] = [_judge_entry(text) for text in judges]
    settings.setdefault("judges", [JUDGE])

    is_durable = settings.pop(_DURABLE, False)
    if not isinstance(is_durable, bool):
        raise ConfigurationError(Issue("`durable` is true or false.", file))
    allowance = read_allowance(settings.pop(_MAX_FAILED)) if _MAX_FAILED in settings else NONE_UNSCORED
    if allowance.samples:
        raise ConfigurationError(Issue("`max_failed` counts verdicts: a count such as 3, or a share such as 2%.", file))

    try:
        grader = build_grader(settings, folder=folder)
    except ConfigurationError as error:
        raise ConfigurationError(issue._replace(where=issue.where or file) for issue in error.issues) from None
    return GradingOptions(grader, is_durable, allowance)


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


@click.command(
    "grade",
    cls=Verb,
    examples=[
        "deemster grade essays.yml --models suite.yml",
        "deemster grade essays.yml --models suite.yml --rubric rubric.yml --to votes.json",
    ],
    see_also=["rubric check", "agreement", "check"],
)
@click.argument("dataset", type=click.Path())
@click.option("--rubric", metavar="FILE", help="Grade by this rubric, in place of the dataset's if it has one.")
@columns_option
@_grading_options
@model_options
@storage_options
@text_file_options("json", "html", "votes")
@dry_run_option
@quiet_option
def command(
    *,
    dataset: str,
    rubric: str | None,
    columns: dict[str, list[str]] | None,
    options: GradingOptions,
    models: ModelOptions,
    storage: Storage | None,
    reports: ReportOptions,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Grade submissions by a rubric, with one judge or a panel.

    DATASET is a rubric dataset, or a spreadsheet (.csv, .tsv, .xlsx) with the columns `id` and `submission`, which
    needs --rubric; columns with the names of criteria hold labels of people. Every judge votes on every criterion. The
    results are the score, each criterion and each judge, and, where the dataset has labels, how far the judges agree
    with them. The grading is stored and can be resumed: votes that are there are not asked for again, votes that failed
    are. Exit codes: 0 done, 2 bad input, 3 incomplete, or more failed verdicts than `max_failed` allows.
    """
    from deemster.datasets import RubricDataset
    from deemster.engine.model_access import complete_model_access
    from deemster.grading.grade_dataset import run_grading
    from deemster.judges.rubric_metric import build_criterion_checks
    from deemster.rubrics.rubric_definition import Rubric

    check_storage(storage)
    _check_votes_files(reports)

    items = RubricDataset.load(dataset, rubric=None if rubric is None else Rubric.load(rubric), columns=columns)
    checks = build_criterion_checks(items.rubrics).values()
    access = complete_model_access(models.access(calls=not dry_run), [options.grader, *checks])
    if dry_run:
        _print_planned_calls(items, options.grader, access, reports.destinations)
        return

    if storage is not None:
        storage = storage._replace(durable=options.is_durable)
    with open_storage(storage, f"deemster grade {dataset} ...") as stored:
        grading = run_interruptible(
            lambda watchers: run_grading(
                items,
                options.grader,
                access=access,
                warn=lambda message: warn(visible(message)),
                progress=watchers.progress,
                stop=watchers.stop,
                storage=stored,
                name=items.name or Path(dataset).stem,
            ),
            quiet=quiet,
        )
        code = _write_and_print(grading, reports, allowance=options.allowance, quiet=quiet)
        if stored.store is not None and code is ExitCode.INCOMPLETE:
            note(f"To continue: the same command with --resume={grading.run}")
    raise click.exceptions.Exit(code)


def _check_votes_files(reports: ReportOptions) -> None:
    """Refuse a votes file with another ending than votes have."""
    for destination in reports.destinations:
        if destination.format == "votes" and Path(destination.path).suffix.lower() not in _VOTES:
            raise ReportError(Issue("Votes are written as .json or .jsonl.", destination.path))


def _write_and_print(grading: Grading, reports: ReportOptions, *, allowance: Allowance, quiet: bool) -> ExitCode:
    """Write and print the results; returns the exit code."""
    code = ExitCode.INCOMPLETE if grading.status == "incomplete" else ExitCode.PASSED
    try:
        _write(grading, reports)
    except DeemsterError as error:
        complain(str(error))
        code = ExitCode.INCOMPLETE
    if not quiet and not reports.takes_stdout:
        print_sections(grading.sections())

    if grading.reason is not None:
        note(visible(_describe_reason(grading)))
    elif (failed_verdicts := _describe_failed_verdicts(grading.figures, allowance)) is not None:
        note(visible(failed_verdicts))
        code = ExitCode.INCOMPLETE
    return code


def _write(grading: Grading, reports: ReportOptions) -> None:
    """Write the results to every destination.

    Raises:
        DeemsterError: One cannot be written.
    """
    from deemster.text.destination import write_pieces

    reasons = not reports.without_text
    for destination in reports.destinations:
        if destination.format == "votes":
            grading.to_votes(destination.path, reasons=reasons)
        elif destination.format == "html":
            write_pieces((grading.to_html(reasons=reasons).encode(),), destination)
        else:
            grading.write(destination)


def _describe_reason(grading: Grading) -> str:
    """Why a grading is not complete, with the first item that failed."""
    why = f"{grading.status}: {grading.reason}."
    if not grading.n_failed_items:
        return why
    first = next((item for item in grading.items if item.error is not None), None)
    return why if first is None else f"{why} The first is `{first.id}`: {first.error}"


def _describe_failed_verdicts(figures: GradingSummary, allowance: Allowance) -> str | None:
    """Which verdicts failed, where they are more than allowed."""
    failing = {name: criterion for name, criterion in figures.criteria.items() if criterion.n_failed}
    failed = sum(criterion.n_failed for criterion in failing.values())
    verdicts = sum(criterion.n for criterion in figures.criteria.values())
    if not failed or not allowance.exceeded(failed, verdicts):
        return None

    where = ", ".join(f"`{name}` {criterion.n_failed:,} of {criterion.n:,}" for name, criterion in failing.items())
    return f"{failed:,} of {plural(verdicts, 'verdict')} failed, above the {allowance} allowed: {where}."


def _print_planned_calls(
    dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess, destinations: Sequence[Destination]
) -> None:
    from deemster.engine.run_sync import run_sync
    from deemster.grading.grade_dataset import plan_grading_calls

    print_planned_calls(run_sync(plan_grading_calls(dataset, grader, access)), destinations)
    if grader.cascade is not None:
        most = sum(map(grader.count_requests, dataset.rubrics))
        note(f"With every answer of `{grader.cascade.cheap.id}` escalated it is {most:,} requests in all.")
