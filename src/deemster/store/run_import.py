"""Imports the runs of a run file into a store, all or none."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deemster.errors import Issue, RunExistsError, StoreError
from deemster.store._begin_run import delete_abandoned_runs, delete_run, insert_run
from deemster.store._database import Connection, ConnectionPool
from deemster.store._label_table import put_label
from deemster.store._row_encoding import entry_checksum, marks_checksum, output_checksum
from deemster.store._row_tables import MARKS, OUTPUTS, encode_samples, insert_samples, put_final_marks
from deemster.store._run_table import add_done, update_run_row
from deemster.store._scoring_table import insert_scoring_row
from deemster.store.graded_items import GRADING_CARD, GradedEntry, put_graded_items
from deemster.store.lease import Lease
from deemster.store.run_export import run_digest
from deemster.store.run_facts import IMPORTED_FACT, RunFacts, ScoringFacts
from deemster.store.run_file_check import CheckedRun, check_run_file, raw_lines
from deemster.store.run_file_format import (
    EndLine,
    EntryLine,
    Line,
    MarksLine,
    OutputLine,
    RawBodies,
    RunLine,
    SampleLine,
    ScoringLine,
    card_from_line,
    decode_line,
    parse_line,
    raw_bodies,
)
from deemster.store.run_store import Store

_CHUNK_LINES = 10_000
_CHUNK_BYTES = 16 * 1024 * 1024


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


def import_runs(store: Store, path: Path) -> list[ImportedRun]:
    """Import every run of a file, or none.

    The whole file is checked first. Others see a run once all of it is there.

    Args:
        store: Where they go.
        path: The file.

    Raises:
        RunExistsError: The store has another run of the same id.
        StoreError: The file cannot be read or is no run file, or the store cannot be written.
    """
    runs = check_run_file(path)
    pool = store.pool
    delete_abandoned_runs(pool)
    known = {run.id for run in runs if _is_known(store, run)}
    leases: list[Lease] = []
    lines = (data for _, data in raw_lines(path))
    next(lines)
    with ExitStack() as failing:
        failing.callback(_remove, pool, leases)
        try:
            for run in runs:
                _import_run(pool, run, lines, leases, is_known=run.id in known)
        except StoreError:
            raise
        except (msgspec.MsgspecError, ValueError, StopIteration):
            message = "The file changed while it was read; nothing was taken in."
            raise StoreError(Issue(message, str(path))) from None
        failing.pop_all()
    for lease in leases:
        lease.release()
    return [ImportedRun(run.id, run.samples, run.id in known) for run in runs]


def _remove(pool: ConnectionPool, leases: Sequence[Lease]) -> None:
    """Remove the runs of a file that cannot be imported as a whole."""
    for lease in leases:
        lease.release()
        delete_run(pool, lease.number)


def _is_known(store: Store, run: CheckedRun) -> bool:
    """Whether the store has the same run already.

    Raises:
        RunExistsError: It has another one of that id.
    """
    with store.pool.read_transaction() as connection:
        if not connection.read("SELECT 1 FROM runs WHERE id = ?", (run.id,)):
            return False
    token = run.graded_token
    if token is not None and store.run(run.id).facts.get("token") == token:
        return True
    if run_digest(store, run.id) != run.sha256:
        raise RunExistsError(Issue(f"The store has another run `{run.id}` already; nothing was taken in.", store.where))
    return True


def _import_run(
    pool: ConnectionPool, run: CheckedRun, lines: Iterator[bytes], leases: list[Lease], *, is_known: bool
) -> None:
    """Write one run, of which no reader sees anything before all of it is written; one that is known is skipped."""
    digest = hashlib.sha256()
    inserter: _RunInserter | None = None
    for data in lines:
        line = decode_line(data)
        if isinstance(line, EndLine):
            break
        digest.update(data + b"\n")
        if is_known:
            continue
        if isinstance(line, (RunLine, ScoringLine)):
            # Read as strictly as when it was checked: integers of any size stay what they are.
            line = parse_line(data)
        if isinstance(line, RunLine):
            received = msgspec.structs.replace(
                line, facts={**line.facts, IMPORTED_FACT: True}, experiment=line.experiment or None
            )
            lease = insert_run(pool, received, None)
            leases.append(lease)
            inserter = _RunInserter(pool, lease, received)
        elif inserter is not None:
            inserter.add(line, data)
    if digest.hexdigest() != run.sha256:
        raise ValueError("other lines than those that were checked")
    if inserter is not None:
        inserter.finish()


class _RunInserter:
    """Writes the rows of a run in commits of bounded size."""

    def __init__(self, pool: ConnectionPool, lease: Lease, facts: RunFacts) -> None:
        self._pool, self._lease, self._run, self._facts = pool, lease, lease.number, facts
        self._waiting: list[tuple[Any, bytes]] = []
        self._size = 0
        self._done = 0
        self._marked: Counter[int] = Counter()

    def add(self, line: Line, data: bytes) -> None:
        """Write a line as a row, or hold it until there are many of its kind."""
        if self._waiting and type(line) is not type(self._waiting[0][0]):
            self._write()
        self._waiting.append((line, data))
        self._size += len(data)
        if len(self._waiting) >= _CHUNK_LINES or self._size >= _CHUNK_BYTES:
            self._write()

    def finish(self) -> None:
        """Write what is left and the counts, and let the run be seen."""
        self._write()
        with self._pool.write_transaction() as connection:
            self._lease.renew(connection)
            add_done(connection, self._run, self._done)
            for scoring, count in self._marked.items():
                add_done(connection, self._run, count, scoring=scoring)
            update_run_row(connection, self._run, self._facts)

    def _write(self) -> None:
        waiting, self._waiting, self._size = self._waiting, [], 0
        if not waiting:
            return
        kind = type(waiting[0][0])
        with self._pool.write_transaction() as connection:
            self._lease.renew(connection)
            if kind is ScoringLine:
                for line, _ in waiting:
                    insert_scoring_row(connection, self._run, self._received(line))
            elif kind is SampleLine:
                insert_samples(connection, encode_samples(self._run, (line for line, _ in waiting)))
            else:
                # Bodies are stored byte for byte as the file has them.
                found = [(line, raw_bodies(data)) for line, data in waiting]
                if kind is OutputLine:
                    self._insert_outputs(connection, found)
                elif kind is MarksLine:
                    self._insert_marks(connection, found)
                elif kind is EntryLine:
                    self._insert_graded_items(connection, found)
                else:
                    for line, _ in found:
                        put_label(connection, self._run, line.body)

    def _received(self, line: ScoringLine) -> ScoringFacts:
        cards = tuple(map(card_from_line, line.cards))
        # Earlier versions wrote a grading without a metric.
        if not cards and not self._facts.traits.has_metrics:
            cards = (GRADING_CARD,)
        return msgspec.structs.replace(line, cards=cards)

    def _insert_outputs(self, connection: Connection, found: Sequence[tuple[OutputLine, RawBodies]]) -> None:
        # The check sum of an output covers the id of its sample. A million ids would be too many to hold in memory.
        sql = "SELECT position, id FROM samples WHERE run = ? AND position BETWEEN ? AND ?"
        names: dict[int, bytes] = dict(connection.stream(sql, (self._run, found[0][0].position, found[-1][0].position)))
        rows = []
        for line, raw in found:
            body, key = bytes(raw.body), (line.position, line.repetition)
            rows.append((self._run, *key, line.at, body, output_checksum(*key, names[line.position], body)))
        self._done += OUTPUTS.put(connection, rows)

    def _insert_marks(self, connection: Connection, found: Sequence[tuple[MarksLine, RawBodies]]) -> None:
        rows = []
        for line, raw in found:
            body, key = bytes(raw.marks), (line.scoring, line.position, line.repetition)
            rows.append((self._run, *key, body, marks_checksum(*key, body)))
        MARKS.put(connection, rows)
        for scoring in {line.scoring for line, _ in found}:
            own = [(line, raw) for line, raw in found if line.scoring == scoring]
            self._marked[scoring] += len(own)
            final = [(line.position, line.repetition, bytes(raw.final)) for line, raw in own if line.final is not None]
            put_final_marks(connection, self._run, scoring, final)

    def _insert_graded_items(self, connection: Connection, found: Sequence[tuple[EntryLine, RawBodies]]) -> None:
        """Write what an earlier version wrote of a grading as outputs with marks."""
        bodies = [(line.position, bytes(raw.body)) for line, raw in found]
        entries = [GradedEntry(position, body, entry_checksum(position, body)) for position, body in bodies]
        done = put_graded_items(connection, self._run, entries)
        self._done += done
        self._marked[0] += done
