"""Reads JSONL datasets of any size: keeps offsets and hashes, and decodes samples while iterating."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
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
from deemster.formats.canonical_json import canonical, has_exponent
from deemster.formats.document import Document, Reading, sort_issues
from deemster.formats.json_values import ROW_DEPTH
from deemster.formats.jsonl_lines import MOST_ISSUES, Lines, parse_line, stop_at_many
from deemster.formats.schema_validation import check_shape, is_id
from deemster.formats.strict_json import quotes
from deemster.records import Sample

_samples = msgspec.json.Decoder(Sample)
_encode = msgspec.json.Encoder().encode


class _Labels(msgspec.Struct, omit_defaults=True, gc=False):
    """What a row holds beside what its hash is about."""

    id: str
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class IndexedRows:
    """The samples of a JSONL file, found again by offset.

    Attributes:
        lines: Where the rows begin.
        digests: 32 bytes of row hash for each.
        known: The fingerprint, where the ids come in increasing order, so that reading the file once told it.
    """

    def __init__(self, lines: Lines, digests: bytearray, *, known: str | None) -> None:
        self.lines = lines
        self.digests = digests
        self.known = known

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
        rows = IndexedRows(self.lines.excerpt(positions), bytearray(), known=None)
        return SelectedRows(rows, list(range(len(positions))))

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        if self.known is not None:
            return self.known
        ids = _byte_strings(sample.id.encode() for sample in self)
        order = np.argsort(ids, kind="stable").tolist()
        del ids
        samples = self.pick(order)
        digests = self.digests
        return list_hash(
            [sample.id, digests[at * 32 : at * 32 + 32].hex(), sample.metadata]
            for at, sample in zip(order, samples, strict=True)
        )

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


def _byte_strings(texts: Iterator[bytes]) -> Any:
    """Byte strings as one array of fixed width, built in parts so that few are objects at a time."""
    parts, part = [], []
    for text in texts:
        part.append(text)
        if len(part) == 65_536:
            parts.append(np.array(part))
            part = []
    if part:
        parts.append(np.array(part))
    return np.concatenate(parts)


def _quotes(parts: list[bytes]) -> int:
    """How many quotation marks delimit strings in parts of valid JSON."""
    data = b" ".join(parts)
    if b"\\" in data:
        return quotes(data)
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord('"')))


def load_jsonl(path: str | FilePath, reading: Reading) -> tuple[DatasetFacts, IndexedRows]:
    """Check a JSONL dataset and remember where its rows begin.

    Raises:
        InputError: The file cannot be read, or something in it is wrong; all issues are given.
    """
    reader = _Reader(Lines(path, reading))
    for offset, lines in reader.lines.scan():
        reader.block(offset, lines)
        if stop_at_many(reader.issues, reading.file):
            raise reading.error(reader.issues)
    reader.finish()
    header = build_header(reader.header, name=FilePath(path).stem, warnings=reader.warnings)
    return header, reader.rows()


class _Reader:
    """Reads lines, keeps what must be kept, and collects what is wrong."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.header = DatasetHeader()
        self.warnings: tuple[str, ...] = ()
        self.issues: list[Issue] = []
        self._digests = bytearray()
        self._hashes: list[Any] = []
        self._floats: list[float] = []
        self._decode = msgspec.json.Decoder(SampleRow, float_hook=self._float).decode
        self._line = 0
        self._started = False
        self._last = ""
        self._is_sorted = True
        self._sorted = ListHash()

    def rows(self) -> IndexedRows:
        known = self._sorted.hexdigest() if self._is_sorted else None
        return IndexedRows(self.lines, self._digests, known=known)

    def finish(self) -> None:
        """Look for ids given twice, and raise what was found.

        Raises:
            InputError: Something is wrong with the file.
        """
        if not self._line:
            self.lines.reading.refuse("The file is empty.")
        if not self.issues and not self.lines.offsets:
            self.issues.append(Issue("There are no samples.", self.lines.reading.file))
        if not self._is_sorted:
            self.issues.extend(self._repeated_ids())
        if self.issues:
            raise self.lines.reading.error(sort_issues(self.issues))

    def block(self, offset: int, lines: list[bytes]) -> None:
        """Read some lines."""
        names: list[int] = []
        fast: list[bytes] = []
        kept: list[bytes] = []
        for line in lines:
            if len(self.issues) >= MOST_ISSUES:
                return
            self._line += 1
            start = offset
            offset += len(line) + 1
            row = self._fast(line) if self._started else None
            if row is not None:
                fast.append(line)
                kept += self._keep(row, start, names)
            elif (row := self._precise(line)) is not None:
                self._keep(row, start, names)
        # A key that was given twice was dropped once.
        if _quotes(fast) != _quotes(kept):
            self._repeated_keys(lines)
        self._hashes.append(np.array(names, dtype=np.int64))

    def _keep(self, row: SampleRow, start: int, names: list[int]) -> tuple[bytes, bytes]:
        """Keep what is needed of a row; what was read of it, as JSON."""
        exponents = bool(self._floats) and any(map(has_exponent, self._floats))
        body = row_body(row.input, row.expected_output, exponents=exponents)
        digest = hashlib.sha256(body).digest()
        self._digests += digest
        self.lines.offsets.append(start)
        names.append(hash(row.id))
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

    def _fast(self, line: bytes) -> SampleRow | None:
        """The row of a line that is certainly good, but for duplicate keys."""
        self._floats.clear()
        if line.count(b"{") + line.count(b"[") > ROW_DEPTH:
            return None
        try:
            row = self._decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        return row if is_id(row.id) and has_good_tags(row) else None

    def _precise(self, line: bytes) -> SampleRow | None:
        """The row of a line, or None where it is blank, a header, or wrong."""
        if not line.strip(b" \t\r"):
            return None
        try:
            document = parse_line(line, self._line, self.lines.reading, depth=ROW_DEPTH)
        except self.lines.reading.error as error:
            self.issues += error.issues
            self._started = True
            return None
        return self._checked(document)

    def _checked(self, document: Document) -> SampleRow | None:
        value, is_first, self._started = document.value, not self._started, True
        if is_first and isinstance(value, dict) and not value.keys() & set(SampleRow.__struct_fields__):
            value, self.warnings = split_legacy_keys(value, file=document.file)
            issues = check_shape(value, DatasetHeader, document=document)
            if not issues:
                self.header = msgspec.convert(value, DatasetHeader)
        else:
            issues = check_shape(value, SampleRow, document=document, is_item=True)
            if not issues:
                self._floats = [0.5e-9]
                return msgspec.convert(value, SampleRow)
        self.issues += issues
        return None

    def _repeated_keys(self, lines: list[bytes]) -> None:
        """Read a block again with the precise reader, which names the keys that are given twice."""
        first = self._line - len(lines)
        reading = self.lines.reading
        for number, line in enumerate(lines, start=first + 1):
            try:
                parse_line(line, number, reading, depth=ROW_DEPTH)
            except reading.error as error:
                known = {issue.where for issue in self.issues}
                self.issues += [issue for issue in error.issues if issue.where not in known]

    def _repeated_ids(self) -> Iterator[Issue]:
        hashes = np.concatenate(self._hashes)
        order = np.argsort(hashes, kind="stable")
        ordered = hashes[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if not len(twice):
            return
        positions = np.unique(np.concatenate([order[twice], order[twice + 1]])).tolist()
        first: dict[str, int] = {}
        pairs: list[tuple[int, int, str]] = []
        for position, sample in zip(positions, self.rows().pick(positions), strict=True):
            earlier = first.setdefault(sample.id, position)
            if earlier != position and len(pairs) < MOST_ISSUES:
                pairs.append((earlier, position, sample.id))
        numbers = self.lines.numbers({position for pair in pairs for position in pair[:2]})
        file = self.lines.reading.file
        for earlier, position, name in pairs:
            yield Issue(
                f"The id is given twice, first at {file}:{numbers[earlier]}.", f"{file}:{numbers[position]}", name
            )
