"""Taking in the runs of a run file, which may come from anywhere."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from deemster.errors import Issue, RunExistsError, StoreError
from deemster.formats.document import Reading
from deemster.store._connection_pool import ConnectionPool
from deemster.store._database import Connection
from deemster.store._insert_run import delete_abandoned_runs, delete_run, encode_samples, insert_run, insert_samples
from deemster.store._row_encoding import SampleContent, SampleLabels, checksum
from deemster.store._run_rows import add_done, insert_scoring_row, update_run_row, update_scoring_row
from deemster.store.lease import Lease
from deemster.store.run_export import digest_of
from deemster.store.run_facts import RunFacts, SampleFacts, ScoringRow
from deemster.store.run_file_check import CheckedRun, check_run_file, raw_lines
from deemster.store.run_file_format import IMPORTED_FACT, RunLine, ScoringLine, card_from_line, parse_line

if TYPE_CHECKING:
    from deemster.store.run_store import Store

_CHUNK = 10_000
_HEAVY = 16 * 1024 * 1024


class ImportedRun(NamedTuple):
    """What became of a run of a file.

    Attributes:
        id: The run's id.
        samples: How many samples it has.
        is_known: Whether the store had the same run already.
    """

    id: str
    samples: int
    is_known: bool


class _Row(msgspec.Struct, gc=False, tag_field="line"):
    """A line of a file that was checked; what the target and the metrics said is kept byte for byte as it came."""


class _Sample(_Row, tag="sample", gc=False):
    position: int
    id: str
    row_hash: str
    labels: SampleLabels
    content: SampleContent | None


class _Output(_Row, tag="output", gc=False):
    position: int
    repetition: int
    at: str | None
    body: msgspec.Raw


class _Marks(_Row, tag="marks", gc=False):
    scoring: int
    position: int
    repetition: int
    marks: msgspec.Raw
    final: msgspec.Raw


class _Entry(_Row, tag="entry", gc=False):
    position: int
    body: msgspec.Raw


class _End(_Row, tag="end", gc=False):
    sha256: str


class _Run(_Row, tag="run", gc=False):
    pass


class _Scoring(_Row, tag="scoring", gc=False):
    pass


_row_of = msgspec.json.Decoder(_Run | _Scoring | _Sample | _Output | _Marks | _Entry | _End).decode
_NULL = b"null"


def import_runs(store: Store, path: Path) -> list[ImportedRun]:
    """Take in every run of a file, or none.

    The whole file is checked first. A run is seen by others once all of it is there.

    Args:
        store: Where they go.
        path: The file.

    Raises:
        RunExistsError: The store has another run of the same id.
        StoreError: The file cannot be read or is no run file, or the store cannot be written.
    """
    runs = check_run_file(path)
    pool = store._pool  # noqa: SLF001 - the tools of the store stand in its room
    delete_abandoned_runs(pool)
    known = {run.id for run in runs if _is_known(store, run)}
    taken: list[Lease] = []
    lines = raw_lines(path, Reading(str(path), error=StoreError))
    next(lines)
    with ExitStack() as failing:
        failing.callback(_untaken, pool, taken)
        try:
            for run in runs:
                if run.id in known:
                    _skip(lines)
                else:
                    _take(pool, run, lines, taken)
        except StoreError:
            raise
        except (msgspec.MsgspecError, ValueError, StopIteration):
            raise _changed(path) from None
        failing.pop_all()
    for lease in taken:
        lease.release()
    return [ImportedRun(run.id, run.samples, run.id in known) for run in runs]


def _untaken(pool: ConnectionPool, taken: Sequence[Lease]) -> None:
    """Remove what was taken of a file that cannot be taken as a whole."""
    for lease in taken:
        lease.release()
        delete_run(pool, lease.number)


def _is_known(store: Store, run: CheckedRun) -> bool:
    """Whether the store has the same run already.

    Raises:
        RunExistsError: It has another one of that id.
    """
    with store.read_transaction() as connection:
        if not connection.read("SELECT 1 FROM runs WHERE id = ?", (run.id,)):
            return False
    if digest_of(store, run.id) != run.sha256:
        raise RunExistsError(Issue(f"The store has another run `{run.id}` already; nothing was taken in.", store.where))
    return True


def _changed(path: Path) -> StoreError:
    return StoreError(Issue("The file changed while it was read; nothing was taken in.", str(path)))


def _skip(lines: Iterator[tuple[int, bytes]]) -> None:
    while not isinstance(_row_of(next(lines)[1]), _End):
        pass


def _take(pool: ConnectionPool, run: CheckedRun, lines: Iterator[tuple[int, bytes]], taken: list[Lease]) -> None:
    """Write one run, of which nothing is seen before all of it is written."""
    digest = hashlib.sha256()
    first = next(lines)[1]
    head = parse_line(first)
    digest.update(first + b"\n")
    if not isinstance(head, RunLine) or head.id != run.id:
        raise ValueError("another run")
    facts = _facts(head)
    scorings: list[ScoringRow] = []
    filling: _Filling | None = None
    while True:
        data = next(lines)[1]
        row = _row_of(data)
        if isinstance(row, _Scoring):
            scorings.append(_scoring_row(data))
        else:
            if filling is None:
                filling = _begun(pool, facts, scorings, taken)
            if isinstance(row, _End):
                break
            filling.add(row, len(data))
        digest.update(data + b"\n")
    if not digest.hexdigest() == row.sha256 == run.sha256:
        raise ValueError("other lines")
    filling.finish(head, scorings)


def _facts(head: RunLine) -> RunFacts:
    known: dict[str, Any] = {name: getattr(head, name) for name in RunFacts.__struct_fields__}
    return RunFacts(**{**known, "facts": {**head.facts, IMPORTED_FACT: True}})


def _scoring_row(data: bytes) -> ScoringRow:
    line = parse_line(data)
    if not isinstance(line, ScoringLine):
        raise ValueError("no scoring")  # noqa: TRY004 - a file that changed, not a bad call
    known: dict[str, Any] = {name: getattr(line, name) for name in ScoringLine.__struct_fields__ if name != "cards"}
    return ScoringRow(**known, cards=tuple(map(card_from_line, line.cards)), done=0)


def _begun(pool: ConnectionPool, facts: RunFacts, scorings: Sequence[ScoringRow], taken: list[Lease]) -> _Filling:
    lease = insert_run(pool, facts, ())
    taken.append(lease)
    with pool.write_transaction() as connection:
        lease.renew(connection)
        connection.write("DELETE FROM scorings WHERE run = ?", (lease.number,))
        for scoring in scorings:
            insert_scoring_row(
                connection, lease.number, scoring.number, scoring.cards, scoring.identity, started_at=scoring.started_at
            )
    return _Filling(pool, lease)


def _sample(row: _Sample) -> SampleFacts:
    content = row.content
    return SampleFacts(
        position=row.position,
        id=row.id,
        row_hash=row.row_hash,
        tags=row.labels.tags,
        metadata=row.labels.metadata,
        expected_output=None if content is None else content.expected_output,
        input=None if content is None else content.input,
        content=content is not None,
    )


class _Filling:
    """Writes the rows of a run in commits of bounded size."""

    def __init__(self, pool: ConnectionPool, lease: Lease) -> None:
        self._pool, self._lease, self._run = pool, lease, lease.number
        self._waiting: list[Any] = []
        self._size = 0
        self._done = 0
        self._marked: Counter[int] = Counter()

    def add(self, row: _Row, size: int) -> None:
        """Write a row, or hold it until there are many of its kind."""
        if self._waiting and type(row) is not type(self._waiting[0]):
            self._write()
        self._waiting.append(row)
        self._size += size
        if len(self._waiting) >= _CHUNK or self._size >= _HEAVY:
            self._write()

    def finish(self, run: RunLine, scorings: Sequence[ScoringRow]) -> None:
        """Write what is left and the counts, and let the run be seen."""
        self._write()
        state = {name: getattr(run, name) for name in ("status", "reason", "finished_at", "duration_s")}
        with self._pool.write_transaction() as connection:
            self._lease.renew(connection)
            add_done(connection, self._run, self._done)
            for scoring in scorings:
                count = self._marked[scoring.number]
                connection.write(
                    "UPDATE scorings SET done = ?, done_mirror = ? WHERE run = ? AND number = ?",
                    (count, -count, self._run, scoring.number),
                )
                update_scoring_row(
                    connection, self._run, scoring, status=scoring.status, finished_at=scoring.finished_at
                )
            update_run_row(connection, self._run, _facts(run), **state)

    def _write(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if not waiting:
            return
        kind = type(waiting[0])
        with self._pool.write_transaction() as connection:
            self._lease.renew(connection)
            if kind is _Sample:
                insert_samples(connection, encode_samples(self._run, map(_sample, waiting)))
            elif kind is _Output:
                self._outputs(connection, waiting)
            elif kind is _Marks:
                self._marks(connection, waiting)
            elif kind is _Entry:
                self._entries(connection, waiting)

    def _outputs(self, connection: Connection, waiting: Sequence[_Output]) -> None:
        # The check sum of an output covers the id of its sample, of which a million would be too many to hold.
        sql = "SELECT position, id FROM samples WHERE run = ? AND position BETWEEN ? AND ?"
        wanted = {row.position for row in waiting}
        known = connection.stream(sql, (self._run, waiting[0].position, waiting[-1].position))
        names = {position: name for position, name in known if position in wanted}
        found = [(row, bytes(row.body)) for row in waiting]
        connection.write_many(
            "INSERT INTO outputs (run, position, repetition, at, body, checksum) VALUES (?, ?, ?, ?, ?, ?)",
            [
                (
                    self._run,
                    row.position,
                    row.repetition,
                    row.at,
                    body,
                    checksum(body, row.position, row.repetition, names[row.position]),
                )
                for row, body in found
            ],
        )
        self._done += len(waiting)

    def _marks(self, connection: Connection, waiting: Sequence[_Marks]) -> None:
        values: list[Sequence[Any]] = []
        for row in waiting:
            key = (row.scoring, row.position, row.repetition)
            body, final = bytes(row.marks), bytes(row.final)
            settled = (None, None) if final == _NULL else (final, checksum(final, *key))
            values.append((self._run, *key, body, checksum(body, *key), *settled))
            self._marked[row.scoring] += 1
        connection.write_many(
            "INSERT INTO marks (run, scoring, position, repetition, body, checksum, final, final_checksum)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )

    def _entries(self, connection: Connection, waiting: Sequence[_Entry]) -> None:
        found = [(row.position, bytes(row.body)) for row in waiting]
        connection.write_many(
            "INSERT INTO entries (run, position, body, checksum) VALUES (?, ?, ?, ?)",
            [(self._run, position, body, checksum(body, position)) for position, body in found],
        )
        self._done += len(waiting)
