"""Opens runs for the viewer: their marks as columns and the numbers of their reports, a few runs at a time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.errors import ReportError
from deemster.judges.grading_result import Grading
from deemster.records import CAUSES, Execution, MetricCard
from deemster.results import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.usage_and_cost import USAGE
from deemster.runs.build_report import stored_report
from deemster.runs.grading_store import stored_grading
from deemster.runs.people_labels import FAIL, PASS, LabelTask, criterion_entry
from deemster.runs.stored_columns import SampleColumns, page_table, run_columns, stored_head
from deemster.store import RunRow, SampleFacts, Store
from deemster.view.live_usage import LiveUsage

# The arrays of opened runs take about so many bytes; the run that was opened last stays in any case.
_MOST_BYTES = 100 << 20
# What is read of a run in progress is read again after so many times the time that it took.
_PATIENCE = 5
# So many runs in progress are watched at once.
_MOST_LIVE = 4
# How the score of an item is called among the metrics of a grading.
SCORE = "score"
_T = TypeVar("_T")
_LATENCY = USAGE.index("latency_ms")


class OpenedRun:
    """A run that pages are made from. What it gives is read when it is first asked for.

    Args:
        store: Where it is stored.
        row: The run.
    """

    def __init__(self, store: Store, row: RunRow) -> None:
        self.store, self.row = store, row
        self.found: OrderedDict[Any, NDArray[np.int32]] = OrderedDict()
        self._lock = threading.RLock()
        self._read_s = 0.0
        self._read_at = time.monotonic()

    @cached_property
    def cards(self) -> tuple[MetricCard, ...]:
        """Its metrics; of a grading the score and the criteria.

        Raises:
            StoreError: The store fails.
        """
        if self.row.kind != "grading":
            return self.store.cards(self.row.id)
        return tuple(MetricCard(name, name, name, "rubric", None) for name in (SCORE, *self._criteria))

    @property
    def _criteria(self) -> list[str]:
        rubrics = self.grading.dataset.rubrics
        return list(dict.fromkeys(name for rubric in rubrics for name in rubric.names))

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
        if self.row.kind == "grading":
            return _grading_columns(self.grading, self.cards, self.store, self.row)
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
        """Its report without samples, executions and failures, as `deemster report RUN --json` has it.

        Raises:
            ReportError: It has no marks to report on.
            StoreError: The store fails.
        """
        with self._lock:
            if self.row.kind == "grading":
                raise ReportError("This is a grading by a rubric: its numbers stand under `grading`.")
            if not self.cards or not self.row.samples:
                raise ReportError("This run has no marks.")
            return self._head

    def _timed(self, read: Callable[[], _T]) -> _T:
        start = time.monotonic()
        found = read()
        self._read_at = time.monotonic()
        self._read_s += self._read_at - start
        return found

    def mean_scores(self, place: int) -> NDArray[np.float64]:
        """For each sample the mean score of one metric over its repetitions; NaN where it has none.

        Args:
            place: The metric's place.
        """
        scored = self.table.causes[:, :, place] == SCORED
        sums = np.where(scored, self.table.scores[:, :, place], 0.0).sum(axis=1)
        counts = scored.sum(axis=1)
        return np.where(counts, sums / np.maximum(counts, 1), np.nan)

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

    def latencies(self) -> NDArray[np.float64]:
        """For each sample the mean latency of its outputs in milliseconds; NaN where it is not known."""
        return mean_latencies(self.table)

    def lengths(self) -> NDArray[np.float64]:
        """For each sample the mean number of characters of its outputs; NaN where it has none."""
        return mean_lengths(self.table)

    def table_of(self, stored: Sequence[tuple[SampleFacts, Sequence[Execution]]]) -> MarkTable:
        """The marks of some samples, in their order, read from their own rows where there are any.

        Args:
            stored: The samples with their executions.
        """
        if self.row.kind != "grading":
            return page_table(self.cards, stored, repetitions=self.row.repetitions)
        places = [sample.position for sample, _ in stored]
        table = MarkTable(self.cards, samples=len(places), repetitions=1)
        table.scores, table.causes = self.table.scores[places], self.table.causes[places]
        return table

    def agreements(self) -> NDArray[np.float64]:
        """For each item of a grading the mean agreement of its judges; NaN where there is none."""
        found = [item.mean_agreement for item in self.grading.items]
        return np.array([np.nan if value is None else value for value in found])

    def verdict(self, position: int, repetition: int, task: LabelTask) -> str | None:
        """What was decided about a sample: `pass` or `fail` by a metric, or the verdict on a criterion; None for none.

        Args:
            position: The sample's place.
            repetition: The repetition.
            task: The metric or criterion.
        """
        if self.row.kind == "grading":
            criteria = self.grading.items[position].criteria
            return next((one.verdict for one in criteria if one.criterion == task.criterion), None)
        place = self.names.index(task.metric)
        if self.table.causes[position, repetition, place] != SCORED:
            return None
        if task.criterion:
            (_, executions) = next(self.store.samples_at(self.row.id, [position]))
            mark: Any = next(one.marks[place] for one in executions if one.repetition == repetition)
            return criterion_entry(mark.details, task.criterion).get("verdict")
        return PASS if self.table.passed[position, repetition, place] else FAIL

    def submission(self, position: int) -> str:
        """The submission of an item of a grading."""
        submission = self.grading.dataset.items[position].submission
        return submission if isinstance(submission, str) else submission.output

    @property
    def size(self) -> int:
        """How many bytes its arrays take, if they were read."""
        if "_columns" not in self.__dict__:
            return 0
        table, samples = self._columns
        arrays = (table.scores, table.causes, table.passed, table.outputs, table.output_chars, samples.digests)
        usage = 0 if table.usage is None else table.usage.nbytes
        return sum(array.nbytes for array in arrays) + usage + sum(found.nbytes for found in self.found.values())


def _grading_columns(
    grading: Grading, cards: Sequence[MetricCard], store: Store, row: RunRow
) -> tuple[MarkTable, SampleColumns]:
    """The score of each item and the values of its criteria as marks; a criterion without a value does not apply."""
    table = MarkTable(cards, samples=len(grading), repetitions=1)
    places = {card.name: place for place, card in enumerate(cards)}
    failed = CAUSES.index("model_failed") + 1
    for position, item in enumerate(grading.items):
        values = {SCORE: (item.score, item.error is not None)}
        values |= {one.criterion: (one.value, one.failed) for one in item.criteria}
        for name, place in places.items():
            value, is_failed = values.get(name, (None, item.error is not None))
            table.scores[position, 0, place] = 0.0 if value is None else value
            table.causes[position, 0, place] = SCORED if value is not None else failed if is_failed else OUTSIDE
        table.tag(position, grading.dataset.items[position].tags)
    ids = [item.id for item in grading.items]
    digests = b"".join(bytes.fromhex(sample.row_hash) for sample in store.samples(row.id, content=False))
    hashes = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)
    return table, SampleColumns(hashes, lambda positions: [ids[position] for position in positions], lambda: None)


def mean_latencies(table: MarkTable) -> NDArray[np.float64]:
    """For each sample of a table the mean latency of its outputs in milliseconds; NaN where it is not known."""
    return np.full(table.samples, np.nan) if table.usage is None else _row_means(table.usage[:, :, _LATENCY])


def mean_lengths(table: MarkTable) -> NDArray[np.float64]:
    """For each sample of a table the mean number of characters of its outputs; NaN where it has none."""
    chars = table.output_chars.astype(np.float64)
    return _row_means(np.where(chars < 0, np.nan, chars))


def _row_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each row without its NaN; NaN where nothing else is in it."""
    known = ~np.isnan(values)
    counts = known.sum(axis=1)
    return np.where(counts, np.where(known, values, 0.0).sum(axis=1) / np.maximum(counts, 1), np.nan)


def _version(row: RunRow) -> Any:
    scorings = tuple((scoring.number, scoring.status, scoring.done) for scoring in row.scorings)
    return row.status, row.done, row.samples, row.finished_at, scorings


class RunCache:
    """Keeps the runs that were opened last.

    Args:
        store: Where they are stored.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._opened: OrderedDict[str, OpenedRun] = OrderedDict()
        self._live: dict[str, LiveUsage] = {}
        self._lock = threading.Lock()

    def open(self, name: str) -> OpenedRun:
        """A run by its name.

        Args:
            name: Its id, a unique beginning of it, its label, or `latest`.

        Raises:
            StoreError: There is no such run, or the store fails.
        """
        row = self.store.run(name)
        with self._lock:
            opened = self._opened.get(row.id)
            if opened is None or not opened.is_current(row):
                opened = OpenedRun(self.store, row)
            self._opened[row.id] = opened
            self._opened.move_to_end(row.id)
            sizes = [run.size for run in self._opened.values()]
            while len(self._opened) > 1 and sum(sizes) > _MOST_BYTES:
                self._opened.popitem(last=False)
                sizes.pop(0)
        return opened

    def live_usage(self, row: RunRow) -> LiveUsage:
        """Counts what a run in progress has used; of several, the ones that were asked for last are kept.

        Args:
            row: The run.
        """
        with self._lock:
            known = self._live.pop(row.id, None) or LiveUsage(self.store, row)
            self._live[row.id] = known
            while len(self._live) > _MOST_LIVE:
                self._live.pop(next(iter(self._live)))
        return known
