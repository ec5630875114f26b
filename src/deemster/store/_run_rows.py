"""The rows of runs and scorings: how they are written, and read with their check sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import msgspec

from deemster.records import MetricCard
from deemster.store._database import Connection, Row, store_error
from deemster.store._row_encoding import checksum, clean_text, decode_cards, decode_mapping, encode_cards, encode_json
from deemster.store.run_facts import RunFacts, RunKind, RunRow, RunStatus, ScoringRow

BEGINNING = "beginning"
STATUSES = get_args(RunStatus)
_KINDS = get_args(RunKind)
_COLUMNS = (
    "id, kind, suite, dataset, fingerprint, seed, repetitions, samples, status, reason, started_at, finished_at, "
    "duration_s, tool_version, identity, facts"
)
_SCORING = "cards, identity, status, started_at, finished_at"


def run_values(
    run: RunFacts, *, status: str, reason: str | None, finished_at: str | None, duration_s: float | None
) -> Row:
    """The columns of a run that its check sum covers."""
    return (
        clean_text(run.id),
        run.kind,
        None if run.suite is None else clean_text(run.suite),
        clean_text(run.dataset),
        clean_text(run.fingerprint),
        str(run.seed),
        run.repetitions,
        run.samples,
        status,
        None if reason is None else clean_text(reason),
        clean_text(run.started_at),
        finished_at,
        None if duration_s is None else float(duration_s),
        clean_text(run.tool_version),
        encode_json(run.identity),
        encode_json(run.facts),
    )


def _run_sum(values: Row) -> int:
    # The samples of a recording are counted as they come.
    counted = 0 if values[1] == "recording" else values[7]
    return checksum(values[14] + values[15], repr((*values[:7], counted, *values[8:14])).encode())


def insert_run_row(connection: Connection, run: RunFacts) -> bool:
    """Add a run that nobody sees yet; whether its id was free."""
    values = run_values(run, status=BEGINNING, reason=None, finished_at=None, duration_s=None)
    places = ", ".join("?" * (len(values) + 1))
    sql = f"INSERT INTO runs ({_COLUMNS}, checksum) VALUES ({places}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names only
    return connection.write(sql, (*values, _run_sum(values))) == 1


def update_run_row(connection: Connection, number: int, run: RunFacts, **state: Any) -> None:
    """Write what may change of a run: status, reason, times, identity and facts."""
    values = run_values(run, **state)
    connection.write(
        "UPDATE runs SET status = ?, reason = ?, finished_at = ?, duration_s = ?, identity = ?, facts = ?, checksum = ?"
        " WHERE number = ?",
        (values[8], values[9], *values[11:13], values[14], values[15], _run_sum(values), number),
    )


def add_done(connection: Connection, number: int, count: int) -> None:
    """Add to the count of what a run has done."""
    connection.write(
        "UPDATE runs SET done = done + ?, done_mirror = done_mirror - ? WHERE number = ?", (count, count, number)
    )


def recount_done(connection: Connection, number: int) -> None:
    """Count again what is there of a run that is gone on with: what was lost is done again, and counts again then."""
    outputs, entries, marks = (
        connection.read(f"SELECT count(*) FROM {table} WHERE run = ?{only}", (number,))[0][0]  # noqa: S608 - names only
        for table, only in (("outputs", ""), ("entries", ""), ("marks", " AND scoring = 0"))
    )
    if marks > outputs:
        # Marks of an output that was lost are made again with it.
        marks -= connection.write(
            "DELETE FROM marks WHERE run = ? AND scoring = 0 AND NOT EXISTS (SELECT 1 FROM outputs o"
            " WHERE o.run = marks.run AND o.position = marks.position AND o.repetition = marks.repetition)",
            (number,),
        )
    done = outputs + entries
    connection.write("UPDATE runs SET done = ?, done_mirror = ? WHERE number = ?", (done, -done, number))
    sql = "UPDATE scorings SET done = ?, done_mirror = ? WHERE run = ? AND number = 0"
    connection.write(sql, (marks, -marks, number))


def read_runs(
    connection: Connection,
    where: str,
    condition: str,
    values: Sequence[Any],
    *,
    on_damage: Callable[[str], None] | None = None,
) -> Iterator[RunRow]:
    """Runs that meet a condition, in its order.

    Args:
        connection: A connection.
        where: How messages name the store.
        condition: What follows the table's name in SQL.
        values: The values of the condition.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: A run is damaged and nobody is told.
    """
    sql = f"SELECT {_COLUMNS}, checksum, done, done_mirror, number FROM runs {condition}"  # noqa: S608 - our own words
    for found in connection.read(sql, values):
        try:
            yield _run_row(connection, found[:-4], found[-4:])
        except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            detail = f" ({error})" if str(error) and not isinstance(error, msgspec.MsgspecError) else ""
            message = f"The run {str(found[0])[:80]!r} is damaged{detail}. `deemster store verify` says what is lost."
            if on_damage is None:
                raise store_error(where, message) from None
            on_damage(message)


def _run_row(connection: Connection, found: Row, counts: Row) -> RunRow:
    total, done, mirror, number = counts
    if _run_sum(found) != total or found[1] not in _KINDS or found[8] not in (*STATUSES, BEGINNING):
        raise ValueError("its facts do not fit their check sum")
    if done != -mirror:
        raise ValueError("its count of executions was changed")
    return RunRow(
        id=found[0],
        kind=found[1],
        suite=found[2],
        dataset=found[3],
        fingerprint=found[4],
        seed=int(found[5]),
        repetitions=found[6],
        samples=found[7],
        status=found[8],
        reason=found[9],
        started_at=found[10],
        finished_at=found[11],
        duration_s=found[12],
        tool_version=found[13],
        identity=decode_mapping(found[14]),
        facts=decode_mapping(found[15]),
        done=done,
        scorings=tuple(_scorings(connection, number)),
    )


def _scorings(connection: Connection, run: int) -> Iterator[ScoringRow]:
    sql = f"SELECT number, {_SCORING}, checksum, done, done_mirror FROM scorings WHERE run = ? ORDER BY number"  # noqa: S608 - names only
    for place, (number, *found, total, done, mirror) in enumerate(connection.read(sql, (run,))):
        if place != number or _scoring_sum(number, found) != total or done != -mirror:
            raise ValueError(f"its scoring {place} does not fit its check sum")
        yield ScoringRow(
            number=number,
            cards=decode_cards(found[0]),
            identity=decode_mapping(found[1]),
            status=found[2],
            started_at=found[3],
            finished_at=found[4],
            done=done,
        )


def insert_scoring_row(
    connection: Connection, run: int, number: int, cards: Sequence[MetricCard], identity: Any, *, started_at: str | None
) -> None:
    """Add a scoring of a run."""
    values = (encode_cards(cards), encode_json(identity), "running", started_at, None)
    places = ", ".join("?" * 8)
    sql = f"INSERT INTO scorings (run, number, {_SCORING}, checksum) VALUES ({places})"  # noqa: S608 - names only
    connection.write(sql, (run, number, *values, _scoring_sum(number, values)))


def update_scoring_row(
    connection: Connection, run: int, scoring: ScoringRow, *, status: str, finished_at: str | None
) -> None:
    """Write the status of a scoring."""
    values = (encode_cards(scoring.cards), encode_json(scoring.identity), status, scoring.started_at, finished_at)
    connection.write(
        "UPDATE scorings SET status = ?, finished_at = ?, checksum = ? WHERE run = ? AND number = ?",
        (status, finished_at, _scoring_sum(scoring.number, values), run, scoring.number),
    )


def _scoring_sum(number: int, values: Sequence[Any]) -> int:
    return checksum(values[0] + values[1], number, repr(tuple(values[2:])).encode())


def find_run_number(connection: Connection, where: str, run_id: str) -> int:
    """The number of a run.

    Raises:
        StoreError: There is none of that id.
    """
    found = connection.read("SELECT number FROM runs WHERE id = ?", (clean_text(run_id),))
    if not found:
        raise store_error(where, f"The store holds no run `{run_id}`.")
    return int(found[0][0])
