"""Begins a run in a store: its row, its lease, its samples in commits of bounded size. Also takes runs out again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from deemster.errors import Issue, RunExistsError, plural
from deemster.records import MetricCard, SampleFacts
from deemster.store._database import ConnectionPool, store_error
from deemster.store._row_tables import SampleRows, encode_samples, insert_samples
from deemster.store._run_table import BEGINNING, insert_run_row, update_run_row
from deemster.store._scoring_table import insert_scoring_row
from deemster.store.lease import Lease, claim_run, find_owner
from deemster.store.run_facts import RunFacts, ScoringRow

_CHUNK_SAMPLES = 20_000
_CHUNK_BYTES = 32 << 20
_TABLES = ("labels", "columns", "prompts", "calls", "marks", "outputs", "samples", "scorings")


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
    with pool.write_transaction() as connection:
        if not insert_run_row(connection, run, status=BEGINNING):
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
