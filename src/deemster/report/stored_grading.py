"""A grading as a view of its run: the graded items of a store, and what the judges did over all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.errors import ReportError
from deemster.judges.item_grading import ItemGrading, vote_payments
from deemster.judges.vote import Vote, total_usage
from deemster.records import Execution, Usage
from deemster.records.usage import sum_usage
from deemster.report.grading_result import Grading, JudgeGrading
from deemster.store import RunRow, Store

# The fact of a grading that holds the rubric of the items that have none of their own.
GRADING_RUBRIC_FACT = "rubric"
# Usages that are added up at once.
_TOGETHER = 500


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
        graded.get(position, ItemGrading(id=sample.id, error="This item is not graded.")).settle(payments)
        for position, sample in enumerate(samples)
    ]
    grading = view_grading(found, found, dataset, row.identity["settings"])
    return msgspec.structs.replace(
        grading, halted=row.facts.get("stopped"), run=row.id, mixed=tuple(row.facts.get("mixed", ()))
    )


def view_grading(
    items: Sequence[ItemGrading], settled: Iterable[ItemGrading], dataset: RubricDataset, settings: Mapping[str, Any]
) -> Grading:
    """A grading of graded items, with what each judge did over all of them.

    Args:
        items: The items, without calls.
        settled: The items in order, with what their votes used in the end; they are read once.
        dataset: What was graded.
        settings: All settings of the grader.
    """
    totals: defaultdict[str, _VoteTotals] = defaultdict(_VoteTotals)
    failed_items = undecided = below_quorum = 0
    for item in settled:
        failed_items += item.error is not None
        below_quorum += bool(item.below_quorum)
        for criterion in item.criteria:
            undecided += criterion.failed and any(map(_is_out, criterion.votes))
            for vote in criterion.votes:
                totals[vote.judge].add(vote)

    judges = tuple(totals[judge["id"]].of(JudgeGrading(**judge)) for judge in settings["judges"])
    return Grading(
        items=items,
        judges=judges,
        settings=settings,
        dataset=dataset,
        usage=total_usage(total.usage for total in totals.values()),
        n_failed_items=failed_items,
        n_undecided=undecided,
        n_below_quorum=below_quorum,
    )


class _VoteTotals:
    """What the votes of one judge, or of one metric that answers criteria, come to."""

    def __init__(self) -> None:
        self._votes = self._not_run = 0
        self._failures: Counter[str] = Counter()
        self._usages: list[Usage] = []

    def add(self, vote: Vote) -> None:
        self._votes += 1
        if vote.failure is not None:
            self._failures[vote.failure.category] += 1
            self._not_run += vote.failure.cause == "not_run"
        if vote.usage is not None:
            self._usages.append(vote.usage)
            if len(self._usages) == _TOGETHER:
                self._usages = [usage for usage in [self.usage] if usage is not None]

    @property
    def usage(self) -> Usage | None:
        return sum_usage(self._usages)

    def of(self, judge: JudgeGrading) -> JudgeGrading:
        """A judge with these totals."""
        failures = dict(sorted(self._failures.items()))
        return msgspec.structs.replace(
            judge, votes=self._votes, failures=failures, not_run=self._not_run, usage=self.usage
        )


def _is_out(vote: Vote) -> bool:
    """Whether a vote is missing because a model could not be reached."""
    return vote.failure is not None and vote.failure.category == "infrastructure"
