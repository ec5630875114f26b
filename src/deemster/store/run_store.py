"""The store of runs: begins, reads, changes, finishes and removes runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import msgspec

from deemster.errors import Issue, LeaseError, StorageError, StoreError, plural
from deemster.records import Exchange, Execution, MetricCard, SampleFacts
from deemster.store._baseline_table import delete_baseline, find_baseline, put_baseline, read_baselines
from deemster.store._database import ConnectionPool, storage_error, store_error
from deemster.store._execution_rows import select_marks
from deemster.store._find_runs import find_run, find_run_number, find_runs
from deemster.store._label_table import delete_label, put_label, read_labels
from deemster.store._row_encoding import encode_json, encode_marks, entry_checksum
from deemster.store._row_tables import COLUMNS, put_final_marks
from deemster.store._run_reader import RunReader
from deemster.store._run_table import (
    OnDamage,
    delete_abandoned_runs,
    delete_run,
    insert_all_samples,
    insert_run,
    insert_scoring_row,
    recount_done,
    update_run_row,
    update_scoring_row,
)
from deemster.store.batched_writer import Writer
from deemster.store.lease import Lease, acquire_lease, find_owner
from deemster.store.run_facts import (
    BaselineFacts,
    BaselineRow,
    LabelFacts,
    LeaseOwner,
    RunEnd,
    RunFacts,
    RunKind,
    RunRow,
    RunStatus,
    ScoringRow,
    TextTable,
)

_SETTLED = 2000
# Runs that are named by what they are to the others: where there is none, the store may be damaged.
_NAMES = ("latest", "previous", "baseline")


def _damaged(fault: str) -> str:
    return f"The store is damaged: {fault}. `deemster store check` says what is lost."


class Store:
    """Runs with their samples, outputs and marks. Any thread may use it.

    Attributes:
        where: The file or URL, without any password.
        durable: Whether every sample is committed by itself.
        pool: Its connections, for the other files of this room.
    """

    def __init__(self, pool: ConnectionPool, *, durable: bool) -> None:
        self.where = pool.database.where
        self.durable = durable
        self.pool = pool
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
        with ExitStack() as failing:
            failing.callback(self._delete, lease)
            insert_all_samples(self.pool, lease, run, samples)
            failing.pop_all()
        return lease

    def _delete(self, lease: Lease) -> None:
        with self._lock:
            self._leases.pop(lease.run_id, None)
        lease.release()
        delete_run(self.pool, lease.number)

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

    def owner(self, run_id: str) -> LeaseOwner | None:
        """The process that holds a run, or None.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        with self.pool.connection() as connection:
            return find_owner(connection, self.pool, run_id)

    def _require_lease(self, run_id: str) -> Lease:
        with self._lock:
            lease = self._leases.get(run_id)
        if lease is None or not lease.is_held:
            raise LeaseError(Issue(f"The run `{run_id}` is not leased here, so it is not written.", self.where))
        return lease

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

    def runs(
        self,
        *,
        suite: str | None = None,
        dataset: str | None = None,
        kind: RunKind | None = None,
        status: RunStatus | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        on_damage: OnDamage = None,
    ) -> list[RunRow]:
        """Runs, the newest first.

        Args:
            suite: Only those of this suite.
            dataset: Only those of this dataset.
            kind: Only those of this kind.
            status: Only those of this status.
            since: Only those begun at this time or later, in RFC 3339.
            until: Only those begun before this time.
            limit: At most so many.
            on_damage: Called with a message for each damaged run, which is then left out; without it, damage raises.

        Raises:
            StoreError: A run is damaged, or the database refuses.
        """
        conditions = {
            "suite = ?": suite,
            "dataset = ?": dataset,
            "kind = ?": kind,
            "status = ?": status,
            "started_at >= ?": since,
            "started_at < ?": until,
        }
        with self.pool.read_transaction() as connection:
            runs = find_runs(connection, self.where, conditions, limit=limit, on_damage=on_damage)
            fault = None
            if not runs and not any(conditions.values()):
                fault = self.pool.database.find_fault(connection)
        if fault is None:
            return runs

        # A damaged store may seem to hold nothing.
        if on_damage is None:
            raise storage_error(self.where, _damaged(fault))
        on_damage(f"{self.where}: {_damaged(fault)}")
        return []

    def damage(self) -> str | None:
        """That the store is damaged, where its database finds it so; not every damage is found without a long look.

        Raises:
            StoreError: The database refuses.
        """
        with self.pool.read_transaction() as connection:
            fault = self.pool.database.find_fault(connection)
        return None if fault is None else f"{self.where}: {_damaged(fault)}"

    def run(self, name: str, *, kind: RunKind | None = None, beside: RunFacts | None = None) -> RunRow:
        """One run.

        Args:
            name: Its id, a beginning that only its id has, its label, `latest`, `previous` or `baseline`.
            kind: The only kind that `latest` looks at.
            beside: The run whose suite's baseline is meant by `baseline`; the latest run unless given.

        Raises:
            StoreError: There is none, there are several, it is damaged, or the database refuses.
        """
        try:
            with self.pool.read_transaction() as connection:
                return find_run(connection, self.where, name, kind=kind, beside=beside)
        except StorageError:
            raise
        except StoreError:
            # Where the store is damaged, that is the reason.
            if name in _NAMES:
                self.runs(limit=1)
            raise

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

    def baseline(self, suite: str | None, dataset: str) -> BaselineRow | None:
        """The baseline of a suite; None where there is none.

        Args:
            suite: The suite's name; None for runs without one.
            dataset: The dataset's name, which counts where there is no suite.

        Raises:
            StoreError: It is damaged, or the database refuses.
        """
        with self.pool.read_transaction() as connection:
            return find_baseline(connection, self.where, suite, dataset)

    def baselines(self) -> list[BaselineRow]:
        """Every baseline, by suite and dataset.

        Raises:
            StoreError: One is damaged, or the database refuses.
        """
        with self.pool.read_transaction() as connection:
            return list(read_baselines(connection, self.where))

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

    def cards(self, run_id: str) -> tuple[MetricCard, ...]:
        """The metrics of a run's report, in the order of the marks of `executions`.

        Raises:
            StoreError: There is no such run, it is damaged, or the database refuses.
        """
        return select_marks(self.run(run_id).scorings).cards

    def samples(
        self, run_id: str, *, on_damage: OnDamage = None, content: bool = True, since: int = 0
    ) -> Iterator[SampleFacts]:
        """The samples of a run, in order.

        Args:
            run_id: The run.
            on_damage: Called with a message for each damage, which is then left out; without it, damage raises.
            content: Whether to read expected output and input; samples that are only counted need neither.
            since: The position they begin at.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        return self._reader(row, on_damage).samples(expected=row.samples, content=content, since=since)

    def executions(
        self,
        run_id: str,
        *,
        scoring: int | None = None,
        settled: bool = True,
        on_damage: OnDamage = None,
        since: int = 0,
    ) -> Iterator[Execution]:
        """The executions of a run, in the order of position and repetition.

        Args:
            run_id: The run.
            scoring: Whose marks; None for what a report shows: for each metric the latest complete scoring that has it,
                in the order of `cards`. An output that came after that scoring is `not_run` there. Where one scoring
                is asked for, an execution it has not marked has no marks.
            settled: Whether marks are shown as they were settled, where they were.
            on_damage: Called with a message for each damage, which is then left out; without it, damage raises.
            since: The position they begin at.

        Raises:
            StoreError: There is no such run or scoring, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        selection = select_marks(row.scorings if scoring is None else [self._scoring(row, scoring)])
        return self._reader(row, on_damage).executions(selection, settled=settled, done=row.done, since=since)

    def samples_at(self, run_id: str, positions: Iterable[int]) -> Iterator[tuple[SampleFacts, list[Execution]]]:
        """Some samples of a run with all their executions, as a report shows them.

        Args:
            run_id: The run.
            positions: Their places in the dataset.

        Raises:
            StoreError: There is no such run or sample, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        reader = self._reader(row, None)
        selection = select_marks(row.scorings)
        for position in positions:
            sample = next(reader.samples(expected=0, since=position, most=1), None)
            if sample is None:
                continue
            executions = reader.executions(selection, settled=True, done=0, since=position, most=row.repetitions)
            first = itertools.islice(executions, row.repetitions)
            yield sample, [execution for execution in first if execution.position == position]

    def rows_with_text(self, run_id: str, text: str, table: TextTable) -> Iterator[tuple[int, Any]]:
        """The samples whose rows may hold a text: position and what the row says. A text may also stand in a key.

        Args:
            run_id: The run.
            text: The text, in lower case; upper case is found too.
            table: The table whose rows are searched: `samples` gives ids, `contents` input and expected output,
                `outputs` answers, `marks` the marks that a report shows.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        reader = self._reader(row, None)
        selection = select_marks(row.scorings)
        if table != "marks" or selection.sources is None:
            yield from reader.rows_with_text(table, text)
            return

        # A mark of one scoring may be replaced by that of another.
        positions = {
            position
            for scoring in selection.scorings
            for position, _ in reader.rows_with_text(table, text, scoring=scoring.number)
        }
        for sample, executions in self.samples_at(run_id, sorted(positions)):
            yield from ((sample.position, execution.marks) for execution in executions)

    def find_sample(self, run_id: str, row_hash: str, *, near: int = 0) -> int | None:
        """The place of the sample with a row hash; None where the run has none.

        Args:
            run_id: The run.
            row_hash: The hash of its input and expected output, in hex.
            near: Where it probably is, which is looked at first.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        digest = bytes.fromhex(row_hash)
        sql = "SELECT position FROM samples WHERE run = ? AND row_hash = ?"
        with self.pool.read_transaction() as connection:
            number = find_run_number(connection, self.where, run_id)
            rows = connection.read(f"{sql} AND position = ?", (number, digest, near))
            if not rows:
                rows = connection.read(f"{sql} ORDER BY position LIMIT 1", (number, digest))
        return int(rows[0][0]) if rows else None

    def calls(self, run_id: str, *, scoring: int = 0, on_damage: OnDamage = None) -> Iterator[tuple[int, bytes]]:
        """The model calls that are kept of a run that may be resumed: id and JSON.

        Args:
            run_id: The run.
            scoring: The scoring that made them.
            on_damage: Called with a message for each damage, which is then left out; without it, damage raises.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        return self._reader(self.run(run_id), on_damage).calls(scoring)

    def columns(self, run_id: str) -> Iterator[bytes]:
        """The columns of a run as `write_columns` took them, part by part; nothing where there are none.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        return self._reader(self.run(run_id), None).columns()

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

    def prompts(self, run_id: str, position: int) -> dict[tuple[int, str], tuple[Exchange, ...]]:
        """What the judges of one sample were asked and replied, where the run keeps it: by repetition and metric.

        Args:
            run_id: The run.
            position: The sample's place in it.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        return self._reader(row, None).prompts(select_marks(row.scorings), position)

    def damaged_prompts(self, run_id: str) -> int:
        """How many rows of prompts of a run are damaged.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        return self._reader(self.run(run_id), None).damaged_prompts()

    def output_times(self, run_id: str) -> Iterator[tuple[int, str | None]]:
        """When each output of a run came: position and time, in order.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        return self._reader(self.run(run_id), None).output_times()

    def labels(self, run_id: str, *, on_damage: OnDamage = None) -> list[LabelFacts]:
        """The labels that people gave to samples of a run, by position.

        Args:
            run_id: The run.
            on_damage: Called with a message where labels are damaged, which are then left out; without it, damage
                raises.

        Raises:
            StoreError: There is no such run, a label is damaged, or the database refuses.
        """
        with self.pool.read_transaction() as connection:
            labels = list(read_labels(connection, find_run_number(connection, self.where, run_id)))

        lost = labels.count(None)
        if lost:
            damage = f"The run `{run_id}` is damaged: {plural(lost, 'label')} of {len(labels):,} cannot be read."
            error = storage_error(self.where, f"{damage} `deemster store check` says what is lost.")
            if on_damage is None:
                raise error
            on_damage(str(error))
        return [label for label in labels if label is not None]

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

    def _reader(self, row: RunRow, on_damage: OnDamage) -> RunReader:
        return RunReader(self.pool, row.id, row.number, on_damage=on_damage)

    def _scoring(self, row: RunRow, number: int) -> ScoringRow:
        if not 0 <= number < len(row.scorings):
            raise store_error(self.where, f"The run `{row.id}` has no scoring {number}.")
        return row.scorings[number]

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
        changed = msgspec.structs.replace(
            _with_facts(row, facts),
            status=status or row.status,
            identity=row.identity if identity is None else identity,
        )
        if status == "running":
            changed = msgspec.structs.replace(changed, reason=None, finished_at=None, duration_s=None)

        def write() -> None:
            with self.pool.write_transaction() as connection:
                lease.renew(connection)
                update_run_row(connection, lease.number, changed)
                if status == "running":
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
        scoring = msgspec.structs.replace(self._scoring(row, number), status=end.status, finished_at=end.finished_at)

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


def _with_facts(row: RunRow, facts: Mapping[str, Any] | None) -> RunRow:
    return msgspec.structs.replace(row, facts={**row.facts, **(facts or {})})
