"""Criteria that a metric answers in place of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.dataset.votes import CHECK
from deemster.errors import ConfigurationError
from deemster.judges.contract import Asking
from deemster.judges.grading.cases import Case
from deemster.judges.grading.grades import Vote, verdict_fields
from deemster.records import MetricScore, Usage
from deemster.records.usage import added
from deemster.rubrics.criterion import Criterion


def checked(criterion: Criterion, case: Case, checks: Mapping[Criterion, Any]) -> Asking[Vote]:
    """The vote of the metric that answers a criterion; where it has no score, an abstention.

    Args:
        criterion: What it answers.
        case: The item.
        checks: The metric of each criterion with a `check`.

    Raises:
        ConfigurationError: Nobody says which metric it is.
    """
    check = criterion.check
    metric = checks.get(criterion)
    if check is None or metric is None:
        raise ConfigurationError(f"`{criterion.name}` is answered by a metric, and nobody says which.")
    sample, output = case.pair
    usage: Usage | None = None
    if hasattr(metric, "script"):
        mark, usage = yield from _counted(metric.script(sample, output))
    else:
        mark = metric.score(sample, output)
    if isinstance(mark, MetricScore):
        code, reason = _code(criterion, mark.score, check.threshold), f"{check.metric} is {mark.score:.4g}."
    else:
        code, reason = criterion.abstention, f"{check.metric} has no score: {mark.message}"
    fields = verdict_fields(criterion, code)
    return Vote(judge=f"{CHECK}{check.metric}", reason=reason, usage=mark.usage or usage, **fields)


def _code(criterion: Criterion, score: float, threshold: float) -> int:
    """The verdict that a score means: met from the threshold on, or the option of the nearest value."""
    if not criterion.options:
        return 0 if score >= threshold else 1
    distance = {code: abs((criterion.values[code] or 0.0) - score) for code in criterion.scored}
    nearest = min(distance.values())
    return criterion.worst_among(code for code in criterion.scored if distance[code] <= nearest + 1e-9)


def _counted(script: Any) -> Asking[tuple[Any, Usage | None]]:
    """What a script returns, and what its replies used."""
    spent: list[Usage] = []
    try:
        requests = next(script)
        while True:
            replies = yield requests
            spent += [reply.usage for reply in replies if reply.usage is not None]
            requests = script.send(replies)
    except StopIteration as stop:
        return stop.value, added(spent)
