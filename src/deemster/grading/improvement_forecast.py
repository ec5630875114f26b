"""Counts what improving a rubric would ask of models, without asking them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.model_access import ModelAccess, complete_model_access
from deemster.errors import ConfigurationError
from deemster.evaluation.dry_run import DryRun, plan_scripts
from deemster.grading._improvement_split import DatasetPart, split_train_test
from deemster.grading.improvement_judging import ImprovementSettings, WriterRole
from deemster.judges.criterion_grader import CriterionGrader
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing


class Forecast(NamedTuple):
    """What improving a rubric would ask.

    Attributes:
        planned: The questions that are asked in any case: every criterion on the part that is learnt from.
        judged: The most questions that judges get in all, where every reply can be read.
        written: The most wordings that the writer is asked for.
    """

    planned: DryRun
    judged: int
    written: int


async def forecast(
    rubric: Rubric,
    dataset: RubricDataset,
    grader: CriterionGrader,
    settings: ImprovementSettings,
    *,
    access: ModelAccess,
) -> Forecast:
    """Count what improving a rubric would ask of models, without asking them.

    Args:
        rubric: What would be improved.
        dataset: Items with people's labels.
        grader: Who judges.
        settings: How.
        access: How models may be asked.

    Raises:
        InputError: Something given cannot be used.
    """
    if issues := list(settings.issues(grader)):
        raise ConfigurationError(issues)
    train, held_out = split_train_test(
        rubric, dataset, train=settings.train, cluster=settings.cluster, seed=settings.seed
    )
    access = complete_model_access(access, [grader, WriterRole(settings.writer_role(grader))])

    asked = [index for index, criterion in enumerate(rubric.criteria) if criterion.check is None]
    scripts = (
        partial(grader.script, case._replace(rubric=Rubric((rubric.criteria[index],), rubric.guidelines)))
        for index in asked
        for case, truths in zip(train.cases, train.truths, strict=True)
        if not is_missing(truths[index])
    )
    planned = await plan_scripts(scripts, grader, access, checks={})

    n_train = _labelled_items(train, asked)
    n_held_out = _labelled_items(held_out, asked)
    # The most is asked where the criteria with the most labels are those that are reworded, each in every round.
    rewordings = [held + settings.rounds * (seen + held) for seen, held in zip(n_train, n_held_out, strict=True)]
    n_targets = min(settings.criteria, len(asked))
    n_cases = sum(n_train) + sum(sorted(rewordings, reverse=True)[:n_targets])

    requests = grader.count_requests(Rubric((rubric.criteria[asked[0]],))) if asked else 0
    return Forecast(planned, judged=requests * n_cases, written=n_targets * settings.rounds)


def _labelled_items(part: DatasetPart, asked: list[int]) -> list[int]:
    """How many items of a part have a label, for each criterion."""
    return [sum(not is_missing(truths[index]) for truths in part.truths) for index in asked]
