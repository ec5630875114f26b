"""Opens a store by its file or URL and brings it to the current schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from deemster.errors import StorageError, StoreError
from deemster.store._database import Connection, ConnectionPool, Database, storage_error, store_error
from deemster.store.graded_items import move_graded_items
from deemster.store.run_store import Store

_FOLDER = Path(__file__).parent / "migrations"
_TABLE = re.compile(r"CREATE TABLE (\w+)")
# What is moved before the statements of a migration, in the same transaction.
_MOVES = {7: move_graded_items}


def migrate(database: Database, connection: Connection) -> None:
    """Apply the migrations that a database has not seen, all in one transaction.

    Args:
        database: The database.
        connection: A connection to it.

    Raises:
        StoreError: The database comes from a newer version, belongs to something else, holds more than a store, or
            refuses.
    """
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    missing = _missing(database, connection, len(files))
    database.refuse_strangers(connection, _tables(files))
    if not missing:
        return
    try:
        _apply(files, database, connection)
    except StorageError as error:
        if missing == len(files):
            raise
        raise storage_error(
            database.where,
            f"{error.issues[0].message} It has schema {len(files) - missing} and must be migrated to {len(files)} "
            "before it can be read. Open it, or a copy of it, where it can be written.",
        ) from error


def _tables(files: Sequence[Path]) -> set[str]:
    """Every table that a store of this or an earlier version has."""
    return {name for file in files for name in _TABLE.findall(file.read_text(encoding="utf-8"))}


def _apply(files: Sequence[Path], database: Database, connection: Connection) -> None:
    with connection.transaction():
        database.lock(connection)
        # Another process may have migrated in the meantime.
        missing = _missing(database, connection, len(files))
        for file in files[len(files) - missing :]:
            if move := _MOVES.get(int(file.stem)):
                move(connection)
            for statement in statements(file, database):
                connection.write(statement)
        if missing:
            database.stamp(connection, len(files))


def statements(file: Path, database: Database) -> list[str]:
    """The statements of a migration, in the words of a dialect."""
    text = file.read_text(encoding="utf-8")
    for word, meaning in database.words.items():
        text = text.replace(f"{{{{{word}}}}}", meaning)
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";\n") if statement.strip(";\n ")]


def _missing(database: Database, connection: Connection, known: int) -> int:
    version = database.version(connection)
    if version < 0:
        raise storage_error(database.where, "The store is damaged: its schema has no number.")
    if version > known:
        message = f"This store has schema {version}; this version of deemster reads up to {known}. Update deemster."
        raise store_error(database.where, message)
    return known - version


_POSTGRES = ("postgresql://", "postgres://")
# The address of a database that was mistyped: a scheme without its slashes, credentials, or words such as `host=`.
_ADDRESS = re.compile(
    r"(?i)^\s*(?:postgres|postgresql|pg|psql)\s*:|[^/\s]:[^/]*@"
    r"|\b(?:host|hostaddr|user|password|dbname|port)\s*=|[?&]\w*(?:key|token|secret)="
)
DEFAULT = Path(".deemster") / "runs.db"


def open_store(where: str | Path | None = None, *, durable: bool = False, create: bool = True) -> Store:
    """Open a store of runs, and bring it to the schema of this version.

    Args:
        where: A file, or `postgresql://...`; `.deemster/runs.db` below the current folder unless given.
        durable: Whether every commit waits until the disk has it, and every `add` for its commit.
        create: Whether a missing file is made.

    Raises:
        StoreError: It cannot be opened: not a store, damaged, of a newer version, no permission.
        MissingExtraError: PostgreSQL is named and its client is not installed.
    """
    pool = ConnectionPool(_find_database(where, durable=durable, create=create))
    with ExitStack() as failing:
        failing.callback(pool.close)
        with pool.connection() as connection:
            migrate(pool.database, connection)
        failing.pop_all()
    return Store(pool, durable=durable)


def check_store_place(place: str) -> None:
    """Refuse what is neither the path of a file nor the URL of a database. It is not shown: it may hold a password.

    Raises:
        StoreError: It looks like the address of a database, and is none that can be opened.
    """
    if place.startswith(_POSTGRES):
        if not _is_whole_url(place):
            raise StoreError(
                "This is no URL of a store. In `postgresql://user:password@host:port/database` the port is a number, "
                "and special characters of the password are written as `%40` for `@`, `%2F` for `/`."
            )
        return
    scheme, mark, _ = place.partition("://")
    if mark:
        named = f"`{scheme}://`" if scheme.isalnum() else "This"
        raise StoreError(f"{named} is no kind of store. Known: a file, `postgresql://host/database`.")
    if _ADDRESS.search(place) and not Path(place).exists():
        raise StoreError("This is no address of a store. Known: a file, `postgresql://user:password@host/database`.")


def _is_whole_url(url: str) -> bool:
    """Whether the parts of a URL can be told apart; a part of a password might be taken for another one otherwise."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return "@" not in f"{parts.path}{parts.fragment}"


def _find_database(where: str | Path | None, *, durable: bool, create: bool) -> Database:
    place = str(DEFAULT if where is None else where)
    check_store_place(place)
    if place.startswith(_POSTGRES):
        from deemster.store.postgres import PostgresDatabase  # noqa: PLC0415 - an extra

        return PostgresDatabase(place, durable=durable)
    from deemster.store._sqlite import SqliteDatabase  # noqa: PLC0415 - a run without a store needs no database

    return SqliteDatabase(Path(place), durable=durable, create=create)
