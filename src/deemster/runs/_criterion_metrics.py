"""The metrics that answer criteria in place of a judge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from deemster.errors import ConfigurationError
from deemster.errors.user_code_guard import Caught
from deemster.records import Mark, Output, Sample, Unscored
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from deemster.runs import metric_catalog as catalog
from deemster.runs._score_batch import score_outputs, user_mark


def build_criterion_checks(rubrics: Iterable[Rubric]) -> dict[Criterion, Any]:
    """The metric of every criterion that a metric answers.

    Args:
        rubrics: Any number of rubrics; equal ones are one.

    Raises:
        ConfigurationError: There is no such metric, or it cannot be made with these arguments; all issues are listed.
    """
    found: dict[Criterion, Any] = {}
    issues = []
    for rubric in {id(rubric): rubric for rubric in rubrics}.values():
        for criterion in rubric.criteria:
            if criterion.check is None or criterion in found:
                continue
            try:
                found[criterion] = _guarded(catalog.resolve({criterion.check.metric: dict(criterion.check.args)}))
            except ConfigurationError as error:
                issues += [issue._replace(message=f"`{criterion.name}`: {issue.message}") for issue in error.issues]
    if issues:
        raise ConfigurationError(list(dict.fromkeys(issues)))
    return found


def _guarded(metric: Any) -> _Guarded | _GuardedScorer:
    return _GuardedScorer(metric) if hasattr(metric, "script") else _Guarded(metric)


class _Guarded:
    """A metric whose every failure is an unscored mark."""

    def __init__(self, metric: Any) -> None:
        self.name = str(metric.name)
        self.roles = tuple(getattr(metric, "roles", ()))
        self.identity = catalog.identity(metric)
        self.metric = metric

    def score(self, sample: Sample, output: Output) -> Mark:
        """The mark of one output."""
        ((mark,),) = score_outputs([self.metric], [sample], [output], thresholds={})
        return mark


class _GuardedScorer:
    """A scorer whose every failure is an unscored mark."""

    def __init__(self, metric: Any) -> None:
        self.name = str(metric.name)
        self.roles = tuple(getattr(metric, "roles", ()))
        self.identity = catalog.identity(metric)
        self.metric = metric

    def script(self, sample: Sample, output: Output) -> Any:
        """Mark one output, asking as it goes."""
        with Caught() as caught:
            return user_mark(self.metric, (yield from self.metric.script(sample, output)))
        return Unscored("metric_failed", caught.message)
