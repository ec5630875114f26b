"""A grading that the viewer has opened: the score and the criteria of its items stand where a run has metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.calibration.people_labels import LabelTask
from deemster.errors import ReportError
from deemster.judges.item_grading import ItemGrading
from deemster.records import CAUSES, Execution, MetricCard, SampleFacts
from deemster.report.grading_result import Grading
from deemster.report.stored_columns import SampleColumns, read_samples
from deemster.report.stored_grading import stored_grading
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED, histogram
from deemster.view.opened_run import OpenedRun

# How the score of an item is called among the criteria.
SCORE = "score"
# What judges see of an item beside its submission.
SEEN = ("prompt", "reference_submission")


class OpenedGrading(OpenedRun):
    """A grading that pages are made from."""

    has_passes = False

    @cached_property
    def _grading(self) -> Grading:
        return self._timed(lambda: stored_grading(self.store, self.row))

    @property
    def grading(self) -> Grading:
        """The grading that it is.

        Raises:
            ReportError: It was made by an earlier version, which did not keep what was graded.
            StoreError: The store fails.
        """
        with self._lock:
            return self._grading

    @cached_property
    def cards(self) -> tuple[MetricCard, ...]:
        """The score and the criteria.

        Raises:
            StoreError: The store fails.
        """
        criteria = dict.fromkeys(name for rubric in self.grading.dataset.rubrics for name in rubric.names)
        return tuple(MetricCard(name, name, name, "rubric", None) for name in (SCORE, *criteria))

    def head(self) -> dict[str, Any]:
        """Nothing: a grading has no report.

        Raises:
            ReportError: Always.
        """
        raise ReportError("This is a grading by a rubric: its numbers stand under `grading`.")

    def answered(self) -> list[int]:
        """The places of all items: each is a submission."""
        return list(range(self.row.samples))

    def samples_at(self, positions: Sequence[int]) -> Iterator[tuple[SampleFacts, list[Execution]]]:
        """Some items. What their judges said is shown as a whole, not as marks.

        Args:
            positions: Their places.

        Raises:
            StoreError: The store fails.
        """
        return ((sample, []) for sample, _ in self.store.samples_at(self.row.id, positions))

    def page(self) -> dict[str, Any]:
        """The numbers of the grading, and its criteria.

        Raises:
            StoreError: The store fails.
        """
        try:
            grading = self.grading
        except ReportError as error:
            return {"grading": None, "why_no_report": str(error)}
        criteria = {one.name: one for rubric in grading.dataset.rubrics for one in rubric.criteria}
        table = self.table
        figures = grading.figures
        return {
            "grading": figures,
            "panels": {} if figures.panels is None else {SCORE: figures.panels},
            "metric_order": self.names,
            "criteria": {name: {"requirement": one.requirement, "kind": one.kind} for name, one in criteria.items()},
            "histograms": {
                name: histogram(table.scores[:, :, place], table.causes[:, :, place])
                for place, name in enumerate(self.names)
            },
        }

    def _read_columns(self) -> tuple[MarkTable, SampleColumns]:
        """The score of each item and the values of its criteria as marks; one without a value does not apply."""
        grading = self.grading
        table = MarkTable(self.cards, samples=len(grading), repetitions=1)
        columns = read_samples(self.store, self.row, table)
        places = {card.name: place for place, card in enumerate(self.cards)}
        failed = CAUSES.index("model_failed") + 1
        for position, item in enumerate(grading.items):
            values = {SCORE: (item.score, item.error is not None)}
            values |= {one.criterion: (one.value, one.failed) for one in item.criteria}
            for name, place in places.items():
                value, is_failed = values.get(name, (None, item.error is not None))
                table.scores[position, 0, place] = 0.0 if value is None else value
                table.causes[position, 0, place] = SCORED if value is not None else failed if is_failed else OUTSIDE
        return table, columns

    def table_of(self, stored: Sequence[tuple[SampleFacts, Sequence[Execution]]]) -> MarkTable:
        """The marks of some items, in their order.

        Args:
            stored: The items.
        """
        places = [sample.position for sample, _ in stored]
        table = MarkTable(self.cards, samples=len(places), repetitions=1)
        table.scores, table.causes = self.table.scores[places], self.table.causes[places]
        return table

    def disputes(self, places: Sequence[int]) -> NDArray[np.float64]:  # noqa: ARG002 - judges agree on an item
        """How far the judges of each item are from one opinion: 0 where they agree.

        Args:
            places: The places of the metrics.
        """
        agreements = [item.mean_agreement for item in self.grading.items]
        return np.array([0.0 if agreement is None else 1.0 - agreement for agreement in agreements])

    def verdict(self, position: int, repetition: int, task: LabelTask) -> str | None:  # noqa: ARG002 - there is one
        """The verdict on a criterion of an item; None for none.

        Args:
            position: The item's place.
            repetition: Always 0.
            task: The criterion.
        """
        criteria = self.grading.items[position].criteria
        return next((graded.verdict for graded in criteria if graded.criterion == task.criterion), None)

    def submission(self, position: int) -> str:
        """The submission of an item.

        Args:
            position: The item's place.
        """
        submission = self.grading.dataset.items[position].submission
        return submission if isinstance(submission, str) else submission.output

    def shown_output(self, sample: SampleFacts, executions: Sequence[Execution]) -> str | None:  # noqa: ARG002 - kept with the item
        """The submission of an item.

        Args:
            sample: The item.
            executions: Nothing.
        """
        return self.submission(sample.position)

    def sample_grading(self, position: int) -> ItemGrading:
        """How the judges graded an item.

        Args:
            position: The item's place.
        """
        return self.grading.items[position]
