"""The rows of runs and scorings: how they are written, and read with their check sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import msgspec

from deemster.records import MetricCard
from deemster.store._row_encoding import as_json, cards_body, cards_of, checksum, line, mapping_of
from deemster.store._sql_dialect import Row, Rows, failure
from deemster.store.run_facts import Kind, RunFacts, RunRow, ScoringRow, Status

BEGINNING = "beginning"
STATUSES = get_args(Status)
_KINDS = get_args(Kind)
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
        line(run.id),
        run.kind,
        None if run.suite is None else line(run.suite),
        line(run.dataset),
        line(run.fingerprint),
        str(run.seed),
        run.repetitions,
        run.samples,
        status,
        None if reason is None else line(reason),
        line(run.started_at),
        finished_at,
        None if duration_s is None else float(duration_s),
        line(run.tool_version),
        as_json(run.identity),
        as_json(run.facts),
    )


def _run_sum(values: Row) -> int:
    # The samples of a recording are counted as they come.
    counted = 0 if values[1] == "recording" else values[7]
    return checksum(values[14] + values[15], repr((*values[:7], counted, *values[8:14])).encode())


def insert_run(rows: Rows, run: RunFacts) -> bool:
    """Add a run that nobody sees yet; whether its id was free."""
    values = run_values(run, status=BEGINNING, reason=None, finished_at=None, duration_s=None)
    places = ", ".join("?" * (len(values) + 1))
    sql = f"INSERT INTO runs ({_COLUMNS}, checksum) VALUES ({places}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names only
    return rows.write(sql, (*values, _run_sum(values))) == 1


def update_run(rows: Rows, number: int, run: RunFacts, **state: Any) -> None:
    """Write what may change of a run: status, reason, times, identity and facts."""
    values = run_values(run, **state)
    rows.write(
        "UPDATE runs SET status = ?, reason = ?, finished_at = ?, duration_s = ?, identity = ?, facts = ?, checksum = ?"
        " WHERE number = ?",
        (values[8], values[9], *values[11:13], values[14], values[15], _run_sum(values), number),
    )


def count_done(rows: Rows, number: int, count: int) -> None:
    """Add to the count of what a run has done."""
    rows.write(
        "UPDATE runs SET done = done + ?, done_mirror = done_mirror - ? WHERE number = ?", (count, count, number)
    )


def recount(rows: Rows, number: int) -> None:
    """Count again what is there of a run that is gone on with: what was lost is done again, and counts again then."""
    outputs, entries, marks = (
        rows.read(f"SELECT count(*) FROM {table} WHERE run = ?{only}", (number,))[0][0]  # noqa: S608 - names only
        for table, only in (("outputs", ""), ("entries", ""), ("marks", " AND scoring = 0"))
    )
    if marks > outputs:
        # Marks of an output that was lost are made again with it.
        marks -= rows.write(
            "DELETE FROM marks WHERE run = ? AND scoring = 0 AND NOT EXISTS (SELECT 1 FROM outputs o"
            " WHERE o.run = marks.run AND o.position = marks.position AND o.repetition = marks.repetition)",
            (number,),
        )
    done = outputs + entries
    rows.write("UPDATE runs SET done = ?, done_mirror = ? WHERE number = ?", (done, -done, number))
    sql = "UPDATE scorings SET done = ?, done_mirror = ? WHERE run = ? AND number = 0"
    rows.write(sql, (marks, -marks, number))


def run_rows(
    rows: Rows, where: str, condition: str, values: Sequence[Any], *, tell: Callable[[str], None] | None = None
) -> Iterator[RunRow]:
    """Runs that meet a condition, in its order.

    Args:
        rows: A connection.
        where: How messages name the store.
        condition: What follows the table's name in SQL.
        values: The values of the condition.
        tell: Told of runs that are damaged, which are then left out.

    Raises:
        StoreError: A run is damaged and nobody is told.
    """
    sql = f"SELECT {_COLUMNS}, checksum, done, done_mirror, number FROM runs {condition}"  # noqa: S608 - our own words
    for found in rows.read(sql, values):
        try:
            yield _run_row(rows, found[:-4], found[-4:])
        except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            detail = f" ({error})" if str(error) and not isinstance(error, msgspec.MsgspecError) else ""
            message = f"The run {str(found[0])[:80]!r} is damaged{detail}. `deemster store verify` says what is lost."
            if tell is None:
                raise failure(where, message) from None
            tell(message)


def _run_row(rows: Rows, found: Row, counts: Row) -> RunRow:
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
        identity=mapping_of(found[14]),
        facts=mapping_of(found[15]),
        done=done,
        scorings=tuple(_scorings(rows, number)),
    )


def _scorings(rows: Rows, run: int) -> Iterator[ScoringRow]:
    sql = f"SELECT number, {_SCORING}, checksum, done, done_mirror FROM scorings WHERE run = ? ORDER BY number"  # noqa: S608 - names only
    for place, (number, *found, total, done, mirror) in enumerate(rows.read(sql, (run,))):
        if place != number or _scoring_sum(number, found) != total or done != -mirror:
            raise ValueError(f"its scoring {place} does not fit its check sum")
        yield ScoringRow(
            number=number,
            cards=cards_of(found[0]),
            identity=mapping_of(found[1]),
            status=found[2],
            started_at=found[3],
            finished_at=found[4],
            done=done,
        )


def insert_scoring(
    rows: Rows, run: int, number: int, cards: Sequence[MetricCard], identity: Any, *, started_at: str | None
) -> None:
    """Add a scoring of a run."""
    values = (cards_body(cards), as_json(identity), "running", started_at, None)
    places = ", ".join("?" * 8)
    sql = f"INSERT INTO scorings (run, number, {_SCORING}, checksum) VALUES ({places})"  # noqa: S608 - names only
    rows.write(sql, (run, number, *values, _scoring_sum(number, values)))


def update_scoring(rows: Rows, run: int, scoring: ScoringRow, *, status: str, finished_at: str | None) -> None:
    """Write the status of a scoring."""
    values = (cards_body(scoring.cards), as_json(scoring.identity), status, scoring.started_at, finished_at)
    rows.write(
        "UPDATE scorings SET status = ?, finished_at = ?, checksum = ? WHERE run = ? AND number = ?",
        (status, finished_at, _scoring_sum(scoring.number, values), run, scoring.number),
    )


def _scoring_sum(number: int, values: Sequence[Any]) -> int:
    return checksum(values[0] + values[1], number, repr(tuple(values[2:])).encode())


def number_of(rows: Rows, where: str, run_id: str) -> int:
    """The number of a run.

    Raises:
        StoreError: There is none of that id.
    """
    found = rows.read("SELECT number FROM runs WHERE id = ?", (line(run_id),))
    if not found:
        raise failure(where, f"The store holds no run `{run_id}`.")
    return int(found[0][0])
