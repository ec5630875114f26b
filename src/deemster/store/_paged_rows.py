"""Reads rows of a run by their key, a page at a time, and says what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from deemster.errors import StoreError, plural
from deemster.store._database import Connection, ConnectionLostError, ConnectionPool, Row, storage_error
from deemster.store._run_table import OnDamage

# How often in a row a connection may be lost before a row comes: a damaged database ends every query.
_MOST_LOSSES = 3
PAGE = 2000
UNREADABLE = (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError)
_Entry = TypeVar("_Entry")
_Key = tuple[int, ...]


class RowSource(NamedTuple):
    """The run whose rows are read.

    Attributes:
        pool: Connections to the store.
        run_id: The run, as messages name it.
        number: Its number.
        on_damage: Called with a message for each damage, which is then left out; without it, damage raises.
    """

    pool: ConnectionPool
    run_id: str
    number: int
    on_damage: OnDamage

    def damage(self, what: str) -> StoreError:
        """That something of the run is damaged."""
        message = f"The run `{self.run_id}` is damaged: {what}. `deemster store check` says what is lost."
        return storage_error(self.pool.database.where, message)

    def report(self, what: str) -> None:
        """Say that something of the run is damaged, or raise it."""
        damage = self.damage(what)
        if self.on_damage is None:
            raise damage
        self.on_damage(str(damage))


class RowQuery(msgspec.Struct, Generic[_Entry], frozen=True):
    """Rows of a run in the order of a key, and what each of them says.

    Attributes:
        what: What a row is, as messages name it.
        at: Where a row is, as messages name it, from its key.
        select: The columns, those of the key first, and the tables.
        key: The columns of the key.
        decode: What a row says; raises `ValueError` where it is damaged.
        where: Which rows; the first value is the number of the run.
        values: The other values of `where`.
        expected: How many rows there must be.
        page: How many are read at once.
        read_beside: Reads what belongs to the page behind a key, from the same snapshot.
    """

    what: str
    at: str
    select: str
    key: tuple[str, ...]
    decode: Callable[[Row], _Entry]
    where: str = "run = ?"
    values: tuple[Any, ...] = ()
    expected: int = 0
    page: int = PAGE
    read_beside: Callable[[Connection, _Key], None] | None = None

    @property
    def sql(self) -> str:
        """A page of rows: takes the values, the key that it is behind, and how many."""
        key = ", ".join(self.key)
        marks = ", ".join("?" * len(self.key))
        return f"{self.select} WHERE {self.where} AND ({key}) > ({marks}) ORDER BY {key} LIMIT ?"


class PagedRows(Generic[_Entry]):
    """One reading of rows. No snapshot of the store is held for longer than a page.

    Args:
        source: The run.
        query: Its rows.
        after: The key that they are behind.

    Attributes:
        sound: How many were read and decoded so far.

    Raises:
        StoreError: Something is damaged and there is no `on_damage`, or the database refuses.
    """

    def __init__(self, source: RowSource, query: RowQuery[_Entry], *, after: _Key) -> None:
        self._source = source
        self._query = query
        self._last_key = after
        self._seen = 0
        self._damaged = 0
        self._first_damage = ""
        self.sound = 0

    def __iter__(self) -> Iterator[_Entry]:
        losses = 0
        while True:
            seen_before = self._seen
            try:
                yield from self._read_page()
            except ConnectionLostError:
                # The next page begins behind the last row that came. The pool waits for the database.
                losses = losses + 1 if self._seen == seen_before else 0
                if losses > _MOST_LOSSES:
                    raise
                continue
            except StoreError as error:
                if self._source.on_damage is None:
                    raise
                self._source.on_damage(str(error))
                break
            if self._seen - seen_before < self._query.page:
                break
        self._report_lost()

    def _read_page(self) -> Iterator[_Entry]:
        query = self._query
        pool = self._source.pool
        lend = pool.connection if query.read_beside is None else pool.read_transaction
        with lend() as connection:
            if query.read_beside is not None:
                query.read_beside(connection, self._last_key)

            width = len(query.key)
            decode = query.decode
            values = (self._source.number, *query.values, *self._last_key, query.page)
            for row in connection.stream(query.sql, values):
                self._seen += 1
                self._advance(row[:width])
                try:
                    entry = decode(row)
                except UNREADABLE:
                    self._count_damage()
                    continue
                self.sound += 1
                yield entry

    def _advance(self, key: _Key) -> None:
        not_numbers = [part for part in key if type(part) is not int]
        if not_numbers or key <= self._last_key:
            raise self._source.damage(f"its {self._query.what}s are out of order")
        self._last_key = key

    def _count_damage(self) -> None:
        query = self._query
        self._damaged += 1
        self._first_damage = self._first_damage or query.at.format(*self._last_key)
        if self._source.on_damage is None:
            fault = f"the {query.what} at {self._first_damage} does not fit its check sum"
            raise self._source.damage(fault) from None

    def _report_lost(self) -> None:
        lost = max(self._damaged, self._query.expected - self.sound)
        if lost > 0:
            count = max(self._query.expected, self.sound + self._damaged)
            at = f", the first at {self._first_damage}" if self._first_damage else ""
            self._source.report(f"{plural(lost, self._query.what)} of {count:,} cannot be read{at}")
