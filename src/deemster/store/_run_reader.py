"""Reads samples and executions of a run in order, and checks every check sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from deemster.errors import StoreError, plural
from deemster.records import Exchange, Execution, Mark, MetricCard, SampleFacts, Unscored
from deemster.store._database import Connection, ConnectionLostError, ConnectionPool, Row, storage_error
from deemster.store._row_encoding import (
    call_checksum,
    content_checksum,
    decode_answer,
    decode_content,
    decode_labels,
    decode_marks,
    decode_prompts,
    encode_json,
    entry_checksum,
    marks_checksum,
    output_checksum,
    prompts_checksum,
    sample_checksum,
)
from deemster.store._run_table import OnDamage
from deemster.store.run_facts import ScoringRow, TextTable

# How often in a row a connection may be lost before a row comes: a damaged database ends every query.
_MOST_LOSSES = 3
PAGE = 2000
# A part of the columns of a run is some hundred kilobytes.
_COLUMN_PAGE = 16
_Found = TypeVar("_Found")
_UNREADABLE = (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError)
_LATER = Unscored("not_run", "The output came after this metric was scored.")


# The column with the texts of a row, how rows are read in order, and what the bytes of the column say.
_TEXTS: dict[TextTable, tuple[str, str, Callable[[bytes], Any]]] = {
    "samples": ("id", "SELECT position, 0, id FROM samples WHERE run = ? AND position > ? AND ? < 1", bytes.decode),
    "contents": (
        "c.body",
        """SELECT s.position, 0, c.body FROM samples s JOIN contents c ON c.number = s.content
            WHERE s.run = ? AND s.position > ? AND ? < 1""",
        decode_content,
    ),
    "outputs": (
        "body",
        "SELECT position, repetition, body FROM outputs WHERE run = ? AND (position, repetition) > (?, ?)",
        lambda body: decode_answer(body).answer,
    ),
    "marks": (
        "COALESCE(final, body)",
        """SELECT position, repetition, COALESCE(final, body) FROM marks
            WHERE run = ? AND (position, repetition) > (?, ?) AND scoring = {scoring}""",
        decode_marks,
    ),
}
# So many characters of a text are enough to find rows that may hold it: databases take patterns of some length only.
_LONGEST_PATTERN = 1000
_LIKE_WORDS = re.compile("[!%_]")
# Letters whose upper and lower case databases do not know. An i before a dot above may stand for one letter in a text.
_OTHER_LETTERS = re.compile("i?[^\0-\x7f]+")


class MarkSelection(NamedTuple):
    """Which marks of a run are shown.

    Attributes:
        cards: The metrics, in the order of the marks.
        scorings: The scorings that are read.
        places: For each metric, where its mark stands: scoring and place in it, the best first; None where one scoring
            is shown as it is.
    """

    cards: tuple[MetricCard, ...]
    scorings: tuple[ScoringRow, ...]
    places: tuple[tuple[tuple[int, int], ...], ...] | None = None

    def marks(self, found: Sequence[tuple[Mark, ...] | None]) -> tuple[Mark, ...]:
        """The marks of one execution, from what each scoring says of it."""
        if self.places is None:
            return found[0] or ()
        return tuple(_best(places, found) for places in self.places)


def _best(places: tuple[tuple[int, int], ...], found: Sequence[tuple[Mark, ...] | None]) -> Mark:
    for scoring, place in places:
        marks = found[scoring]
        if marks is not None:
            return marks[place]
    return _LATER


def select_marks(scorings: Sequence[ScoringRow]) -> MarkSelection:
    """Select what a report shows: for each metric the marks of its latest complete scoring.

    A scoring without marks is not read, so that the cost of a run grows with its rows.
    """
    complete = [scoring for place, scoring in enumerate(scorings) if place == 0 or scoring.status == "complete"]
    if len(complete) == 1:
        return MarkSelection(complete[0].cards, tuple(complete))
    shown = [scoring for place, scoring in enumerate(complete) if place == 0 or scoring.done]
    cards: dict[str, MetricCard] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    numbers = {scoring.number: at for at, scoring in enumerate(shown)}
    for scoring in complete:
        for place, card in enumerate(scoring.cards):
            cards[card.name] = card
            known = places.setdefault(card.name, [])
            if scoring.number in numbers:
                known.append((numbers[scoring.number], place))
    return MarkSelection(tuple(cards.values()), tuple(shown), tuple(tuple(reversed(places[name])) for name in cards))


class RunReader:
    """Reads the rows of one run.

    Args:
        pool: Connections to the store.
        run_id: The run, as messages name it.
        number: Its number.
        on_damage: Called with a message for each damage, which is then left out; without it, damage raises.
    """

    def __init__(self, pool: ConnectionPool, run_id: str, number: int, *, on_damage: OnDamage) -> None:
        self._pool, self._run_id, self._number, self._on_damage = pool, run_id, number, on_damage

    def executions(
        self, view: MarkSelection, *, settled: bool, done: int, since: int = 0, most: int = PAGE
    ) -> Iterator[Execution]:
        """Executions in the order of position and repetition.

        Args:
            view: Which marks are shown.
            settled: Whether marks are shown as they were settled.
            done: How many there must be at least.
            since: The position they begin at; above 0, missing executions are not looked for.
            most: How many are read at once, at most.

        Raises:
            StoreError: Something is damaged and there is no `on_damage`, or the database refuses.
        """
        if not view.scorings:
            self._say("its scorings are missing")
            return
        first, *others = view.scorings
        # The marks of all scorings but the first, for one page: by scoring, position and repetition.
        beside: list[dict[tuple[int, int], Row]] = [{} for _ in others]
        marked = [0] * len(view.scorings)
        page = max(1, min(PAGE // len(view.scorings), most))

        def read_others(connection: Connection, last: tuple[int, int]) -> None:
            for at, scoring in enumerate(others):
                rows = connection.stream(_marks_sql(settled=settled), (self._number, scoring.number, *last, page))
                beside[at] = {(row[0], row[1]): row[2:] for row in rows}

        def execution(row: Row) -> Execution:
            position, repetition, name, body, total, *joined = row
            if output_checksum(position, repetition, name, body) != total:
                raise ValueError("an output does not fit its check sum")
            kept = decode_answer(body)
            stored = [joined, *(known.get((position, repetition), (None, None)) for known in beside)]
            found = []
            for at, (scoring, (marks_body, marks_total)) in enumerate(zip(view.scorings, stored, strict=True)):
                key = (scoring.number, position, repetition)
                marks = _marks(marks_body, marks_total, key, size=len(scoring.cards))
                found.append(marks)
                if marks is not None:
                    marked[at] += 1
            return Execution(position, name.decode(), repetition, kept.answer, view.marks(found), kept.valid, kept.cut)

        sql = _executions_sql(first.number, settled=settled)
        expected = done if since == 0 else 0
        sound = yield from self._paged(
            sql,
            (since, -1),
            execution,
            what="execution",
            expected=expected,
            page=page,
            before=read_others if others else None,
        )
        for scoring, count in zip(view.scorings, marked, strict=True):
            lost = scoring.done - count
            if since == 0 and lost > max(0, done - sound):
                self._say(f"{plural(lost, 'execution')} of {scoring.done:,} lost its marks of scoring {scoring.number}")

    def samples(
        self, *, expected: int, content: bool = True, since: int = 0, most: int = PAGE
    ) -> Iterator[SampleFacts]:
        """Samples in order.

        Args:
            expected: How many there must be.
            content: Whether to read expected output and input.
            since: The position they begin at; above 0, missing samples are not looked for.
            most: How many are read at once, at most.

        Raises:
            StoreError: Something is damaged and there is no `on_damage`, or the database refuses.
        """
        columns, join = "s.content, c.body, c.checksum", " LEFT JOIN contents c ON c.number = s.content"
        if not content:
            columns, join = "NULL, NULL, NULL", ""
        sql = (
            f"SELECT s.position, 0, s.id, s.row_hash, s.body, s.checksum, {columns} FROM samples s{join}"  # noqa: S608 - our own words
            " WHERE s.run = ? AND s.position > ? AND ? < 1 ORDER BY s.position LIMIT ?"
        )
        expected = expected if since == 0 else 0
        yield from self._paged(sql, (since - 1, -1), _sample, what="sample", expected=expected, page=most)

    def calls(self, scoring: int) -> Iterator[tuple[int, bytes]]:
        """Model calls of one scoring: id and JSON.

        Raises:
            StoreError: Something is damaged and there is no `on_damage`, or the database refuses.
        """
        sql = (
            "SELECT scoring, call, body, checksum FROM calls WHERE run = ? AND scoring = ? AND call > ?"
            " ORDER BY call LIMIT ?"
        )
        yield from self._paged(sql, (scoring, -1), _call, what="model call", expected=0, place="scoring {}, call {}")

    def columns(self) -> Iterator[bytes]:
        """The parts of the columns of a run, in order.

        Raises:
            StoreError: Something is damaged, or the database refuses.
        """
        sql = "SELECT 0, part, body, checksum FROM columns WHERE run = ? AND ? < 1 AND part > ? ORDER BY part LIMIT ?"
        yield from self._paged(sql, (0, -1), _column, what="part", expected=0, page=_COLUMN_PAGE)

    def prompts(self, view: MarkSelection, position: int) -> dict[tuple[int, str], tuple[Exchange, ...]]:
        """What the judges of one sample were asked, where that is kept: by repetition and name of the metric.

        Args:
            view: Which marks are shown; only what these stand on is given.
            position: The sample's place.

        Raises:
            StoreError: Something is damaged, or the database refuses.
        """
        kept: dict[tuple[int, int, int], tuple[Exchange, ...]] = {}
        with self._pool.read_transaction() as connection:
            where = (self._number, position)
            marked = set(connection.read("SELECT repetition, scoring FROM marks WHERE run = ? AND position = ?", where))
            for row in connection.read(
                "SELECT scoring, position, repetition, metric, body, checksum FROM prompts"
                " WHERE run = ? AND position = ? ORDER BY repetition, scoring, metric",
                where,
            ):
                scoring, _, repetition, metric, *_ = row
                try:
                    kept[repetition, scoring, metric] = decode_prompts(_prompts_body(row))
                except _UNREADABLE:
                    raise self._damage(f"the prompts at position {position} do not fit their check sum") from None
        found = {}
        for repetition in {key[0] for key in kept}:
            for at, card in enumerate(view.cards):
                places = ((0, at),) if view.places is None else view.places[at]
                shown = (
                    (repetition, view.scorings[scoring].number, place)
                    for scoring, place in places
                    if (repetition, view.scorings[scoring].number) in marked
                )
                exchanges = kept.get(next(shown, (repetition, -1, -1)))
                if exchanges is not None:
                    found[repetition, card.name] = exchanges
        return found

    def damaged_prompts(self) -> int:
        """How many rows of prompts do not fit their check sums.

        Raises:
            StoreError: The database refuses.
        """
        sql = "SELECT scoring, position, repetition, metric, body, checksum FROM prompts WHERE run = ?"
        lost = 0
        with self._pool.connection() as connection:
            for row in connection.stream(sql, (self._number,)):
                try:
                    _prompts_body(row)
                except _UNREADABLE:
                    lost += 1
        return lost

    def rows_with_text(self, table: TextTable, text: str, *, scoring: int = 0) -> Iterator[tuple[int, Any]]:
        """The rows of a table that may hold a text, in lower or upper case: position and what the row says.

        The database compares the longest part of ASCII, which is quick.

        Args:
            table: The table.
            text: The text, in lower case.
            scoring: Whose marks, where marks are searched.

        Raises:
            StoreError: Something is damaged, or the database refuses.
        """
        # In JSON, a text stands without the quotation marks of its own.
        needle = text if table == "samples" else encode_json(text).decode()[1:-1].lower()
        column, sql, decode = _TEXTS[table]
        sql, values = sql.format(scoring=int(scoring)), []
        part = max(_OTHER_LETTERS.split(needle), key=len)[:_LONGEST_PATTERN]
        if part:
            sql += f" AND {self._pool.database.like.format(column)}"
            values.append("%" + _LIKE_WORDS.sub(r"!\g<0>", part) + "%")

        def find(row: Row) -> tuple[int, Any] | None:
            return (row[0], decode(row[2])) if needle in bytes(row[2]).decode().lower() else None

        sql += " ORDER BY 1, 2 LIMIT ?"
        found = self._paged(sql, (-1, -1), find, what="row", expected=0, values=values)
        return (row for row in found if row is not None)

    def output_times(self) -> Iterator[tuple[int, str | None]]:
        """When each output came: position and time, in order.

        Raises:
            StoreError: The database refuses.
        """
        sql = (
            "SELECT position, repetition, at FROM outputs WHERE run = ? AND (position, repetition) > (?, ?)"
            " ORDER BY position, repetition LIMIT ?"
        )
        yield from self._paged(sql, (-1, -1), lambda row: (row[0], row[2]), what="output", expected=0)

    def _paged(
        self,
        sql: str,
        last: tuple[int, int],
        read: Callable[[Row], _Found],
        *,
        what: str,
        expected: int,
        place: str = "position {}, repetition {}",
        page: int = PAGE,
        values: Sequence[Any] = (),
        before: Callable[[Connection, tuple[int, int]], None] | None = None,
    ) -> Generator[_Found, None, int]:
        """Rows by key, a page at a time, so that no snapshot of the store is held for long; how many were sound.

        `before` reads what belongs to a page from the same snapshot.
        """
        lend = self._pool.connection if before is None else self._pool.read_transaction
        sound, damaged, losses, first = 0, 0, 0, ""
        is_more = True
        while is_more:
            seen = 0
            try:
                with lend() as connection:
                    if before is not None:
                        before(connection, last)
                    for row in connection.stream(sql, (self._number, *last, *values, page)):
                        seen += 1
                        key = row[0], row[1]
                        if type(key[0]) is not int or type(key[1]) is not int or key <= last:
                            raise self._damage(f"its {what}s are out of order")
                        last = key
                        try:
                            found = read(row)
                        except _UNREADABLE:
                            damaged += 1
                            first = first or place.format(*key)
                            if self._on_damage is None:
                                raise self._damage(f"the {what} at {first} does not fit its check sum") from None
                            continue
                        sound += 1
                        yield found
            except ConnectionLostError:
                # The next page begins behind the last row that came. The pool waits for the database.
                losses = 0 if seen else losses + 1
                if losses > _MOST_LOSSES:
                    raise
                continue
            except StoreError as error:
                if self._on_damage is None:
                    raise
                self._on_damage(str(error))
                break
            is_more = seen == page
        lost = max(damaged, expected - sound)
        if lost > 0:
            at = f", the first at {first}" if first else ""
            self._say(f"{plural(lost, what)} of {max(expected, sound + damaged):,} cannot be read{at}")
        return sound

    def _say(self, what: str) -> None:
        if self._on_damage is None:
            raise self._damage(what)
        self._on_damage(str(self._damage(what)))

    def _damage(self, what: str) -> StoreError:
        message = f"The run `{self._run_id}` is damaged: {what}. `deemster store check` says what is lost."
        return storage_error(self._pool.database.where, message)


def _executions_sql(scoring: int, *, settled: bool) -> str:
    """A page of executions with the marks of one scoring; others are read beside it, so that no query grows with them.

    A database joins only so many tables: SQLite 64.
    """
    return (
        f"SELECT o.position, o.repetition, s.id, o.body, o.checksum, {_mark_columns(settled=settled)} FROM outputs o"  # noqa: S608 - our own words
        " LEFT JOIN samples s ON s.run = o.run AND s.position = o.position"
        f" LEFT JOIN marks m ON m.run = o.run AND m.scoring = {int(scoring)}"
        " AND m.position = o.position AND m.repetition = o.repetition"
        " WHERE o.run = ? AND (o.position, o.repetition) > (?, ?) ORDER BY o.position, o.repetition LIMIT ?"
    )


def _marks_sql(*, settled: bool) -> str:
    """As many marks of one scoring as a page has executions: marks of all of them, where no output lacks its row."""
    return (
        f"SELECT m.position, m.repetition, {_mark_columns(settled=settled)} FROM marks m"  # noqa: S608 - our own words
        " WHERE m.run = ? AND m.scoring = ? AND (m.position, m.repetition) > (?, ?)"
        " ORDER BY m.position, m.repetition LIMIT ?"
    )


def _mark_columns(*, settled: bool) -> str:
    if settled:
        return "COALESCE(m.final, m.body), COALESCE(m.final_checksum, m.checksum)"
    return "m.body, m.checksum"


def _marks(body: Any, total: Any, key: tuple[int, int, int], *, size: int) -> tuple[Mark, ...] | None:
    if body is None:
        if key[0] == 0 or total is not None:
            raise ValueError("marks are missing that were written with their output")
        return None
    if marks_checksum(*key, body) != total:
        raise ValueError("marks do not fit their check sum")
    marks = decode_marks(body)
    if len(marks) != size:
        raise ValueError("marks do not fit their metrics")
    return marks


def _sample(row: Row) -> SampleFacts:
    position, _, name, row_hash, labels, total, content, body, body_total = row
    if sample_checksum(position, name, row_hash, labels) != total:
        raise ValueError("a sample does not fit its check sum")
    if content is not None and content_checksum(row_hash, body) != body_total:
        raise ValueError("a content does not fit its check sum")
    held = None if content is None else decode_content(body)
    return SampleFacts(position, name.decode(), row_hash.hex(), decode_labels(labels), held)


def _call(row: Row) -> tuple[int, bytes]:
    scoring, call, body, total = row
    if call_checksum(scoring, call, body) != total:
        raise ValueError("a call does not fit its check sum")
    return call, bytes(body)


def _column(row: Row) -> bytes:
    _, part, body, total = row
    if entry_checksum(part, body) != total:
        raise ValueError("a part of the columns does not fit its check sum")
    return bytes(body)


def _prompts_body(row: Row) -> bytes:
    scoring, position, repetition, metric, body, total = row
    if prompts_checksum(scoring, position, repetition, metric, body) != total:
        raise ValueError("prompts do not fit their check sum")
    return bytes(body)
