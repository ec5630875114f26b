"""Samples as rows: what they are about is kept once for all runs, what a run calls them is kept with the run."""

from __future__ import annotations

import binascii
from collections.abc import Iterable
from typing import NamedTuple

from deemster.store.dialect import Insert, Row, Rows
from deemster.store.encoding import content_body, identifier, labels_body
from deemster.store.facts import SampleFacts

_CONTENTS = Insert("contents (row_hash, body, checksum)", "(?, ?, ?)")
_SAMPLES = Insert(
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


def sample_rows(run: int, samples: Iterable[SampleFacts], *, most: int | None = None) -> SampleRows:
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
        row_hash, name = bytes.fromhex(sample.row_hash), identifier(sample.id)
        if sample.content and row_hash not in contents:
            body = content_body(sample.expected_output, sample.input)
            contents[row_hash] = (row_hash, body, binascii.crc32(body, binascii.crc32(row_hash)))
            size += len(body)
        body = labels_body(sample.tags, sample.metadata)
        total = binascii.crc32(body, binascii.crc32(b"%d/%b%b" % (sample.position, name, row_hash)))
        labels.append((run, sample.position, name, row_hash, body, total, row_hash if sample.content else None))
        size += len(body)
        if most is not None and size >= most:
            break
    # In one order for all, so that two runs that begin at the same time never wait for each other.
    return SampleRows([contents[row_hash] for row_hash in sorted(contents)], labels)


def put_samples(rows: Rows, found: SampleRows) -> int:
    """Write samples and what of their content the store does not have; how many were not there yet.

    Raises:
        StoreError: The database refuses.
    """
    rows.insert_many(_CONTENTS, found.contents)
    return rows.insert_many(_SAMPLES, found.samples)
