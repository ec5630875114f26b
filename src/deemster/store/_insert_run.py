"""Inserts a run with its samples, and deletes runs, also those that a dead process left half-written."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from deemster.errors import Issue, RunExistsError, plural
from deemster.records import MetricCard
from deemster.store._database import ConnectionPool, store_error
from deemster.store._row_tables import delete_rows, encode_samples, insert_samples
from deemster.store._run_table import BEGINNING, insert_run_row, insert_scoring_row, update_run_row
from deemster.store.lease import Lease, claim_run, find_owner
from deemster.store.run_facts import RunFacts, SampleFacts

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
    with pool.write_transaction() as connection:
        if not insert_run_row(connection, run):
            raise RunExistsError(Issue(f"The store has a run `{run.id}` already.", pool.database.where))
        number, token = claim_run(connection, pool, run.id)
        if cards is not None:
            insert_scoring_row(connection, number, 0, cards, {}, started_at=run.started_at)
    return Lease(pool, run.id, number, token)


def insert_all_samples(pool: ConnectionPool, lease: Lease, run: RunFacts, samples: Iterable[SampleFacts]) -> None:
    """Write the samples of a run, then let it be seen.

    Raises:
        StoreError: The number of samples is not what the run says, or the database refuses.
    """
    count, each = 0, iter(samples)
    with pool.connection() as connection, connection.large_cache():
        while (
            chunk := encode_samples(lease.number, itertools.islice(each, _CHUNK_SAMPLES), most=_CHUNK_BYTES)
        ).samples:
            with connection.transaction():
                lease.renew(connection)
                count += insert_samples(connection, chunk)
    if count != run.samples:
        message = f"The run `{run.id}` was said to have {plural(run.samples, 'sample')}; {count:,} came."
        raise store_error(pool.database.where, message)
    with pool.write_transaction() as connection:
        lease.renew(connection)
        update_run_row(connection, lease.number, run, status="running", reason=None, finished_at=None, duration_s=None)


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
        StoreError: The database refuses.
    """
    with pool.write_transaction() as connection:
        delete_rows(connection, number)
