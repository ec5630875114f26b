"""Reads a stored grading back, with everything that was graded of it so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ReportError
from deemster.judges.grading_result import Grading, ItemGrading, JudgeGrading, vote_payments
from deemster.judges.vote import total_usage
from deemster.records import Execution
from deemster.store import RunRow, Store

# The fact of a grading that holds the rubric of the items that have none of their own.
GRADING_RUBRIC_FACT = "rubric"


class GradedItem(msgspec.Struct, frozen=True):
    """A graded item as the store has it.

    Attributes:
        item: The grading of the item.
        fingerprint: Of all that the judges could see of it.
        settings: A digest of who judged it, and how.
    """

    item: ItemGrading
    fingerprint: str
    settings: str


def graded_item(execution: Execution) -> GradedItem:
    """A graded item, from the details of its mark.

    Raises:
        ValidationError: The mark is none of a grading.
    """
    (mark,) = execution.marks
    return msgspec.convert(getattr(mark, "details", None), GradedItem)


def stored_grading(store: Store, row: RunRow) -> Grading:
    """A grading as the store has it, with the items that are not graded yet as failed ones.

    Args:
        store: Where it is stored.
        row: The grading.

    Raises:
        ReportError: It was made by an earlier version, which did not keep what was graded.
        StoreError: The store fails, or something is damaged.
    """
    if GRADING_RUBRIC_FACT not in row.facts:
        raise ReportError(f"The grading `{row.id}` was made by an earlier version, which did not keep its rubric.")
    samples = list(store.samples(row.id))
    items = [
        {
            "id": sample.id,
            **sample.input,
            **(sample.expected_output or {}),
            "tags": list(sample.tags),
            "metadata": dict(sample.metadata or {}),
        }
        for sample in samples
    ]
    drawn = {key: row.facts.get(key) for key in ("cluster", "sampling")}
    dataset = RubricDataset(items, name=row.dataset, rubric=row.facts[GRADING_RUBRIC_FACT], **drawn)
    graded = {execution.position: graded_item(execution).item for execution in store.executions(row.id)}
    payments = vote_payments()
    found = [
        graded.get(position, ItemGrading(id=sample.id, error="This item is not graded."))
        for position, sample in enumerate(samples)
    ]
    found = [item.settle(payments).without_calls() for item in found]
    settings = row.identity["settings"]
    judges = tuple(_judge_totals(JudgeGrading(**judge), found) for judge in settings["judges"])
    return Grading(
        items=found,
        judges=judges,
        settings=settings,
        dataset=dataset,
        usage=total_usage(vote.usage for item in found for vote in item.votes),
        halted=row.facts.get("stopped"),
        n_failed_items=sum(item.error is not None for item in found),
        run=row.id,
        mixed=tuple(row.facts.get("mixed", ())),
    )


def _judge_totals(judge: JudgeGrading, items: Sequence[ItemGrading]) -> JudgeGrading:
    """A judge with what it did over a grading."""
    votes = [vote for item in items for vote in item.votes if vote.judge == judge.id]
    failed = [vote.failure for vote in votes if vote.failure is not None]
    return msgspec.structs.replace(
        judge,
        votes=len(votes),
        failures=dict(sorted(Counter(failure.category for failure in failed).items())),
        not_run=sum(failure.cause == "not_run" for failure in failed),
        usage=total_usage(vote.usage for vote in votes),
    )
