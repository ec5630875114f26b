"""Keeps the marks of a finished run column by column in the store, so that comparisons and views read them at once."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets.fingerprint import RowHashes
from deemster.errors import StoreError
from deemster.records import Execution, MetricCard, SampleFacts
from deemster.report import Report
from deemster.report.build_report import batches, has_conditions, note_sample
from deemster.report.report_figures import figures_facts
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import PanelSummary
from deemster.results.usage_and_cost import USAGE
from deemster.runs.run_figures import stored_figures
from deemster.store import RunRow, ScoringRow, Store

_BLOCK = 1 << 13
_LEVEL = 1
# What a block unpacks to at most: a store may come from a stranger, and a larger block is read from its rows.
_MOST_UNPACKED = 1 << 28
# How the head of a report begins: as JSON, as earlier versions wrote it, or as a large map of MessagePack.
_JSON_HEAD = b"{"
_TYPED_HEAD = b"\xde"


class SampleColumns(NamedTuple):
    """The samples of a run, as arrays in the order of its dataset.

    Attributes:
        digests: The row hash of each sample, 32 bytes a row.
        ids: Gives the ids of the samples at some positions.
        usage: Gives what the target used for each output, as a `MarkTable` has it.
    """

    digests: NDArray[np.uint8]
    ids: Callable[[Sequence[int]], list[str]]
    usage: Callable[[], NDArray[np.float64] | None]


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
    output_chars: bytes | None = None
    broken_off: bytes | None = None


class _Panels(msgspec.Struct):
    """What columns need of the head of a report as earlier versions wrote it."""

    panels: dict[str, PanelSummary] | None = None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Block).decode
_decode_report = msgspec.msgpack.Decoder(Report).decode
_decode_panels = msgspec.json.Decoder(_Panels).decode


class ColumnSamples:
    """What columns hold of the samples of a run, noted as the samples pass by.

    Args:
        row_hashes: The row hash of each sample, in order, which are there already.

    Attributes:
        blocks: The samples in their order, some at a time.
    """

    def __init__(self, row_hashes: Iterable[str]) -> None:
        self.row_hashes = row_hashes
        self.blocks: list[_NotedSamples] = []

    @classmethod
    def stored(cls, store: Store, run_id: str) -> ColumnSamples:
        """The samples of a run as its store has them.

        Raises:
            StoreError: The store fails.
        """
        digests = bytearray()
        samples = cls(RowHashes(digests))
        for sample in samples.note(store.samples(run_id, content=False)):
            digests += bytes.fromhex(sample.row_hash)
        return samples

    def note(self, samples: Iterable[SampleFacts]) -> Iterator[SampleFacts]:
        """Give samples on, in their order, and note them in place of earlier ones."""
        self.blocks = []
        for index, sample in enumerate(samples):
            if index % _BLOCK == 0:
                self.blocks.append(_NotedSamples())
            self.blocks[-1].add(sample)
            yield sample


class _NotedSamples:
    """Some samples in a row, as a block of columns holds them."""

    def __init__(self) -> None:
        self.ids = bytearray()
        self.id_sizes = array("I")
        self.tags: dict[str, int] = {}
        self.tag_codes = array("I")
        self.tag_counts = array("I")

    def add(self, sample: SampleFacts) -> None:
        sample_id = sample.id.encode()
        self.ids += sample_id
        self.id_sizes.append(len(sample_id))

        tags = sample.labels.tags
        for tag in tags:
            self.tag_codes.append(self.tags.setdefault(tag, len(self.tags)))
        self.tag_counts.append(len(tags))


def save_columns(store: Store, report: Report, table: MarkTable, samples: ColumnSamples) -> None:
    """Keep the columns of a run that ends, behind the numbers of its report.

    Args:
        store: Where the run is stored; it is leased.
        report: Its report.
        table: Its marks.
        samples: Its samples.

    Raises:
        StoreError: The store fails.
    """
    store.write_columns(report.run.id, chain((_encode_head(report),), _blocks(samples, table)))


def _encode_head(report: Report) -> bytes:
    """The numbers of a report as they are, to the last digit; as its file has them where they would not come back."""
    numbers = msgspec.structs.replace(report, samples=(), executions=(), failure_list=())
    kept = _encode(numbers)
    head = report.head()
    return kept if _decode_report(kept).head() == head else head


def keep_columns(store: Store, report: Report) -> None:
    """Keep the columns and figures of a stored run that was rescored or imported.

    Args:
        store: Where the run is stored; no process holds it.
        report: Its report.

    Raises:
        StoreError: The store fails, or another process holds the run.
    """
    row = store.run(report.run.id)
    table, _ = read_columns(store, row, store.cards(row.id))
    with store.lease(row.id):
        save_columns(store, report, table, ColumnSamples.stored(store, row.id))
        store.amend(row.id, facts=figures_facts(report))


def _blocks(samples: ColumnSamples, table: MarkTable) -> Iterator[bytes]:
    row_hashes = iter(samples.row_hashes)
    start = 0
    for noted in samples.blocks:
        stop = start + len(noted.id_sizes)
        whole = _Block(
            ids=bytes(noted.ids),
            id_ends=np.cumsum(noted.id_sizes, dtype=np.int64).tobytes(),
            digests=bytes.fromhex("".join(islice(row_hashes, stop - start))),
            tags=list(noted.tags),
            tag_codes=np.array(noted.tag_codes, dtype=np.int64).tobytes(),
            tag_counts=np.array(noted.tag_counts, dtype=np.int64).tobytes(),
            scores=table.scores[start:stop].tobytes(),
            causes=table.causes[start:stop].tobytes(),
            passed=table.passed[start:stop].tobytes(),
            outputs=table.outputs[start:stop].tobytes(),
            usage=None if table.usage is None else table.usage[start:stop].tobytes(),
            output_chars=table.output_chars[start:stop].tobytes(),
            broken_off=table.broken_off[start:stop].tobytes() if table.broken_off.any() else None,
        )
        yield zlib.compress(_encode(whole), _LEVEL)
        start = stop


def stored_head(store: Store, row: RunRow) -> bytes | None:
    """The numbers of a run's report, as `Report.head` gives them; None where they are not kept, or not of its report.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        StoreError: The store fails.
    """
    head = _head_part(store, row)
    if head.startswith(_JSON_HEAD):
        return head
    report = stored_numbers(store, row)
    return None if report is None else report.head()


def stored_numbers(store: Store, row: RunRow) -> Report | None:
    """A run's report without samples, executions and failures; None where it is not kept, or by an earlier version.

    Args:
        store: Where the run is stored.
        row: The run.

    Raises:
        StoreError: The store fails.
    """
    head = _head_part(store, row)
    try:
        return _decode_report(head) if head.startswith(_TYPED_HEAD) else None
    except (msgspec.ValidationError, ValueError):
        return None


def _head_part(store: Store, row: RunRow) -> bytes:
    """The numbers of a run's report as they are kept; nothing where they are not, or not of its report."""
    figures = stored_figures(row)
    if figures is None or not figures.has_columns:
        return b""
    first = next(store.columns(row.id), b"")
    return first if _is_head(first) else b""


def _is_head(part: bytes) -> bool:
    """Whether a part is the head of a report. All others are compressed, and begin otherwise."""
    return part.startswith((_JSON_HEAD, _TYPED_HEAD))


def run_columns(
    store: Store, row: RunRow, cards: Sequence[MetricCard], *, scoring: ScoringRow | None = None
) -> tuple[MarkTable, SampleColumns]:
    """The marks and samples of a run: its columns where they are those of its report, else from its rows.

    Args:
        store: Where the run is stored.
        row: The run.
        cards: Its metrics.
        scoring: The scoring whose marks are meant; None for what its report shows.

    Raises:
        StoreError: The store fails.
    """
    if scoring is not None:
        return read_columns(store, row, cards, scoring=scoring.number)
    figures = stored_figures(row)
    found = load_columns(store, row, cards) if figures is not None and figures.has_columns else None
    return found or read_columns(store, row, cards)


def load_columns(store: Store, row: RunRow, cards: Sequence[MetricCard]) -> tuple[MarkTable, SampleColumns] | None:
    """The marks and samples of a run from its columns; None where it has none, or they do not fit it.

    Args:
        store: Where the run is stored.
        row: The run.
        cards: Its metrics.
    """
    samples = row.samples
    table = MarkTable(cards, samples=samples, repetitions=row.repetitions)
    digests = np.zeros((samples, 32), dtype=np.uint8)
    ids, ends = bytearray(), np.zeros(samples + 1, dtype=np.int64)
    stop = 0
    try:
        table.restore_panels(_kept_panels(store, row))
        for start, block in _stored_blocks(store, row):
            block_ends = np.frombuffer(block.id_ends, dtype=np.int64)
            stop = start + len(block_ends)
            ends[start + 1 : stop + 1] = block_ends + len(ids)
            ids += block.ids
            digests[start:stop] = np.frombuffer(block.digests, dtype=np.uint8).reshape(-1, 32)
            for name in ("scores", "causes", "passed", "outputs", "output_chars", "broken_off"):
                body, column = getattr(block, name), getattr(table, name)
                if body is not None:
                    column[start:stop] = _rows(body, column)
            _tag_samples(table, block, start)
    except (msgspec.MsgspecError, StoreError, ValueError, zlib.error):
        # They are a copy: the rows say the same.
        return None
    if stop != samples:
        return None
    table.counted = row.done
    return table, SampleColumns(
        digests,
        lambda places: [ids[ends[at] : ends[at + 1]].decode() for at in places],
        # It takes much room, and is needed when the rest is done.
        lambda: _load_usage(store, row),
    )


def _kept_panels(store: Store, row: RunRow) -> dict[str, PanelSummary] | None:
    report = stored_numbers(store, row)
    if report is not None:
        return report.panels
    return _decode_panels(stored_head(store, row) or b"{}").panels


def _stored_blocks(store: Store, row: RunRow) -> Iterator[tuple[int, _Block]]:
    """The blocks of a run, each with the position of its first sample."""
    start = 0
    for part in store.columns(row.id):
        if _is_head(part):
            continue
        block = _decode(_unpack(part))
        yield start, block
        start += len(block.id_ends) // 8


def _unpack(part: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    unpacked = unpacker.decompress(part, _MOST_UNPACKED)
    if not unpacker.eof:
        raise ValueError("The block is cut short, or unpacks to too much.")
    return unpacked


def _rows(body: bytes, column: NDArray[Any]) -> NDArray[Any]:
    return np.frombuffer(body, dtype=column.dtype).reshape(-1, *column.shape[1:])


def _load_usage(store: Store, row: RunRow) -> NDArray[np.float64] | None:
    usage = None
    for start, block in _stored_blocks(store, row):
        if block.usage is not None:
            if usage is None:
                usage = np.full((row.samples, row.repetitions, len(USAGE)), np.nan)
            rows = _rows(block.usage, usage)
            usage[start : start + len(rows)] = rows
    return usage


def page_table(
    cards: Sequence[MetricCard], stored: Sequence[tuple[SampleFacts, Sequence[Execution]]], *, repetitions: int
) -> MarkTable:
    """The marks of some samples of a run, in their order, so that a page of a large run reads its own rows alone.

    Args:
        cards: The metrics of the run.
        stored: The samples with their executions.
        repetitions: How often each was run.
    """
    table = MarkTable(cards, samples=len(stored), repetitions=repetitions)
    for place, (sample, executions) in enumerate(stored):
        note_sample(table, place, sample)
        table.add([msgspec.structs.replace(execution, position=place) for execution in executions])
    return table


def read_columns(
    store: Store, row: RunRow, cards: Sequence[MetricCard], *, scoring: int | None = None
) -> tuple[MarkTable, SampleColumns]:
    """The marks and samples of a run, row by row from its facts.

    Args:
        store: Where the run is stored.
        row: The run.
        cards: Its metrics.
        scoring: The scoring whose marks are meant; None for what its report shows.

    Raises:
        StoreError: The store fails.
    """
    table = MarkTable(cards, samples=row.samples, repetitions=row.repetitions)
    columns = read_samples(store, row, table)
    executions = store.executions(row.id, scoring=scoring)
    if scoring is not None:
        # It may not have marked what came later.
        executions = (execution for execution in executions if execution.marks)
    for batch in batches(executions):
        table.add(batch)
    return table, columns


def read_samples(store: Store, row: RunRow, table: MarkTable) -> SampleColumns:
    """The samples of a run, row by row, noted in the table of its marks.

    Raises:
        StoreError: The store fails.
    """
    digests, ids = bytearray(), []
    for sample in store.samples(row.id, content=has_conditions(table.cards)):
        note_sample(table, sample.position, sample)
        digests += bytes.fromhex(sample.row_hash)
        ids.append(sample.id)
    hashes = np.frombuffer(digests, dtype=np.uint8).reshape(-1, 32)
    return SampleColumns(hashes, lambda places: [ids[place] for place in places], lambda: table.usage)


def _tag_samples(table: MarkTable, block: _Block, start: int) -> None:
    counts = np.frombuffer(block.tag_counts, dtype=np.int64)
    codes = np.frombuffer(block.tag_codes, dtype=np.int64)
    positions = np.repeat(np.arange(start, start + len(counts)), counts)
    for code, tag in enumerate(block.tags):
        table.tag_many(positions[codes == code], tag)
    if (counts == 0).any():
        table.tag_many(start + np.flatnonzero(counts == 0), None)
