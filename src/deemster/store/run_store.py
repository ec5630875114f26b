"""The store of runs: begins, leases, changes, finishes and removes them. What it reads is in `stored_runs.py`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import msgspec

from deemster.errors import Issue, LeaseError
from deemster.records import Execution, MetricCard, SampleFacts
from deemster.store._baseline_table import delete_baseline, put_baseline
from deemster.store._begin_run import delete_abandoned_runs, delete_run, insert_all_samples, insert_run
from deemster.store._database import ConnectionPool
from deemster.store._find_runs import find_run, find_run_number
from deemster.store._label_table import delete_label, put_label
from deemster.store._row_encoding import encode_json, encode_marks, entry_checksum
from deemster.store._row_tables import COLUMNS, put_final_marks
from deemster.store._run_table import recount_done, update_run_row
from deemster.store._scoring_table import insert_scoring_row, update_scoring_row
from deemster.store.batched_writer import Writer
from deemster.store.lease import Lease, acquire_lease
from deemster.store.run_facts import (
    BaselineFacts,
    LabelFacts,
    RunEnd,
    RunFacts,
    RunRow,
    RunStatus,
    ScoringRow,
)
from deemster.store.stored_runs import StoredRuns, scoring_of

# So many settled marks go to the database at once.
_SETTLED = 2000


class Store(StoredRuns):
    """Runs with their samples, outputs and marks. Any thread may use it.

    What it reads stands in `StoredRuns`. A run is written by the process that holds its lease; labels and baselines by
    any.

    Attributes:
        durable: Whether every sample is committed by itself.
    """

    def __init__(self, pool: ConnectionPool, *, durable: bool) -> None:
        super().__init__(pool)
        self.durable = durable
        self._lock = threading.Lock()
        self._leases: dict[str, Lease] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what is leased and close the connections."""
        with self._lock:
            leases = list(self._leases.values())
            self._leases = {}
        for lease in leases:
            lease.release()
        self.pool.close()

    def begin(self, run: RunFacts, samples: Iterable[SampleFacts], *, cards: Sequence[MetricCard]) -> Lease:
        """Insert a run and its samples, and lease it. Others see the run once all its samples are there.

        Args:
            run: The run.
            samples: Its samples, in order.
            cards: Its metrics, in the order of the marks.

        Raises:
            RunExistsError: There is a run of that id.
            StoreError: The number of samples is not what the run says, or the database refuses.
        """
        self.pool.retry_when_lost(lambda: delete_abandoned_runs(self.pool))
        # A run whose connection was lost at the very end is there, unseen, and the next one removes it.
        lease = self._remember(self.pool.retry_when_lost(lambda: insert_run(self.pool, run, cards)))
        with ExitStack() as on_failure:
            on_failure.callback(self._delete, lease)
            insert_all_samples(self.pool, lease, run, samples)
            on_failure.pop_all()
        return lease

    def lease(self, run_id: str) -> Lease:
        """Take the lease of a run that is free, of a dead process, or without a heartbeat for 30 seconds.

        Raises:
            LeaseError: Another process holds it; host and process id are named.
            StoreError: There is no such run, or the database refuses.
        """
        return self._remember(acquire_lease(self.pool, run_id))

    def _remember(self, lease: Lease) -> Lease:
        with self._lock:
            self._leases[lease.run_id] = lease
        return lease

    def _require_lease(self, run_id: str) -> Lease:
        with self._lock:
            lease = self._leases.get(run_id)
        if lease is None or not lease.is_held:
            raise LeaseError(Issue(f"The run `{run_id}` is not leased here, so it is not written.", self.where))
        return lease

    def writer(self, run_id: str, *, scoring: int = 0, outputs: bool = True) -> Writer:
        """A writer for the executions of a run.

        Args:
            run_id: The run, leased here.
            scoring: Which scoring the marks belong to.
            outputs: Whether outputs are written too.

        Raises:
            LeaseError: The run is not leased here.
        """
        return Writer(self.pool, self._require_lease(run_id), scoring=scoring, outputs=outputs, durable=self.durable)

    def settle(self, run_id: str, scoring: int, executions: Iterable[Execution]) -> None:
        """Write final marks, in one transaction.

        Args:
            run_id: The run, leased here.
            scoring: The scoring that made them.
            executions: The executions whose marks changed; they are read again where the connection is lost.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)

        def write() -> None:
            marks = (
                (execution.position, execution.repetition, encode_marks(execution.marks)) for execution in executions
            )
            with self.pool.write_transaction() as connection:
                lease.renew(connection)
                while chunk := list(itertools.islice(marks, _SETTLED)):
                    put_final_marks(connection, lease.number, scoring, chunk)
                lease.renew(connection)

        self.pool.retry_when_lost(write)

    def write_columns(self, run_id: str, parts: Iterable[bytes]) -> None:
        """Write the columns of a run, in place of those it has. They are a copy of its marks that is read faster.

        Args:
            run_id: The run, leased here.
            parts: The columns in parts, as their reader wants them.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)
        with self.pool.write_transaction() as connection:
            lease.renew(connection)
            connection.write("DELETE FROM columns WHERE run = ?", (lease.number,))
            for part, body in enumerate(parts):
                COLUMNS.put(connection, [(lease.number, part, body, entry_checksum(part, body))])

    def amend(
        self,
        run_id: str,
        *,
        facts: Mapping[str, Any] | None = None,
        identity: Mapping[str, Any] | None = None,
        status: RunStatus | None = None,
    ) -> None:
        """Change the facts, identity or status of a run, in one transaction.

        Args:
            run_id: The run, leased here.
            facts: Added to its facts; one of the same name is replaced.
            identity: Replaces its identity.
            status: Its new status.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)
        row = self.run(run_id)
        is_resumed = status == "running"

        changed = _with_facts(row, facts)
        if identity is not None:
            changed = msgspec.structs.replace(changed, identity=identity)
        if status is not None:
            changed = msgspec.structs.replace(changed, status=status)
        if is_resumed:
            changed = msgspec.structs.replace(changed, reason=None, finished_at=None, duration_s=None)

        def write() -> None:
            with self.pool.write_transaction() as connection:
                lease.renew(connection)
                update_run_row(connection, lease.number, changed)
                if is_resumed:
                    recount_done(connection, lease.number)
                if status is not None:
                    first = msgspec.structs.replace(row.scorings[0], status=status, finished_at=changed.finished_at)
                    update_scoring_row(connection, lease.number, first)

        self.pool.retry_when_lost(write)

    def finish(
        self,
        run_id: str,
        end: RunEnd,
        *,
        facts: Mapping[str, Any] | None = None,
        forget_calls: bool = False,
        release: bool = False,
    ) -> None:
        """End a run.

        Args:
            run_id: The run, leased here.
            end: How it ended.
            facts: Added to its facts; one of the same name is replaced.
            forget_calls: Whether nothing is left to do, so that its model calls are no longer kept.
            release: Whether the lease is given back with it, in the same transaction.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)
        row = _with_facts(self.run(run_id), facts)
        ended = msgspec.structs.replace(row, **end._asdict())
        self._write_end(lease, ended, 0, end, forget_calls=forget_calls, release=release)

    def open_scoring(
        self, run_id: str, cards: Sequence[MetricCard], *, identity: Mapping[str, Any], started_at: str | None = None
    ) -> int:
        """Begin a further scoring of a run's outputs, or go on with an unfinished one of the same identity.

        Args:
            run_id: The run, leased here.
            cards: The metrics, in the order of the marks.
            identity: Plain JSON that says what is scored with what.
            started_at: When it begins.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)
        row = self.run(run_id)
        for scoring in row.scorings[1:]:
            if scoring.status == "running" and encode_json(scoring.identity) == encode_json(identity):
                return scoring.number

        scoring = ScoringRow(number=len(row.scorings), cards=tuple(cards), identity=identity, started_at=started_at)
        with self.pool.write_transaction() as connection:
            lease.renew(connection)
            insert_scoring_row(connection, lease.number, scoring)
        return scoring.number

    def finish_scoring(
        self,
        run_id: str,
        scoring: int,
        end: RunEnd,
        *,
        facts: Mapping[str, Any] | None = None,
        forget_calls: bool = False,
        release: bool = False,
    ) -> None:
        """End a further scoring of a run, which stays as it is but for its facts.

        Args:
            run_id: The run, leased here.
            scoring: Which scoring ended.
            end: How it ended.
            facts: Added to the facts of the run; one of the same name is replaced.
            forget_calls: Whether nothing is left to do, so that its model calls are no longer kept.
            release: Whether the lease is given back with it, in the same transaction.

        Raises:
            LeaseError: The run is not leased here.
            StoreError: The database refuses.
        """
        lease = self._require_lease(run_id)
        row = _with_facts(self.run(run_id), facts)
        self._write_end(lease, row, scoring, end, forget_calls=forget_calls, release=release)

    def _write_end(
        self, lease: Lease, row: RunRow, number: int, end: RunEnd, *, forget_calls: bool, release: bool
    ) -> None:
        scoring = msgspec.structs.replace(
            scoring_of(row, number, where=self.where), status=end.status, finished_at=end.finished_at
        )

        def write() -> None:
            with self.pool.write_transaction() as connection:
                lease.renew(connection)
                update_run_row(connection, lease.number, row)
                update_scoring_row(connection, lease.number, scoring)
                if forget_calls:
                    connection.write("DELETE FROM calls WHERE run = ? AND scoring = ?", (lease.number, number))
                if release:
                    lease.release_within(connection)

        self.pool.retry_when_lost(write)
        if release:
            lease.stop_heartbeat()

    def remove(self, run_id: str) -> None:
        """Remove a run. The content of its samples stays until the store is pruned, since others may share it.

        Raises:
            LeaseError: Another process is writing it.
            StoreError: There is no such run, it is a baseline, or the database refuses.
        """
        with self._lock:
            lease = self._leases.get(run_id)
        if lease is None or not lease.is_held:
            lease = self.lease(run_id)
        self._delete(lease)

    def _delete(self, lease: Lease) -> None:
        with self._lock:
            self._leases.pop(lease.run_id, None)
        lease.release()
        delete_run(self.pool, lease.number)

    def promote(self, run_id: str, facts: BaselineFacts) -> None:
        """Make a run the baseline of its suite, or of its dataset where it has none, in place of the one before.

        Args:
            run_id: The run.
            facts: What the baseline remembers of it.

        Raises:
            StoreError: There is no such run, it is damaged, or the database refuses.
        """
        with self.pool.write_transaction() as connection:
            put_baseline(connection, find_run(connection, self.where, run_id), facts)

    def clear_baseline(self, suite: str | None, dataset: str) -> bool:
        """Forget a baseline. Its run stays.

        Args:
            suite: The suite's name; None for runs without one.
            dataset: The dataset's name, which counts where there is no suite.

        Returns:
            Whether there was one.

        Raises:
            StoreError: The database refuses.
        """
        with self.pool.write_transaction() as connection:
            return delete_baseline(connection, suite, dataset)

    def put_label(self, run_id: str, label: LabelFacts) -> None:
        """Write a label, in place of what the same person said of the same thing before. No lease is needed.

        Args:
            run_id: The run.
            label: The label.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        with self.pool.write_transaction() as connection:
            put_label(connection, find_run_number(connection, self.where, run_id), label)

    def delete_label(self, run_id: str, label: LabelFacts) -> None:
        """Take a label back.

        Args:
            run_id: The run.
            label: The label.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        with self.pool.write_transaction() as connection:
            delete_label(connection, find_run_number(connection, self.where, run_id), label)


def _with_facts(row: RunRow, facts: Mapping[str, Any] | None) -> RunRow:
    return msgspec.structs.replace(row, facts={**row.facts, **(facts or {})})
