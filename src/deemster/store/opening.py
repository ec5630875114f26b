"""Opening a store by its file or URL."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from deemster.errors import StoreError
from deemster.store.dialect import Dialect
from deemster.store.migration import migrate
from deemster.store.pool import Pool
from deemster.store.store import Store

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
    pool = Pool(_dialect(where, durable=durable, create=create))
    with ExitStack() as failing:
        failing.callback(pool.close)
        with pool.lent() as rows:
            migrate(pool.dialect, rows)
        failing.pop_all()
    return Store(pool, durable=durable)


def _dialect(where: str | Path | None, *, durable: bool, create: bool) -> Dialect:
    place = str(DEFAULT if where is None else where)
    scheme, mark, _ = place.partition("://")
    if mark and scheme in ("postgresql", "postgres"):
        from deemster.store.postgres import Postgres  # noqa: PLC0415 - an extra

        return Postgres(place, durable=durable)
    if mark:
        message = f"`{scheme}://` is no kind of store. Known: a file, `postgresql://host/database`."
        raise StoreError(message)
    from deemster.store.sqlite import Sqlite  # noqa: PLC0415 - a run without a store needs no database

    return Sqlite(Path(place), durable=durable, create=create)
