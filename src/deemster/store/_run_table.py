"""Inserts, finds, checks, changes and deletes runs and their scorings."""

from __future__ import annotations

import itertools
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, get_args

import msgspec

from deemster.errors import Issue, RunExistsError, did_you_mean, list_names, plural
from deemster.records import MetricCard, SampleFacts
from deemster.store._baseline_table import find_baseline
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
_CHANGING = ("status", "reason", "finished_at", "duration_s", "identity", "facts")
_SCORING_COLUMNS = ScoringFacts.__struct_fields__[1:]
_GUESSES = 200
# The kind of run that only says more of another one.
_SERVING = next(kind for kind, traits in TRAITS.items() if traits.serves_a_run)
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
    count, each = 0, iter(samples)
    chunk: SampleRows | None = None

    def write() -> None:
        nonlocal count, chunk
        with pool.connection() as connection, connection.large_cache():
            while True:
                # A chunk whose connection was lost is written again; rows that are there already stay as they are.
                rest = itertools.islice(each, _CHUNK_SAMPLES)
                chunk = chunk or encode_samples(lease.number, rest, most=_CHUNK_BYTES)
                if not chunk.samples:
                    return
                with connection.transaction():
                    lease.renew(connection)
                    insert_samples(connection, chunk)
                count, chunk = count + len(chunk.samples), None

    pool.retry_when_lost(write)
    if count != run.samples:
        message = f"The run `{run.id}` was said to have {plural(run.samples, 'sample')}; {count:,} came."
        raise store_error(pool.database.where, message)

    def show() -> None:
        with pool.write_transaction() as connection:
            lease.renew(connection)
            update_run_row(connection, lease.number, run)

    pool.retry_when_lost(show)


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
    values |= {column: encode_json(values[column]) for column in ("identity", "facts")}
    values |= {column: clean_text(values[column]) for column in _TEXTS if values[column] is not None}
    return {column: values[column] for column in _COLUMNS}


def _run_checksum(values: Mapping[str, Any]) -> int:
    # The samples of a recording are counted as they come, without a new check sum.
    covered = values if TRAITS[values["kind"]].has_end else {**values, "samples": 0}
    return crc32(values["identity"] + values["facts"], crc32(repr(tuple(covered.values())[:-2]).encode()))


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
    return crc32(values[0] + values[1], crc32(b"%d/" % number + repr(tuple(values[2:])).encode()))


def add_done(connection: Connection, run: int, count: int, *, scoring: int | None = None) -> None:
    """Add to the count of what a run, or a scoring of it, has done.

    `done_mirror` holds the count negated: it is the check sum of the count. The check sum of the row does not cover the
    count, since it would have to be made again with every commit.
    """
    table, key = ("runs", "number = ?") if scoring is None else ("scorings", "run = ? AND number = ?")
    sql = f"UPDATE {table} SET done = done + ?, done_mirror = done_mirror - ? WHERE {key}"  # noqa: S608 - names only
    connection.write(sql, (count, count, run) if scoring is None else (count, count, run, scoring))


def recount_done(connection: Connection, run: int) -> None:
    """Count the rows of a run that is resumed again, since what was lost is done again."""
    outputs, marks = (
        connection.read(f"SELECT count(*) FROM {table} WHERE run = ?{only}", (run,))[0][0]  # noqa: S608 - names only
        for table, only in (("outputs", ""), ("marks", " AND scoring = 0"))
    )
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
    for found in connection.read(sql, values):
        try:
            yield _decode_run(connection, found)
        except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            detail = f" ({error})" if str(error) and not isinstance(error, msgspec.MsgspecError) else ""
            message = f"The run {str(found[0])[:80]!r} is damaged{detail}. `deemster store check` says what is lost."
            if on_damage is None:
                raise storage_error(where, message) from None
            on_damage(message)


def _decode_run(connection: Connection, found: Row) -> RunRow:
    *columns, total, done, mirror, number = found
    values: dict[str, Any] = dict(zip(_COLUMNS, columns, strict=True))
    if values["kind"] not in TRAITS or _run_checksum(values) != total or values["status"] not in _STATUSES:
        raise ValueError("its facts do not fit their check sum")
    if done != -mirror:
        raise ValueError("its count of executions was changed")
    values |= {column: decode_mapping(values[column]) for column in ("identity", "facts")}
    values["seed"] = int(values["seed"])
    return RunRow(**values, number=number, done=done, scorings=tuple(_read_scorings(connection, number)))


def _read_scorings(connection: Connection, run: int) -> Iterator[ScoringRow]:
    columns = ", ".join(_SCORING_COLUMNS)
    sql = f"SELECT number, {columns}, checksum, done, done_mirror FROM scorings WHERE run = ? ORDER BY number"  # noqa: S608 - names only
    for place, (number, *found, total, done, mirror) in enumerate(connection.read(sql, (run,))):
        if place != number or scoring_checksum(number, found) != total or done != -mirror:
            raise ValueError(f"its scoring {place} does not fit its check sum")
        cards, identity, *state = found
        values = dict(zip(_SCORING_COLUMNS, (decode_cards(cards), decode_mapping(identity), *state), strict=True))
        yield ScoringRow(number=number, done=done, **values)


def find_run_number(connection: Connection, where: str, run_id: str) -> int:
    """The number of a run.

    Raises:
        StoreError: There is none of that id.
    """
    found = connection.read("SELECT number FROM runs WHERE id = ?", (clean_text(run_id),))
    if not found:
        raise store_error(where, f"The store holds no run `{run_id}`.")
    return int(found[0][0])


def find_runs(
    connection: Connection,
    where: str,
    conditions: Mapping[str, str | None],
    *,
    limit: int | None = None,
    on_damage: OnDamage = None,
) -> list[RunRow]:
    """Runs that meet conditions, the newest first.

    Args:
        connection: A connection.
        where: How messages name the store.
        conditions: Conditions in SQL, each with its value; one without a value is left out.
        limit: At most so many.
        on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

    Raises:
        StoreError: A run is damaged, or the database refuses.
    """
    given = {condition: clean_text(value) for condition, value in conditions.items() if value is not None}
    condition = " AND ".join(["status <> ?", *given])
    values: list[Any] = [BEGINNING, *given.values(), *([] if limit is None else [limit])]
    end = "" if limit is None else " LIMIT ?"
    sql = f"WHERE {condition} ORDER BY number DESC{end}"
    return list(read_runs(connection, where, sql, values, on_damage=on_damage))


def _read_run(connection: Connection, where: str, run_id: str) -> RunRow:
    """A run that is known to be there."""
    for run in read_runs(connection, where, "WHERE id = ?", [run_id]):
        return run
    raise storage_error(where, f"The run `{run_id}` is lost: only its name is left. `deemster store check` says more.")


def find_run(
    connection: Connection, where: str, name: str, *, kind: str | None = None, beside: RunFacts | None = None
) -> RunRow:
    """One run, by its id, the beginning of its id, its label, or as `latest`, `previous` or `baseline`.

    `previous` is the run before the latest one of its suite. Of several runs with one label it is the newest.

    Args:
        connection: A connection.
        where: How messages name the store.
        name: How it is called.
        kind: The only kind that `latest` looks at.
        beside: The run whose suite's baseline is meant by `baseline`; the latest run unless given.

    Raises:
        StoreError: There is none, there are several, it is damaged, or the database refuses.
    """
    if name == "latest":
        conditions = {"kind <> ?": _SERVING} if kind is None else {"kind = ?": kind}
        latest = find_runs(connection, where, conditions, limit=1)
        if not latest:
            raise store_error(where, "The store holds no run yet.")
        return latest[0]
    if name == "previous":
        conditions = {"kind = ?": kind or "run"}
        for run in find_runs(connection, where, conditions, limit=1):
            before = find_runs(connection, where, {**conditions, "suite = ?": run.suite}, limit=2)
            if len(before) == 2:
                return before[1]
        raise store_error(where, "The store holds no run before the latest one of its suite.")
    if name == "baseline":
        of = beside or next(iter(find_runs(connection, where, {"kind = ?": "run"}, limit=1)), None)
        found = None if of is None else find_baseline(connection, where, of.suite, of.dataset)
        if found is not None:
            return _read_run(connection, where, found.run)
    wanted = clean_text(name)
    ids = _ids(connection, "id = ?", wanted)
    if not ids and wanted:
        ids = _ids(connection, "substr(id, 1, ?) = ?", len(wanted), wanted, limit=6)
    if len(ids) > 1:
        raise store_error(where, f"Several runs begin with `{name}`: {list_names(ids, limit=5)}.")
    if ids:
        return _read_run(connection, where, ids[0])
    # Labels are few and seldom asked for, so they have no index.
    for run in find_runs(connection, where, {}, on_damage=lambda _: None):
        if run.facts.get("label") == name:
            return run
    if name == "baseline":
        raise store_error(where, "There is no baseline yet. `deemster baseline RUN` makes a run the baseline.")
    known = _ids(connection, "1 = 1", limit=_GUESSES)
    hint = did_you_mean(name, ["latest", *known]) if known else "It holds none yet."
    if Path(name).is_file():
        hint = f"`deemster import {name}` takes in the runs of a run file."
    raise store_error(where, f"The store holds no run `{name}`. {hint}")


def _ids(connection: Connection, condition: str, *values: Any, limit: int = 1) -> list[str]:
    sql = f"SELECT id FROM runs WHERE {condition} AND status <> ? ORDER BY number DESC LIMIT ?"  # noqa: S608 - our own words
    return [found for (found,) in connection.read(sql, (*values, BEGINNING, limit))]
