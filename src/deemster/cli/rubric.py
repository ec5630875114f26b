"""`deemster rubric`: finds what makes judges disagree about a rubric, and rewords it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, print_planned_calls, show_progress, warn, write_out
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
from deemster.cli.report_options import ReportOptions, result_options, write_result, write_texts
from deemster.errors import ConfigurationError, ExitCode, Issue, ReportError, RubricError, did_you_mean, plural, visible

if TYPE_CHECKING:
    from deemster.grading.examine_rubric import RubricExamination
    from deemster.grading.improvement_judging import ImprovementSettings
    from deemster.rubrics.rubric_check import RubricIssue
    from deemster.rubrics.rubric_definition import Rubric


_SUFFIX = ".progress.db"


@click.group(
    "rubric",
    cls=VerbGroup,
    short_help="Find what makes judges disagree about a rubric, and reword it.",
    examples=[
        "deemster rubric check rubric.yml",
        "deemster rubric improve rubric.yml essays.yml --models suite.yml --judge judge",
    ],
    see_also=["grade", "agreement"],
)
def command() -> None:
    """Find what makes judges disagree about a rubric, and reword it."""


@command.command(
    "check",
    short_help="List vague, joined, overlapping and badly scaled criteria.",
    examples=["deemster rubric check rubric.yml", "deemster rubric check rubric.yml --models suite.yml"],
    see_also=["grade"],
)
@click.argument("file", type=click.Path())
@click.option(
    "--judge", "judges", multiple=True, metavar="ROLE", help="Let this model read the rubric too; repeatable."
)
@model_options
@result_options("json")
@click.option("--strict", is_flag=True, help="Exit with 1 where anything was found.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def check(
    *, file: str, judges: tuple[str, ...], models: ModelOptions, reports: ReportOptions, strict: bool, quiet: bool
) -> None:
    """List vague, joined, overlapping and badly scaled criteria, each with its place and what to do.

    Simple rules look at words, scales and weights. A judge is asked only where --judge names one: it grades every
    criterion, and the rubric as a whole, by a rubric of our own. Exit codes: 0 done, 1 issues under --strict, 2 bad
    input, 3 a judge did not answer everything.
    """
    from deemster.engine.run_sync import run_sync
    from deemster.formats import read_document
    from deemster.formats.canonical_json import canonical
    from deemster.formats.json_values import pointer
    from deemster.grading.examine_rubric import examine_rubric, merge_issues
    from deemster.rubrics.rubric_check import check_rubric, criteria_paths
    from deemster.rubrics.rubric_definition import read_rubric

    document = read_document(file, error=RubricError)
    rubric, faults = read_rubric(document.value, document)
    if rubric is None:
        raise RubricError(faults)
    issues = check_rubric(rubric, document=document)
    examination = None
    if judges:
        with show_progress(quiet=quiet) as progress:
            work = examine_rubric(
                rubric, judges=judges, access=models.access(), warn=warn, document=document, progress=progress
            )
            examination = run_sync(work)
        paths = [pointer(path) for path in criteria_paths(rubric, document)]
        issues = merge_issues(issues, examination.issues, paths)
    value = _json_value(file, rubric, issues, examination)
    write_texts(reports, {"json": lambda: f"{canonical(value).decode()}\n"})
    if not reports.takes_stdout:
        write_out("\n".join(_check_lines(file, rubric, issues, examination)) + "\n")
    if examination is not None and examination.failed:
        note(f"incomplete: {examination.halted or 'a judge failed.'}")
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    if strict and issues:
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


def _json_value(
    file: str, rubric: Rubric, issues: Sequence[RubricIssue], examination: RubricExamination | None
) -> dict[str, object]:
    import msgspec

    judged = None
    if examination is not None:
        judged = {"questions": examination.asked, "failed": examination.failed, "halted": examination.halted}
    return {
        "file": file,
        "rubric": rubric.name,
        "criteria": len(rubric.criteria),
        "issues": [msgspec.to_builtins(issue) for issue in issues],
        "judged": judged,
    }


def _check_lines(
    file: str, rubric: Rubric, issues: Sequence[RubricIssue], examination: RubricExamination | None
) -> list[str]:
    lines = []
    for issue in issues:
        lines.append(visible(f"{issue.where}: {issue.severity}: {issue.message} [{issue.code}]"))
        lines.append(f"    {visible(issue.suggestion)}")
    counts = Counter(issue.severity for issue in issues)
    criteria = "1 criterion" if len(rubric.criteria) == 1 else f"{len(rubric.criteria):,} criteria"
    found = f"{plural(counts['warning'], 'warning')}, {plural(counts['hint'], 'hint')}" if issues else "nothing found"
    lines.append(visible(f"{file}: {criteria}, {found}"))
    if examination is not None:
        missing = f", {examination.failed:,} without an answer" if examination.failed else ""
        cost = "" if examination.cost_usd is None else f", ${examination.cost_usd:.4f}"
        lines.append(f"judged: {plural(examination.asked, 'question')}{missing}{cost}")
    return lines


def _settings_option(command: Command) -> Command:
    """Let the command receive what its flags say of trials as one ``settings``."""
    return group_flags(command, "settings", _take_settings)


def _take_settings(flags: Flags) -> ImprovementSettings:
    from deemster.grading.improvement_judging import ImprovementSettings

    trials: dict[str, Any] = {}
    override_settings(trials, flags.pop("overrides"))

    known = [name for name in ImprovementSettings._fields if name != "writer"]
    if unknown := [name for name in trials if name not in known]:
        raise ConfigurationError(f"`--set`: `{unknown[0]}` is no setting. {did_you_mean(unknown[0], known)}")

    return ImprovementSettings(flags.pop("writer"), **trials)


@command.command(
    "improve",
    short_help="Reword what judges and people disagree about.",
    examples=["deemster rubric improve rubric.yml essays.yml --models suite.yml --judge judge --budget 2usd"],
    see_also=["rubric check", "agreement"],
)
@click.argument("rubric", type=click.Path())
@click.argument("dataset", type=click.Path())
@click.option("--judge", "judges", multiple=True, required=True, metavar="ROLE", help="Who grades; repeatable.")
@click.option("--writer", metavar="ROLE", help="Who proposes wordings; the first judge unless given.")
@columns_option
@result_options("rubric", "json", "md")
@set_option("rounds=5, criteria=2, exemplars=4, train=0.6, cluster=KEY, alpha=0.1 or seed=7")
@click.option("--resume", is_flag=True, help="Go on where earlier work stopped.")
@model_options
@dry_run_option
@quiet_option
@_settings_option
def improve(
    *,
    rubric: str,
    dataset: str,
    judges: tuple[str, ...],
    columns: dict[str, list[str]] | None,
    settings: ImprovementSettings,
    reports: ReportOptions,
    resume: bool,
    models: ModelOptions,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Reword what judges and people disagree about, where held-out agreement supports it.

    DATASET holds submissions with people's labels. Part of it is learnt from: a model sees the criteria that judges
    and people agree least about, with submissions about which they disagree, and words them anew. The rest decides: a
    wording is accepted where agreement there rises by more than noise. The new rubric goes to the .yaml file of --to,
    every trial to a .json or .md file. Exit codes: 0 done, 2 bad input, 3 incomplete: --resume goes on.
    """
    from deemster.datasets import RubricDataset
    from deemster.engine.run_sync import run_sync
    from deemster.grading.improve_rubric import run_improvement
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.judges.judge_panel import Judge
    from deemster.rubrics.rubric_definition import Rubric

    to, trials = _part_destinations(reports)
    before = Rubric.load(rubric)
    if Path(to).exists() and Path(to).samefile(rubric):
        raise ReportError(Issue("The new rubric would overwrite the one it comes from: name another file.", to))
    items = RubricDataset.load(dataset, rubric=before, columns=columns)
    grader = CriterionGrader(tuple(Judge(role, role) for role in judges), seed=settings.seed)
    if dry_run:
        _print_forecast(before, items, grader, settings, models)
        return
    path = Path(f"{to}{_SUFFIX}")
    with show_progress(quiet=quiet) as progress:
        work = run_improvement(
            before, items, grader, settings, access=models.access(), path=path, resume=resume, progress=progress
        )
        found = run_sync(work)
    found.after.dump(to)
    write_result(found, trials, quiet=quiet)
    if not found.complete:
        note(f"incomplete: {visible(found.stopped)}; continue with --resume")
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    path.unlink(missing_ok=True)


def _print_forecast(rubric: Any, items: Any, grader: Any, settings: Any, models: ModelOptions) -> None:
    from deemster.engine.run_sync import run_sync
    from deemster.grading.improve_rubric import forecast

    found = run_sync(forecast(rubric, items, grader, settings, access=models.access(calls=False)))
    print_planned_calls(found.planned)
    wordings = plural(found.written, "wording")
    note(f"That grades the part learnt from. In all it is at most {found.judged:,} requests to judges and {wordings}.")


def _part_destinations(reports: ReportOptions) -> tuple[str, ReportOptions]:
    """Where the new rubric goes, and where the trials do.

    Raises:
        RubricError: The new rubric goes nowhere, to standard output, or has no extension of a rubric.
    """
    from deemster.formats import Reading, file_format
    from deemster.rubrics.rubric_reader import FORMATS

    rubrics = [destination for destination in reports.destinations if destination.format == "rubric"]
    if len(rubrics) != 1 or rubrics[0].is_stdout:
        raise RubricError("Say where the new rubric goes, as one file: `--to new.yaml`.")
    path = rubrics[0].path
    file_format(path, Reading(path, error=RubricError), known=FORMATS)
    trials = tuple(destination for destination in reports.destinations if destination.format != "rubric")
    return path, reports._replace(destinations=trials)
