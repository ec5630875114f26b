"""The identity of an evaluation: dataset, target, metrics and models, and how they are called."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from deemster.datasets.where_condition import describe_where
from deemster.engine.run_plan import Plan, asks_models
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.models import Role
from deemster.records import MetricCard
from deemster.results.metric_aggregators import aggregator_name
from deemster.runs.run_identity import format_time, model_identity, plain_json, run_id, source_digest
from deemster.targets.saved_outputs import SavedOutputs


def evaluation_identity(job: Evaluation, *, order: str) -> dict[str, Any]:
    """The identity of a run: dataset, target, metrics with pass marks, models, seed, repetitions, aggregator, part.

    Args:
        job: What is to be run.
        order: A digest of the samples' ids in their order, which the dataset's fingerprint does not see.
    """
    plan = job.plan
    identity = {
        "dataset": plan.dataset.fingerprint,
        "order": order,
        "target": target_identity(job),
        **scoring_identity(job),
        "seed": job.seed,
        "repetitions": plan.repetitions,
        "aggregator": None if job.aggregator is None else aggregator_name(job.aggregator),
    }
    if plan.dataset.part is not None:
        identity["part"] = plan.dataset.part.selection
    return plain_json(identity)


def target_identity(job: Evaluation) -> dict[str, Any]:
    """The part of an identity that says what was run, with the models that it asks."""
    target: Any = job.plan.target
    identity = dict(getattr(target, "identity", None) or {"kind": type(target).__name__})
    if asks_models(target) and not hasattr(target, "own_roles"):
        identity["models"] = {name: model_identity(job.access.roles[name]) for name in target.roles}
    return identity


def target_name(job: Evaluation) -> str | None:
    """The target of a job in a few words: a function, a URL, a command, a file of outputs; None without a name."""
    target = job.plan.target
    if isinstance(target, SavedOutputs):
        if target.run is not None:
            return f"outputs of {target.run}"
        return None if target.path is None else Path(target.path).name
    identity: Mapping[str, Any] = getattr(target, "identity", None) or {}
    for kind in ("python", "http", "command", "chat"):
        if kind in identity:
            return _name(identity[kind])
    return type(target).__name__


def _name(value: Any) -> str | None:
    """The name in what identifies a target: a text, or the URL or the words of a command."""
    if isinstance(value, Mapping):
        value = value.get("url") or value.get("argv")
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else None


def scoring_identity(job: Evaluation) -> dict[str, Any]:
    """The part of an identity that says how outputs are marked: the metrics, and the models they ask."""
    metrics = zip(job.plan.metrics, job.plan.cards, strict=True)
    return {
        "metrics": {card.name: _metric_identity(metric, card) for metric, card in metrics},
        "models": {name: model_identity(job.access.roles[name]) for name in _asked_roles(job.plan, job.access.roles)},
    }


def _metric_identity(metric: Any, card: MetricCard) -> dict[str, Any]:
    found: dict[str, Any] = {"identity": card.identity, "threshold": card.threshold}
    if card.where is not None:
        found["where"] = describe_where(card.where)
    if card.family == "custom" and (source := source_digest(metric)) is not None:
        # Users change their metrics without a new version.
        found["source"] = source
    return found


def _asked_roles(plan: Plan, roles: Mapping[str, Role]) -> list[str]:
    """The roles that the metrics ask; all of them where a metric does not say."""
    if any(not hasattr(scorer, "roles") for scorer in plan.scorers):
        return sorted(roles)
    return sorted({role for scorer in plan.scorers for role in scorer.roles if role in roles})


def evaluation_id(started: datetime, job: Evaluation) -> str:
    """The id of an evaluation: when it started, and a digest of what it runs."""
    facts = (
        job.plan.dataset.fingerprint,
        *(card.identity for card in job.plan.cards),
        job.seed,
        job.suite,
        format_time(started),
    )
    further: list[str] = [] if job.aggregator is None else [aggregator_name(job.aggregator)]
    if job.experiment is not None:
        further += [job.experiment, str(job.label)]
    return run_id(started, hashlib.sha256(repr((*facts, *further)).encode()).hexdigest())
