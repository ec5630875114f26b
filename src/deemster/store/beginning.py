"""Putting a run into the store with all its samples, and taking one out of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from deemster.errors import Fault, TakenError, counted
from deemster.records import MetricCard
from deemster.store.dialect import failure
from deemster.store.facts import RunFacts, SampleFacts
from deemster.store.lease import Lease, claim, owner_of
from deemster.store.pool import Pool
from deemster.store.register import BEGINNING, insert_run, insert_scoring, update_run
from deemster.store.samples import put_samples, sample_rows

_MANY = 20_000
_HEAVY = 32 << 20


def begun(pool: Pool, run: RunFacts, cards: Sequence[MetricCard]) -> Lease:
    """Write a run that nobody sees yet, and lease it.

    Raises:
        TakenError: There is a run of that id.
        StoreError: The database refuses.
    """
    with pool.writing() as rows:
        if not insert_run(rows, run):
            raise TakenError(Fault(f"The store has a run `{run.id}` already.", pool.dialect.where))
        number, token = claim(rows, pool, run.id)
        insert_scoring(rows, number, 0, cards, {}, started_at=run.started_at)
    return Lease(pool, run.id, number, token)


def fill(pool: Pool, lease: Lease, run: RunFacts, samples: Iterable[SampleFacts]) -> None:
    """Write the samples of a run, then let it be seen.

    Raises:
        StoreError: The number of samples is not what the run says, or the database refuses.
    """
    count, each = 0, iter(samples)
    with pool.lent() as rows, rows.roomy():
        while (chunk := sample_rows(lease.number, itertools.islice(each, _MANY), most=_HEAVY)).samples:
            with rows.transaction():
                lease.renew(rows)
                count += put_samples(rows, chunk)
    if count != run.samples:
        message = f"The run `{run.id}` was said to have {counted(run.samples, 'sample')}; {count:,} came."
        raise failure(pool.dialect.where, message)
    with pool.writing() as rows:
        lease.renew(rows)
        update_run(rows, lease.number, run, status="running", reason=None, finished_at=None, duration_s=None)


def sweep(pool: Pool) -> None:
    """Remove what processes left behind that died while they began a run.

    Raises:
        StoreError: The database refuses.
    """
    with pool.lent() as rows:
        unseen = rows.read("SELECT number, id FROM runs WHERE status = ?", (BEGINNING,))
        owners = [owner_of(rows, pool, name) for _, name in unseen]
    for (number, _), owner in zip(unseen, owners, strict=True):
        if owner is None or not owner.alive:
            delete(pool, number)


def delete(pool: Pool, number: int) -> None:
    """Remove a run with all its rows; the content of its samples stays, since others may share it.

    Raises:
        StoreError: The database refuses.
    """
    with pool.writing() as rows:
        for table in ("marks", "outputs", "entries", "samples", "scorings"):
            rows.write(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 - names only
        rows.write("DELETE FROM runs WHERE number = ?", (number,))
