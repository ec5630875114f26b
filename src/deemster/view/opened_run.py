"""A run that the viewer has opened: its marks as columns and the numbers of its report."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.calibration.label_uncertainty import sample_spread
from deemster.calibration.people_labels import LabelTask, criterion_entry
from deemster.datasets.human_labels import FAIL, PASS
from deemster.errors import ReportError
from deemster.judges.item_grading import ItemGrading
from deemster.records import Execution, MetricCard, Output, SampleFacts
from deemster.report.stored_columns import SampleColumns, page_table, run_columns, stored_head
from deemster.report.stored_report import stored_report
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.usage_and_cost import USAGE
from deemster.store import RunRow, Store

# What is read of a run in progress is read again after so many times the time that it took.
_PATIENCE = 5
_T = TypeVar("_T")
_LATENCY = USAGE.index("latency_ms")


class OpenedRun:
    """A run that pages are made from. What it gives is read when it is first asked for.

    Args:
        store: Where it is stored.
        row: The run.
    """

    # Whether a sample passes or fails by its scores.
    has_passes = True

    def __init__(self, store: Store, row: RunRow) -> None:
        self.store, self.row = store, row
        self.found: OrderedDict[Any, NDArray[np.int32]] = OrderedDict()
        self._spreads: dict[tuple[tuple[str, str], ...], NDArray[np.float64]] = {}
        self._lock = threading.RLock()
        self._read_s = 0.0
        self._read_at = time.monotonic()

    @cached_property
    def cards(self) -> tuple[MetricCard, ...]:
        """Its metrics.

        Raises:
            StoreError: The store fails.
        """
        return self.store.cards(self.row.id)

    @property
    def names(self) -> list[str]:
        """The metrics, in order."""
        return [card.name for card in self.cards]

    def is_current(self, row: RunRow) -> bool:
        """Whether what was read of the run still holds, or is recent enough while the run goes on.

        Args:
            row: The run as the store has it.
        """
        if _version(row) == _version(self.row):
            return True
        is_recent = time.monotonic() - self._read_at < _PATIENCE * self._read_s
        return row.status == self.row.status == "running" and is_recent

    @cached_property
    def _columns(self) -> tuple[MarkTable, SampleColumns]:
        return self._timed(self._read_columns)

    def _read_columns(self) -> tuple[MarkTable, SampleColumns]:
        table, samples = run_columns(self.store, self.row, self.cards)
        table.usage = samples.usage()
        return table, samples

    @property
    def table(self) -> MarkTable:
        """Its marks.

        Raises:
            StoreError: The store fails.
        """
        with self._lock:
            return self._columns[0]

    @property
    def samples(self) -> SampleColumns:
        """Its samples.

        Raises:
            StoreError: The store fails.
        """
        with self._lock:
            return self._columns[1]

    @cached_property
    def _head(self) -> dict[str, Any]:
        kept = stored_head(self.store, self.row)
        if kept is None:
            kept = self._timed(lambda: stored_report(self.store, self.row.id).head())
        found: dict[str, Any] = msgspec.json.decode(kept)
        return found

    def head(self) -> dict[str, Any]:
        """Its report without samples, executions and failures, as `deemster show RUN --to FILE.json` has it.

        Raises:
            ReportError: It has no scores to report on.
            StoreError: The store fails.
        """
        with self._lock:
            if not self.cards or not self.row.samples:
                raise ReportError("This run has no scores.")
            return self._head

    def samples_at(self, positions: Sequence[int]) -> Iterator[tuple[SampleFacts, list[Execution]]]:
        """Some samples with the executions that a page shows.

        Args:
            positions: Their places.

        Raises:
            StoreError: The store fails.
        """
        return self.store.samples_at(self.row.id, positions)

    def page(self) -> dict[str, Any]:
        """What stands on its page beside its report: nothing."""
        return {}

    def _timed(self, read: Callable[[], _T]) -> _T:
        start = time.monotonic()
        found = read()
        self._read_at = time.monotonic()
        self._read_s += self._read_at - start
        return found

    def answered(self) -> list[int]:
        """The places of the samples that have an output.

        Raises:
            StoreError: The store fails.
        """
        return np.flatnonzero((self.table.outputs != 0).any(axis=1)).tolist()

    def mean_scores(self, place: int) -> NDArray[np.float64]:
        """For each sample the mean score of one metric over its repetitions; NaN where it has none.

        Args:
            place: The metric's place.
        """
        table = self.table
        return row_means(np.where(table.causes[:, :, place] == SCORED, table.scores[:, :, place], np.nan))

    def pass_counts(self, places: Sequence[int]) -> NDArray[np.int64]:
        """For each sample the repetitions in which every one of some metrics passed; -1 where none of them applies.

        Args:
            places: The places of the metrics.
        """
        table = self.table
        passed = np.ones((table.samples, table.repetitions), dtype=np.bool_)
        applies = np.zeros(table.samples, dtype=np.bool_)
        for place in places:
            outside = table.causes[:, :, place] == OUTSIDE
            passed &= table.passed[:, :, place] | outside
            applies |= ~outside.all(axis=1)
        return np.where(applies, passed.sum(axis=1), -1)

    def table_of(self, stored: Sequence[tuple[SampleFacts, Sequence[Execution]]]) -> MarkTable:
        """The marks of some samples, in their order, read from their own rows where there are any.

        Args:
            stored: The samples with their executions.
        """
        return page_table(self.cards, stored, repetitions=self.row.repetitions)

    def disputes(self, places: Sequence[int]) -> NDArray[np.float64]:
        """How far the repetitions of each sample are from one opinion: 0 where they agree.

        Args:
            places: The places of the metrics.
        """
        shares = np.maximum(self.pass_counts(places), 0) / self.table.repetitions
        return np.minimum(shares, 1 - shares)

    def label_spreads(self, tasks: Sequence[LabelTask]) -> NDArray[np.float64]:
        """How far a person may be from the judge on each sample, by what the judge shows of its doubts.

        Args:
            tasks: The questions that a person is asked.

        Raises:
            StoreError: The store fails.
        """
        key = tuple(task.key for task in tasks)
        with self._lock:
            if key not in self._spreads:
                self._spreads[key] = self._timed(lambda: self._read_spreads(tasks))
            return self._spreads[key]

    def _read_spreads(self, tasks: Sequence[LabelTask]) -> NDArray[np.float64]:
        names = self.names
        spreads = [
            sample_spread([dict(zip(names, execution.marks, strict=True)) for execution in executions], tasks)
            for _, executions in self.store.samples_at(self.row.id, range(self.row.samples))
        ]
        return np.array(spreads)

    def verdict(self, position: int, repetition: int, task: LabelTask) -> str | None:
        """What was decided about a sample: `pass` or `fail` by a metric, or the verdict on a criterion; None for none.

        Args:
            position: The sample's place.
            repetition: The repetition.
            task: The metric or criterion.
        """
        place = self.names.index(task.metric)
        if self.table.causes[position, repetition, place] != SCORED:
            return None
        if task.criterion:
            (_, executions) = next(self.store.samples_at(self.row.id, [position]))
            mark: Any = next(one.marks[place] for one in executions if one.repetition == repetition)
            return criterion_entry(mark.details, task.criterion).get("verdict")
        return PASS if self.table.passed[position, repetition, place] else FAIL

    def shown_output(self, sample: SampleFacts, executions: Sequence[Execution]) -> str | None:  # noqa: ARG002 - of a grading
        """The output of a sample that a table shows: that of its first repetition.

        Args:
            sample: The sample.
            executions: Its repetitions.
        """
        return first_output(executions)

    def sample_grading(self, position: int) -> ItemGrading | None:  # noqa: ARG002 - a grading has one
        """How judges graded a sample by its rubric; None where no rubric was applied to it as a whole.

        Args:
            position: The sample's place.
        """
        return None

    @property
    def size(self) -> int:
        """How many bytes its arrays take, if they were read."""
        if "_columns" not in self.__dict__:
            return 0
        table, samples = self._columns
        arrays = (table.scores, table.causes, table.passed, table.outputs, table.output_chars, samples.digests)
        usage = 0 if table.usage is None else table.usage.nbytes
        return sum(array.nbytes for array in arrays) + usage + sum(found.nbytes for found in self.found.values())


def first_output(executions: Sequence[Execution]) -> str | None:
    """The output of a sample in its first repetition; None where there is none."""
    answer = executions[0].answer if executions else None
    return answer.text if isinstance(answer, Output) else None


def mean_latencies(table: MarkTable) -> NDArray[np.float64]:
    """For each sample of a table the mean latency of its outputs in milliseconds; NaN where it is not known."""
    return np.full(table.samples, np.nan) if table.usage is None else row_means(table.usage[:, :, _LATENCY])


def mean_lengths(table: MarkTable) -> NDArray[np.float64]:
    """For each sample of a table the mean number of characters of its outputs; NaN where it has none."""
    chars = table.output_chars.astype(np.float64)
    return row_means(np.where(chars < 0, np.nan, chars))


def row_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each row without its NaN; NaN where nothing else is in it."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    return np.where(counts, np.where(known, values, 0.0).sum(axis=1) / np.maximum(counts, 1), np.nan)


def _version(row: RunRow) -> Any:
    scorings = tuple((scoring.number, scoring.status, scoring.done) for scoring in row.scorings)
    return row.status, row.done, row.samples, row.finished_at, scorings
