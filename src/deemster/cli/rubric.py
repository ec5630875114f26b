"""`deemster rubric`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import click
import msgspec

from deemster.cli._console import note, progress_shown, say, warn
from deemster.cli._rubric_improve import improve
from deemster.cli.options import Asked, asking_options
from deemster.errors import ExitCode, RubricError, counted, visible
from deemster.formats import read_document
from deemster.formats.canonical_json import canonical
from deemster.formats.json_values import pointer
from deemster.report import Destination
from deemster.report.report_files import write_pieces
from deemster.rubrics.rubric_check import RubricIssue, check_rubric, criteria_paths
from deemster.rubrics.rubric_definition import Rubric, read_rubric
from deemster.runs.examine_rubric import RubricExamination, examine_rubric, merge_issues
from deemster.runs.run_sync import run_sync


@click.group("rubric", short_help="Find what makes judges disagree about a rubric, and reword it.")
def command() -> None:
    """Find what makes judges disagree about a rubric, and reword it."""


@command.command("check", short_help="List vague, joined, overlapping and badly scaled criteria.")
@click.argument("file", type=click.Path())
@click.option(
    "--with-judge", "judges", multiple=True, metavar="ROLE", help="Let this model read the rubric too; repeatable."
)
@asking_options
@click.option("--json", metavar="PATH", help="Write the issues as JSON; `-` is standard output.")
@click.option("--strict", is_flag=True, help="Exit with 1 where anything was found.")
@click.option("--quiet", is_flag=True, help="Show no progress.")
def check(*, file: str, judges: tuple[str, ...], asked: Asked, json: str | None, strict: bool, quiet: bool) -> None:
    """List vague, joined, overlapping and badly scaled criteria, each with its place and what to do.

    Simple rules look at words, scales and weights. A judge is asked only where --with-judge names one: it grades every
    criterion, and the rubric as a whole, by a rubric of our own. Exit codes: 0 done, 1 issues under --strict, 2 bad
    input, 3 a judge did not answer everything.
    """
    destination = None if json is None else Destination("json", json)
    if destination is not None:
        destination.check()
    document = read_document(file, error=RubricError)
    rubric, issues = read_rubric(document.value, document)
    if rubric is None:
        raise RubricError(issues)
    found = check_rubric(rubric, document=document)
    said = None
    if judges:
        with progress_shown(quiet=quiet) as progress:
            said = run_sync(
                examine_rubric(
                    rubric, judges=judges, access=asked.asking(), warn=warn, document=document, progress=progress
                )
            )
        paths = [pointer(path) for path in criteria_paths(rubric, document)]
        found = merge_issues(found, said.issues, paths)
    if destination is not None:
        write_pieces((canonical(_facts(file, rubric, found, said)), b"\n"), destination)
    if destination is None or not destination.is_stdout:
        say("\n".join(_lines(file, rubric, found, said)) + "\n")
    if said is not None and said.failed:
        note(f"incomplete: {said.halted or 'a judge failed.'}")
        sys.exit(ExitCode.INCOMPLETE)
    if strict and found:
        sys.exit(ExitCode.GATE_FAILED)


command.add_command(improve)


def _facts(
    file: str, rubric: Rubric, found: Sequence[RubricIssue], said: RubricExamination | None
) -> dict[str, object]:
    return {
        "file": file,
        "rubric": rubric.name,
        "criteria": len(rubric.criteria),
        "issues": [msgspec.to_builtins(issue) for issue in found],
        "judged": None if said is None else {"questions": said.asked, "failed": said.failed, "halted": said.halted},
    }


def _lines(file: str, rubric: Rubric, found: Sequence[RubricIssue], said: RubricExamination | None) -> list[str]:
    lines = []
    for issue in found:
        lines.append(visible(f"{issue.where}: {issue.severity}: {issue.message} [{issue.code}]"))
        lines.append(f"    {visible(issue.suggestion)}")
    counts = Counter(issue.severity for issue in found)
    many = "1 criterion" if len(rubric.criteria) == 1 else f"{len(rubric.criteria):,} criteria"
    told = f"{counted(counts['warning'], 'warning')}, {counted(counts['hint'], 'hint')}" if found else "nothing found"
    lines.append(visible(f"{file}: {many}, {told}"))
    if said is not None:
        missing = f", {said.failed:,} without an answer" if said.failed else ""
        cost = "" if said.cost_usd is None else f", ${said.cost_usd:.4f}"
        lines.append(f"judged: {counted(said.asked, 'question')}{missing}{cost}")
    return lines
