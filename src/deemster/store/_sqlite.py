"""The store in an SQLite file: connections, transactions, busy retries, error causes."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from deemster.errors import StorageError, is_storage_failure, plural, visible
from deemster.store._database import Connection, InsertStatement, Row, storage_error, store_error

_Result = TypeVar("_Result")
# "deem" as a number: the application id in the header of the file.
_MARK = 0x6465656D
_SMALLEST = 512
_NONE = "There is no store here. `deemster run` makes one; `--store` names another."
# What SQLite takes for a database in memory, or for one without a name.
_NO_FILES = (":memory:", "file::memory:")
_PATIENCE_S = 120.0
_TIMEOUT_MS = 10_000
_CACHE_KIB = 8 << 10
# A file of at most so many bytes is looked through as a whole, which takes some 25 ms.
_LOOKED_THROUGH = 64 << 20
_ROOMY_KIB = 64 << 10
# How many rows one statement inserts. SQLite releases the GIL for each statement and then waits to get it back. With
# one row a statement it would mostly wait.
_AT_ONCE = (128, 8, 1)
_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"})
_CAUSES = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it may only be read",
    "SQLITE_PERM": "no permission",
    "SQLITE_AUTH": "no permission",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_NOTADB": "it is no SQLite database, or it is damaged",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_IOERR": "reading or writing failed",
    "SQLITE_NOMEM": "there is not enough memory",
    "SQLITE_TOOBIG": "a value is too large",
}


class SqliteConnection(Connection):
    """A connection to an SQLite file."""

    _errors = sqlite3.Error
    # IMMEDIATE locks at the start: SQLite refuses a reader that turns into a writer without any wait.
    _begin_write, _begin_read = "BEGIN IMMEDIATE", "BEGIN"

    def __init__(self, path: str, *, durable: bool, read_only: bool = False) -> None:
        self._where = path
        # SQLite must not make a new file where the store was. `immutable` reads without the files beside the store,
        # which a folder that may only be read does not let SQLite make.
        mode = "mode=ro&immutable=1" if read_only else "mode=rw"
        with self._raise_store_errors():
            self._base: sqlite3.Connection = sqlite3.connect(
                f"{Path(path).absolute().as_uri()}?{mode}",
                uri=True,
                timeout=_TIMEOUT_MS / 1000,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=64,
            )
        with contextlib.ExitStack() as failing:
            failing.callback(self._base.close)
            self._file = self._identify_file()
            if not read_only:
                self._write_ahead(durable=durable)
            failing.pop_all()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """A writing transaction, committed at the end and rolled back where it raises.

        Raises:
            StoreError: The database refuses, or its file is not there any more.
        """
        with super().transaction():
            yield
        # SQLite goes on writing to a file that was removed, and everything would be lost without an error.
        if self._identify_file() != self._file:
            raise storage_error(self._where, "The store is gone: its file was removed or replaced while it was in use.")

    def _identify_file(self) -> tuple[int, int] | None:
        try:
            found = Path(self._where).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _write_ahead(self, *, durable: bool) -> None:
        # A page of this size holds several outputs of common length. It has no effect on an existing file.
        self.read("PRAGMA page_size = 8192")
        if self.read("PRAGMA journal_mode")[0][0] != "wal":
            self.read("PRAGMA journal_mode = WAL")
        self.read(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self.read(f"PRAGMA cache_size = {-_CACHE_KIB}")
        # Fewer and larger checkpoints: each waits for the disk.
        self.read("PRAGMA wal_autocheckpoint = 4000")
        self.read("PRAGMA journal_size_limit = 67108864")

    def insert_many(self, insert: InsertStatement, rows: Sequence[Sequence[Any]]) -> int:
        """Insert the rows whose key is not there yet; how many those were.

        Raises:
            StoreError: The database refuses.
        """
        # At least one: SQLite itself refuses a row that does not fit.
        most = max(1, self._base.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // insert.values.count("?"))
        inserted = at = 0
        for size in _AT_ONCE:
            while size <= min(most, len(rows) - at):
                values = tuple(itertools.chain.from_iterable(rows[at : at + size]))
                inserted += self.write(insert.sql(size), values)
                at += size
        return inserted

    @contextlib.contextmanager
    def large_cache(self) -> Iterator[None]:
        """A block with room for an index over the hashes of a million contents.

        Raises:
            StoreError: The database refuses.
        """
        self.read(f"PRAGMA cache_size = {-_ROOMY_KIB}")
        # After a failure the pool closes the connection, which frees its memory.
        yield
        self.read(f"PRAGMA cache_size = {-_CACHE_KIB}")
        self.read("PRAGMA shrink_memory")

    def _stream(self, sql: str, values: Sequence[Any]) -> Iterator[Row]:
        cursor = self._retry_while_busy(lambda: self._execute(sql, values))
        try:
            while rows := cursor.fetchmany(16):
                yield from rows
        finally:
            # The store may be closed before its reader ends.
            with contextlib.suppress(sqlite3.ProgrammingError):
                cursor.close()

    def _execute(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        return self._base.execute(sql, values)

    def _retry_while_busy(self, act: Callable[[], _Result]) -> _Result:
        """Do something that another process may hold up, and try again while it does.

        SQLite waits for locks by itself, but not for all of them: not while a file is switched to write-ahead mode, and
        not while a process that was the last to close the file is cleaning up.
        """
        deadline = time.monotonic() + _PATIENCE_S
        pause_s = 0.001
        while True:
            try:
                return act()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(pause_s)
                pause_s = min(pause_s * 2, 0.1)

    @contextlib.contextmanager
    def _raise_store_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            # A file that is no database is probably the wrong file.
            failure = store_error if _name(error) == "SQLITE_NOTADB" else storage_error
            raise failure(self._where, f"The store cannot be used: {_cause(error)}.") from error
        except (UnicodeDecodeError, MemoryError) as error:
            # A damaged file may put invalid text into SQLite's message, or ask for more memory than there is.
            raise storage_error(self._where, "The store cannot be used: it is damaged.") from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise store_error(self._where, f"The store cannot take a value: {error}.") from error


class SqliteDatabase:
    """A store in an SQLite file.

    Args:
        path: The file.
        durable: Whether a commit waits until the disk has it.
        create: Whether a missing file is made, readable by its owner only.

    Raises:
        StoreError: The file is missing or cannot be opened.
    """

    words: Mapping[str, str] = {"bytes": "BLOB", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}
    now = "((julianday('now') - 2440587.5) * 86400.0)"
    like = "CAST({} AS TEXT) LIKE ? ESCAPE '!'"

    def __init__(self, path: Path, *, durable: bool, create: bool) -> None:
        self.where = str(path)
        self._durable = durable
        if self.where in _NO_FILES:
            raise store_error(self.where, "A store is a file: SQLite forgets a database in memory when the run ends.")
        try:
            if create:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    path.resolve().touch(mode=0o600, exist_ok=False)
            self._check_size(path, may_be_empty=create)
        except FileNotFoundError:
            raise store_error(self.where, _NONE) from None
        except OSError as error:
            is_broken = is_storage_failure(error) or isinstance(error, PermissionError)
            failure = storage_error if is_broken else store_error
            raise failure(self.where, f"The store cannot be opened: {error.strerror or error}.") from None

    def _check_size(self, path: Path, *, may_be_empty: bool) -> None:
        # Only SQLite opens an existing file: to close any other descriptor of it would release the locks that this
        # process holds on it. SQLite itself refuses a file that is no database, but it takes one shorter than a page
        # for an empty database, and would overwrite what is left of a damaged one.
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not found.st_size and not may_be_empty:
            raise store_error(self.where, "This file is empty: it holds no store.")
        if 0 < found.st_size < _SMALLEST:
            raise store_error(self.where, f"The store cannot be used: {_CAUSES['SQLITE_NOTADB']}.")

    def connect(self) -> SqliteConnection:
        """A connection of its own.

        Raises:
            StoreError: The file cannot be opened.
        """
        try:
            return SqliteConnection(self.where, durable=self._durable)
        except StorageError:
            if os.access(Path(self.where).absolute().parent, os.W_OK):
                raise
        log = Path(f"{self.where}-wal")
        if log.is_file() and log.stat().st_size:
            message = f"The store is in a folder that may only be read, and its last commits are still in {log.name}."
            raise storage_error(self.where, f"{message} Copy both files to a folder that can be written.")
        return SqliteConnection(self.where, durable=False, read_only=True)

    def version(self, connection: Connection) -> int:
        """How many migrations the file has seen; 0 where it is empty.

        Raises:
            StoreError: The file is a database of something else.
        """
        # One statement sees one state, even while another process makes the store.
        ((mark, version, tables),) = connection.read(
            "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
            "FROM pragma_application_id, pragma_user_version"
        )
        if mark != _MARK and (mark or version or tables):
            raise store_error(self.where, "This SQLite database is no store of deemster, or it is damaged.")
        return int(version)

    def refuse_strangers(self, connection: Connection, tables: Collection[str]) -> None:
        """Refuse a file that holds more than these tables: a view or trigger could run at any command.

        Raises:
            StoreError: It does.
        """
        for kind, name, sql in connection.read("SELECT type, name, sql FROM sqlite_master"):
            is_plain_table = kind == "table" and (sql or "").upper().startswith("CREATE TABLE")
            is_own = name.startswith("sqlite_") or (is_plain_table and name in tables)
            if kind in ("view", "trigger") or not is_own:
                shown = visible(name, limit=80)
                message = f"It holds the {kind} `{shown}`, which no store of deemster has, so it is not read."
                raise store_error(self.where, message)

    def find_fault(self, connection: Connection) -> str | None:
        """The first fault that SQLite itself finds, in a large file only in the list of runs; None where there is none.

        Raises:
            StoreError: The file cannot be read at all.
        """
        ((pages,),), ((size,),) = connection.read("PRAGMA page_count"), connection.read("PRAGMA page_size")
        looked_at = "1" if pages * size <= _LOOKED_THROUGH else "runs"
        found = str(connection.read(f"PRAGMA integrity_check({looked_at})")[0][0])
        return None if found == "ok" else found.rpartition("\n")[2].rstrip(".")

    def stamp(self, connection: Connection, version: int) -> None:
        """Say how many migrations the file has seen."""
        connection.write(f"PRAGMA application_id = {_MARK}")
        connection.write(f"PRAGMA user_version = {version}")

    def lock(self, connection: Connection) -> None:
        """Nothing: a writing transaction keeps all others out."""


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "")


def _is_busy(error: sqlite3.Error) -> bool:
    name = _name(error)
    return any(name == busy or name.startswith(f"{busy}_") for busy in _BUSY)


def _cause(error: sqlite3.Error) -> str:
    if _is_busy(error):
        return f"another process has held it for {plural(int(_PATIENCE_S), 'second')}"
    name = _name(error)
    for start, cause in _CAUSES.items():
        if name.startswith(start):
            return f"{cause} ({error})" if str(error) else cause
    return str(error) or type(error).__name__
