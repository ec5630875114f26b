"""Reads JSONL datasets of any size: keeps offsets and hashes, and decodes samples while iterating."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec
import numpy as np

from deemster.datasets.dataset_format import (
    DatasetFacts,
    DatasetHeader,
    SampleRow,
    build_header,
    has_good_tags,
    split_legacy_keys,
)
from deemster.datasets.fingerprint import ListHash, list_hash, row_body
from deemster.datasets.sample_selection import SelectedRows
from deemster.errors import Issue
from deemster.formats.canonical_json import canonical
from deemster.formats.document import Document, Reading, sort_issues
from deemster.formats.indexed_jsonl import RowReader, index_rows
from deemster.formats.json_values import ROW_DEPTH
from deemster.formats.jsonl_lines import MOST_ISSUES, Lines, parse_line
from deemster.formats.plain_floats import has_exponent
from deemster.formats.schema_validation import check_shape, is_id
from deemster.records import Sample

_samples = msgspec.json.Decoder(Sample)
_encode = msgspec.json.Encoder().encode
# No id holds it: ids are printable.
_SEPARATOR = b"\n"


class _Labels(msgspec.Struct, omit_defaults=True, gc=False):
    """What a row holds beside what its hash is about."""

    id: str
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


_labels = msgspec.json.Decoder(_Labels)


class IndexedRows:
    """The samples of a JSONL file, found again by offset.

    Attributes:
        lines: Where the rows begin.
        digests: 32 bytes of row hash for each.
        known: The fingerprint, where the ids come in increasing order, so that reading the file once told it.
        order: The positions of the rows by id, for the fingerprint where it is not known.
    """

    def __init__(
        self,
        lines: Lines,
        digests: bytearray,
        *,
        known: str | None = None,
        order: Sequence[int] = (),
    ) -> None:
        self.lines = lines
        self.digests = digests
        self.known = known
        self.order = order

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[Sample]:
        count = 0
        for block in self.lines.blocks():
            try:
                samples = _samples.decode_lines(block)
            except (msgspec.MsgspecError, UnicodeError, ValueError):
                samples = [self._sample(line) for line in block.split(b"\n") if line.strip()]
            count += len(samples)
            yield from samples
        if count != len(self):
            self.lines.lost()

    def pick(self, positions: list[int]) -> Iterator[Sample]:
        """Samples by position, in the order asked for."""
        return (self._sample(line) for line in self.lines.rows(positions))

    def excerpt(self, positions: list[int]) -> SelectedRows:
        """Samples by position that another process can read: as their places in the file."""
        rows = IndexedRows(self.lines.excerpt(positions), bytearray())
        return SelectedRows(rows, list(range(len(positions))))

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        if self.known is not None:
            return self.known
        rows = map(self._labels, self.lines.rows(self.order))
        digests = self.digests
        return list_hash(
            [row.id, digests[at * 32 : at * 32 + 32].hex(), {} if row.metadata is msgspec.UNSET else row.metadata]
            for at, row in zip(self.order, rows, strict=True)
        )

    def _labels(self, line: bytes) -> _Labels | Sample:
        try:
            return _labels.decode(line)
        except (msgspec.MsgspecError, ValueError):
            return self._sample(line)

    def _sample(self, line: bytes) -> Sample:
        try:
            return _samples.decode(line)
        except (msgspec.MsgspecError, ValueError):
            pass
        try:
            row = parse_line(line, 1, self.lines.reading, depth=ROW_DEPTH).value
            return Sample(row["id"], row["input"], row["expected_output"], row.get("metadata", {}))
        except (ValueError, TypeError, KeyError):
            return self.lines.lost()  # type: ignore[no-any-return]


def load_jsonl(path: str | FilePath, reading: Reading) -> tuple[DatasetFacts, IndexedRows]:
    """Check a JSONL dataset and remember where its rows begin.

    Raises:
        InputError: The file cannot be read, or something in it is wrong; all issues are given.
    """
    lines = Lines(path, reading)
    samples = _SampleRows(lines)
    issues = index_rows(lines, samples, noun="samples", depth=ROW_DEPTH)
    issues += samples.repeated_ids()
    if issues:
        raise reading.error(sort_issues(issues))

    header = build_header(samples.header, name=FilePath(path).stem, warnings=samples.warnings)
    return header, samples.indexed()


class _SampleRows(RowReader):
    """Keeps of every sample its hash and its id, and the fingerprint as long as the ids are in order."""

    def __init__(self, lines: Lines) -> None:
        self.header = DatasetHeader()
        self.warnings: tuple[str, ...] = ()

        self._lines = lines
        self._digests = bytearray()
        self._ids = bytearray()
        self._order = array("q")
        self._floats: list[float] = []
        self._decode = msgspec.json.Decoder(SampleRow, float_hook=self._float).decode

        self._last = ""
        self._is_sorted = True
        self._sorted = ListHash()

    def indexed(self) -> IndexedRows:
        known = self._sorted.hexdigest() if self._is_sorted else None
        return IndexedRows(self._lines, self._digests, known=known, order=self._order)

    def read_fast(self, line: bytes) -> tuple[bytes, bytes] | None:
        self._floats.clear()
        if line.count(b"{") + line.count(b"[") > ROW_DEPTH:
            return None
        try:
            row = self._decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        return self._keep(row) if is_id(row.id) and has_good_tags(row) else None

    def read_strictly(self, document: Document, *, is_first: bool) -> bool:
        value = document.value
        is_header = is_first and isinstance(value, dict) and not value.keys() & set(SampleRow.__struct_fields__)
        if is_header:
            value, self.warnings = split_legacy_keys(value, file=document.file)

        shape = DatasetHeader if is_header else SampleRow
        if issues := check_shape(value, shape, document=document, is_item=not is_header):
            raise self._lines.reading.error(issues)

        if is_header:
            self.header = msgspec.convert(value, DatasetHeader)
            return False
        self._floats = [0.5e-9]
        self._keep(msgspec.convert(value, SampleRow))
        return True

    def _keep(self, row: SampleRow) -> tuple[bytes, bytes]:
        """Keep what is needed of a row; what was read of it, as JSON."""
        exponents = bool(self._floats) and any(map(has_exponent, self._floats))
        body = row_body(row.input, row.expected_output, exponents=exponents)
        digest = hashlib.sha256(body).digest()
        self._digests += digest
        self._ids += row.id.encode() + _SEPARATOR

        metadata = row.metadata
        if row.id <= self._last:
            self._is_sorted = False
        if self._is_sorted:
            entry = [row.id, digest.hex(), {} if metadata is msgspec.UNSET else metadata]
            self._sorted.add(canonical(entry, exponents=exponents))
        self._last = row.id
        return body, _encode(_Labels(row.id, metadata))

    def _float(self, text: str) -> float:
        number = float(text)
        if not math.isfinite(number):
            raise ValueError("not finite")
        self._floats.append(number)
        return number

    def repeated_ids(self) -> Iterator[Issue]:
        """An issue for every id that an earlier row has."""
        if self._is_sorted:
            return
        ids = np.array(bytes(self._ids).split(_SEPARATOR)[:-1])
        order = np.argsort(ids, kind="stable")
        self._order = array("q", order.astype(np.int64).tobytes())

        ordered = ids[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        first: dict[str, int] = {}
        pairs: list[tuple[int, int, str]] = []
        for position in sorted({*order[twice].tolist(), *order[twice + 1].tolist()}):
            name = ids[position].decode()
            earlier = first.setdefault(name, position)
            if earlier != position and len(pairs) < MOST_ISSUES:
                pairs.append((earlier, position, name))
        numbers = self._lines.numbers({position for pair in pairs for position in pair[:2]})
        file = self._lines.reading.file
        for earlier, position, name in pairs:
            yield Issue(
                f"The id is given twice, first at {file}:{numbers[earlier]}.", f"{file}:{numbers[position]}", name
            )
