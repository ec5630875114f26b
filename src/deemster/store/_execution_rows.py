"""Reads executions of a run with the marks that a report shows, or with those of one scoring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from deemster.errors import plural
from deemster.records import Execution, Mark, MetricCard, Unscored
from deemster.store import _paged_rows
from deemster.store._database import Connection, Row
from deemster.store._paged_rows import PagedRows, RowQuery, RowSource
from deemster.store._row_encoding import decode_answer, decode_marks, marks_checksum, output_checksum
from deemster.store.run_facts import ScoringRow

_LATER = Unscored("not_run", "The output came after this metric was scored.")


class MarkSource(NamedTuple):
    """Where the mark of a metric stands: in which of the scorings that are read, and where in its marks."""

    scoring: int
    column: int


class MarkSelection(NamedTuple):
    """Which marks of a run are shown.

    Attributes:
        cards: The metrics, in the order of the marks.
        scorings: The scorings that are read.
        sources: For each metric, where its mark may stand, the best first; None where one scoring is shown as it is.
    """

    cards: tuple[MetricCard, ...]
    scorings: tuple[ScoringRow, ...]
    sources: tuple[tuple[MarkSource, ...], ...] | None = None

    def sources_of(self, metric: int) -> tuple[MarkSource, ...]:
        """Where the mark of a metric may stand, the best first."""
        return (MarkSource(0, metric),) if self.sources is None else self.sources[metric]

    def choose(self, stored: Sequence[tuple[Mark, ...] | None]) -> tuple[Mark, ...]:
        """The marks of one execution, from those that each scoring gave it."""
        if self.sources is None:
            return stored[0] or ()
        return tuple(_first_mark(sources, stored) for sources in self.sources)


def _first_mark(sources: tuple[MarkSource, ...], stored: Sequence[tuple[Mark, ...] | None]) -> Mark:
    for scoring, column in sources:
        marks = stored[scoring]
        if marks is not None:
            return marks[column]
    return _LATER


def select_marks(scorings: Sequence[ScoringRow]) -> MarkSelection:
    """Select what a report shows: for each metric the marks of its latest complete scoring.

    A scoring without marks is not read, so that the cost of a run grows with its rows.
    """
    complete = [scoring for index, scoring in enumerate(scorings) if index == 0 or scoring.status == "complete"]
    if len(complete) == 1:
        return MarkSelection(complete[0].cards, tuple(complete))

    shown = [scoring for index, scoring in enumerate(complete) if index == 0 or scoring.done]
    index_by_number = {scoring.number: index for index, scoring in enumerate(shown)}

    cards: dict[str, MetricCard] = {}
    sources: dict[str, list[MarkSource]] = {}
    for scoring in complete:
        index = index_by_number.get(scoring.number)
        for column, card in enumerate(scoring.cards):
            cards[card.name] = card
            of_metric = sources.setdefault(card.name, [])
            if index is not None:
                of_metric.insert(0, MarkSource(index, column))
    return MarkSelection(tuple(cards.values()), tuple(shown), tuple(tuple(sources[name]) for name in cards))


class ExecutionRows:
    """Reads executions of a run in the order of position and repetition.

    The marks of the first scoring are joined to the outputs; those of the others are read beside each page, so that
    no query grows with them. A database joins only so many tables: SQLite 64.

    Args:
        source: The run.
        selection: Which marks are shown; it has a scoring.
        settled: Whether marks are shown as they were settled.
        most: How many are read at once, at most.
    """

    def __init__(self, source: RowSource, selection: MarkSelection, *, settled: bool, most: int | None) -> None:
        self._source = source
        self._selection = selection
        page = _paged_rows.PAGE // len(selection.scorings)
        self._page = max(1, page if most is None else min(page, most))

        mark_columns = "m.body, m.checksum"
        if settled:
            mark_columns = "COALESCE(m.final, m.body), COALESCE(m.final_checksum, m.checksum)"
        self._mark_columns = mark_columns

        # For one page, the marks of all scorings but the first and their check sums, by position and repetition.
        self._marks_beside: list[dict[tuple[int, int], Row]] = [{} for _ in selection.scorings[1:]]
        # How many executions each scoring has marked.
        self._marked = [0] * len(selection.scorings)

    def read(self, *, done: int, since: int) -> Iterator[Execution]:
        """Executions from a position on.

        Args:
            done: How many the run has at least.
            since: The position; above 0, missing executions are not looked for.
        """
        rows = PagedRows(self._source, self._query(done if since == 0 else 0), after=(since, -1))
        yield from rows
        if since == 0:
            self._report_lost_marks(lost_executions=max(0, done - rows.sound))

    def _query(self, expected: int) -> RowQuery[Execution]:
        first, *others = self._selection.scorings
        select = (
            f"SELECT o.position, o.repetition, s.id, o.body, o.checksum, {self._mark_columns} FROM outputs o"  # noqa: S608 - our own words
            " LEFT JOIN samples s ON s.run = o.run AND s.position = o.position"
            f" LEFT JOIN marks m ON m.run = o.run AND m.scoring = {int(first.number)}"
            " AND m.position = o.position AND m.repetition = o.repetition"
        )
        return RowQuery(
            what="execution",
            at="position {}, repetition {}",
            select=select,
            key=("o.position", "o.repetition"),
            where="o.run = ?",
            decode=self._decode,
            expected=expected,
            page=self._page,
            read_beside=self._read_beside if others else None,
        )

    def _read_beside(self, connection: Connection, after: tuple[int, ...]) -> None:
        """As many marks of each scoring as a page has executions: those of all, where no output lacks its row."""
        sql = (
            f"SELECT m.position, m.repetition, {self._mark_columns} FROM marks m"  # noqa: S608 - our own words
            " WHERE m.run = ? AND m.scoring = ? AND (m.position, m.repetition) > (?, ?)"
            " ORDER BY m.position, m.repetition LIMIT ?"
        )
        for index, scoring in enumerate(self._selection.scorings[1:]):
            rows = connection.stream(sql, (self._source.number, scoring.number, *after, self._page))
            self._marks_beside[index] = {(row[0], row[1]): row[2:] for row in rows}

    def _decode(self, row: Row) -> Execution:
        position, repetition, sample_id, body, checksum, *first_marks = row
        if output_checksum(position, repetition, sample_id, body) != checksum:
            raise ValueError("an output does not fit its check sum")
        stored = decode_answer(body)

        rows: list[Sequence[Any]] = [first_marks]
        rows += [marks.get((position, repetition), (None, None)) for marks in self._marks_beside]
        marks_by_scoring = []
        for index, scoring in enumerate(self._selection.scorings):
            marks = _decode_marks(rows[index], scoring, position, repetition)
            marks_by_scoring.append(marks)
            if marks is not None:
                self._marked[index] += 1

        marks = self._selection.choose(marks_by_scoring)
        return Execution(position, sample_id.decode(), repetition, stored.answer, marks, stored.valid, stored.cut)

    def _report_lost_marks(self, *, lost_executions: int) -> None:
        for scoring, marked in zip(self._selection.scorings, self._marked, strict=True):
            lost = scoring.done - marked
            if lost > lost_executions:
                count = f"{plural(lost, 'execution')} of {scoring.done:,}"
                self._source.report(f"{count} lost its marks of scoring {scoring.number}")


def _decode_marks(row: Sequence[Any], scoring: ScoringRow, position: int, repetition: int) -> tuple[Mark, ...] | None:
    body, checksum = row
    if body is None:
        if scoring.number == 0 or checksum is not None:
            raise ValueError("marks are missing that were written with their output")
        return None

    if marks_checksum(scoring.number, position, repetition, body) != checksum:
        raise ValueError("marks do not fit their check sum")
    marks = decode_marks(body)
    if len(marks) != len(scoring.cards):
        raise ValueError("marks do not fit their metrics")
    return marks
