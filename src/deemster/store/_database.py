"""Connections to the database of a store: what SQLite and PostgreSQL have in common, and their pool."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from deemster.errors import Issue, StorageError, StoreError

Row: TypeAlias = tuple[Any, ...]
_Result = TypeVar("_Result")


# How long a database that is lost may take to come back, such as a server that is started again.
PATIENCE_S = 30.0
_LONGEST_PAUSE_S = 1.0


class ConnectionLostError(StorageError):
    """The server of a database closed a connection, or cannot be reached."""


class InsertStatement(NamedTuple):
    """How rows of a table are inserted; a row whose key is there already is left out.

    Attributes:
        into: The table and its columns.
        values: What stands for a row, with `?` for values.
    """

    into: str
    values: str

    def sql(self, count: int = 1) -> str:
        """The statement for so many rows.

        >>> InsertStatement("entries (run, position)", "(?, ?)").sql(2)
        'INSERT INTO entries (run, position) VALUES (?, ?), (?, ?) ON CONFLICT DO NOTHING'
        """
        return f"INSERT INTO {self.into} VALUES {', '.join([self.values] * count)} ON CONFLICT DO NOTHING"  # noqa: S608 - names only


class Connection(ABC):
    """One connection, used by one thread at a time. Every failure is a `StoreError` that names the store and the cause.

    A subclass opens `_base`, a connection by Python's database interface (PEP 249).
    """

    _base: Any
    _errors: type[Exception]
    _begin_write: str
    _begin_read: str

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors():
            return self._retry_while_busy(lambda: _fetch_all(self._execute(sql, values)))

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a query, one at a time.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors():
            yield from self._stream(sql, values)

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors():
            return int(self._execute(sql, values).rowcount)

    def write_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row of values; how many rows all of them changed.

        Raises:
            StoreError: The database refuses.
        """
        if not rows:
            return 0
        with self._raise_store_errors(), contextlib.closing(self._base.cursor()) as cursor:
            cursor.executemany(self._translate(sql), rows)
            return int(cursor.rowcount)

    def insert_many(self, insert: InsertStatement, rows: Sequence[Sequence[Any]]) -> int:
        """Insert the rows whose key is not there yet; how many those were.

        Raises:
            StoreError: The database refuses.
        """
        return self.write_many(insert.sql(), rows)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A writing transaction, committed at the end and rolled back where it raises.

        Raises:
            StoreError: The database refuses.
        """
        self.read(self._begin_write)
        try:
            yield
            self.read("COMMIT")
        finally:
            # After a commit there is nothing left to roll back.
            self._roll_back()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A reading transaction, which sees one state of the store.

        Raises:
            StoreError: The database refuses.
        """
        self.read(self._begin_read)
        try:
            yield
        finally:
            self._roll_back()

    @contextlib.contextmanager
    def large_cache(self) -> Iterator[None]:
        """A block in which much is written all over the store. It may use more memory, and gives it back at its end."""
        yield

    def is_alive(self) -> bool:
        """Whether the connection was still there a moment ago."""
        return True

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(self._errors):
            self._base.close()

    def _roll_back(self) -> None:
        with contextlib.suppress(self._errors):
            self._base.rollback()

    def _retry_while_busy(self, act: Callable[[], _Result]) -> _Result:
        """Do something that another process may hold up."""
        return act()

    def _translate(self, sql: str) -> Any:
        """A statement in the words of the database."""
        return sql

    @abstractmethod
    def _execute(self, sql: str, values: Sequence[Any]) -> Any:
        """The cursor of a statement that was run."""

    @abstractmethod
    def _stream(self, sql: str, values: Sequence[Any]) -> Iterator[Row]:
        """The rows of a query, one at a time."""

    @abstractmethod
    def _raise_store_errors(self) -> AbstractContextManager[None]:
        """Turns the errors of the database into those of the store."""


def _fetch_all(cursor: Any) -> list[Row]:
    return cursor.fetchall() if cursor.description else []


class Database(Protocol):
    """A database behind the store.

    Attributes:
        where: How messages name it.
        words: What stands for `{{bytes}}` and `{{serial}}` in a migration.
        now: Seconds since 1970 by the clock that all who use the store share, in SQL.
        like: Whether the text in the bytes of a column is like a pattern, in upper or lower case of ASCII, in SQL.
    """

    where: str
    words: Mapping[str, str]
    now: str
    like: str

    def connect(self) -> Connection:
        """A connection of its own."""
        ...

    def version(self, connection: Connection) -> int:
        """How many migrations the database has seen; 0 where it is empty."""
        ...

    def refuse_strangers(self, connection: Connection, tables: Collection[str]) -> None:
        """Refuse a database that holds more than these tables: what else it holds could run at any command."""
        ...

    def find_fault(self, connection: Connection) -> str | None:
        """The first fault of the database, where it can be looked for."""
        ...

    def stamp(self, connection: Connection, version: int) -> None:
        """Say how many migrations the database has seen."""
        ...

    def lock(self, connection: Connection) -> None:
        """Keep others from migrating until the transaction ends."""
        ...


def _close_all(connections: list[Connection]) -> None:
    # `pop` gives each connection to one thread: another one may be borrowing from the same list.
    with contextlib.suppress(IndexError):
        while True:
            connections.pop().close()


class ConnectionPool:
    """Keeps open connections that are not in use for the next caller.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._free: list[Connection] = []
        # A reader that stops early leaves its connection to the garbage collector, which closes it from Python 3.13 on.
        # `close` therefore knows the connections in use too.
        self._lent: set[Connection] = set()
        # Re-entrant, since the garbage collector may give a connection back at any moment.
        self._lock = threading.RLock()
        self._is_open = True
        # Whether there ever was a connection, and since when none could be made.
        self._was_connected = False
        self._lost_since: float | None = None
        # A report may read its run long after `evaluate` returned, and then no call closes its store. When the
        # interpreter exits, a thread may still use a connection: to close that one would crash the process.
        weakref.finalize(self, _close_all, self._free)

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for the time of a block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self._lock:
            if not self._is_open:
                raise store_error(self.database.where, "The store is closed.")
            connection = self._free.pop() if self._free else None
        while connection is not None and not connection.is_alive():
            connection.close()
            with self._lock:
                connection = self._free.pop() if self._free else None
        if connection is None:
            connection = self._connect()
        with self._lock:
            self._lent.add(connection)
        is_sound = False
        try:
            yield connection
            is_sound = True
        except GeneratorExit:
            # The reader stopped early; the connection is still good.
            is_sound = True
            raise
        finally:
            self._take_back(connection, is_sound=is_sound)

    def _connect(self) -> Connection:
        """A new connection. A database that was there before and is lost is waited for."""
        pause_s = 0.05
        while True:
            try:
                connection = self.database.connect()
            except ConnectionLostError as error:
                if not self._was_connected:
                    raise StoreError(error.issues) from None
                self._lost_since = self._lost_since or time.monotonic()
                if time.monotonic() - self._lost_since > PATIENCE_S:
                    raise StorageError(error.issues) from None
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
            else:
                self._was_connected, self._lost_since = True, None
                return connection

    def retry_when_lost(self, act: Callable[[], _Result]) -> _Result:
        """Do something again where its connection is lost. It must do no harm to do it twice.

        Raises:
            StoreError: The database refuses, or does not come back.
        """
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return act()
            except ConnectionLostError:
                if time.monotonic() > deadline:
                    raise

    @contextlib.contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """A connection in a writing transaction, committed at the end of the block, rolled back where it raises.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.connection() as connection, connection.transaction():
            yield connection

    @contextlib.contextmanager
    def read_transaction(self) -> Iterator[Connection]:
        """A connection that sees one state of the store for the time of the block.

        Raises:
            StoreError: The store is closed, or the database refuses.
        """
        with self.connection() as connection, connection.snapshot():
            yield connection

    def close(self) -> None:
        """Close all connections, also those in use."""
        with self._lock:
            self._is_open = False
            _close_all([*self._lent, *self._free])
            self._free.clear()

    def _take_back(self, connection: Connection, *, is_sound: bool) -> None:
        with self._lock:
            self._lent.discard(connection)
            if self._is_open and is_sound:
                self._free.append(connection)
                return
        connection.close()


def store_error(where: str, message: str) -> StoreError:
    """The error of a store that cannot do what the user asks."""
    return StoreError(Issue(message, where))


def storage_error(where: str, message: str) -> StorageError:
    """The error of a store that is damaged, or whose database refuses."""
    return StorageError(Issue(message, where))
