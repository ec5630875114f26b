"""Samples that are kept in memory: read from a document or a table, checked and hashed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import msgspec

from deemster.datasets._spreadsheet_columns import Columns
from deemster.datasets.dataset_format import (
    DatasetFacts,
    DatasetFile,
    SampleRow,
    build_header,
    has_good_tags,
    split_legacy_keys,
)
from deemster.datasets.fingerprint import row_digest
from deemster.datasets.sample_selection import rows_fingerprint
from deemster.errors import DatasetError, Issue
from deemster.formats.document import Reading, sort_issues
from deemster.formats.item_files import repeated_ids
from deemster.formats.json_values import ROW_DEPTH, pointer
from deemster.formats.plain_floats import has_exponent, plain_floats
from deemster.formats.read_file import parse_document, quick_json
from deemster.formats.read_parquet import ParquetColumns, ParquetFile
from deemster.formats.schema_validation import Located, Places, check_shape, is_id
from deemster.records import Sample

# Stands in for a document while reading fast: whatever has an issue is read again.
_NO_PLACES = Places(lambda _: "")


class ListedRows:
    """Samples that are kept in memory.

    Attributes:
        digests: 32 bytes of row hash for each.
    """

    def __init__(self, samples: Sequence[Sample], digests: bytearray) -> None:
        self._samples = samples
        self.digests = digests

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)

    def pick(self, positions: list[int]) -> Iterator[Sample]:
        """Samples by position, in the order asked for."""
        return (self._samples[position] for position in positions)

    def excerpt(self, positions: list[int]) -> ListedRows:
        """Samples by position that another process can read."""
        return ListedRows(list(self.pick(positions)), bytearray())

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        return rows_fingerprint(self)


class _ParquetRows(ListedRows):
    """Samples of a Parquet file, some of which another process can read there."""

    def __init__(self, rows: ListedRows, file: ParquetFile) -> None:
        super().__init__(rows._samples, rows.digests)  # noqa: SLF001 - of its own kind
        self._file = file

    def excerpt(self, positions: list[int]) -> ListedRows:
        """Samples by position: as their rows in the file, or as they are where it cannot be read in part."""
        if self._file.can_read_rows(positions):
            return _RowsToRead(self._file, positions)
        return super().excerpt(positions)


class _RowsToRead(ListedRows):
    """Samples of a Parquet file that are read when they are asked for."""

    def __init__(self, source: ParquetFile, positions: list[int]) -> None:
        self._source = source
        self._positions = positions
        self.digests = bytearray()

    def __len__(self) -> int:
        return len(self._positions)

    @functools.cached_property
    def _samples(self) -> Sequence[Sample]:  # type: ignore[override]
        _, rows = _read_parquet("part", self._source.read_rows(self._positions), self._source.reading)
        return list(rows)


def read_document(data: bytes, kind: str, reading: Reading) -> tuple[DatasetFacts, ListedRows]:
    """Read a dataset that is one YAML or JSON document.

    The fast reader of JSON knows no lines: what it refuses, or what has an issue, is read again with lines.

    Raises:
        DatasetError: Something is wrong; every issue is given.
    """
    if kind == "json":
        with contextlib.suppress(ValueError):
            return read_root(quick_json(data), _NO_PLACES, file=reading.file)
    document = parse_document(data, kind, reading)
    return read_root(document.value, document, file=reading.file)


def read_root(
    root: Any, document: Located | None, *, file: str = "", issues: Sequence[Issue] = ()
) -> tuple[DatasetFacts, ListedRows]:
    """Read the root of a dataset: decode it by its declared shape, then hash its rows.

    Args:
        root: What the file holds.
        document: Knows the lines.
        file: How warnings name the file.
        issues: What is known to be wrong.

    Raises:
        DatasetError: Something is wrong; every issue is given.
    """
    root, warnings = split_legacy_keys(root, file=file)
    try:
        dataset = msgspec.convert(root, DatasetFile)
        rows = _hash_rows(dataset.samples)
    except (msgspec.ValidationError, UnicodeEncodeError):
        rows = None

    if rows is None or issues:
        found = check_shape(root, DatasetFile, document=document, items="samples")
        samples = root.get("samples") if isinstance(root, dict) else None
        where = document.where if document else pointer
        raise DatasetError(sort_issues([*issues, *found, *repeated_ids(samples, "samples", where)]))

    return build_header(dataset, name=FilePath(file).stem, warnings=warnings), rows


def _hash_rows(rows: list[SampleRow]) -> ListedRows | None:
    """The samples of rows and their hashes; None where something is not JSON or an id repeats."""
    if len({row.id for row in rows}) < len(rows):
        return None

    samples: list[Sample] = []
    digests = bytearray()
    for row in rows:
        metadata = {} if row.metadata is msgspec.UNSET else row.metadata
        hashed_floats = plain_floats([row.input, row.expected_output], ROW_DEPTH)
        if hashed_floats is None or plain_floats(metadata, ROW_DEPTH - 1) is None:
            return None
        if not is_id(row.id) or not has_good_tags(row):
            return None

        row.id.encode()
        exponents = any(map(has_exponent, hashed_floats))
        digests += row_digest(row.input, row.expected_output, exponents=exponents)
        samples.append(Sample(row.id, row.input, row.expected_output, metadata))
    return ListedRows(samples, digests)


def read_table(
    path: str | FilePath, kind: str, reading: Reading, *, columns: Columns | None = None
) -> tuple[DatasetFacts, ListedRows]:
    """Read a table of samples.

    Args:
        path: The file.
        kind: Its format.
        reading: How the file is called and what its errors are.
        columns: Which column holds what, where its name does not say it.
    """
    from deemster.datasets._sample_table import table_rows  # noqa: PLC0415 - few datasets are tables

    name = FilePath(path).stem
    if kind == "parquet":
        file = ParquetFile(path, reading)
        facts, rows = _read_parquet(name, file.read(), reading)
        return facts, _ParquetRows(rows, file)

    table = table_rows(reading.content(path), kind, reading, given=columns)
    if table.issues and not table.rows:
        # Lines that cannot be read are samples all the same: to say that there are none would mislead.
        raise DatasetError(sort_issues(table.issues))
    header, rows = read_root({"name": name, "samples": table.rows}, table, issues=table.issues)
    return header._replace(warnings=table.warnings), rows


def _read_parquet(name: str, source: ParquetColumns, reading: Reading) -> tuple[DatasetFacts, ListedRows]:
    """Read the columns of a Parquet file."""
    from deemster.datasets._sample_table import parquet_rows  # noqa: PLC0415 - few datasets are tables

    table = parquet_rows(source, reading)
    return read_root({"name": name, "samples": table.rows}, table, issues=table.issues)
