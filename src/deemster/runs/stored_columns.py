"""Keeps the marks of a finished run column by column in the store, so that comparisons and views read them at once."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets.where_condition import applies
from deemster.errors import StoreError
from deemster.records import MetricCard
from deemster.results import MarkTable
from deemster.results.usage_and_cost import USAGE
from deemster.runs.build_report import batches, to_sample
from deemster.store import RunRow, SampleFacts, Store

_BLOCK = 1 << 13
_LEVEL = 1


class SampleColumns(NamedTuple):
    """The samples of a run, as arrays in the order of its dataset.

    Attributes:
        digests: The row hash of each sample, 32 bytes a row.
        ids: Gives the ids of the samples at some positions.
    """

    digests: NDArray[np.uint8]
    ids: Callable[[Sequence[int]], list[str]]


class _Block(msgspec.Struct, array_like=True):
    """Some samples in a row, and their marks. Arrays are their bytes, in the order of this machine's numbers."""

    ids: bytes
    id_ends: bytes
    digests: bytes
    tags: list[str]
    tag_codes: bytes
    tag_counts: bytes
    scores: bytes
    causes: bytes
    passed: bytes
    outputs: bytes
    usage: bytes | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Block).decode


def save_columns(store: Store, run_id: str, table: MarkTable) -> None:
    """Keep the columns of a run that ends.

    Args:
        store: Where the run is stored; it is leased.
        run_id: The run.
        table: Its marks.

    Raises:
        StoreError: The store fails.
    """
    store.write_columns(run_id, _blocks(store.samples(run_id, content=False), table))


def _blocks(samples: Iterator[SampleFacts], table: MarkTable) -> Iterator[bytes]:
    start = 0
    while block := list(islice(samples, _BLOCK)):
        stop = start + len(block)
        ids, ends = bytearray(), array("q")
        codes: dict[str, int] = {}
        tag_codes, tag_counts = array("q"), array("q")
        for sample in block:
            ids += sample.id.encode()
            ends.append(len(ids))
            tag_codes.extend(codes.setdefault(tag, len(codes)) for tag in sample.tags)
            tag_counts.append(len(sample.tags))
        whole = _Block(
            ids=bytes(ids),
            id_ends=ends.tobytes(),
            digests=b"".join(bytes.fromhex(sample.row_hash) for sample in block),
            tags=list(codes),
            tag_codes=tag_codes.tobytes(),
            tag_counts=tag_counts.tobytes(),
            scores=table.scores[start:stop].tobytes(),
            causes=table.causes[start:stop].tobytes(),
            passed=table.passed[start:stop].tobytes(),
            outputs=table.outputs[start:stop].tobytes(),
            usage=None if table.usage is None else table.usage[start:stop].tobytes(),
        )
        yield zlib.compress(_encode(whole), _LEVEL)
        start = stop


def load_columns(store: Store, row: RunRow, cards: Sequence[MetricCard]) -> tuple[MarkTable, SampleColumns] | None:
    """The marks and samples of a run from its columns; None where it has none, or they do not fit it.

    Args:
        store: Where the run is stored.
        row: The run.
        cards: Its metrics.
    """
    samples, repetitions = row.samples, row.repetitions
    table = MarkTable(cards, samples=samples, repetitions=repetitions)
    digests = np.zeros((samples, 32), dtype=np.uint8)
    ids, ends = bytearray(), np.zeros(samples + 1, dtype=np.int64)
    start = 0
    try:
        for part in store.columns(row.id):
            block = _decode(zlib.decompress(part))
            block_ends = np.frombuffer(block.id_ends, dtype=np.int64)
            stop = start + len(block_ends)
            ends[start + 1 : stop + 1] = block_ends + len(ids)
            ids += block.ids
            digests[start:stop] = np.frombuffer(block.digests, dtype=np.uint8).reshape(-1, 32)
            if block.usage is not None and table.usage is None:
                table.usage = np.full((samples, repetitions, len(USAGE)), np.nan)
            for name in ("scores", "causes", "passed", "outputs", "usage"):
                body, column = getattr(block, name), getattr(table, name)
                if body is not None:
                    column[start:stop] = np.frombuffer(body, dtype=column.dtype).reshape(-1, *column.shape[1:])
            _tag_samples(table, block, start)
            start = stop
    except (msgspec.MsgspecError, StoreError, ValueError, zlib.error):
        # They are a copy: the rows say the same.
        return None
    if start != samples:
        return None
    table.counted = row.done
    return table, SampleColumns(digests, lambda places: [ids[ends[at] : ends[at + 1]].decode() for at in places])


def read_columns(store: Store, row: RunRow, cards: Sequence[MetricCard]) -> tuple[MarkTable, SampleColumns]:
    """The marks and samples of a run, row by row from its facts.

    Args:
        store: Where the run is stored.
        row: The run.
        cards: Its metrics.

    Raises:
        StoreError: The store fails.
    """
    table = MarkTable(cards, samples=row.samples, repetitions=row.repetitions)
    digests, ids = bytearray(), []
    conditions = [(place, card.where) for place, card in enumerate(cards) if card.where is not None]
    for sample in store.samples(row.id, content=bool(conditions)):
        table.tag(sample.position, sample.tags)
        for place, where in conditions:
            if not applies(where, to_sample(sample)):
                table.leave_out(sample.position, place)
        digests += bytes.fromhex(sample.row_hash)
        ids.append(sample.id)
    for batch in batches(store.executions(row.id)):
        table.add(batch)
    hashes = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)
    return table, SampleColumns(hashes, lambda positions: [ids[position] for position in positions])


def _tag_samples(table: MarkTable, block: _Block, start: int) -> None:
    counts = np.frombuffer(block.tag_counts, dtype=np.int64)
    codes = np.frombuffer(block.tag_codes, dtype=np.int64)
    positions = np.repeat(np.arange(start, start + len(counts)), counts)
    for code, tag in enumerate(block.tags):
        table.tag_many(positions[codes == code], tag)
    if (counts == 0).any():
        table.tag_many(start + np.flatnonzero(counts == 0), None)
