"""What was said of a sample by one metric, or on one criterion, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from deemster.calibration.people_labels import LabelTask, criterion_entry
from deemster.judges.item_grading import ItemGrading
from deemster.report.report_assembly import execution_entry
from deemster.report.report_entries import ScoreEntry
from deemster.view.opened_run import OpenedRun
from deemster.view.sample_pages import sample_at

# The details of a mark in which a judge says why.
_REASONS = ("judge_reason", "reason", "reasons")


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of a sample, and why."""

    verdict: str | None
    score: float | None = None
    passed: bool | None = None
    reason: Any = None
    votes: Sequence[Any] = ()


def find_judgement(run: OpenedRun, position: int, repetition: int, task: LabelTask) -> Judgement:
    """What was said of a sample by one metric, or on one criterion, and why.

    Args:
        run: The run.
        position: The sample's place.
        repetition: The repetition.
        task: The metric or criterion.

    Raises:
        InputError: There is no such sample.
        StoreError: The store fails.
    """
    verdict = run.verdict(position, repetition, task)
    grading = run.sample_grading(position)
    if grading is not None:
        return _of_grading(grading, task.criterion, verdict)

    mark = _find_mark(run, position, repetition, task.metric)
    if mark is None:
        return Judgement(verdict=verdict)
    if not isinstance(mark, ScoreEntry):
        return Judgement(verdict=verdict, reason=mark.unscored.message)
    if task.criterion:
        return _of_criterion(mark, task.criterion, verdict)

    reason = next((mark.details[key] for key in _REASONS if key in mark.details), None)
    votes = mark.details.get("votes", ())
    return Judgement(verdict=verdict, score=mark.score, passed=mark.success, reason=reason, votes=votes)


def _of_grading(grading: ItemGrading, criterion: str, verdict: str | None) -> Judgement:
    for graded in grading.criteria:
        if graded.criterion == criterion:
            return Judgement(verdict=verdict, score=graded.value, reason=graded.reason, votes=graded.votes)
    return Judgement(verdict=verdict)


def _of_criterion(mark: ScoreEntry, criterion: str, verdict: str | None) -> Judgement:
    """The reason is that of the first judge who decided as the panel did."""
    votes = [vote for vote in mark.details.get("votes", ()) if vote.get("criterion") == criterion]
    reason = next((vote.get("reason") for vote in votes if vote.get("verdict") == verdict), None)
    score = criterion_entry(mark.details, criterion).get("value")
    return Judgement(verdict=verdict, score=score, reason=reason, votes=votes)


def _find_mark(run: OpenedRun, position: int, repetition: int, metric: str) -> Any:
    """The mark as a report has it; None where the metric does not apply."""
    _, executions = sample_at(run, position)
    for execution in executions:
        if execution.repetition == repetition:
            return execution_entry(execution, run.names).marks.get(metric)
    return None
