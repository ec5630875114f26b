"""Dry runs: counts the requests that models would get, and about what they cost, without sending them."""

from __future__ import annotations

from collections.abc import Mapping

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case
from deemster.models import Gateway
from deemster.models.call_context import PlannedCalls
from deemster.records import Output, Sample
from deemster.runs.build_report import batches
from deemster.runs.evaluation_job import Job
from deemster.runs.model_access import ModelAccess, open_gateway
from deemster.runs.play_scripts import ask_in_repetition, play_batch_script, play_script, script_result
from deemster.runs.rubric_metric import build_criterion_checks
from deemster.runs.run_plan import Plan

_BATCH = 256


async def plan_job_calls(job: Job) -> Mapping[str, PlannedCalls]:
    """The requests of an evaluation, by role; the target is not called.

    Where there are no saved outputs, the expected output is used in place of the target's answer.
    """
    if not job.plan.scorers:
        return {}
    async with open_gateway(job.access, clock=None, seed=job.seed, dry_run=True) as gateway:
        await _play_all(job.plan, gateway)
        return gateway.planned


async def plan_grading_calls(
    dataset: RubricDataset, grader: CriterionGrader, access: ModelAccess
) -> Mapping[str, PlannedCalls]:
    """The requests of a grading, by role."""
    checks = build_criterion_checks(dataset.rubrics)
    async with open_gateway(access, clock=None, seed=grader.seed, dry_run=True) as gateway:
        for position in range(len(dataset)):
            await script_result(grader.script(make_case(dataset, position), checks=checks), gateway.answers, [])
        return gateway.planned


async def _play_all(plan: Plan, gateway: Gateway) -> None:
    """Send every script of a run to a gateway that only counts."""
    for repetition in range(plan.repetitions):
        ask = ask_in_repetition(gateway.answers, repetition)
        for samples in batches(plan.dataset, _BATCH):
            outputs = [_stand_in(plan, sample, repetition) for sample in samples]
            for scorer in plan.scorers:
                if hasattr(scorer, "script_many"):
                    await play_batch_script(scorer, samples, outputs, ask=ask)
                    continue
                for sample, output in zip(samples, outputs, strict=True):
                    await play_script(scorer, sample, output, ask=ask)


def _stand_in(plan: Plan, sample: Sample, repetition: int) -> Output:
    answers = getattr(plan.target, "answers", None)
    if answers is not None:
        (answer,) = answers([sample.id], 0 if plan.varied == "scoring" else repetition)
        if isinstance(answer, Output):
            return answer
    expected = sample.expected_output
    return Output(expected if isinstance(expected, str) else "")
