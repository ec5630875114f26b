"""Reads what a store holds: runs, baselines, and of one run its samples, executions, prompts and labels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from deemster.errors import StorageError, StoreError, plural
from deemster.records import Exchange, Execution, MetricCard, SampleFacts
from deemster.store._baseline_table import find_baseline, read_baselines
from deemster.store._database import ConnectionPool, storage_error, store_error
from deemster.store._execution_rows import select_marks
from deemster.store._find_runs import find_experiment, find_run, find_run_number, find_runs
from deemster.store._label_table import read_labels
from deemster.store._row_encoding import encode_id
from deemster.store._run_reader import RunReader
from deemster.store._run_table import OnDamage
from deemster.store.lease import find_owner
from deemster.store.run_facts import (
    BaselineRow,
    LabelFacts,
    LeaseOwner,
    RunFacts,
    RunKind,
    RunRow,
    RunStatus,
    ScoringRow,
    TextTable,
)

# Runs that are named by what they are to the others: where there is none, the store may be damaged.
_NAMES = ("latest", "previous", "baseline")


def _damaged(fault: str) -> str:
    return f"The store is damaged: {fault}. `deemster store check` says what is lost."


class StoredRuns:
    """The runs of a store, to be read. Any thread may use it.

    Attributes:
        where: The file or URL, without any password.
        pool: Its connections, for the other files of this room.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self.where = pool.database.where
        self.pool = pool

    def owner(self, run_id: str) -> LeaseOwner | None:
        """The process that holds a run, or None.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        with self.pool.connection() as connection:
            return find_owner(connection, self.pool, run_id)

    def runs(
        self,
        *,
        suite: str | None = None,
        dataset: str | None = None,
        kind: RunKind | None = None,
        status: RunStatus | None = None,
        experiment: str | None = None,
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
            experiment: Only those of this experiment.
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
            "experiment = ?": experiment,
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

    def find_experiment(self, name: str) -> str | None:
        """The id of an experiment, by its id, a beginning that only it has, or as `latest`; None where there is none.

        Raises:
            StoreError: Several begin so, or the database refuses.
        """
        with self.pool.read_transaction() as connection:
            return find_experiment(connection, self.where, name)

    def run(self, name: str, *, kind: RunKind | None = None, beside: RunFacts | None = None) -> RunRow:
        """One run.

        Args:
            name: Its id, a beginning that only its id has, its label, `latest`, `previous`, `baseline`, or
                `EXPERIMENT/LABEL`, where the experiment is named in the same way.
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
        selection = select_marks(row.scorings if scoring is None else [scoring_of(row, scoring, where=self.where)])
        return self._reader(row, on_damage).executions(selection, settled=settled, done=row.done, since=since)

    def samples_at(
        self, run_id: str, positions: Iterable[int], *, scoring: int | None = None
    ) -> Iterator[tuple[SampleFacts, list[Execution]]]:
        """Some samples of a run with all their executions, as a report shows them.

        Args:
            run_id: The run.
            positions: Their places in the dataset.
            scoring: Whose marks; None for what a report shows.

        Raises:
            StoreError: There is no such run or sample, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        reader = self._reader(row, None)
        selection = select_marks(row.scorings if scoring is None else [scoring_of(row, scoring, where=self.where)])
        for position in positions:
            sample = next(reader.samples(expected=0, since=position, most=1), None)
            if sample is None:
                continue
            executions = reader.executions(selection, settled=True, done=0, since=position, most=row.repetitions)
            first = itertools.islice(executions, row.repetitions)
            yield sample, [execution for execution in first if execution.position == position]

    def rows_with_text(
        self, run_id: str, text: str, table: TextTable, *, wanted: Callable[[int], object] = lambda _: True
    ) -> Iterator[tuple[int, Any]]:
        """The samples whose rows may hold a text: position and what the row says. A text may also stand in a key.

        Args:
            run_id: The run.
            text: The text, in lower case; upper case is found too.
            table: The table whose rows are searched: `samples` gives ids, `contents` input and expected output,
                `outputs` answers, `marks` the marks that a report shows.
            wanted: Whether a sample is still looked for, by its position.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        reader = self._reader(row, None)
        selection = select_marks(row.scorings)
        if table != "marks" or selection.sources is None:
            yield from reader.rows_with_text(table, text, wanted=wanted)
            return

        # A mark of one scoring may be replaced by that of another.
        positions = {
            position
            for scoring in selection.scorings
            for position, _ in reader.rows_with_text(table, text, wanted=wanted, scoring=scoring.number)
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

    def position_of(self, run_id: str, sample_id: str) -> int | None:
        """The place of the sample with an id; None where the run has none.

        Raises:
            StoreError: There is no such run, or the database refuses.
        """
        sql = "SELECT position FROM samples WHERE run = ? AND id = ? ORDER BY position LIMIT 1"
        with self.pool.read_transaction() as connection:
            number = find_run_number(connection, self.where, run_id)
            rows = connection.read(sql, (number, encode_id(sample_id)))
        return int(rows[0][0]) if rows else None

    def samples_with_calls(
        self, run_id: str, calls: Collection[int], *, before: int
    ) -> Iterator[tuple[SampleFacts, list[Execution]]]:
        """The samples whose marks may stand on some model calls, with their executions, as a report shows them.

        Args:
            run_id: The run.
            calls: The ids of the calls; at least one.
            before: The position they end before.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        row = self.run(run_id)
        reader = self._reader(row, None)
        positions = {
            position
            for scoring in select_marks(row.scorings).scorings
            for position in reader.positions_of_calls(calls, scoring=scoring.number, before=before)
        }
        yield from self.samples_at(run_id, sorted(positions))

    def columns(self, run_id: str) -> Iterator[bytes]:
        """The columns of a run as `write_columns` took them, part by part; nothing where there are none.

        Raises:
            StoreError: There is no such run, something is damaged, or the database refuses.
        """
        return self._reader(self.run(run_id), None).columns()

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

    def _reader(self, row: RunRow, on_damage: OnDamage) -> RunReader:
        return RunReader(self.pool, row.id, row.number, on_damage=on_damage)


def scoring_of(row: RunRow, number: int, *, where: str) -> ScoringRow:
    """A scoring of a run.

    Args:
        row: The run.
        number: Its number.
        where: How messages name the store.

    Raises:
        StoreError: The run has no such scoring.
    """
    if not 0 <= number < len(row.scorings):
        raise store_error(where, f"The run `{row.id}` has no scoring {number}.")
    return row.scorings[number]
