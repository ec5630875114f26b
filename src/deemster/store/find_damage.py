"""Finds damage in a store: every check sum, count and reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deemster.errors import StoreError, plural
from deemster.store._database import Connection
from deemster.store._row_encoding import content_checksum
from deemster.store.run_facts import RunRow
from deemster.store.run_store import Store

_ADVICE = " `deemster store check` says what is lost."
_MOST_ISSUES = 20
_TABLES = ("scorings", "samples", "outputs", "marks", "calls", "prompts", "columns", "labels", "baselines")
_STRAY_MARKS = (
    "SELECT COUNT(*) FROM marks m LEFT JOIN outputs o ON o.run = m.run AND o.position = m.position"
    " AND o.repetition = m.repetition WHERE m.run = ? AND o.run IS NULL"
)


def find_damage(store: Store) -> Iterator[str]:
    """What is damaged, each said once, in words that name the run and what of it is lost.

    Raises:
        StoreError: The store cannot be read at all.
    """
    said: set[str] = set()
    for message in _damages(store):
        plain = message.removeprefix(f"{store.where}: ").removesuffix(_ADVICE)
        if plain not in said:
            said.add(plain)
            yield plain


def _damages(store: Store) -> Iterator[str]:
    found: list[str] = []
    with store.pool.read_transaction() as connection:
        yield from _database(store, connection)
        yield from _orphans(connection)
        yield from _contents(connection)
    try:
        store.baselines()
    except StoreError as error:
        yield str(error)
    runs = store.runs(on_damage=found.append)
    yield from found
    for run in runs:
        try:
            yield from _run(store, run)
        except StoreError as error:
            # A run that was removed in the meantime is not damaged.
            with store.pool.read_transaction() as connection:
                if connection.read("SELECT 1 FROM runs WHERE id = ?", (run.id,)):
                    yield str(error)


def _database(store: Store, connection: Connection) -> Iterator[str]:
    """What SQLite itself finds; PostgreSQL checks its pages whenever it reads them, and references always."""
    pool = store.pool
    if pool.database.words["bytes"] != "BLOB":
        return
    try:
        for (found,) in connection.read(f"PRAGMA integrity_check({_MOST_ISSUES})"):
            if found != "ok":
                yield f"The database is damaged: {found}."
        for table, count in _foreign(connection).items():
            refers = "refers" if count == 1 else "refer"
            yield f"{plural(count, 'row')} of `{table}` {refers} to something that is gone."
    except StoreError as error:
        yield str(error)


def _foreign(connection: Connection) -> dict[str, int]:
    found: dict[str, int] = {}
    for table, *_ in connection.stream("PRAGMA foreign_key_check"):
        found[table] = found.get(table, 0) + 1
    return found


def _orphans(connection: Connection) -> Iterator[str]:
    for table in _TABLES:
        sql = f"SELECT COUNT(*) FROM {table} WHERE run NOT IN (SELECT number FROM runs)"  # noqa: S608 - names only
        count = _count(connection, sql)
        if isinstance(count, str):
            yield count
        elif count:
            yield f"{plural(count, 'row')} of `{table}` {'belongs' if count == 1 else 'belong'} to no run."


def _contents(connection: Connection) -> Iterator[str]:
    lost = 0
    try:
        for row_hash, body, total in connection.stream("SELECT row_hash, body, checksum FROM contents"):
            try:
                lost += content_checksum(row_hash, body) != total
            except TypeError:
                lost += 1
    except StoreError as error:
        yield str(error)
    if lost:
        yield f"{plural(lost, 'content')} of samples {'does' if lost == 1 else 'do'} not fit the check sum."


def _run(store: Store, run: RunRow) -> Iterator[str]:
    """What is damaged of a run whose own row is sound."""
    found: list[str] = []
    for _ in store.samples(run.id, on_damage=found.append):
        pass
    for scoring in run.scorings:
        for settled in (False, True):
            for _ in store.executions(run.id, scoring=scoring.number, settled=settled, on_damage=found.append):
                pass
        for _ in store.calls(run.id, scoring=scoring.number, on_damage=found.append):
            pass
    try:
        for _ in store.columns(run.id):
            pass
    except StoreError as error:
        found.append(str(error))
    store.labels(run.id, on_damage=found.append)
    yield from found
    if lost := store.damaged_prompts(run.id):
        what = f"the prompts of {plural(lost, 'mark')} do not fit the check sum"
        yield f"The run `{run.id}` is damaged: {what}."
    yield from _counts(store, run)


def _counts(store: Store, run: RunRow) -> Iterator[str]:
    with store.pool.read_transaction() as connection:
        number = run.number
        stray = _count(connection, _STRAY_MARKS, number)
        if isinstance(stray, str):
            yield stray
            return
        if stray:
            yield f"The run `{run.id}` is damaged: {plural(stray, 'mark row')} without an output."
        # The run may be going on, so the counts are read again.
        for scoring, done in connection.read(
            "SELECT number, done FROM scorings WHERE run = ? ORDER BY number", (number,)
        ):
            held = _count(connection, "SELECT COUNT(*) FROM marks WHERE run = ? AND scoring = ?", number, scoring)
            if held != done:
                text = f"{held} of {plural(done, 'mark row')} of scoring {scoring} are there"
                yield f"The run `{run.id}` is damaged: {text}."


def _count(connection: Connection, sql: str, *values: Any) -> int | str:
    """A count, or why there is none."""
    try:
        return int(connection.read(sql, values)[0][0])
    except StoreError as error:
        return str(error)
