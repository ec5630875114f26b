"""Grades a dataset by its rubric: judges vote on every criterion of every item."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.model_access import (
    NO_LIMITS,
    ModelAccess,
    ModelCalls,
    build_model_access,
    complete_model_access,
)
from deemster.engine.notebook_progress import notebook_progress
from deemster.engine.progress import Progress
from deemster.engine.run_sync import waits_for, warner
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, plural, show_value
from deemster.errors.parameter_checks import checks_parameters
from deemster.evaluation.dry_run import DryRun, plan_scripts
from deemster.grading._grading_identity import define_grading, grading_identity, judging_digest
from deemster.grading._grading_run import GradingRun
from deemster.grading._submissions import Submissions
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.judges.rubric_metric import build_criterion_checks
from deemster.models import ChatClient, Role
from deemster.models.clock import Clock
from deemster.report.grading_result import Grading
from deemster.runs.find_resumed_run import find_resumed
from deemster.runs.run_lifecycle import open_run
from deemster.runs.run_storage import NOT_STORED, NotStored, Storage, StoredOrNot, build_storage
from deemster.runs.run_timer import RunTimer
from deemster.store import Store


@checks_parameters
def grade_async(
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    models: Mapping[str, ChatClient | Role | Mapping[str, Any]] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: Storage | Store | str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
) -> Coroutine[Any, Any, Grading]:
    """Grade every item of a dataset by its rubric.

    ``grade`` works in a script, inside a running event loop (a notebook) and in any thread; ``grade_async`` is the same
    function, to be awaited.

    Args:
        dataset: The items and their rubric, or the path of their file.
        grader: Who judges, and how.
        models: Models by role, as the judges name them: a client, or a map as in a suite's `models` section.
        calls: Cache, budget and network of the models.
        storage: Where the graded items are stored: a file, `postgresql://...`, or a ``Storage``, which can say what is
            resumed: votes that failed are then asked for again. Not stored unless given.
        progress: Gets the progress; `unscored` counts votes that failed. In a notebook it is a bar unless given.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the grading that is to be resumed is missing or held by another process.
    """
    access = build_model_access(models, calls)
    run_storage = build_storage(storage)
    progress = progress or notebook_progress()
    work = run_grading(
        dataset, grader, access=access, progress=progress, clock=clock, warn=warner(), storage=run_storage
    )
    return _with_storage(run_storage, work)


grade = waits_for(grade_async, Grading)


async def _with_storage(storage: StoredOrNot, work: Coroutine[Any, Any, Grading]) -> Grading:
    """Grade; a store that this opens is closed afterwards."""
    with closing(storage):
        return await work


async def run_grading(
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    access: ModelAccess,
    warn: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
    stop: Stop | None = None,
    storage: StoredOrNot = NOT_STORED,
    name: str | None = None,
) -> Grading:
    """Grade every item of a dataset.

    Args:
        dataset: The items and their rubric, or the path of their file.
        grader: Who judges, and how.
        access: How models may be asked.
        warn: Gets each warning.
        progress: Gets the progress of the grading.
        clock: The time; the machine's own unless given.
        stop: Asks the grading to stop; what was not asked is then `not_run`.
        storage: Where it is stored, and what it resumes.
        name: What the dataset is called in the store; by its own name, or that of its file, unless given.

    Raises:
        InputError: Something given cannot be used.
        StoreError: The store fails, or the grading that is to be resumed is missing or held by another process.
    """
    if not isinstance(grader, CriterionGrader):
        raise ConfigurationError(f"`grader` is a `CriterionGrader`, not {show_value(grader)[:60]}.")
    known = dataset if isinstance(dataset, RubricDataset) else RubricDataset.load(dataset)
    checks = build_criterion_checks(known.rubrics)
    access = complete_model_access(access, [grader, *checks.values()])
    stop, timer = stop or Stop(), RunTimer(clock)
    if isinstance(storage, NotStored):
        submissions = Submissions(dataset=known, grader=grader, checks=checks)
        work = GradingRun(submissions, stop=stop, progress=progress)
        return _warned(await work.execute(access, clock=timer.clock, warn=warn), warn)

    identity = grading_identity(known, grader, checks, access)
    definition = define_grading(known, identity, name=name or _name(known, dataset), seed=grader.seed, timer=timer)
    earlier = find_resumed(storage, kind="grading", suite=None, dataset=definition.facts.dataset)
    with open_run(definition, storage, resumed=None if earlier is None else earlier.id, timer=timer) as run:
        if not run.is_new:
            run.mark_running(identity)

        judging = judging_digest(identity)
        submissions = Submissions(dataset=known, grader=grader, checks=checks, judging=judging)
        work = GradingRun(submissions, stop=stop, progress=progress, run=run)
        work.restore(warn)
        if work.done or work.again:
            again = f", {plural(work.again, 'item')} of the others graded again" if work.again else ""
            storage.tell(f"Resuming the grading {run.id}: {len(work.done):,} of {len(known):,} are done{again}.")

        grading = _warned(await work.execute(access, clock=timer.clock, warn=warn), warn)

        # A vote that failed is asked for again when the grading is resumed.
        failed = grading.n_failed_items or any(judge.failures for judge in grading.judges)
        facts = {"stopped": grading.halted}
        run.close(grading.status, grading.reason, duration_s=run.duration_s(), facts=facts, is_final=not failed)
        return grading


async def plan_grading_calls(dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess) -> DryRun:
    """The requests of a grading, by role; nothing is sent."""
    checks = build_criterion_checks(dataset.rubrics)
    cases = (make_case(dataset, position) for position in range(len(dataset)))
    scripts = (partial(grader.script, case, checks=checks) for case in cases)
    return await plan_scripts(scripts, grader, access, checks=checks)


def _warned(grading: Grading, warn: Callable[[str], None]) -> Grading:
    """A grading, with warnings of what is missing."""
    if grading.halted is not None:
        votes = sum(judge.votes for judge in grading.judges)
        missing = sum(judge.not_run for judge in grading.judges)
        warn(f"{plural(missing, 'vote')} of {votes:,} were not asked for: {grading.halted}")
    for judge in grading.judges:
        if judge.failed:
            warn(f"The judge `{judge.id}` failed every call: {_first_failure(grading, judge.id)}")
    return grading


def _first_failure(grading: Grading, judge: str) -> str:
    """Why a judge that failed every call failed first."""
    votes = (vote for item in grading.items for vote in item.votes if vote.judge == judge)
    failures = (vote.failure for vote in votes if vote.failure is not None)
    return next(failure.message for failure in failures if failure.cause != "not_run")


def _name(dataset: RubricDataset, given: Any) -> str:
    """What a dataset is called in a store: its name, else that of its file."""
    return dataset.name or (Path(given).stem if isinstance(given, (str, Path)) else "items")
