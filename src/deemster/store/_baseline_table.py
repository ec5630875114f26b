"""Writes, finds and deletes baselines: for each suite, the run that others are compared with."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from typing import Any

import msgspec

from deemster.store._database import Connection, storage_error
from deemster.store._row_encoding import clean_text, encode_json
from deemster.store.run_facts import BaselineFacts, BaselineRow, RunRow


def baseline_key(suite: str | None, dataset: str) -> tuple[str, str]:
    """The key of a baseline: the suite, or the dataset of runs without one."""
    return (clean_text(suite), "") if suite is not None else ("", clean_text(dataset))


def put_baseline(connection: Connection, run: RunRow, facts: BaselineFacts) -> None:
    """Make a run the baseline of its suite, in place of the one before.

    Args:
        connection: A connection.
        run: The run.
        facts: What the baseline remembers.
    """
    key, body = baseline_key(run.suite, run.dataset), encode_json(facts)
    delete_baseline(connection, run.suite, run.dataset)
    connection.write(
        "INSERT INTO baselines (suite, dataset, run, body, checksum) VALUES (?, ?, ?, ?, ?)",
        (*key, run.number, body, _checksum(*key, run.number, body)),
    )


def delete_baseline(connection: Connection, suite: str | None, dataset: str) -> bool:
    """Forget the baseline of a suite; whether there was one."""
    key = baseline_key(suite, dataset)
    return connection.write("DELETE FROM baselines WHERE suite = ? AND dataset = ?", key) > 0


def find_baseline(connection: Connection, where: str, suite: str | None, dataset: str) -> BaselineRow | None:
    """The baseline of a suite; None where there is none.

    Raises:
        StoreError: It is damaged, or the database refuses.
    """
    condition, key = "WHERE b.suite = ? AND b.dataset = ?", baseline_key(suite, dataset)
    return next(read_baselines(connection, where, condition, key), None)


def read_baselines(
    connection: Connection, where: str, condition: str = "ORDER BY b.suite, b.dataset", values: tuple[Any, ...] = ()
) -> Iterator[BaselineRow]:
    """The baselines that meet a condition.

    Raises:
        StoreError: One is damaged, or the database refuses.
    """
    columns = "b.suite, b.dataset, b.run, b.body, b.checksum, r.id, r.suite, r.dataset"
    sql = f"SELECT {columns} FROM baselines b JOIN runs r ON r.number = b.run {condition}"  # noqa: S608 - our own words
    for suite, dataset, number, body, total, run_id, *named in connection.read(sql, values):
        facts = _decode(body) if _checksum(suite, dataset, number, body) == total else None
        if facts is None:
            message = f"The baseline of `{suite or dataset}` is damaged. `deemster baseline --clear` forgets it."
            raise storage_error(where, message)
        yield BaselineRow(run=run_id, suite=named[0], dataset=named[1], facts=facts)


def _decode(body: bytes) -> BaselineFacts | None:
    try:
        return msgspec.json.decode(body, type=BaselineFacts)
    except msgspec.MsgspecError:
        return None


def _checksum(suite: str, dataset: str, number: int, body: bytes) -> int:
    return crc32(body, crc32(f"{suite}\0{dataset}\0{number}".encode()))
