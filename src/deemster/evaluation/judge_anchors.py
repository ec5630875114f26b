"""Judges the anchors of a run: cases that every run judges anew, so that a drift of the judge is seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from deemster.datasets.calibration_cases import CalibrationCases, load_calibration_cases
from deemster.engine.model_access import ModelAccess, complete_model_access
from deemster.evaluation.resolve_evaluation import build_plan
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.records import Metric, Usage
from deemster.records.usage import sum_usage
from deemster.report import Report
from deemster.report.report_entries import ScoreEntry
from deemster.results.difference_origin import AnchorScores
from deemster.results.mark_table import output_digest
from deemster.targets.saved_outputs import SavedOutputs


class AnchorSet(NamedTuple):
    """The anchors of one role, and the metrics that judge them.

    Attributes:
        cases: The anchors.
        metrics: The metrics that ask the role.
    """

    cases: CalibrationCases
    metrics: tuple[Metric, ...]


def load_anchors(job: Evaluation) -> list[AnchorSet]:
    """The anchors that the models of a job name, for each role that one of its metrics asks.

    Args:
        job: What is to be run.

    Raises:
        DatasetError: A file of anchors cannot be used; every issue is given with its place.
    """
    found = []
    for name, role in job.access.roles.items():
        metrics = tuple(metric for metric in job.plan.scorers if name in getattr(metric, "roles", ()))
        if role.anchors is not None and metrics:
            found.append(AnchorSet(load_calibration_cases(role.anchors), metrics))
    return found


def build_cases_job(
    cases: CalibrationCases, metrics: Sequence[Metric], access: ModelAccess, *, repetitions: int = 1
) -> Evaluation:
    """The job that judges cases by metrics.

    Args:
        cases: The cases.
        metrics: The metrics.
        access: How they may ask models.
        repetitions: How often each case is judged.

    Raises:
        InputError: A metric asks a model that is not there.
    """
    access = complete_model_access(access, [metric for metric in metrics if hasattr(metric, "script")])
    plan = build_plan(
        cases.dataset,
        target=SavedOutputs(cases.outputs),
        metrics=tuple(metrics),
        repetitions=repetitions,
        access=access,
    )
    return Evaluation(plan, access=access)


def anchor_jobs(job: Evaluation) -> list[Evaluation]:
    """The jobs that judge the anchors of a job, past the cache: an answer from a file cannot show that a model changed.

    Args:
        job: What is run.

    Raises:
        InputError: A file of anchors cannot be used, or an anchor is malformed for a metric.
    """
    return [_anchor_job(job, each) for each in load_anchors(job)]


def _anchor_job(job: Evaluation, anchors: AnchorSet) -> Evaluation:
    # The anchors' own roles have anchors too, which must not be judged again.
    roles = {name: msgspec.structs.replace(role, anchors=None) for name, role in job.access.roles.items()}
    return build_cases_job(anchors.cases, anchors.metrics, job.access._replace(cache=None, roles=roles))


async def judge_anchors(
    job: Evaluation, sets: Sequence[AnchorSet], *, run: Callable[[Evaluation], Awaitable[Report]]
) -> AnchorScores | None:
    """How the anchors of a job are judged; None without anchors.

    Args:
        job: What was run.
        sets: The anchors.
        run: Runs a job that is not stored.

    Raises:
        InputError: An anchor is malformed for a metric.
    """
    scores: dict[str, dict[str, float]] = {}
    usage: list[Usage] = []
    for anchors in sets:
        report = await run(_anchor_job(job, anchors))
        hashes = {sample.id: sample.row_hash or "" for sample in report.samples}
        for execution in report.executions:
            # An anchor that was edited is another one.
            digest = output_digest(execution.output or "", None, None) % 2**32
            key = f"{execution.id} {hashes[execution.id][:8]}{digest:08x}"
            for name, mark in execution.marks.items():
                usage += [mark.usage] if mark.usage is not None else []
                if isinstance(mark, ScoreEntry):
                    scores.setdefault(name, {})[key] = mark.score
    return AnchorScores(scores=scores, usage=_sum_by_model(usage)) if sets else None


def _sum_by_model(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """The usage of many calls, added up for each model."""
    # Calls without a price stay apart, since a sum with one of them has none.
    parts: dict[tuple[object, ...], list[Usage]] = {}
    for usage in usages:
        alike = (usage.model, usage.cost_usd is None, usage.cost_source)
        parts.setdefault(alike, []).append(msgspec.structs.replace(usage, latency_ms=None))
    return tuple(total for part in parts.values() if (total := sum_usage(part)) is not None)
