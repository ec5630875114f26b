"""`deemster rubric`: finds what makes judges disagree about a rubric, and rewords it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from deemster.cli._command import VerbGroup
from deemster.cli._console import note, print_planned_calls, show_progress, warn, write_out
from deemster.cli.model_options import ModelOptions, dry_run_option, model_options
from deemster.cli.options import columns_option, quiet_option, read_settings, set_option
from deemster.cli.report_options import ReportOptions, result_options, write_result, write_texts
from deemster.errors import ExitCode, Issue, ReportError, RubricError, plural, visible

if TYPE_CHECKING:
    from deemster.datasets import RubricDataset
    from deemster.formats import Document
    from deemster.grading.examine_rubric import RubricExamination
    from deemster.grading.improvement_judging import ImprovementSettings
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.rubrics.rubric_check import RubricIssue
    from deemster.rubrics.rubric_definition import Rubric


_SUFFIX = ".progress.db"


@click.group(
    "rubric",
    cls=VerbGroup,
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
    findings = _look_at_words(file)
    if judges:
        findings = _ask_judges(findings, judges, models, quiet=quiet)

    write_texts(reports, {"json": findings.to_json})
    if not reports.takes_stdout:
        write_out("\n".join(findings.lines()) + "\n")

    examination = findings.examination
    if examination is not None and examination.failed:
        note(f"incomplete: {examination.halted or 'a judge failed.'}")
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    if strict and findings.issues:
        raise click.exceptions.Exit(ExitCode.GATE_FAILED)


class RubricFindings(NamedTuple):
    """What was found in the file of a rubric.

    Attributes:
        document: The file.
        rubric: The rubric in it.
        issues: What is wrong with its wording.
        examination: What judges said of it; None where none was asked.
    """

    document: Document
    rubric: Rubric
    issues: Sequence[RubricIssue]
    examination: RubricExamination | None = None

    def to_json(self) -> str:
        """The findings as JSON."""
        import msgspec

        from deemster.formats.canonical_json import canonical

        judged = None
        if self.examination is not None:
            judged = {
                "questions": self.examination.asked,
                "failed": self.examination.failed,
                "halted": self.examination.halted,
            }
        value = {
            "file": self.document.file,
            "rubric": self.rubric.name,
            "criteria": len(self.rubric.criteria),
            "issues": [msgspec.to_builtins(issue) for issue in self.issues],
            "judged": judged,
        }
        return f"{canonical(value).decode()}\n"

    def lines(self) -> Iterator[str]:
        """The findings as they are printed."""
        for issue in self.issues:
            yield visible(f"{issue.where}: {issue.severity}: {issue.message} [{issue.code}]")
            yield f"    {visible(issue.suggestion)}"

        counts = Counter(issue.severity for issue in self.issues)
        criteria = len(self.rubric.criteria)
        looked_at = "1 criterion" if criteria == 1 else f"{criteria:,} criteria"
        total = f"{plural(counts['warning'], 'warning')}, {plural(counts['hint'], 'hint')}"
        strict = f"{total} (exit code 1 with `--strict`)"
        yield visible(f"{self.document.file}: {looked_at}, {strict if self.issues else 'nothing found'}")

        if self.examination is not None:
            failed = self.examination.failed
            missing = f", {failed:,} without an answer" if failed else ""
            cost = "" if self.examination.cost_usd is None else f", ${self.examination.cost_usd:.4f}"
            yield f"judged: {plural(self.examination.asked, 'question')}{missing}{cost}"


def _look_at_words(file: str) -> RubricFindings:
    """What simple rules find in the words, scales and weights of a rubric."""
    from deemster.formats import read_document
    from deemster.rubrics.rubric_check import check_rubric
    from deemster.rubrics.rubric_definition import read_rubric

    document = read_document(file, error=RubricError)
    rubric, faults = read_rubric(document.value, document)
    if rubric is None:
        raise RubricError(faults)
    return RubricFindings(document, rubric, check_rubric(rubric, document=document))


def _ask_judges(
    findings: RubricFindings, judges: tuple[str, ...], models: ModelOptions, *, quiet: bool
) -> RubricFindings:
    """The findings, with what judges say of the rubric."""
    from deemster.engine.run_sync import run_sync
    from deemster.formats.json_values import pointer
    from deemster.grading.examine_rubric import examine_rubric, merge_issues
    from deemster.rubrics.rubric_check import criteria_paths

    document = findings.document
    rubric = findings.rubric
    with show_progress(quiet=quiet) as progress:
        work = examine_rubric(
            rubric, judges=judges, access=models.access(), warn=warn, document=document, progress=progress
        )
        examination = run_sync(work)

    paths = [pointer(path) for path in criteria_paths(rubric, document)]
    issues = merge_issues(findings.issues, examination.issues, paths)
    return findings._replace(issues=issues, examination=examination)


@command.command(
    "improve",
    short_help="Reword what judges and people disagree about.",
    examples=["deemster rubric improve rubric.yml essays.yml --models suite.yml --judge judge --budget 2usd"],
    see_also=["rubric check", "agreement"],
)
@click.argument("rubric", type=click.Path())
@click.argument("dataset", type=click.Path())
@click.option("--judge", "judges", multiple=True, required=True, metavar="ROLE", help="Who grades; repeatable.")
@columns_option
@result_options("rubric", "json", "md")
@set_option(
    "writer=ROLE (who proposes wordings; the first judge unless given), rounds=5, criteria=2, exemplars=4, train=0.6, "
    "cluster=KEY, alpha=0.1 or seed=7"
)
@click.option("--resume", is_flag=True, help="Go on where earlier work stopped.")
@model_options
@dry_run_option
@quiet_option
def improve(
    *,
    rubric: str,
    dataset: str,
    judges: tuple[str, ...],
    columns: dict[str, list[str]] | None,
    overrides: tuple[str, ...],
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
    from deemster.grading.improvement_judging import ImprovementSettings
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.judges.judge_panel import Judge
    from deemster.rubrics.rubric_definition import Rubric

    settings = read_settings(ImprovementSettings, overrides)
    new_file, trial_reports = _part_destinations(reports)
    before = Rubric.load(rubric)
    if Path(new_file).exists() and Path(new_file).samefile(rubric):
        raise ReportError(Issue("The new rubric would overwrite the one it comes from: name another file.", new_file))

    items = RubricDataset.load(dataset, rubric=before, columns=columns)
    grader = CriterionGrader(tuple(Judge(role, role) for role in judges), seed=settings.seed)
    if dry_run:
        _print_forecast(before, items, grader, settings, models)
        return

    progress_file = Path(f"{new_file}{_SUFFIX}")
    with show_progress(quiet=quiet) as progress:
        work = run_improvement(
            before,
            items,
            grader,
            settings,
            access=models.access(),
            path=progress_file,
            resume=resume,
            progress=progress,
        )
        improvement = run_sync(work)

    improvement.after.dump(new_file)
    write_result(improvement, trial_reports, quiet=quiet)
    if not improvement.complete:
        note(f"incomplete: {visible(improvement.stopped)}; continue with --resume")
        raise click.exceptions.Exit(ExitCode.INCOMPLETE)
    progress_file.unlink(missing_ok=True)


def _print_forecast(
    rubric: Rubric,
    items: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    models: ModelOptions,
) -> None:
    """Say how many requests an improvement sends, and about what they cost."""
    from deemster.engine.run_sync import run_sync
    from deemster.grading.improvement_forecast import forecast

    planned = run_sync(forecast(rubric, items, grader, settings, access=models.access(calls=False)))
    print_planned_calls(planned.planned)
    wordings = plural(planned.written, "wording")
    note(
        f"That grades the part learnt from. In all it is at most {planned.judged:,} requests to judges and {wordings}."
    )


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
