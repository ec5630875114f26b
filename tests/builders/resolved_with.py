"""An evaluation that was resolved apart from its storage, as `resolve_evaluation` resolves it with that."""

from __future__ import annotations

from typing import Any

from deemster.engine.run_sync import run_sync
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.resumed_evaluation import find_resumed_run
from deemster.evaluation.run_evaluation import run_evaluation
from deemster.report import Report
from deemster.runs.run_storage import StoredOrNot


def resolved_with(storage: StoredOrNot, evaluation: Evaluation) -> Evaluation:
    resumed = find_resumed_run(storage, suite=evaluation.suite, dataset=evaluation.plan.dataset)
    plan = evaluation.plan._replace(
        dataset=resumed.order_samples(evaluation.plan.dataset), metrics=resumed.order_metrics(evaluation.plan.metrics)
    )
    return evaluation._replace(plan=plan, resumes=resumed.id)


def ran_in(storage: StoredOrNot, evaluation: Evaluation, **more: Any) -> Report:
    """The report of an evaluation that is run in a storage."""
    return run_sync(run_evaluation(resolved_with(storage, evaluation), storage=storage, **more))
