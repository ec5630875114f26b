"""The store in a PostgreSQL database: connections, transactions, error causes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from deemster.errors import MissingExtraError, StoreError
from deemster.store._database import Connection, InsertStatement, Row, storage_error, store_error

if TYPE_CHECKING:
    import psycopg

# "deem" as a number: the advisory lock of migrations.
_LOCK = 0x6465656D
_WAIT_S = 10


@functools.lru_cache(maxsize=256)
def _in_words(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


class PostgresConnection:
    """A connection to a PostgreSQL database, used by one thread at a time."""

    def __init__(self, url: str, where: str, *, durable: bool) -> None:
        import psycopg  # noqa: PLC0415 - an extra

        self._where, self._errors, self._secret = where, psycopg.Error, _password(url)
        with self._raise_store_errors(store_error):
            self._base: psycopg.Connection[Row] = psycopg.connect(url, autocommit=True, connect_timeout=_WAIT_S)
        with contextlib.ExitStack() as failing:
            failing.callback(self._base.close)
            self.read("SET search_path TO deemster")
            self.read(f"SET synchronous_commit TO {'on' if durable else 'off'}")
            failing.pop_all()

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of a query.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors():
            cursor = self._base.execute(_in_words(sql), values, binary=True)
            return cursor.fetchall() if cursor.description else []

    def stream(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a query, one at a time.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors(), self._base.cursor() as cursor:
            yield from cursor.stream(_in_words(sql), values, binary=True)

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it changed.

        Raises:
            StoreError: The database refuses.
        """
        with self._raise_store_errors():
            return self._base.execute(_in_words(sql), values).rowcount

    def write_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for each row of values; how many rows all of them changed.

        Raises:
            StoreError: The database refuses.
        """
        if not rows:
            return 0
        with self._raise_store_errors(), self._base.cursor() as cursor:
            cursor.executemany(_in_words(sql), rows)
            return cursor.rowcount

    def insert_many(self, insert: InsertStatement, rows: Sequence[Sequence[Any]]) -> int:
        """Put in rows, but for those whose key is there already; how many were not.

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
        self.read("BEGIN")
        try:
            yield
            self.read("COMMIT")
        finally:
            # After a commit there is nothing left to roll back.
            self._abandon()

    def large_cache(self) -> contextlib.AbstractContextManager[None]:
        """Nothing: the server has its own memory."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """A reading transaction, which sees one state of the store.

        Raises:
            StoreError: The database refuses.
        """
        self.read("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self._abandon()

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(self._errors):
            self._base.close()

    def _abandon(self) -> None:
        with contextlib.suppress(self._errors):
            self._base.rollback()

    @contextlib.contextmanager
    def _raise_store_errors(self, failure: Callable[[str, str], StoreError] = storage_error) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            said = " ".join(str(error).split()) or type(error).__name__
            for secret in self._secret:
                said = said.replace(secret, "***")
            said = said if said.endswith("?") else f"{said.rstrip('.')}."
            raise failure(self._where, f"The store cannot be used: {said}") from None


class PostgresDatabase:
    """A store in the schema `deemster` of a PostgreSQL database.

    Args:
        url: `postgresql://user:password@host:port/database`.
        durable: Whether a commit waits until the server's disk has it.

    Raises:
        MissingExtraError: psycopg is not installed.
    """

    words: Mapping[str, str] = {"bytes": "BYTEA", "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"}
    now = "extract(epoch FROM clock_timestamp())::float8"

    def __init__(self, url: str, *, durable: bool) -> None:
        try:
            import psycopg  # noqa: F401, PLC0415 - an extra
        except ImportError:
            raise MissingExtraError("A store in PostgreSQL", extra="postgres") from None
        self.where, self._url, self._durable = _shown(url), url, durable

    def connect(self) -> PostgresConnection:
        """A connection of its own.

        Raises:
            StoreError: The server cannot be reached, or refuses.
        """
        return PostgresConnection(self._url, self.where, durable=self._durable)

    def version(self, connection: Connection) -> int:
        """How many migrations the database has seen; 0 where it is empty."""
        if connection.read("SELECT to_regclass('deemster.migrations')")[0][0] is None:
            return 0
        return int(connection.read("SELECT COALESCE(max(number), 0) FROM migrations")[0][0])

    def stamp(self, connection: Connection, version: int) -> None:
        """Say how many migrations the database has seen."""
        connection.write("CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY)")
        connection.write("INSERT INTO migrations VALUES (?)", (version,))

    def lock(self, connection: Connection) -> None:
        """Keep others from migrating until the transaction ends, and make the schema."""
        connection.read("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
        connection.write("CREATE SCHEMA IF NOT EXISTS deemster")


def _shown(url: str) -> str:
    """A URL without password and options."""
    try:
        parts = urlsplit(url)
        user = f"{parts.username}@" if parts.username else ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://"
    return f"postgresql://{user}{parts.hostname or ''}{port}{parts.path}"


def _password(url: str) -> tuple[str, ...]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return (url,)
    return (password, unquote(password)) if password else ()
