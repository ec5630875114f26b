"""Judges the anchors of a run: cases that every run judges anew, so that a drift of the judge is seen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

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


def anchor_evaluations(job: Evaluation) -> list[Evaluation]:
    """What judges the anchors that the models of a job name, for each role that one of its metrics asks.

    It goes past the cache: an answer from a file cannot show that a model changed.

    Args:
        job: What is to be run.

    Raises:
        InputError: A file of anchors cannot be used; every issue is given with its place.
    """
    # The anchors' own roles have anchors too, which must not be judged again.
    access = job.access.without_anchors()._replace(calls=job.access.calls._replace(cache=None))
    evaluations = []
    for name, role in job.access.roles.items():
        metrics = [metric for metric in job.plan.scorers if name in getattr(metric, "roles", ())]
        if role.anchors is not None and metrics:
            evaluations.append(build_cases_job(load_calibration_cases(role.anchors), metrics, access))
    return evaluations


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


async def judge_anchors(
    evaluations: Sequence[Evaluation], *, run: Callable[[Evaluation], Awaitable[Report]]
) -> AnchorScores | None:
    """How the anchors of a run are judged; None without anchors.

    Args:
        evaluations: What judges them.
        run: Runs an evaluation that is not stored.

    Raises:
        InputError: An anchor is malformed for a metric.
    """
    scores: dict[str, dict[str, float]] = {}
    usage: list[Usage] = []
    for evaluation in evaluations:
        report = await run(evaluation)
        hashes = {sample.id: sample.row_hash or "" for sample in report.samples}
        for execution in report.executions:
            # An anchor that was edited is another one.
            digest = output_digest(execution.output or "", None, None) % 2**32
            key = f"{execution.id} {hashes[execution.id][:8]}{digest:08x}"
            for name, mark in execution.marks.items():
                usage += [mark.usage] if mark.usage is not None else []
                if isinstance(mark, ScoreEntry):
                    scores.setdefault(name, {})[key] = mark.score
    return AnchorScores(scores=scores, usage=_sum_by_model(usage)) if evaluations else None


def _sum_by_model(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """The usage of many calls, added up for each model."""
    # Calls without a price stay apart, since a sum with one of them has none.
    parts: dict[tuple[object, ...], list[Usage]] = {}
    for usage in usages:
        alike = (usage.model, usage.cost_usd is None, usage.cost_source)
        parts.setdefault(alike, []).append(msgspec.structs.replace(usage, latency_ms=None))
    return tuple(total for part in parts.values() if (total := sum_usage(part)) is not None)
