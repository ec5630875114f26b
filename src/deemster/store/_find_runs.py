"""Finding runs by name or by what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import did_you_mean, listing
from deemster.store._database import Connection, store_error
from deemster.store._row_encoding import clean_text
from deemster.store._run_reader import OnDamage
from deemster.store._run_rows import BEGINNING, read_runs
from deemster.store.run_facts import RunRow

_GUESSES = 200


def find_runs(
    connection: Connection,
    where: str,
    asked: Mapping[str, str | None],
    *,
    limit: int | None = None,
    on_damage: OnDamage = None,
) -> list[RunRow]:
    """Runs that meet conditions, the newest first.

    Args:
        connection: A connection.
        where: How messages name the store.
        asked: Conditions in SQL, each with its value; one without a value is not asked.
        limit: At most so many.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: A run is damaged, or the database refuses.
    """
    given = {condition: clean_text(value) for condition, value in asked.items() if value is not None}
    condition = " AND ".join(["status <> ?", *given])
    values: list[Any] = [BEGINNING, *given.values(), *([] if limit is None else [limit])]
    end = "" if limit is None else " LIMIT ?"
    return list(
        read_runs(connection, where, f"WHERE {condition} ORDER BY number DESC{end}", values, on_damage=on_damage)
    )


def find_run(connection: Connection, where: str, name: str, *, kind: str | None = None) -> RunRow:
    """One run, by its id, the beginning of its id, or as `latest`.

    Args:
        connection: A connection.
        where: How messages name the store.
        name: How it is called.
        kind: The only kind that `latest` looks at.

    Raises:
        StoreError: There is none, there are several, it is damaged, or the database refuses.
    """
    if name == "latest":
        latest = find_runs(connection, where, {"kind = ?": kind}, limit=1)
        if not latest:
            raise store_error(where, "The store holds no run yet.")
        return latest[0]
    asked = clean_text(name)
    ids = [
        found for (found,) in connection.read("SELECT id FROM runs WHERE id = ? AND status <> ?", (asked, BEGINNING))
    ]
    if not ids and asked:
        begins = "SELECT id FROM runs WHERE substr(id, 1, ?) = ? AND status <> ? ORDER BY number DESC LIMIT 6"
        ids = [found for (found,) in connection.read(begins, (len(asked), asked, BEGINNING))]
    if len(ids) > 1:
        raise store_error(where, f"Several runs begin with `{name}`: {listing(ids, limit=5)}.")
    if ids:
        return next(read_runs(connection, where, "WHERE id = ?", (ids[0],)))
    every = "SELECT id FROM runs WHERE status <> ? ORDER BY number DESC LIMIT ?"
    known = [found for (found,) in connection.read(every, (BEGINNING, _GUESSES))]
    hint = did_you_mean(name, ["latest", *known]) if known else "It holds none yet."
    raise store_error(where, f"The store holds no run `{name}`. {hint}")
