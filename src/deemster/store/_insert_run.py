"""Inserts a run with all its samples into the store, and removes one."""

from __future__ import annotations

import binascii
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deemster.errors import Issue, RunExistsError, counted
from deemster.records import MetricCard
from deemster.store._connection_pool import ConnectionPool
from deemster.store._database import Connection, InsertStatement, Row, store_error
from deemster.store._row_encoding import encode_content, encode_id, encode_labels
from deemster.store._run_rows import BEGINNING, insert_run_row, insert_scoring_row, update_run_row
from deemster.store.lease import Lease, claim_run, find_owner
from deemster.store.run_facts import RunFacts, SampleFacts

_CONTENTS = InsertStatement("contents (row_hash, body, checksum)", "(?, ?, ?)")
_SAMPLES = InsertStatement(
    "samples (run, position, id, row_hash, body, checksum, content)",
    "(?, ?, ?, ?, ?, ?, (SELECT number FROM contents WHERE row_hash = ?))",
)


class SampleRows(NamedTuple):
    """Some samples of a run as rows.

    Attributes:
        contents: What they are about, each once, by hash.
        samples: What the run knows of each.
    """

    contents: list[Row]
    samples: list[Row]


def encode_samples(run: int, samples: Iterable[SampleFacts], *, most: int | None = None) -> SampleRows:
    """Samples as rows.

    Args:
        run: The number of the run.
        samples: Some of its samples.
        most: How many bytes are enough; no more samples are taken then.
    """
    contents: dict[bytes, Row] = {}
    labels: list[Row] = []
    size = 0
    for sample in samples:
        row_hash, name = bytes.fromhex(sample.row_hash), encode_id(sample.id)
        if sample.content and row_hash not in contents:
            body = encode_content(sample.expected_output, sample.input)
            contents[row_hash] = (row_hash, body, binascii.crc32(body, binascii.crc32(row_hash)))
            size += len(body)
        body = encode_labels(sample.tags, sample.metadata)
        total = binascii.crc32(body, binascii.crc32(b"%d/%b%b" % (sample.position, name, row_hash)))
        labels.append((run, sample.position, name, row_hash, body, total, row_hash if sample.content else None))
        size += len(body)
        if most is not None and size >= most:
            break
    # In one order for all, so that two runs that begin at the same time never wait for each other.
    return SampleRows([contents[row_hash] for row_hash in sorted(contents)], labels)


def insert_samples(connection: Connection, found: SampleRows) -> int:
    """Write samples and what of their content the store does not have; how many were not there yet.

    Raises:
        StoreError: The database refuses.
    """
    connection.insert_many(_CONTENTS, found.contents)
    return connection.insert_many(_SAMPLES, found.samples)


_MANY = 20_000
_HEAVY = 32 << 20


def insert_run(pool: ConnectionPool, run: RunFacts, cards: Sequence[MetricCard]) -> Lease:
    """Write a run that nobody sees yet, and lease it.

    Raises:
        RunExistsError: There is a run of that id.
        StoreError: The database refuses.
    """
    with pool.write_transaction() as connection:
        if not insert_run_row(connection, run):
            raise RunExistsError(Issue(f"The store has a run `{run.id}` already.", pool.database.where))
        number, token = claim_run(connection, pool, run.id)
        insert_scoring_row(connection, number, 0, cards, {}, started_at=run.started_at)
    return Lease(pool, run.id, number, token)


def insert_all_samples(pool: ConnectionPool, lease: Lease, run: RunFacts, samples: Iterable[SampleFacts]) -> None:
    """Write the samples of a run, then let it be seen.

    Raises:
        StoreError: The number of samples is not what the run says, or the database refuses.
    """
    count, each = 0, iter(samples)
    with pool.connection() as connection, connection.large_cache():
        while (chunk := encode_samples(lease.number, itertools.islice(each, _MANY), most=_HEAVY)).samples:
            with connection.transaction():
                lease.renew(connection)
                count += insert_samples(connection, chunk)
    if count != run.samples:
        message = f"The run `{run.id}` was said to have {counted(run.samples, 'sample')}; {count:,} came."
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
        for table in ("marks", "outputs", "entries", "samples", "scorings"):
            connection.write(f"DELETE FROM {table} WHERE run = ?", (number,))  # noqa: S608 - names only
        connection.write("DELETE FROM runs WHERE number = ?", (number,))
