"""`deemster rubric`: finds what makes judges disagree about a rubric, and rewords it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from deemster.cli._console import note, show_progress, warn, write_out
from deemster.cli._rubric_improve import improve
from deemster.cli.options import ModelOptions, file_option, model_options
from deemster.errors import ExitCode, RubricError, plural, visible

if TYPE_CHECKING:
    from deemster.rubrics.rubric_check import RubricIssue
    from deemster.rubrics.rubric_definition import Rubric
    from deemster.runs.examine_rubric import RubricExamination


@click.group("rubric", short_help="Find what makes judges disagree about a rubric, and reword it.")
def command() -> None:
    """Find what makes judges disagree about a rubric, and reword it."""


command.add_command(improve)


@command.command("check", short_help="List vague, joined, overlapping and badly scaled criteria.")
@click.argument("file", type=click.Path())
@click.option(
    "--judge", "judges", multiple=True, metavar="ROLE", help="Let this model read the rubric too; repeatable."
)
@model_options
@file_option("json", "the issues as JSON")
@click.option("--strict", is_flag=True, help="Exit with 1 where anything was found.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def check(
    *, file: str, judges: tuple[str, ...], models: ModelOptions, json: str | None, strict: bool, quiet: bool
) -> None:
    """List vague, joined, overlapping and badly scaled criteria, each with its place and what to do.

    Simple rules look at words, scales and weights. A judge is asked only where --judge names one: it grades every
    criterion, and the rubric as a whole, by a rubric of our own. Exit codes: 0 done, 1 issues under --strict, 2 bad
    input, 3 a judge did not answer everything.
    """
    from deemster.formats import read_document
    from deemster.formats.canonical_json import canonical
    from deemster.formats.json_values import pointer
    from deemster.report.report_files import Destination, write_pieces
    from deemster.rubrics.rubric_check import check_rubric, criteria_paths
    from deemster.rubrics.rubric_definition import read_rubric
    from deemster.runs.examine_rubric import examine_rubric, merge_issues
    from deemster.runs.run_sync import run_sync

    destination = None if json is None else Destination("json", json)
    if destination is not None:
        destination.check()
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
    if destination is not None:
        write_pieces((canonical(_json_value(file, rubric, issues, examination)), b"\n"), destination)
    if destination is None or not destination.is_stdout:
        write_out("\n".join(_lines(file, rubric, issues, examination)) + "\n")
    if examination is not None and examination.failed:
        note(f"incomplete: {examination.halted or 'a judge failed.'}")
        sys.exit(ExitCode.INCOMPLETE)
    if strict and issues:
        sys.exit(ExitCode.GATE_FAILED)


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


def _lines(
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
