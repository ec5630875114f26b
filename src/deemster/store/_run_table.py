"""Inserts, changes, counts and reads the rows of runs, and checks their check sums."""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import msgspec

from deemster.store._database import Connection, Row, storage_error
from deemster.store._row_encoding import clean_text, decode_mapping, encode_json
from deemster.store._scoring_table import read_scorings
from deemster.store.run_facts import TRAITS, RunFacts, RunRow, RunStatus

OnDamage: TypeAlias = Callable[[str], None] | None
# The status of a run whose samples are still being written. No reader sees such a run.
BEGINNING = "beginning"
_STATUSES = (*get_args(RunStatus), BEGINNING)
_TEXTS = (
    *("id", "kind", "suite", "dataset", "fingerprint", "seed", "reason", "started_at", "tool_version"),
    "experiment",
)
_COLUMNS = RunFacts.__struct_fields__
_JSON_COLUMNS = ("identity", "facts")
_PLAIN_COLUMNS = tuple(column for column in _COLUMNS if column not in _JSON_COLUMNS)
_CHANGEABLE = ("status", "reason", "finished_at", "duration_s", "identity", "facts")


def insert_run_row(connection: Connection, run: RunFacts, *, status: str) -> bool:
    """Write a run, unless there is one of that id; whether there was none.

    Args:
        connection: A connection.
        run: The run.
        status: What the row says of it, in place of its own status.
    """
    values = _encode_run(run) | {"status": status}
    placeholders = ", ".join("?" * (len(_COLUMNS) + 1))
    sql = f"INSERT INTO runs ({', '.join(_COLUMNS)}, checksum) VALUES ({placeholders}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names only
    return connection.write(sql, (*values.values(), _run_checksum(values))) > 0


def update_run_row(connection: Connection, number: int, run: RunFacts) -> None:
    """Write what may change of a run: status, reason, times, identity and facts."""
    values = _encode_run(run)
    changes = ", ".join(f"{column} = ?" for column in (*_CHANGEABLE, "checksum"))
    sql = f"UPDATE runs SET {changes} WHERE number = ?"  # noqa: S608 - names only
    connection.write(sql, (*(values[column] for column in _CHANGEABLE), _run_checksum(values), number))


def _encode_run(run: RunFacts) -> dict[str, Any]:
    """The columns of a run that its check sum covers."""
    values = {**msgspec.structs.asdict(run), "seed": str(run.seed)}
    if values["duration_s"] is not None:
        values["duration_s"] = float(values["duration_s"])
    values |= {column: encode_json(values[column]) for column in _JSON_COLUMNS}
    values |= {column: clean_text(values[column]) for column in _TEXTS if values[column] is not None}
    return {column: values[column] for column in _COLUMNS}


def _run_checksum(values: Mapping[str, Any]) -> int:
    checked = {column: values[column] for column in _PLAIN_COLUMNS}
    if not TRAITS[values["kind"]].has_end:
        # The samples of a recording are counted as they come, without a new check sum.
        checked["samples"] = 0
    if checked["experiment"] is None:
        # Runs of earlier versions belong to none, and their check sums know nothing of it.
        del checked["experiment"]
    return crc32(values["identity"] + values["facts"], crc32(repr(tuple(checked.values())).encode()))


def add_done(connection: Connection, run: int, count: int, *, scoring: int | None = None) -> None:
    """Add to the count of what a run, or a scoring of it, has done.

    `done_mirror` holds the count negated: it is the check sum of the count. The check sum of the row does not cover the
    count, since it would have to be made again with every commit.
    """
    change = "done = done + ?, done_mirror = done_mirror - ?"
    if scoring is None:
        connection.write(f"UPDATE runs SET {change} WHERE number = ?", (count, count, run))  # noqa: S608 - our own words
    else:
        sql = f"UPDATE scorings SET {change} WHERE run = ? AND number = ?"  # noqa: S608 - our own words
        connection.write(sql, (count, count, run, scoring))


def recount_done(connection: Connection, run: int) -> None:
    """Count the rows of a run that is resumed again, since what was lost is done again."""
    ((outputs,),) = connection.read("SELECT count(*) FROM outputs WHERE run = ?", (run,))
    ((marks,),) = connection.read("SELECT count(*) FROM marks WHERE run = ? AND scoring = 0", (run,))
    if marks > outputs:
        # Marks of an output that was lost are made again with it.
        marks -= connection.write(
            "DELETE FROM marks WHERE run = ? AND scoring = 0 AND NOT EXISTS (SELECT 1 FROM outputs o"
            " WHERE o.run = marks.run AND o.position = marks.position AND o.repetition = marks.repetition)",
            (run,),
        )

    connection.write("UPDATE runs SET done = 0, done_mirror = 0 WHERE number = ?", (run,))
    connection.write("UPDATE scorings SET done = 0, done_mirror = 0 WHERE run = ? AND number = 0", (run,))
    add_done(connection, run, outputs)
    add_done(connection, run, marks, scoring=0)


def read_runs(
    connection: Connection, where: str, condition: str, values: Sequence[Any], *, on_damage: OnDamage = None
) -> Iterator[RunRow]:
    """Runs that meet a condition, in its order.

    Args:
        connection: A connection.
        where: How messages name the store.
        condition: What follows the table's name in SQL.
        values: The values of the condition.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: A run is damaged, or the database refuses.
    """
    sql = f"SELECT {', '.join(_COLUMNS)}, checksum, done, done_mirror, number FROM runs {condition}"  # noqa: S608 - our own words
    for row in connection.read(sql, values):
        try:
            yield _decode_run(connection, row)
        except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            detail = f" ({error})" if str(error) and not isinstance(error, msgspec.MsgspecError) else ""
            message = f"The run {str(row[0])[:80]!r} is damaged{detail}. `deemster store check` says what is lost."
            if on_damage is None:
                raise storage_error(where, message) from None
            on_damage(message)


def _decode_run(connection: Connection, row: Row) -> RunRow:
    *columns, checksum, done, mirror, number = row
    values: dict[str, Any] = dict(zip(_COLUMNS, columns, strict=True))
    is_known = values["kind"] in TRAITS and values["status"] in _STATUSES
    if not is_known or _run_checksum(values) != checksum:
        raise ValueError("its facts do not fit their check sum")
    if done != -mirror:
        raise ValueError("its count of executions was changed")

    values |= {column: decode_mapping(values[column]) for column in _JSON_COLUMNS}
    values["seed"] = int(values["seed"])
    return RunRow(**values, number=number, done=done, scorings=tuple(read_scorings(connection, number)))
