"""Writes executions as they finish, many in one commit, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from deemster.errors import StoreError
from deemster.records import Execution, SampleFacts
from deemster.store._database import Connection, ConnectionPool, Row, storage_error
from deemster.store._row_encoding import (
    call_checksum,
    encode_answer,
    encode_id,
    encode_marks,
    marks_checksum,
    output_checksum,
    prompts_checksum,
)
from deemster.store._row_tables import CALLS, MARKS, OUTPUTS, PROMPTS, encode_samples, insert_samples
from deemster.store._run_table import add_done
from deemster.store.lease import Lease

# The writer commits at most 250 ms after `add`: 150 ms of waiting, the rest for the commit itself.
_COMMIT_DELAY_S = 0.15
_GROUP_EXECUTIONS = 4000
_GROUP_BYTES = 4 << 20
_PENDING_BYTES = 16 << 20


class _Group:
    """What goes into one commit. A later value of one key takes the place of an earlier one."""

    def __init__(self, *, count: int = 0) -> None:
        self.samples: list[SampleFacts] = []
        self.outputs: dict[tuple[int, int], Row] = {}
        self.marks: dict[tuple[int, int], Row] = {}
        self.calls: dict[int, Row] = {}
        self.prompts: dict[tuple[int, int, int], Row] = {}
        self.size, self.count, self.since = 0, count, 0.0

    def join(self, other: _Group) -> None:
        """Take in the rows of another group."""
        self.since = self.since or time.monotonic()
        self.outputs.update(other.outputs)
        self.marks.update(other.marks)
        self.calls.update(other.calls)
        self.prompts.update(other.prompts)
        self.size += other.size
        self.count += other.count

    @property
    def is_large(self) -> bool:
        return self.count >= _GROUP_EXECUTIONS or self.size >= _GROUP_BYTES


class Writer:
    """Takes executions from any thread and commits them in groups, in a thread of its own.

    Args:
        pool: Connections to the store.
        lease: The right to write the run.
        scoring: Which scoring the marks belong to.
        outputs: Whether outputs are written; a rescoring writes marks only.
        durable: Whether `add` returns only when what it was given is committed.
    """

    def __init__(self, pool: ConnectionPool, lease: Lease, *, scoring: int, outputs: bool, durable: bool) -> None:
        self._pool, self._lease, self._scoring, self._outputs, self._durable = pool, lease, scoring, outputs, durable
        self._group = _Group()
        self._held_samples: list[SampleFacts] = []
        self._pending = 0
        self._added = self._committed = 0
        self._waiting = 0
        self._error: StoreError | None = None
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="deemster-writer", daemon=True)
        self._thread.start()

    def add(self, executions: Sequence[Execution], *, at: str | None = None) -> None:
        """Write executions; one that is there already is replaced. Waits while too much is uncommitted.

        Args:
            executions: Finished ones.
            at: When they finished.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        group = _Group(count=len(executions))
        run, scoring = self._lease.number, self._scoring
        for execution in executions:
            position, repetition = key = execution.position, execution.repetition
            if self._outputs:
                body = encode_answer(execution)
                name = encode_id(execution.id)
                group.outputs[key] = (run, *key, at, body, output_checksum(position, repetition, name, body))
                group.size += len(body)
            body = encode_marks(execution.marks)
            group.marks[key] = (run, scoring, *key, body, marks_checksum(scoring, position, repetition, body))
            group.size += len(body) + 200
        self._enqueue(group)

    def add_samples(self, samples: Sequence[SampleFacts]) -> None:
        """Write samples that come while the run goes on, in one commit with the executions that are added after them.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        with self._changed:
            self._raise_failure()
            self._held_samples.extend(samples)

    def add_calls(self, calls: Sequence[tuple[int, bytes]]) -> None:
        """Write model calls, each an id and JSON; one that is there already is replaced.

        It never waits, so that an event loop can call it: `add` slows the run down where too much is uncommitted. Who
        needs the calls committed calls `flush`.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        group = _Group(count=len(calls))
        run, scoring = self._lease.number, self._scoring
        for call, body in calls:
            group.calls[call] = (run, scoring, call, body, call_checksum(scoring, call, body))
            group.size += len(body) + 100
        with self._changed:
            self._raise_failure()
            self._join(group)

    def add_prompts(self, position: int, repetition: int, metric: int, body: bytes) -> None:
        """Write what a judge was asked for one mark, as JSON; what is there already is replaced. It never waits.

        Args:
            position: The sample's place in the dataset.
            repetition: From 0.
            metric: The place of the metric among those of the scoring.
            body: The exchanges with the models.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        group, key = _Group(count=1), (position, repetition, metric)
        total = prompts_checksum(self._scoring, *key, body)
        group.prompts[key] = (self._lease.number, self._scoring, *key, body, total)
        group.size = len(body) + 100
        with self._changed:
            self._raise_failure()
            self._join(group)

    def flush(self) -> None:
        """Return when all that was added is committed.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        with self._changed:
            self._release_samples()
            goal = self._added
            self._waiting += 1
            self._changed.notify_all()
            try:
                self._changed.wait_for(lambda: self._committed >= goal or self._error is not None)
            finally:
                self._waiting -= 1
            self._raise_failure()

    def close(self) -> None:
        """Commit what is left and end the thread.

        Raises:
            StoreError: A commit failed, or the lease was lost.
        """
        with self._changed:
            self._release_samples()
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except StoreError:
            # The error that ended the block says more.
            if error is None:
                raise

    def _raise_failure(self) -> None:
        if self._error is not None:
            raise self._error

    def _enqueue(self, added: _Group) -> None:
        """Add rows to the group once there is room; a durable writer then waits until they are committed."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending < _PENDING_BYTES or self._error is not None)
            self._raise_failure()
            self._release_samples()
            self._join(added)
        if self._durable:
            self.flush()

    def _join(self, added: _Group) -> None:
        is_first = not self._group.count
        self._group.join(added)
        self._added += added.count
        self._pending += added.size
        # The thread looks at a group when it begins and when it is large; waking it in between costs more than a row.
        if is_first or self._group.is_large:
            self._changed.notify_all()

    def _release_samples(self) -> None:
        """Add the samples that were held back to the next group."""
        if self._held_samples:
            self._group.samples.extend(self._held_samples)
            self._group.count += len(self._held_samples)
            self._added += len(self._held_samples)
            self._held_samples = []
            self._changed.notify_all()

    def _work(self) -> None:
        """Commit group after group until the writer is closed and nothing is left."""
        try:
            while (group := self._next()) is not None:
                self._pool.retry_when_lost(partial(self._commit, group))
                with self._changed:
                    self._committed += group.count
                    self._pending -= group.size
                    self._changed.notify_all()
        except StoreError as error:
            self._error = error
        finally:
            with self._changed:
                if self._error is None and not self._is_closing:
                    self._error = storage_error(
                        self._pool.database.where, "The thread that writes to the store has ended."
                    )
                self._changed.notify_all()

    def _commit(self, group: _Group) -> None:
        with self._pool.write_transaction() as connection:
            self._lease.renew(connection)
            self._write(connection, group)

    def _next(self) -> _Group | None:
        """The next group to commit, once it is large or old enough, or `flush` waits for it."""
        with self._changed:
            self._changed.wait_for(lambda: self._group.count or self._is_closing)
            if not self._group.count:
                return None
            until = self._group.since + _COMMIT_DELAY_S
            self._changed.wait_for(
                lambda: self._group.is_large or self._waiting or self._is_closing, max(0.0, until - time.monotonic())
            )
            group, self._group = self._group, _Group()
            return group

    def _write(self, connection: Connection, group: _Group) -> None:
        run = self._lease.number
        if group.samples:
            count = insert_samples(connection, encode_samples(run, group.samples))
            connection.write("UPDATE runs SET samples = samples + ? WHERE number = ?", (count, run))
        if group.calls:
            CALLS.put(connection, list(group.calls.values()))
        if group.prompts:
            PROMPTS.put(connection, list(group.prompts.values()))
        done = OUTPUTS.put(connection, list(group.outputs.values()))
        if done:
            add_done(connection, run, done)
        marked = MARKS.put(connection, list(group.marks.values()))
        if marked:
            add_done(connection, run, marked, scoring=self._scoring)
