"""`deemster grade`: grades submissions by a rubric."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deemster.cli._console import note, print_sections, show_progress, warn, write_out
from deemster.cli._grader_options import GraderOptions, InlineModel, grader_options
from deemster.cli.main import complain
from deemster.cli.options import (
    ModelOptions,
    StorageOptions,
    dry_run_option,
    file_option,
    model_options,
    quiet_option,
    storage_options,
)
from deemster.errors import DeemsterError, ExitCode, InputError, Issue, ReportError, visible

if TYPE_CHECKING:
    from deemster.alignment import MetricsResult
    from deemster.datasets import RubricDataset
    from deemster.judges.criterion_grader import CriterionGrader
    from deemster.judges.grading_result import Grading
    from deemster.models.call_context import PlannedCalls
    from deemster.report import Destination
    from deemster.results.grading_summary import GradingSummary
    from deemster.runs.model_access import ModelAccess
    from deemster.runs.run_lifecycle import RunStorage

SCHEMA = "deemster.grading.v1"
_VOTES = (".json", ".jsonl")


@click.command("grade", short_help="Grade submissions by a rubric, and tell how judges agree with people.")
@click.argument("dataset", type=click.Path())
@click.option("--rubric", metavar="FILE", help="Grade by this rubric, in place of the dataset's if it has one.")
@grader_options
@model_options
@storage_options
@click.option("--votes", metavar="FILE", help="Write the votes, for `deemster align`: .json or .jsonl.")
@file_option("json", "the results as JSON")
@dry_run_option
@quiet_option
def command(
    *,
    dataset: str,
    rubric: str | None,
    grader: GraderOptions,
    inline: InlineModel,
    models: ModelOptions,
    storage: StorageOptions,
    votes: str | None,
    json: str | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Grade submissions by a rubric, and tell how judges agree with people.

    DATASET is a rubric dataset. Every judge votes on every criterion. The results are the score, each criterion and
    each judge, and, where the dataset has labels, how far the judges agree with them. The grading is stored and can be
    resumed: votes that are there are not asked for again, votes that failed are. Exit codes: 0 done, 2 bad input, 3
    incomplete.
    """
    from deemster.datasets import RubricDataset
    from deemster.report import Destination
    from deemster.rubrics.rubric_definition import Rubric
    from deemster.runs.model_access import complete_model_access
    from deemster.runs.rubric_metric import build_criterion_checks

    storage.check()
    destination = None if json is None else Destination("json", json)
    if destination is not None:
        destination.check()
    if votes is not None and Path(votes).suffix.lower() not in _VOTES:
        raise ReportError(Issue("Votes are written as .json or .jsonl.", votes))
    items = RubricDataset.load(dataset, rubric=None if rubric is None else Rubric.load(rubric))
    built = grader.build_grader()
    access = complete_model_access(
        inline.access(models, calls=not dry_run), [built, *build_criterion_checks(items.rubrics).values()]
    )
    if dry_run:
        _print_planned_calls(items, built, access)
        return
    with storage.open() as stored:
        grading = _grade(items, built, access, stored, name=items.name or Path(dataset).stem, quiet=quiet)
        code = _write_and_print(grading, destination, votes, quiet=quiet)
        if stored is not None and code is ExitCode.INCOMPLETE:
            note(f"To go on with it: the same command with --resume {grading.run}")
    sys.exit(code)


def _grade(
    dataset: RubricDataset,
    grader: CriterionGrader,
    access: ModelAccess,
    storage: RunStorage | None,
    *,
    name: str,
    quiet: bool,
) -> Grading:
    from deemster.cli._interrupt_signals import interruptible
    from deemster.runs.grade_dataset import run_grading
    from deemster.runs.run_sync import run_sync
    from deemster.runs.stop_request import Stop

    stop = Stop()
    with interruptible(stop), show_progress(quiet=quiet) as progress:
        work = run_grading(
            dataset,
            grader,
            access=access,
            warn=lambda message: warn(visible(message)),
            progress=progress,
            stop=stop,
            storage=storage,
            name=name,
        )
        return run_sync(work)


def _write_and_print(grading: Grading, destination: Destination | None, votes: str | None, *, quiet: bool) -> ExitCode:
    """Write and print the results; returns the exit code."""
    from deemster.report.report_files import write_pieces
    from deemster.results.grading_summary import summarize_grading
    from deemster.runs.grading_store import grading_status

    status, reason = grading_status(grading)
    code = ExitCode.INCOMPLETE if status == "incomplete" else ExitCode.PASSED
    figures, alignment = summarize_grading(grading), _align(grading)
    try:
        if votes is not None:
            grading.to_votes(votes)
        if destination is not None:
            write_pieces(_json_pieces(grading, figures, alignment), destination)
    except DeemsterError as error:
        complain(str(error))
        code = ExitCode.INCOMPLETE
    if not quiet and (destination is None or not destination.is_stdout):
        _print_results(grading, figures, alignment)
    if reason is not None:
        failed = (item for item in grading.items if item.error is not None)
        first = next(failed, None) if grading.n_failed_items else None
        why = "" if first is None else f" The first is `{first.id}`: {first.error}"
        note(visible(f"{status}: {reason}.{why}"))
    return code


def _print_results(grading: Grading, figures: GradingSummary, alignment: MetricsResult | None) -> None:
    from deemster.report.alignment_report import alignment_sections
    from deemster.report.grading_report import grading_sections

    print_sections(grading_sections(grading, figures))
    if alignment is not None:
        write_out("\n")
        print_sections(alignment_sections(alignment))


def _align(grading: Grading) -> MetricsResult | None:
    """How the judges agree with people, where the dataset has labels."""
    from deemster.alignment import compute_metrics

    if not any(label is not None for truth in grading.dataset.truths for label in truth or ()):
        return None
    try:
        return compute_metrics(grading, None, per_judge=len(grading.judges) > 1)
    except InputError as error:
        warn(visible(f"There is no alignment: {error}"))
        return None


def _json_pieces(grading: Grading, figures: GradingSummary, alignment: MetricsResult | None) -> Iterator[bytes]:
    """The results as JSON, item by item."""
    import msgspec

    from deemster.runs.grading_store import grading_status

    encode = msgspec.json.Encoder(order="deterministic").encode
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
    yield encode(head)[:-1] + b',"items":['
    for place, item in enumerate(grading.items):
        row = {
            "id": item.id,
            "score": item.score,
            "raw_score": item.raw_score,
            "unscored": item.unscored,
            "verdicts": {each.criterion: each.verdict for each in item.criteria},
            "judge_scores": item.judge_scores,
        }
        yield (b"," if place else b"") + encode(row)
    yield b"]}\n"


def _print_planned_calls(dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess) -> None:
    from deemster.cli._dry_run import print_planned_calls
    from deemster.runs.run_sync import run_sync

    print_planned_calls(run_sync(_plan_calls(dataset, grader, access)))
    if grader.cascade is not None:
        most = sum(map(grader.count_requests, dataset.rubrics))
        note(f"With every answer of `{grader.cascade.cheap.id}` escalated it is {most:,} requests in all.")


async def _plan_calls(
    dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess
) -> Mapping[str, PlannedCalls]:
    from deemster.judges.grading_case import make_case
    from deemster.runs.model_access import open_gateway
    from deemster.runs.play_scripts import script_result
    from deemster.runs.rubric_metric import build_criterion_checks

    checks = build_criterion_checks(dataset.rubrics)
    async with open_gateway(access, clock=None, seed=grader.seed, dry_run=True) as gateway:
        for position in range(len(dataset)):
            await script_result(grader.script(make_case(dataset, position), checks=checks), gateway.answers, [])
        return gateway.planned
