"""Golden datasets: loading, row hashes, fingerprint, writing."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from pathlib import Path as FilePath
from typing import Any, overload

import numpy as np

from deemster.datasets._jsonl_dataset import IndexedRows, load_jsonl
from deemster.datasets.fingerprint import RowHashes, list_hash, row_digest
from deemster.datasets.item_files import collector_off
from deemster.datasets.sample_rows import KEYS as HEADER_KEYS
from deemster.datasets.sample_rows import SCHEMA, Header, header_issues, header_of, row_issues, sample_of
from deemster.errors import DatasetError, Issue
from deemster.formats.document import Document, Reading, in_order
from deemster.formats.json_values import kind_of, thawed
from deemster.formats.read_file import FORMATS, document_of, format_of, quick_value
from deemster.formats.write_rows import write_rows
from deemster.records import Sample

_ROOT_KEYS = (*HEADER_KEYS, "samples")


class ListedRows:
    """Samples that are kept in memory.

    Attributes:
        digests: 32 bytes of row hash for each.
    """

    def __init__(self, samples: list[Sample], digests: bytearray) -> None:
        self._samples = samples
        self.digests = digests

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)

    def pick(self, positions: list[int]) -> Iterator[Sample]:
        """Samples by position, in the order asked for."""
        return (self._samples[position] for position in positions)

    def fingerprint(self) -> str:
        """The hash over `[id, row_hash, metadata]` of every sample, by id."""
        hashes = RowHashes(self.digests)
        order = sorted(range(len(self)), key=lambda position: self._samples[position].id)
        return list_hash([self._samples[at].id, hashes[at], self._samples[at].metadata] for at in order)


class Dataset:
    """Golden samples with a name, checked, hashed, and in the order of their file.

    Attributes:
        name: What the dataset is called.
        description: What it is about.
        repetitions: How often each sample is run, where the dataset says so.
        schema_version: The format it was written in.
        warnings: What was ignored while reading.
        path: The file it was loaded from.

    Raises:
        DatasetError: A sample or the header is wrong; every issue is given.
    """

    def __init__(
        self,
        samples: Iterable[Sample | Mapping[str, Any]],
        *,
        name: str,
        description: str | None = None,
        repetitions: int | None = None,
    ) -> None:
        given = {"name": name, "description": description, "repetitions": repetitions}
        root = {key: value for key, value in given.items() if value is not None or key == "name"}
        rows = [_row_of(sample) for sample in samples]
        issues = [Issue(message) for _, message in header_issues(root, keys=HEADER_KEYS, named=True)]
        header = header_of(root, file="") if not issues else Header("")
        self._take(header, _listed(rows, places=None, file="samples", issues=issues), None)

    @classmethod
    def load(cls, path: str | FilePath, *, format: str | None = None) -> Dataset:  # noqa: A002 - the word users say
        """Read a dataset from YAML, JSON, JSONL, CSV, TSV or Parquet.

        Args:
            path: The file.
            format: One of `yaml`, `json`, `jsonl`, `csv`, `tsv`, `parquet`, where the extension does not say it.

        Raises:
            DatasetError: The file or something in it is wrong; every issue is given with its place.
            MissingExtraError: Parquet is asked for without the `parquet` extra.
        """
        reading = Reading(str(path), error=DatasetError)
        kind = format_of(path, reading, format=format, known=FORMATS)
        self = cls.__new__(cls)
        rows: ListedRows | IndexedRows
        with collector_off():
            if kind == "jsonl":
                header, rows = load_jsonl(path, reading)
            elif kind in ("yaml", "json"):
                header, rows = _rooted(reading.content(path), kind, reading)
            else:
                header, rows = _tabular(path, kind, reading)
        self._take(header, rows, str(path))
        return self

    def _take(self, header: Header, rows: ListedRows | IndexedRows, path: str | None) -> None:
        self.name, self.description, self.repetitions, self.schema_version, self.warnings = header
        self.path = path
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...

    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return list(self._rows.pick(list(range(*index.indices(len(self))))))
        return next(iter(self._rows.pick([range(len(self))[index]])))

    def __repr__(self) -> str:
        return f"<Dataset {self.name!r}: {len(self)} samples>"

    @property
    def row_hashes(self) -> Sequence[str]:
        """The row hash of every sample, by position."""
        return RowHashes(self._rows.digests)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash that changes with every edit of any sample.

        Raises:
            DatasetError: The file is not the one that was loaded.
        """
        return self._rows.fingerprint()

    @functools.cached_property
    def duplicates(self) -> list[list[str]]:
        """The ids of samples whose input and expected output are equal, group by group in file order.

        Raises:
            DatasetError: The file is not the one that was loaded.
        """
        digests = self._rows.digests
        heads = np.frombuffer(bytes(digests), dtype=np.uint64)[::4]
        order = np.argsort(heads, kind="stable")
        twice = np.flatnonzero(heads[order[1:]] == heads[order[:-1]])
        positions = np.unique(np.concatenate([order[twice], order[twice + 1]])).tolist()
        groups: dict[bytes, list[str]] = {}
        for position, sample in zip(positions, self._rows.pick(positions), strict=True):
            groups.setdefault(bytes(digests[position * 32 : position * 32 + 32]), []).append(sample.id)
        return [ids for ids in groups.values() if len(ids) > 1]

    def save(self, path: str | FilePath) -> None:
        """Write the dataset as YAML, JSON or JSONL, by extension; a reader never sees half a file.

        Raises:
            DatasetError: The extension is none of these, or the file cannot be written.
        """
        write_dataset(self, path)


def _row_of(sample: Sample | Mapping[str, Any]) -> Any:
    if isinstance(sample, Sample):
        return {
            "id": sample.id,
            "input": thawed(sample.input),
            "expected_output": thawed(sample.expected_output),
            "metadata": thawed(sample.metadata),
        }
    return thawed(sample)


def _rooted(data: bytes, kind: str, reading: Reading) -> tuple[Header, ListedRows]:
    """Read a file whose root is a map with `samples`.

    The fast readers know no places and are no authority: whatever they refuse or find wrong is read again precisely.
    """
    try:
        return _root(quick_value(data, kind), Document(None, file=reading.file, places={}))
    except ValueError:
        document = document_of(data, kind, reading)
        return _root(document.value, document)


def _root(value: Any, document: Document) -> tuple[Header, ListedRows]:
    """Read what the root of a file holds."""
    if not isinstance(value, dict):
        message = f"The root of a dataset is a map with `name` and `samples`, not {kind_of(value)}."
        raise DatasetError(Issue(message, document.where()))
    found = header_issues(value, keys=_ROOT_KEYS, named=True)
    issues = [Issue(message, document.where(path)) for path, message in found]
    samples = value.get("samples")
    if isinstance(samples, list):
        rows = _listed(samples, places=_Entries(document), file=document.file, issues=issues)
        return header_of(value, file=document.file), rows
    missing = "`samples` is missing." if "samples" not in value else f"`samples` is a list, not {kind_of(samples)}."
    raise DatasetError([*issues, Issue(missing, document.where(("samples",)))])


class _Entries:
    """The places of samples in a file whose root is a map."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def row(self, position: int, path: tuple[str | int, ...] = ()) -> str:
        return self._document.where(("samples", position, *path))

    def where(self) -> str:
        return self._document.where(("samples",))


def _listed(rows: list[Any], *, places: Any, file: str, issues: list[Issue]) -> ListedRows:
    """Check rows and hash them; raise every issue at once."""
    samples: list[Sample] = []
    digests = bytearray()
    first: dict[str, int] = {}

    def place(position: int, path: tuple[str | int, ...] = ()) -> str:
        return str(places.row(position, path)) if places else f"{file}[{position}]"

    for position, row in enumerate(rows):
        found = sample_of(row)
        name = row.get("id") if isinstance(row, dict) and isinstance(row.get("id"), str) else None
        if found is not None:
            sample, odd = found
            try:
                digests += row_digest(sample.input, sample.expected_output, odd=odd)
                samples.append(sample)
            except UnicodeEncodeError:
                found = None
        if found is None:
            issues += [Issue(message, place(position, path), name) for path, message in row_issues(row)]
        if name is not None:
            earlier = first.setdefault(name, position)
            if earlier != position:
                issues.append(Issue(f"The id is given twice, first at {place(earlier)}.", place(position), name))
    if not rows:
        issues.append(Issue("There are no samples.", places.where() if places else None))
    if issues:
        raise DatasetError(in_order(issues))
    return ListedRows(samples, digests)


def _tabular(path: str | FilePath, kind: str, reading: Reading) -> tuple[Header, ListedRows]:
    """Read a table of samples."""
    from deemster.datasets.tabular_files import parquet_rows, table_rows  # noqa: PLC0415 - few datasets are tables

    table = parquet_rows(path, reading) if kind == "parquet" else table_rows(reading.content(path), kind, reading)
    if table.issues and not table.rows:
        # Lines that cannot be read are samples all the same: to say that there are none would mislead.
        raise DatasetError(in_order(table.issues))
    rows = _listed(table.rows, places=table, file=reading.file, issues=table.issues)
    return Header(FilePath(path).stem), rows


def write_dataset(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as YAML, JSON or JSONL, by extension.

    Raises:
        DatasetError: The extension is none of these, or the file cannot be written.
    """
    known = ("yaml", "json", "jsonl")
    write_rows(path, _header(dataset), _rows(dataset), key="samples", known=known, error=DatasetError)


def _header(dataset: Dataset) -> dict[str, Any]:
    header = {
        "schema_version": SCHEMA,
        "name": dataset.name,
        "description": dataset.description,
        "repetitions": dataset.repetitions,
    }
    return {key: value for key, value in header.items() if value is not None}


def _rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for sample in dataset:
        row = {"id": sample.id, "input": sample.input, "expected_output": sample.expected_output}
        yield {**row, "metadata": sample.metadata} if sample.metadata else row
