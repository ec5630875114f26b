"""Finding runs by name or by what they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deemster.errors import did_you_mean, listing
from deemster.store._row_encoding import line
from deemster.store._run_reader import Tell
from deemster.store._run_rows import BEGINNING, run_rows
from deemster.store._sql_dialect import Rows, failure
from deemster.store.run_facts import RunRow

_GUESSES = 200


def found_runs(
    rows: Rows, where: str, asked: Mapping[str, str | None], *, limit: int | None = None, tell: Tell | None = None
) -> list[RunRow]:
    """Runs that meet conditions, the newest first.

    Args:
        rows: A connection.
        where: How messages name the store.
        asked: Conditions in SQL, each with its value; one without a value is not asked.
        limit: At most so many.
        tell: Told of runs that are damaged, which are then left out; without it they raise.

    Raises:
        StoreError: A run is damaged, or the database refuses.
    """
    given = {condition: line(value) for condition, value in asked.items() if value is not None}
    condition = " AND ".join(["status <> ?", *given])
    values: list[Any] = [BEGINNING, *given.values(), *([] if limit is None else [limit])]
    end = "" if limit is None else " LIMIT ?"
    return list(run_rows(rows, where, f"WHERE {condition} ORDER BY number DESC{end}", values, tell=tell))


def found_run(rows: Rows, where: str, name: str, *, kind: str | None = None) -> RunRow:
    """One run, by its id, the beginning of its id, or as `latest`.

    Args:
        rows: A connection.
        where: How messages name the store.
        name: How it is called.
        kind: The only kind that `latest` looks at.

    Raises:
        StoreError: There is none, there are several, it is damaged, or the database refuses.
    """
    if name == "latest":
        latest = found_runs(rows, where, {"kind = ?": kind}, limit=1)
        if not latest:
            raise failure(where, "The store holds no run yet.")
        return latest[0]
    asked = line(name)
    ids = [found for (found,) in rows.read("SELECT id FROM runs WHERE id = ? AND status <> ?", (asked, BEGINNING))]
    if not ids and asked:
        begins = "SELECT id FROM runs WHERE substr(id, 1, ?) = ? AND status <> ? ORDER BY number DESC LIMIT 6"
        ids = [found for (found,) in rows.read(begins, (len(asked), asked, BEGINNING))]
    if len(ids) > 1:
        raise failure(where, f"Several runs begin with `{name}`: {listing(ids, limit=5)}.")
    if ids:
        return next(run_rows(rows, where, "WHERE id = ?", (ids[0],)))
    every = "SELECT id FROM runs WHERE status <> ? ORDER BY number DESC LIMIT ?"
    known = [found for (found,) in rows.read(every, (BEGINNING, _GUESSES))]
    hint = did_you_mean(name, ["latest", *known]) if known else "It holds none yet."
    raise failure(where, f"The store holds no run `{name}`. {hint}")
