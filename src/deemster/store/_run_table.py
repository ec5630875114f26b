"""Inserts, reads, checks, changes and deletes the rows of runs and their scorings."""

from __future__ import annotations

import itertools
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, get_args

import msgspec

from deemster.errors import Issue, RunExistsError, plural
from deemster.records import MetricCard, SampleFacts
from deemster.store._database import Connection, ConnectionPool, Row, storage_error, store_error
from deemster.store._row_encoding import clean_text, decode_cards, decode_mapping, encode_cards, encode_json
from deemster.store._row_tables import SampleRows, encode_samples, insert_samples
from deemster.store.lease import Lease, claim_run, find_owner
from deemster.store.run_facts import TRAITS, RunFacts, RunRow, RunStatus, ScoringFacts, ScoringRow

OnDamage: TypeAlias = Callable[[str], None] | None
# The status of a run whose samples are still being written. No reader sees such a run.
BEGINNING = "beginning"
_STATUSES = (*get_args(RunStatus), BEGINNING)
_TEXTS = ("id", "kind", "suite", "dataset", "fingerprint", "seed", "reason", "started_at", "tool_version")
_COLUMNS = RunFacts.__struct_fields__
_JSON_COLUMNS = ("identity", "facts")
_PLAIN_COLUMNS = tuple(column for column in _COLUMNS if column not in _JSON_COLUMNS)
_CHANGING = ("status", "reason", "finished_at", "duration_s", "identity", "facts")
_SCORING_COLUMNS = ScoringFacts.__struct_fields__[1:]
# The samples of a run are inserted in commits of bounded size.
_CHUNK_SAMPLES = 20_000
_CHUNK_BYTES = 32 << 20


def insert_run(pool: ConnectionPool, run: RunFacts, cards: Sequence[MetricCard] | None) -> Lease:
    """Write a run that no reader sees yet, and lease it.

    Args:
        pool: Connections to the store.
        run: The run.
        cards: The metrics of its first scoring; None where its scorings follow.

    Raises:
        RunExistsError: There is a run of that id.
        StoreError: The database refuses.
    """
    values = _encode_run(run) | {"status": BEGINNING}
    places = ", ".join("?" * (len(_COLUMNS) + 1))
    sql = f"INSERT INTO runs ({', '.join(_COLUMNS)}, checksum) VALUES ({places}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names only
    with pool.write_transaction() as connection:
        if not connection.write(sql, (*values.values(), _run_checksum(values))):
            raise RunExistsError(Issue(f"The store has a run `{run.id}` already.", pool.database.where))
        number, token = claim_run(connection, pool, run.id)
        if cards is not None:
            insert_scoring_row(connection, number, ScoringRow(number=0, cards=tuple(cards), started_at=run.started_at))
    return Lease(pool, run.id, number, token)


def insert_all_samples(pool: ConnectionPool, lease: Lease, run: RunFacts, samples: Iterable[SampleFacts]) -> None:
    """Write the samples of a run, then let it be seen.

    Raises:
        StoreError: The number of samples is not what the run says, or the database refuses.
    """
    inserter = _SampleInserter(pool, lease, samples)
    pool.retry_when_lost(inserter.insert_all)
    if inserter.count != run.samples:
        message = f"The run `{run.id}` was said to have {plural(run.samples, 'sample')}; {inserter.count:,} came."
        raise store_error(pool.database.where, message)

    def show() -> None:
        with pool.write_transaction() as connection:
            lease.renew(connection)
            update_run_row(connection, lease.number, run)

    pool.retry_when_lost(show)


class _SampleInserter:
    """Inserts samples in chunks; `insert_all` may be called again where its connection was lost."""

    def __init__(self, pool: ConnectionPool, lease: Lease, samples: Iterable[SampleFacts]) -> None:
        self.count = 0
        self._pool = pool
        self._lease = lease
        self._samples = iter(samples)
        self._chunk: SampleRows | None = None

    def insert_all(self) -> None:
        with self._pool.connection() as connection, connection.large_cache():
            while chunk := self._next_chunk():
                with connection.transaction():
                    self._lease.renew(connection)
                    insert_samples(connection, chunk)
                self.count += len(chunk.samples)
                self._chunk = None

    def _next_chunk(self) -> SampleRows | None:
        # A chunk whose connection was lost is written again; rows that are there already stay as they are.
        if self._chunk is None:
            rest = itertools.islice(self._samples, _CHUNK_SAMPLES)
            self._chunk = encode_samples(self._lease.number, rest, most=_CHUNK_BYTES)
        return self._chunk if self._chunk.samples else None


def delete_abandoned_runs(pool: ConnectionPool) -> None:
    """Remove what processes left behind that died while they began a run.

    Raises:
        StoreError: The database refuses.
    """
    with pool.connection() as connection:
        unseen = connection.read("SELECT number, id FROM runs WHERE status = ?", (BEGINNING,))
        owners = [find_owner(connection, pool, name) for _, name in unseen]
    for (number, _), owner in zip(unseen, owners, strict=True):
        if owner is None or not owner.alive:
            delete_run(pool, number)


def delete_run(pool: ConnectionPool, number: int) -> None:
    """Remove a run with all its rows; the content of its samples stays, since others may share it.

    Raises:
        StoreError: It is a baseline, or the database refuses.
    """
    with pool.write_transaction() as connection:
        for suite, dataset in connection.read("SELECT suite, dataset FROM baselines WHERE run = ?", (number,)):
            kind, name, flag = ("suite", suite, "") if suite else ("dataset", dataset, "--dataset ")
            message = f"The run is the baseline of the {kind} `{name}`, so it stays. "
            hint = f"`deemster baseline --clear {flag}{name}` forgets that, or promote another run."
            raise store_error(pool.database.where, message + hint)
        for table in ("labels", "columns", "prompts", "calls", "marks", "outputs", "samples", "scorings"):
            connection.write(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 - names only
        connection.write("DELETE FROM runs WHERE number = ?", (number,))


def update_run_row(connection: Connection, number: int, run: RunFacts) -> None:
    """Write what may change of a run: status, reason, times, identity and facts."""
    values = _encode_run(run)
    changes = ", ".join(f"{column} = ?" for column in (*_CHANGING, "checksum"))
    sql = f"UPDATE runs SET {changes} WHERE number = ?"  # noqa: S608 - names only
    connection.write(sql, (*(values[column] for column in _CHANGING), _run_checksum(values), number))


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
    return crc32(values["identity"] + values["facts"], crc32(repr(tuple(checked.values())).encode()))


def insert_scoring_row(connection: Connection, run: int, scoring: ScoringFacts) -> None:
    """Add a scoring of a run, of which nothing is done yet."""
    values = _encode_scoring(scoring)
    sql = f"INSERT INTO scorings (run, number, {', '.join(_SCORING_COLUMNS)}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - names only
    connection.write(sql, (run, scoring.number, *values, scoring_checksum(scoring.number, values)))


def update_scoring_row(connection: Connection, run: int, scoring: ScoringRow) -> None:
    """Write what may change of a scoring: its status and its end."""
    total = scoring_checksum(scoring.number, _encode_scoring(scoring))
    connection.write(
        "UPDATE scorings SET status = ?, finished_at = ?, checksum = ? WHERE run = ? AND number = ?",
        (scoring.status, scoring.finished_at, total, run, scoring.number),
    )


def _encode_scoring(scoring: ScoringFacts) -> Row:
    """The columns of a scoring that its check sum covers."""
    cards, identity = encode_cards(scoring.cards), encode_json(scoring.identity)
    return cards, identity, scoring.status, scoring.started_at, scoring.finished_at


def scoring_checksum(number: int, values: Sequence[Any]) -> int:
    """The check sum of a row of `scorings`: cards, identity, status, start and end."""
    cards, identity, *state = values
    return crc32(cards + identity, crc32(b"%d/" % number + repr(tuple(state)).encode()))


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
    if values["kind"] not in TRAITS or _run_checksum(values) != checksum or values["status"] not in _STATUSES:
        raise ValueError("its facts do not fit their check sum")
    if done != -mirror:
        raise ValueError("its count of executions was changed")

    values |= {column: decode_mapping(values[column]) for column in _JSON_COLUMNS}
    values["seed"] = int(values["seed"])
    return RunRow(**values, number=number, done=done, scorings=tuple(_read_scorings(connection, number)))


def _read_scorings(connection: Connection, run: int) -> Iterator[ScoringRow]:
    names = ", ".join(_SCORING_COLUMNS)
    sql = f"SELECT number, {names}, checksum, done, done_mirror FROM scorings WHERE run = ? ORDER BY number"  # noqa: S608 - names only
    for index, row in enumerate(connection.read(sql, (run,))):
        number, *columns, checksum, done, mirror = row
        if number != index or scoring_checksum(number, columns) != checksum or done != -mirror:
            raise ValueError(f"its scoring {index} does not fit its check sum")

        values = dict(zip(_SCORING_COLUMNS, columns, strict=True))
        values["cards"] = decode_cards(values["cards"])
        values["identity"] = decode_mapping(values["identity"])
        yield ScoringRow(number=number, done=done, **values)
