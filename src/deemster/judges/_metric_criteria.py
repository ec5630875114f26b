"""The votes of metrics that answer a criterion in place of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from deemster.errors import ConfigurationError
from deemster.judges.grading_case import GradingCase
from deemster.judges.judge_script import Asking
from deemster.judges.vote import MODEL_CAUSES, Vote, verdict_fields, vote_failure
from deemster.records import Call, Mark, Metric, MetricScore, Reply, Scorer, Script, Unscored
from deemster.records.marks import reaches
from deemster.records.shared_call_cost import reply_calls, split_calls
from deemster.rubrics.criterion import Check, Criterion
from deemster.rubrics.verdicts import CHECK

# Values of two options are equally near where only the arithmetic of fractions tells their distances apart.
_ROUNDING = 1e-9


def metric_vote(criterion: Criterion, case: GradingCase, checks: Mapping[Criterion, Metric | Scorer]) -> Asking[Vote]:
    """The vote of the metric that answers a criterion; without a score it is an abstention.

    If a model that the metric asks gave no usable answer, the vote is a failure, as that of a judge would be.

    Args:
        criterion: What it answers.
        case: The item.
        checks: The metric of each criterion with a `check`.

    Raises:
        ConfigurationError: `checks` has no metric for it.
    """
    check = criterion.check
    metric = checks.get(criterion)
    if check is None or metric is None:
        raise ConfigurationError(f"`{criterion.name}` is answered by a metric, and none was given for it.")

    sample, output = case.sample_and_output
    replies_sent: list[Reply] = []
    if isinstance(metric, Scorer):
        mark = yield from _record_replies(metric.script(sample, output), replies_sent)
    else:
        mark = metric.score(sample, output)

    calls = list(reply_calls(replies_sent)) if mark.usage is None else [Call(0, mark.usage)]
    # Only the engine says that a metric does not apply, and it does not ask this one.
    vote = _vote(criterion, check, cast("MetricScore | Unscored", mark))
    return split_calls([vote], calls)[0]


def _vote(criterion: Criterion, check: Check, mark: MetricScore | Unscored) -> Vote:
    """What a mark says on a criterion."""
    judge = f"{CHECK}{check.metric}"
    if isinstance(mark, MetricScore):
        code = _code(criterion, mark.score, check.threshold)
        return Vote(judge=judge, reason=f"{check.metric} is {mark.score:.4g}.", **verdict_fields(criterion, code))

    reason = f"{check.metric} has no score: {mark.message}"
    if mark.cause in MODEL_CAUSES:
        # The model that the metric asks gave no answer: that is no abstention, and resuming tries again.
        return Vote(judge=judge, failure=vote_failure(mark.cause, reason))
    return Vote(judge=judge, reason=reason, **verdict_fields(criterion, criterion.abstention))


def _code(criterion: Criterion, score: float, threshold: float) -> int | float:
    """The verdict that a score stands for: met from the threshold on, the option of the nearest value, or a number."""
    if criterion.minimum is not None and criterion.maximum is not None:
        return criterion.minimum + score * (criterion.maximum - criterion.minimum)
    if not criterion.options:
        return 0 if reaches(score, threshold) else 1

    distance = {code: abs((criterion.values[code] or 0.0) - score) for code in criterion.scored}
    reach = min(distance.values()) + _ROUNDING
    return criterion.worst_among(code for code in criterion.scored if distance[code] <= reach)


def _record_replies(script: Script, replies_sent: list[Reply]) -> Asking[Mark]:
    """What a script returns; the replies it was sent are recorded."""
    try:
        requests = next(script)
        while True:
            replies = yield requests
            replies_sent += replies
            requests = script.send(replies)
    except StopIteration as stop:
        mark: Mark = stop.value
        return mark
