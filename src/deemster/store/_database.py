"""The protocols of a database and its connection, which SQLite and PostgreSQL implement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from deemster.errors import Issue, StorageError, StoreError

Row: TypeAlias = tuple[Any, ...]


class InsertStatement(NamedTuple):
    """How rows of a table are put in, but for those whose key is there already.

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


class Connection(Protocol):
    """One connection. Every failure is a `StoreError` that names the store and the cause."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query."""
        ...

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a query, one at a time."""
        ...

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed."""
        ...

    def write_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row of values; how many rows all of them changed."""
        ...

    def insert_many(self, insert: InsertStatement, rows: Sequence[Sequence[Any]]) -> int:
        """Put in rows, but for those whose key is there already; how many were not."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """A writing transaction, committed at the end and rolled back where it raises."""
        ...

    def large_cache(self) -> AbstractContextManager[None]:
        """A block in which much is written all over the store: more memory is used, and given back at its end."""
        ...

    def snapshot(self) -> AbstractContextManager[None]:
        """A reading transaction, which sees one state of the store."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Database(Protocol):
    """A database behind the store.

    Attributes:
        where: How messages name it.
        words: What stands for `{{bytes}}` and `{{serial}}` in a migration.
        now: Seconds since 1970 by the clock that all who use the store share, in SQL.
    """

    where: str
    words: Mapping[str, str]
    now: str

    def connect(self) -> Connection:
        """A connection of its own."""
        ...

    def version(self, connection: Connection) -> int:
        """How many migrations the database has seen; 0 where it is empty."""
        ...

    def stamp(self, connection: Connection, version: int) -> None:
        """Say how many migrations the database has seen."""
        ...

    def lock(self, connection: Connection) -> None:
        """Keep others from migrating until the transaction ends."""
        ...


def store_error(where: str, message: str) -> StoreError:
    """The error of a store that cannot do what the user asks."""
    return StoreError(Issue(message, where))


def storage_error(where: str, message: str) -> StorageError:
    """The error of a store that is damaged, or whose database refuses."""
    return StorageError(Issue(message, where))
