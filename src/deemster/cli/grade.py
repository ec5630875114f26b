"""`deemster grade`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from deemster.alignment import MetricsResult, compute_metrics
from deemster.cli._console import draw, note, progress_shown, say, warn
from deemster.cli._dry_run import show_planned
from deemster.cli._grader_options import Inline, Jury, jury_options
from deemster.cli.main import complain
from deemster.cli.options import Asked, Kept, asking_options, keeping_options
from deemster.cli.run import interruptible
from deemster.datasets import RubricDataset
from deemster.errors import DeemsterError, ExitCode, InputError, Issue, ReportError, visible
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.grading_result import Grading
from deemster.models.call_context import PlannedCalls
from deemster.report import Destination
from deemster.report.alignment_report import alignment_console
from deemster.report.grading_report import grading_console
from deemster.report.report_files import write_pieces
from deemster.results.grading_summary import GradingSummary, summarize_grading
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs.grade_dataset import criterion_checks, run_grading
from deemster.runs.grading_store import grading_status
from deemster.runs.model_access import ModelAccess, complete_model_access, open_gateway
from deemster.runs.play_scripts import script_result
from deemster.runs.run_lifecycle import RunStorage
from deemster.runs.run_sync import run_sync
from deemster.runs.stop_request import Stop

SCHEMA = "deemster.grading.v1"
_ENCODER = msgspec.json.Encoder(order="deterministic")
_VOTES = (".json", ".jsonl")


@click.command("grade", short_help="Grade submissions by a rubric, and tell how judges agree with people.")
@click.argument("dataset", type=click.Path())
@click.option("--rubric", metavar="FILE", help="Grade by this rubric, in place of the dataset's if it has one.")
@jury_options
@asking_options
@keeping_options
@click.option("--votes", metavar="FILE", help="Write the votes, for `deemster align`: .json or .jsonl.")
@click.option("--json", metavar="PATH", help="Write the results as JSON; `-` is standard output.")
@click.option("--dry-run", is_flag=True, help="Count what the models would be asked and what that costs; ask nothing.")
@click.option("--quiet", is_flag=True, help="Show no progress and no results on the terminal.")
def command(
    *,
    dataset: str,
    rubric: str | None,
    jury: Jury,
    inline: Inline,
    asked: Asked,
    kept: Kept,
    votes: str | None,
    json: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Grade submissions by a rubric, and tell how judges agree with people.

    DATASET is a rubric dataset. Every judge votes on every criterion; the results are the score, each criterion and
    each judge, and, where the dataset has labels, how far the judges agree with them. The grading is stored and can be
    resumed: what was judged is not asked again, votes that failed are. Exit codes: 0 done, 2 bad input, 3 incomplete.
    """
    kept.check()
    destinations = [Destination("json", json)] if json is not None else []
    for destination in destinations:
        destination.check()
    _check_votes(votes)
    held = RubricDataset.load(dataset, rubric=None if rubric is None else Rubric.load(rubric))
    grader = jury.grader()
    asking = complete_model_access(inline.asking(asked, calls=not dry_run), [grader, *criterion_checks(held).values()])
    if dry_run:
        _show_dry_run(held, grader, asking)
        return
    stop = Stop()
    with kept.opened() as storage:
        name = held.name or Path(dataset).stem
        grading = _graded(held, grader, asking, stop=stop, storage=storage, name=name, quiet=quiet)
        code = _delivered(grading, destinations, votes, quiet=quiet)
        if storage is not None and code is ExitCode.INCOMPLETE:
            note(f"To go on with it: the same command with --resume {grading.run}")
    sys.exit(code)


def _graded(
    dataset: RubricDataset,
    grader: CriterionGrader,
    asking: ModelAccess,
    *,
    stop: Stop,
    storage: RunStorage | None,
    name: str,
    quiet: bool,
) -> Grading:
    with interruptible(stop), progress_shown(quiet=quiet) as progress:
        return run_sync(
            run_grading(
                dataset,
                grader,
                access=asking,
                warn=lambda message: warn(visible(message)),
                progress=progress,
                stop=stop,
                storage=storage,
                name=name,
            )
        )


def _check_votes(path: str | None) -> None:
    """Refuse a place of votes before anything is asked."""
    if path is not None and Path(path).suffix.lower() not in _VOTES:
        raise ReportError(Issue("Votes are written as .json or .jsonl.", path))


def _delivered(grading: Grading, destinations: list[Destination], votes: str | None, *, quiet: bool) -> ExitCode:
    """Write and show what was asked for; how the command ends."""
    status, reason = grading_status(grading)
    code = ExitCode.INCOMPLETE if status == "incomplete" else ExitCode.PASSED
    figures, alignment = summarize_grading(grading), _alignment(grading)
    try:
        if votes is not None:
            grading.to_votes(votes)
        for destination in destinations:
            write_pieces(_document(grading, figures, alignment), destination)
    except DeemsterError as error:
        complain(str(error))
        code = ExitCode.INCOMPLETE
    if not quiet and not any(destination.is_stdout for destination in destinations):
        draw(lambda console: grading_console(grading, figures, console))
        if alignment is not None:
            say("\n")
            draw(lambda console: alignment_console(alignment, console))
    if reason is not None:
        lost = (
            next((item for item in grading.items if item.error is not None), None) if grading.n_failed_items else None
        )
        why = "" if lost is None else f" The first is `{lost.id}`: {lost.error}"
        note(visible(f"{status}: {reason}.{why}"))
    return code


def _alignment(grading: Grading) -> MetricsResult | None:
    """How the judges agree with people, where the dataset has labels."""
    if not any(label is not None for truth in grading.dataset.truths for label in truth or ()):
        return None
    try:
        return compute_metrics(grading, None, per_judge=len(grading.judges) > 1)
    except InputError as error:
        warn(visible(f"There is no alignment: {error}"))
        return None


def _document(grading: Grading, figures: GradingSummary, alignment: MetricsResult | None) -> Iterator[bytes]:
    """The results as JSON, item by item."""
    status, reason = grading_status(grading)
    head: dict[str, Any] = {
        "schema_version": SCHEMA,
        "run": grading.run,
        "status": status,
        "reason": reason,
        "mixed": grading.mixed,
        "dataset": grading.dataset.name,
        "dataset_fingerprint": grading.dataset_fingerprint,
        "settings": grading.settings,
        "figures": figures,
        "alignment": alignment,
    }
    yield _ENCODER.encode(head)[:-1] + b',"items":['
    for place, item in enumerate(grading.items):
        row = {
            "id": item.id,
            "score": item.score,
            "raw_score": item.raw_score,
            "unscored": item.unscored,
            "verdicts": {each.criterion: each.verdict for each in item.criteria},
            "judge_scores": item.judge_scores,
        }
        yield (b"," if place else b"") + _ENCODER.encode(row)
    yield b"]}\n"


def _show_dry_run(dataset: RubricDataset, grader: CriterionGrader, asking: ModelAccess) -> None:
    show_planned(run_sync(_planned(dataset, grader, asking)))
    if grader.cascade is not None:
        rubrics = dataset.rubrics
        most = sum(map(grader.requests, rubrics))
        note(f"With every answer of `{grader.cascade.cheap.id}` escalated it is {most:,} requests in all.")


async def _planned(dataset: RubricDataset, grader: CriterionGrader, asking: ModelAccess) -> Mapping[str, PlannedCalls]:
    checks = criterion_checks(dataset)
    async with open_gateway(asking, clock=None, seed=grader.seed, dry_run=True) as gateway:
        for position in range(len(dataset)):
            await script_result(grader.script(make_case(dataset, position), checks=checks), gateway.answers, [])
        return gateway.planned
