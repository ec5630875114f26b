"""What improving a rubric would ask of models, before any of them is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ConfigurationError
from deemster.models.call_context import PlannedCalls
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs._train_test_split import DatasetPart, split_train_test
from deemster.runs.improve_rubric import WriterRole
from deemster.runs.improvement_judging import ImprovementSettings
from deemster.runs.model_access import ModelAccess, complete_model_access, open_gateway
from deemster.runs.play_scripts import script_result


class Forecast(NamedTuple):
    """What improving a rubric would ask.

    Attributes:
        planned: The questions that are asked in any case, by role: every criterion on the part that is learnt from.
        judged: The most questions that judges get in all, where every reply can be read.
        written: The most wordings that the writer is asked for.
    """

    planned: Mapping[str, PlannedCalls]
    judged: int
    written: int


async def forecast(
    rubric: Rubric, dataset: RubricDataset, settings: ImprovementSettings, *, access: ModelAccess
) -> Forecast:
    """What improving a rubric would ask; nobody is asked.

    Args:
        rubric: What would be improved.
        dataset: Items with people's labels.
        settings: How.
        access: How models may be asked.

    Raises:
        InputError: Something given cannot be used.
    """
    if issues := list(settings.issues()):
        raise ConfigurationError(issues)
    train, held = split_train_test(rubric, dataset, train=settings.train, cluster=settings.cluster, seed=settings.seed)
    access = complete_model_access(access, [settings.grader, WriterRole(settings.writer)])
    places = [place for place, criterion in enumerate(rubric.criteria) if criterion.check is None]
    async with open_gateway(access, clock=None, seed=settings.seed, dry_run=True) as gateway:
        for place in places:
            alone = Rubric((rubric.criteria[place],), guidelines=rubric.guidelines)
            for case, truths in zip(train.cases, train.truths, strict=True):
                if truths[place] != MISSING:
                    script = settings.grader.script(case._replace(rubric=alone))
                    await script_result(script, gateway.answers, [])
        planned = gateway.planned
    learnt, decided = _labelled(train, places), _labelled(held, places)
    # The most is asked where the criteria with the most labels are those that are reworded, each in every round.
    sizes = sorted(
        (seen + settings.rounds * (known + seen) for known, seen in zip(learnt, decided, strict=True)), reverse=True
    )
    each = settings.grader.requests(Rubric(rubric.criteria[places[0] : places[0] + 1])) if places else 0
    targets = min(settings.criteria, len(places))
    return Forecast(planned, each * (sum(learnt) + sum(sizes[:targets])), targets * settings.rounds)


def _labelled(half: DatasetPart, places: list[int]) -> list[int]:
    """How many items of a part have a label, for each criterion."""
    return [sum(truths[place] != MISSING for truths in half.truths) for place in places]
