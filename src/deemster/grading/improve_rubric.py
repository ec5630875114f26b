"""Improves a rubric: what is given is read and checked, and what comes of the search is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.model_access import (
    NO_LIMITS,
    ModelAccess,
    ModelCalls,
    build_model_access,
    complete_model_access,
    open_gateway,
)
from deemster.engine.progress import Progress
from deemster.engine.run_sync import run_sync
from deemster.errors import ConfigurationError, show_value
from deemster.errors.parameter_checks import checks_parameters
from deemster.grading._improvement_run import open_improvement_run
from deemster.grading._improvement_search import RubricImprovement
from deemster.grading._improvement_split import split_train_test
from deemster.grading.improvement_judging import (
    HELD_OUT,
    TRAIN,
    USUAL_IMPROVEMENT,
    ImprovementJudging,
    ImprovementSettings,
    WriterRole,
)
from deemster.grading.improvement_report import Improvement
from deemster.judges.criterion_grader import CriterionGrader
from deemster.models import ChatClient, Role
from deemster.models.clock import Clock
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs.run_identity import digest
from deemster.runs.run_storage import Storage
from deemster.runs.run_timer import RunTimer
from deemster.store import Store
from deemster.store.run_facts import RunStatus


@checks_parameters
def improve_rubric(
    rubric: Rubric | str | Path,
    dataset: RubricDataset | str | Path,
    grader: CriterionGrader,
    *,
    models: Mapping[str, ChatClient | Role | Mapping[str, Any]] | None = None,
    calls: ModelCalls = NO_LIMITS,
    storage: Storage | str | Path | None = None,
    settings: ImprovementSettings = USUAL_IMPROVEMENT,
) -> Improvement:
    """Reword the criteria that judges and people agree least about, and accept wordings that raise held-out agreement.

    Name, weight, options, labels, values and scale stay as they are.

    Args:
        rubric: What is improved, or the path of its file.
        dataset: Items with people's labels, or the path of their file.
        grader: Who judges, and how; one call per criterion, without examples.
        models: Models by role: a client, or a map as in a suite's `models` section.
        calls: Cache, budget and network of the models.
        storage: The file that keeps what the models said, so that a stopped improvement can be resumed, or a
            ``Storage``, which says that it is.
        settings: How wordings are looked for and tested.

    Raises:
        InputError: Something given cannot be used.
    """
    if not isinstance(grader, CriterionGrader):
        raise ConfigurationError(f"`grader` is a `CriterionGrader`, not {show_value(grader)[:60]}.")
    rubric = rubric if isinstance(rubric, Rubric) else Rubric.load(rubric)
    dataset = dataset if isinstance(dataset, RubricDataset) else RubricDataset.load(dataset)
    path, resume = _progress_file(storage)
    access = build_model_access(models, calls)
    return run_sync(run_improvement(rubric, dataset, grader, settings, access=access, path=path, resume=resume))


def _progress_file(storage: Storage | str | Path | None) -> tuple[Path | None, bool]:
    """The file that an improvement is kept in, and whether it is resumed."""
    if storage is None:
        return None, False
    where, resume, *_ = storage if isinstance(storage, Storage) else Storage(storage)
    if isinstance(where, Store):
        raise ConfigurationError("An improvement is kept in a file of its own: give `storage` its path.")
    return Path(where), bool(resume)


async def run_improvement(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    *,
    access: ModelAccess,
    path: Path | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
) -> Improvement:
    """The same as ``improve_rubric``, to be awaited.

    Args:
        rubric: What is improved.
        dataset: Items with people's labels.
        grader: Who judges.
        settings: How.
        access: How models may be asked.
        path: The progress file.
        resume: Whether to resume from that file.
        progress: Gets the progress of the grading under way.
        clock: The time; the machine's own unless given.

    Raises:
        InputError: Something given cannot be used.
    """
    if issues := list(settings.issues(grader)):
        raise ConfigurationError(issues)

    train, held_out = split_train_test(
        rubric, dataset, train=settings.train, cluster=settings.cluster, seed=settings.seed
    )
    access = complete_model_access(access, [grader, WriterRole(settings.writer_role(grader))])
    identity = _identity(rubric, dataset, grader, settings, access)
    timer = RunTimer(clock)

    with open_improvement_run(path, dataset, identity, seed=settings.seed, resume=resume, timer=timer) as run:
        calls = None if run is None else run.calls
        async with open_gateway(access, clock=timer.clock, seed=settings.seed, calls=calls) as gateway:
            parts = {TRAIN: train, HELD_OUT: held_out}
            judging = ImprovementJudging(rubric, parts, grader, settings, gateway=gateway, run=run, progress=progress)
            improvement = await RubricImprovement(judging).improve()

        if run is not None:
            status: RunStatus = "complete" if improvement.complete else "incomplete"
            run.close(status, None if improvement.complete else improvement.stopped, duration_s=run.duration_s())
        return improvement


def _identity(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    access: ModelAccess,
) -> dict[str, Any]:
    """The identity of an improvement: everything that its questions and answers depend on."""
    writer = settings.writer_role(grader)
    used = dict.fromkeys((*grader.roles, writer))
    models = {role: {"model": access.roles[role].model, "identity": access.roles[role].identity} for role in used}
    return {
        "rubric": rubric.to_dict(),
        "dataset": dataset.fingerprint,
        "reasons": _reasons(dataset),
        "grader": grader.settings,
        "models": msgspec.to_builtins(models),
        **msgspec.structs.asdict(msgspec.structs.replace(settings, writer=writer)),
    }


def _reasons(dataset: RubricDataset) -> str:
    """A digest of the reasons that people gave for their labels; the writer sees them, and no fingerprint has them."""
    return digest(sorted([str(item.id), *(item.ground_truth_reasons or ())] for item in dataset.items))
