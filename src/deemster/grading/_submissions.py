"""Submissions as work of an evaluation: outputs that are there already, and the metric that grades them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from deemster.datasets.rubric_dataset import RubricDataset
from deemster.engine.work_items import WorkItem
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.judges.criterion_grader import CriterionGrader
from deemster.judges.grading_case import make_case, submission_output
from deemster.judges.item_grading import ItemGrading
from deemster.judges.vote import Vote
from deemster.metrics.builtin_metric import BuiltinScorer
from deemster.records import FrozenDict, Mark, Output, Sample, Script
from deemster.report.stored_grading import GradedItem
from deemster.rubrics.criterion import Criterion
from deemster.store.graded_items import GRADING_CARD, grading_mark


class EarlierGrading(NamedTuple):
    """An item that was graded before, of which some votes are cast again.

    Attributes:
        item: Its grading.
        votes: Its votes, by criterion; empty where none can be reused.
    """

    item: ItemGrading
    votes: tuple[tuple[Vote, ...], ...]


class Submissions(BuiltinScorer, frozen=True, kw_only=True, dict=True):
    """Grades each submission by the rubric of its item.

    Attributes:
        dataset: The items.
        grader: Who judges them, and how.
        checks: The metrics that answer criteria.
        judging: A digest of who judges, and how, which is stored with each item; None where they are not stored.
    """

    alias: ClassVar[str] = GRADING_CARD.name
    family: ClassVar[str] = GRADING_CARD.family
    # Each vote holds the calls that it stands on.
    keeps_calls: ClassVar[bool] = True

    dataset: RubricDataset
    grader: CriterionGrader
    checks: Mapping[Criterion, Any]
    judging: str | None = None

    @cached_property
    def earlier(self) -> dict[int, EarlierGrading]:
        """By position, the items of which some votes are cast again."""
        return {}

    @cached_property
    def requests_at_once(self) -> int:
        """How many requests one item takes at most, where every reply can be read."""
        rubrics = {id(rubric): rubric for rubric in self.dataset.rubrics}
        return max(map(self.grader.count_requests, rubrics.values()), default=1)

    def works(self, positions: Iterable[int]) -> Iterator[WorkItem]:
        """Some of the submissions as work that is left to do."""
        for position in positions:
            item = self.dataset.items[position]
            sample = Sample(str(item.id), {"position": position})
            yield WorkItem(position, sample, 0, Output(submission_output(item)))

    def script(self, sample: Sample, _output: Output) -> Script:
        """Grade one item; what fails is an error of the item."""
        position = sample.input["position"]
        earlier = self.earlier.get(position)
        with UserCodeGuard() as caught:
            case = make_case(self.dataset, position)
            votes = () if earlier is None else earlier.votes
            item: ItemGrading = yield from self.grader.script(case, checks=self.checks, known=votes)
            if earlier is not None:
                item = item.with_calls_of(earlier.item)
            return self.graded_mark(position, item)
        return self.graded_mark(position, ItemGrading(id=sample.id, unscored=caught.message, error=caught.message))

    def graded_mark(self, position: int, item: ItemGrading) -> Mark:
        """The mark of a graded item, which holds all of its grading."""
        details: dict[str, Any] = {"item": item}
        if self.judging is not None:
            # They tell later whether the item is still what it was when it was graded.
            details |= {"fingerprint": self.fingerprint(position), "settings": self.judging}
        return grading_mark(item.score, item.unscored, FrozenDict(details))

    def fingerprint(self, position: int) -> str:
        """The fingerprint of all that judges can see of an item."""
        return self.dataset.grading_fingerprint(self.dataset.items[position])

    def note_earlier(self, position: int, entry: GradedItem) -> bool:
        """Note an item that was graded before; whether votes of it are cast again.

        Votes of the same judges with the same settings are kept.
        """
        item = entry.item
        if item.criteria and not any(vote.failure is not None for vote in item.votes):
            return False
        votes = tuple(each.votes for each in item.criteria) if entry.settings == self.judging else ()
        self.earlier[position] = EarlierGrading(item, votes)
        return True
