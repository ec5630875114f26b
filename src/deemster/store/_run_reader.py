"""Reads the rows of a run in order, and checks every check sum."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from deemster.records import Exchange, Execution, SampleFacts
from deemster.store._database import ConnectionPool, Row
from deemster.store._execution_rows import ExecutionRows, MarkSelection
from deemster.store._paged_rows import PAGE, UNREADABLE, PagedRows, RowQuery, RowSource
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
    prompts_checksum,
    sample_checksum,
)
from deemster.store._run_table import OnDamage
from deemster.store.run_facts import TextTable

# A part of the columns of a run is some hundred kilobytes.
_COLUMN_PAGE = 16
_PROMPTS = "SELECT scoring, position, repetition, metric, body, checksum FROM prompts WHERE run = ?"
# So many characters of a text are enough to find rows that may hold it: databases take patterns of some length only.
_LONGEST_PATTERN = 1000
_LIKE_WORDS = re.compile("[!%_]")
# Letters whose upper and lower case databases do not know. An i before a dot above may stand for one letter in a text.
_OTHER_LETTERS = re.compile("i?[^\0-\x7f]+")


class _TextColumn(NamedTuple):
    """The column that holds the texts of a table.

    Attributes:
        name: The column.
        tables: Where it is read from.
        decode: What its bytes say.
        key: The key of a row.
        where: Which rows.
    """

    name: str
    tables: str
    decode: Callable[[bytes], Any]
    key: tuple[str, ...] = ("position", "repetition")
    where: str = "run = ?"


_TEXT_COLUMNS: dict[TextTable, _TextColumn] = {
    "samples": _TextColumn("id", "samples", bytes.decode, key=("position",)),
    "contents": _TextColumn(
        "c.body",
        "samples s JOIN contents c ON c.number = s.content",
        decode_content,
        key=("s.position",),
        where="s.run = ?",
    ),
    "outputs": _TextColumn("body", "outputs", lambda body: decode_answer(body).answer),
    "marks": _TextColumn("COALESCE(final, body)", "marks", decode_marks, where="run = ? AND scoring = ?"),
}


class RunReader:
    """Reads the rows of one run. Every method raises `StoreError` where the database refuses.

    Args:
        pool: Connections to the store.
        run_id: The run, as messages name it.
        number: Its number.
        on_damage: Called with a message for each damage, which is then left out; without it, damage raises.
    """

    def __init__(self, pool: ConnectionPool, run_id: str, number: int, *, on_damage: OnDamage) -> None:
        self._pool = pool
        self._number = number
        self._source = RowSource(pool, run_id, number, on_damage)

    def executions(
        self, selection: MarkSelection, *, settled: bool, done: int, since: int = 0, most: int | None = None
    ) -> Iterator[Execution]:
        """Executions in the order of position and repetition.

        Args:
            selection: Which marks are shown.
            settled: Whether marks are shown as they were settled.
            done: How many there must be at least.
            since: The position they begin at; above 0, missing executions are not looked for.
            most: How many are read at once, at most.
        """
        if not selection.scorings:
            self._source.report("its scorings are missing")
            return
        yield from ExecutionRows(self._source, selection, settled=settled, most=most).read(done=done, since=since)

    def samples(
        self, *, expected: int, content: bool = True, since: int = 0, most: int = PAGE
    ) -> Iterator[SampleFacts]:
        """Samples in order.

        Args:
            expected: How many there must be.
            content: Whether to read expected output and input.
            since: The position they begin at; above 0, missing samples are not looked for.
            most: How many are read at once, at most.
        """
        columns, join = "s.content, c.body, c.checksum", " LEFT JOIN contents c ON c.number = s.content"
        if not content:
            columns, join = "NULL, NULL, NULL", ""
        query = RowQuery(
            what="sample",
            at="position {}",
            select=f"SELECT s.position, s.id, s.row_hash, s.body, s.checksum, {columns} FROM samples s{join}",  # noqa: S608 - our own words
            key=("s.position",),
            where="s.run = ?",
            decode=_decode_sample,
            expected=expected if since == 0 else 0,
            page=most,
        )
        yield from PagedRows(self._source, query, after=(since - 1,))

    def calls(self, scoring: int) -> Iterator[tuple[int, bytes]]:
        """Model calls of one scoring: id and JSON."""
        query = RowQuery(
            what="model call",
            at=f"scoring {scoring}, call {{}}",
            select="SELECT call, scoring, body, checksum FROM calls",
            key=("call",),
            where="run = ? AND scoring = ?",
            values=(scoring,),
            decode=_decode_call,
        )
        yield from PagedRows(self._source, query, after=(-1,))

    def columns(self) -> Iterator[bytes]:
        """The parts of the columns of a run, in order."""
        query = RowQuery(
            what="part",
            at="part {}",
            select="SELECT part, body, checksum FROM columns",
            key=("part",),
            decode=_decode_column,
            page=_COLUMN_PAGE,
        )
        yield from PagedRows(self._source, query, after=(-1,))

    def output_times(self) -> Iterator[tuple[int, str | None]]:
        """When each output came: position and time, in order."""
        query = RowQuery(
            what="output",
            at="position {}, repetition {}",
            select="SELECT position, repetition, at FROM outputs",
            key=("position", "repetition"),
            decode=lambda row: (row[0], row[2]),
        )
        yield from PagedRows(self._source, query, after=(-1, -1))

    def rows_with_text(
        self, table: TextTable, text: str, *, wanted: Callable[[int], object], scoring: int = 0
    ) -> Iterator[tuple[int, Any]]:
        """The rows of a table that may hold a text, in lower or upper case: position and what the row says.

        The database compares the longest part of ASCII, which is quick.

        Args:
            table: The table.
            text: The text, in lower case.
            wanted: Whether a sample is still looked for, by its position.
            scoring: Whose marks, where marks are searched.
        """
        # In JSON, a text stands without the quotation marks of its own.
        needle = text if table == "samples" else encode_json(text).decode()[1:-1].lower()
        column = _TEXT_COLUMNS[table]
        where = column.where
        values: list[Any] = [scoring] if table == "marks" else []
        ascii_part = max(_OTHER_LETTERS.split(needle), key=len)[:_LONGEST_PATTERN]
        if ascii_part:
            where += f" AND {self._pool.database.like.format(column.name)}"
            values.append("%" + _LIKE_WORDS.sub(r"!\g<0>", ascii_part) + "%")

        def decode(row: Row) -> tuple[int, Any] | None:
            position, body = row[0], row[-1]
            if not wanted(position) or needle not in bytes(body).decode().lower():
                return None
            return position, column.decode(body)

        query = RowQuery(
            what="row",
            at=", ".join(f"{part.rpartition('.')[2]} {{}}" for part in column.key),
            select=f"SELECT {', '.join(column.key)}, {column.name} FROM {column.tables}",  # noqa: S608 - our own words
            key=column.key,
            where=where,
            values=tuple(values),
            decode=decode,
        )
        rows = PagedRows(self._source, query, after=(-1,) * len(column.key))
        return (row for row in rows if row is not None)

    def positions_of_calls(self, calls: Collection[int], *, scoring: int, before: int) -> Iterator[int]:
        """The places of samples whose marks may stand on some model calls.

        Args:
            calls: The ids of the calls.
            scoring: Whose marks.
            before: The position they end before.
        """
        body = "COALESCE(final, body)"
        patterns = [f'%"id":{call}{end}%' for call in sorted(calls) for end in (",", "}")]
        holds_a_call = " OR ".join([self._pool.database.like.format(body)] * len(patterns))
        query = RowQuery(
            what="mark",
            at="position {}, repetition {}",
            select="SELECT position, repetition FROM marks",
            key=("position", "repetition"),
            where=f"run = ? AND scoring = ? AND position < ? AND ({holds_a_call})",
            values=(scoring, before, *patterns),
            decode=lambda row: int(row[0]),
        )
        yield from PagedRows(self._source, query, after=(-1, -1))

    def prompts(self, selection: MarkSelection, position: int) -> dict[tuple[int, str], tuple[Exchange, ...]]:
        """What the judges of one sample were asked, where that is kept: by repetition and name of the metric.

        Args:
            selection: Which marks are shown; only what these stand on is given.
            position: The sample's place.
        """
        of_sample = (self._number, position)
        with self._pool.read_transaction() as connection:
            sql = "SELECT repetition, scoring FROM marks WHERE run = ? AND position = ?"
            marked = set(connection.read(sql, of_sample))
            rows = connection.read(f"{_PROMPTS} AND position = ? ORDER BY repetition, scoring, metric", of_sample)

        stored: dict[tuple[int, int, int], tuple[Exchange, ...]] = {}
        for row in rows:
            scoring, _, repetition, metric, *_ = row
            try:
                stored[repetition, scoring, metric] = decode_prompts(_prompts_body(row))
            except UNREADABLE:
                fault = f"the prompts at position {position} do not fit their check sum"
                raise self._source.damage(fault) from None

        shown = {}
        for repetition in {key[0] for key in stored}:
            for metric, card in enumerate(selection.cards):
                for source in selection.sources_of(metric):
                    scoring = selection.scorings[source.scoring].number
                    if (repetition, scoring) not in marked:
                        continue
                    if (repetition, scoring, source.column) in stored:
                        shown[repetition, card.name] = stored[repetition, scoring, source.column]
                    break
        return shown

    def damaged_prompts(self) -> int:
        """How many rows of prompts do not fit their check sums."""
        lost = 0
        with self._pool.connection() as connection:
            for row in connection.stream(_PROMPTS, (self._number,)):
                try:
                    _prompts_body(row)
                except UNREADABLE:
                    lost += 1
        return lost


def _decode_sample(row: Row) -> SampleFacts:
    position, sample_id, row_hash, labels, checksum, content_number, body, body_checksum = row
    if sample_checksum(position, sample_id, row_hash, labels) != checksum:
        raise ValueError("a sample does not fit its check sum")

    content = None
    if content_number is not None:
        if content_checksum(row_hash, body) != body_checksum:
            raise ValueError("a content does not fit its check sum")
        content = decode_content(body)
    return SampleFacts(position, sample_id.decode(), row_hash.hex(), decode_labels(labels), content)


def _decode_call(row: Row) -> tuple[int, bytes]:
    call, scoring, body, checksum = row
    if call_checksum(scoring, call, body) != checksum:
        raise ValueError("a call does not fit its check sum")
    return call, bytes(body)


def _decode_column(row: Row) -> bytes:
    part, body, checksum = row
    if entry_checksum(part, body) != checksum:
        raise ValueError("a part of the columns does not fit its check sum")
    return bytes(body)


def _prompts_body(row: Row) -> bytes:
    scoring, position, repetition, metric, body, checksum = row
    if prompts_checksum(scoring, position, repetition, metric, body) != checksum:
        raise ValueError("prompts do not fit their check sum")
    return bytes(body)
