"""Opens a store by its file or URL and brings it to the current schema."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from deemster.errors import StoreError
from deemster.store._database import Connection, ConnectionPool, Database, storage_error, store_error
from deemster.store.run_store import Store

_FOLDER = Path(__file__).parent / "migrations"


def migrate(database: Database, connection: Connection) -> None:
    """Apply the migrations that a database has not seen, all in one transaction.

    Args:
        database: The database.
        connection: A connection to it.

    Raises:
        StoreError: The database comes from a newer version, belongs to something else, or refuses.
    """
    files = sorted(_FOLDER.glob("[0-9]*.sql"))
    if _missing(database, connection, len(files)):
        with connection.transaction():
            database.lock(connection)
            # Another process may have migrated in the meantime.
            missing = _missing(database, connection, len(files))
            for file in files[len(files) - missing :]:
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


def _find_database(where: str | Path | None, *, durable: bool, create: bool) -> Database:
    place = str(DEFAULT if where is None else where)
    scheme, mark, _ = place.partition("://")
    if mark and scheme in ("postgresql", "postgres"):
        from deemster.store.postgres import PostgresDatabase  # noqa: PLC0415 - an extra

        return PostgresDatabase(place, durable=durable)
    if mark:
        message = f"`{scheme}://` is no kind of store. Known: a file, `postgresql://host/database`."
        raise StoreError(message)
    from deemster.store._sqlite import SqliteDatabase  # noqa: PLC0415 - a run without a store needs no database

    return SqliteDatabase(Path(place), durable=durable, create=create)
