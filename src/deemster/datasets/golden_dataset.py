"""The golden dataset: loads it, selects of it, and saves it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, overload

from deemster.datasets._jsonl_dataset import load_jsonl
from deemster.datasets._spreadsheet_columns import Columns
from deemster.datasets.dataset_format import SCHEMA, DatasetFacts
from deemster.datasets.duplicate_rows import equal_rows
from deemster.datasets.fingerprint import RowHashes
from deemster.datasets.listed_rows import read_document, read_root, read_table
from deemster.datasets.sample_selection import (
    Rows,
    SelectedPart,
    SelectedRows,
    Selection,
    as_entries,
    select_positions,
)
from deemster.errors import DatasetError, Issue
from deemster.formats.document import Reading
from deemster.formats.item_files import pause_garbage_collection
from deemster.formats.json_values import to_json_value
from deemster.formats.read_file import FORMATS, file_format
from deemster.formats.read_table import TABLES
from deemster.formats.write_rows import write_rows
from deemster.records import Sample, SampleContent, SampleFacts, SampleLabels

if TYPE_CHECKING:
    import pandas as pd


class Dataset:
    """Golden samples with a name, checked, hashed, and in the order of their file.

    Attributes:
        path: The file it was loaded from.
        part: Which part of another dataset it is; None for a whole dataset.
        whole: The dataset that it is a part of; itself for a whole dataset.

    Raises:
        DatasetError: A sample or the header is wrong; every issue is given.
    """

    part: SelectedPart | None = None

    def __init__(
        self,
        samples: Iterable[Sample | Mapping[str, Any]],
        *,
        name: str,
        description: str | None = None,
        repetitions: int | None = None,
        cluster: str | None = None,
    ) -> None:
        header = {"name": name, "description": description, "repetitions": repetitions, "cluster": cluster}
        stated = {key: value for key, value in header.items() if value is not None or key == "name"}
        root = {**stated, "samples": [_as_row(sample) for sample in samples]}
        self._set(*read_root(root, None), path=None)

    def _set(self, facts: DatasetFacts, rows: Rows, *, path: str | None) -> None:
        self.path = path
        self.whole = self
        self._facts = facts
        self._rows = rows

    @classmethod
    def _made_of(cls, facts: DatasetFacts, rows: Rows, *, path: str | None = None) -> Dataset:
        """A dataset of samples that were checked."""
        self = cls.__new__(cls)
        self._set(facts, rows, path=path)
        return self

    @classmethod
    def load(
        cls,
        path: str | FilePath,
        *,
        format: str | None = None,  # noqa: A002 - the word users say
        columns: Columns | None = None,
    ) -> Dataset:
        """Read a dataset from YAML, JSON, JSONL, CSV, TSV, .xlsx or Parquet.

        Args:
            path: The file.
            format: One of `yaml`, `json`, `jsonl`, `csv`, `tsv`, `xlsx`, `parquet`, where the extension is another.
            columns: Which column of a CSV, TSV or .xlsx holds what, where its name does not say it, such as
                `{"id": "Nr", "input.question": "Frage"}`; other columns that nothing is known of are then metadata.

        Raises:
            DatasetError: The file or something in it is wrong; every issue is given with its place.
            MissingExtraError: Parquet or .xlsx is asked for without its extra.
        """
        reading = Reading(str(path), error=DatasetError)
        kind = file_format(path, reading, format=format, known=FORMATS)
        if columns is not None and kind not in TABLES:
            reading.refuse(f"`columns` is for {', '.join(TABLES)}; this is {kind}.")
        with pause_garbage_collection():
            facts, rows = _read_file(path, kind, reading, columns)
        return cls._made_of(facts, rows, path=str(path))

    @classmethod
    def from_dataframe(cls, frame: pd.DataFrame, *, name: str = "dataframe") -> Dataset:
        """Read a dataset from a pandas data frame whose columns are named as in CSV.

        Cells keep their types: a number stays a number, and `input` and `metadata` may hold maps. A missing value is an
        absent field.

        Args:
            frame: The data frame; its index is not read.
            name: What the dataset is called.

        Raises:
            DatasetError: A column or a cell is wrong; every issue is given with its row.
        """
        from deemster.datasets._sample_table import dataframe_rows  # noqa: PLC0415 - few datasets are tables

        table = dataframe_rows(frame, Reading(name, error=DatasetError))
        return cls._made_of(*read_root({"name": name, "samples": table.rows}, table, issues=table.issues))

    def save(self, path: str | FilePath) -> None:
        """Write the dataset as YAML, JSON or JSONL, by extension; a reader never sees half a file.

        Raises:
            DatasetError: The extension is none of these, or the file cannot be written.
        """
        extensions = ("yaml", "json", "jsonl")
        write_rows(path, _file_header(self), _file_rows(self), key="samples", known=extensions, error=DatasetError)

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
        part = "" if self.part is None else f" of {self.part.of}"
        return f"<Dataset {self.name!r}: {len(self)}{part} samples>"

    @property
    def name(self) -> str:
        """What the dataset is called."""
        return self._facts.name

    @property
    def description(self) -> str | None:
        """What it is about."""
        return self._facts.description

    @property
    def repetitions(self) -> int | None:
        """How often each sample is run, where the dataset says so."""
        return self._facts.repetitions

    @property
    def schema_version(self) -> str:
        """The format it was written in."""
        return self._facts.schema_version

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was ignored while reading."""
        return self._facts.warnings

    @property
    def cluster(self) -> str | None:
        """The metadata key whose equal values belong together, such as a document; None where samples stand alone."""
        return self._facts.cluster

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
        return equal_rows(self._rows.digests, self._ids_at)

    def _ids_at(self, positions: list[int]) -> Iterator[str]:
        return (sample.id for sample in self._rows.pick(positions))

    def select(
        self,
        *,
        tags: str | Iterable[str] = (),
        ids: str | Iterable[str] = (),
        where: Mapping[str, Any] | None = None,
        sample: int | None = None,
        seed: int = 0,
        limit: int | None = None,
    ) -> Dataset:
        """The samples that fit, as a dataset that knows that it is a part of this one.

        A sample must fit everything that is given. A selection that every sample fits is the dataset itself.

        Args:
            tags: Samples with at least one of these tags.
            ids: Samples with one of these ids; `*`, `?` and `[...]` stand for characters, as in file names.
            where: Values by key, such as `{"metadata.lang": "de"}` or `{"input.lang": ["de", "fr"]}`. In a list, any
                entry will do.
            sample: So many of them at random. The same seed draws the same ones.
            seed: The seed of `sample`.
            limit: The first so many of them.

        Raises:
            DatasetError: No sample fits, no sample has one of the tags, ids or values, or something cannot be used.
        """
        selection = Selection(
            tags=_texts(tags),
            ids=_texts(ids),
            where={path: as_entries(value) for path, value in (where or {}).items()},
            sample=sample,
            seed=seed,
            limit=limit,
        )
        selection.check()
        positions = select_positions(self, selection, file=self.path)
        return self._part(positions, selection.flags())

    def keep(self, ids: Collection[str], *, selection: str) -> Dataset:
        """The samples with these very ids, as a dataset that knows that it is a part of this one.

        Args:
            ids: The ids; those of no sample are ignored.
            selection: How they were selected, written as flags of `deemster run`.

        Raises:
            DatasetError: No sample has one of the ids.
        """
        positions = [position for position, sample in enumerate(self) if sample.id in ids]
        if not positions:
            raise DatasetError(Issue(f"No sample of the dataset is left by `{selection}`.", self.path))
        return self._part(positions, selection)

    def metadata(self) -> Iterator[Mapping[str, Any]]:
        """The metadata of every sample, in order."""
        return (sample.metadata for sample in self)

    def facts(self, *, content: bool = True) -> Iterator[SampleFacts]:
        """Every sample as a run keeps it, in order.

        Args:
            content: Whether expected output and input are wanted.
        """
        for position, (sample, row_hash) in enumerate(zip(self, self.row_hashes, strict=True)):
            yield _sample_facts(position, sample, row_hash, content=content)

    def facts_at(self, position: int) -> SampleFacts:
        """One sample as a run keeps it, with expected output and input."""
        (sample,) = self._rows.pick([position])
        return _sample_facts(position, sample, self.row_hashes[position], content=True)

    def clustered(self, key: str) -> Dataset:
        """The same samples, of which those with one value of a metadata key belong together."""
        dataset = copy.copy(self)
        dataset._facts = self._facts._replace(cluster=key)  # noqa: SLF001 - of this class
        return dataset

    def in_order(self, ids: Sequence[str]) -> Dataset:
        """The same samples in the order of these ids; as they are where the ids are not all of theirs."""
        positions = {sample.id: position for position, sample in enumerate(self)}
        if positions.keys() != set(ids):
            return self

        ordered = self._with_rows(SelectedRows(self._rows, [positions[sample_id] for sample_id in ids]))
        ordered.whole = ordered if self.whole is self else self.whole
        return ordered

    def excerpt(self, positions: Iterable[int]) -> Dataset:
        """Samples by position, as a dataset to be sent to another process: it has no fingerprint and no row hashes.

        The samples of a JSONL or Parquet file stay in it: the other process reads them there.

        Args:
            positions: Their places in this dataset.
        """
        dataset = self._with_rows(self._rows.excerpt(list(positions)))
        dataset.whole = dataset
        return dataset

    def _with_rows(self, rows: Rows) -> Dataset:
        """A copy with other samples, which has nothing of what was computed of these."""
        dataset = Dataset._made_of(self._facts, rows, path=self.path)
        dataset.part = self.part
        dataset.whole = self.whole
        return dataset

    def _part(self, positions: list[int], selection: str) -> Dataset:
        """A part of this dataset, which may be a part itself; the dataset where it is all of it."""
        if len(positions) == len(self):
            return self

        if self.part is not None and self.part.selection is not None:
            selection = f"{self.part.selection} {selection}"
        dataset = self._with_rows(SelectedRows(self._rows, positions))
        dataset.part = SelectedPart(samples=len(positions), of=len(self.whole), selection=selection)
        return dataset


def _read_file(path: str | FilePath, kind: str, reading: Reading, columns: Columns | None) -> tuple[DatasetFacts, Rows]:
    if kind == "jsonl":
        return load_jsonl(path, reading)
    if kind in ("yaml", "json"):
        return read_document(reading.content(path), kind, reading)
    return read_table(path, kind, reading, columns=columns)


def _sample_facts(position: int, sample: Sample, row_hash: str, *, content: bool) -> SampleFacts:
    labels = SampleLabels(sample.tags, sample.metadata)
    sample_content = SampleContent(sample.expected_output, sample.input) if content else None
    return SampleFacts(position, sample.id, row_hash, labels, sample_content)


def _texts(texts: str | Iterable[str]) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _as_row(sample: Sample | Mapping[str, Any]) -> Any:
    if isinstance(sample, Sample):
        return {
            "id": sample.id,
            "input": to_json_value(sample.input),
            "expected_output": to_json_value(sample.expected_output),
            "metadata": to_json_value(sample.metadata),
        }
    return to_json_value(sample)


def _file_header(dataset: Dataset) -> dict[str, Any]:
    header = {
        "schema_version": SCHEMA,
        "name": dataset.name,
        "description": dataset.description,
        "repetitions": dataset.repetitions,
        "cluster": dataset.cluster,
    }
    return {key: value for key, value in header.items() if value is not None}


def _file_rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for sample in dataset:
        row = {"id": sample.id, "input": sample.input, "expected_output": sample.expected_output}
        yield {**row, "metadata": sample.metadata} if sample.metadata else row
