"""Reads Parquet as a whole, or some of its rows by the row groups that hold them."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

import numpy as np

from deemster.errors import InputError, MissingExtraError
from deemster.formats.document import Reading, most_unpacked

# A process that reads rows keeps so many row groups: two of the samples and two of the outputs.
_MOST_GROUPS: Final = 4
# Rows that are read for one that is wanted.
_MOST_READ: Final = 4
# The memory of a value beside its text, and the rows that are unpacked at once where a text may stand for many.
_VALUE: Final = 32
_ROWS: Final = 64
Found = TypeVar("Found")


class ParquetColumns(NamedTuple):
    """The columns of a Parquet file.

    Attributes:
        names: What each is called.
        types: Its Arrow type.
        cells: Its values, row by row.
    """

    names: list[str]
    types: list[Any]
    cells: list[list[Any]]


class ParquetFile:
    """A Parquet file, which other processes of the same file system can read too.

    Args:
        path: The file.
        reading: How the file is called and what its errors are.

    Raises:
        InputError: There is no such file, or it cannot be opened.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, path: str | Path, reading: Reading) -> None:
        _import_pyarrow()
        self.reading = reading
        self._path = Path(path).absolute()
        self._ends: Any = None
        with reading.open(path) as file:
            self._state = _state(file)

    def names(self) -> list[str]:
        """The names of the columns.

        Raises:
            InputError: The file is not Parquet.
        """
        _, pq = _import_pyarrow()
        with self.reading.open(self._path) as file:
            return self._refuse_what_is_not_parquet(lambda: list(pq.read_schema(file).names))

    def read(self) -> ParquetColumns:
        """All rows.

        Raises:
            InputError: The file is not Parquet.
        """
        pa, pq = _import_pyarrow()
        data = self.reading.content(self._path)

        def read_all() -> ParquetColumns:
            source = pq.ParquetFile(pa.BufferReader(data))
            self._check_unpacked(data, source)
            groups = range(source.num_row_groups)
            self._ends = np.cumsum([source.metadata.row_group(group).num_rows for group in groups], dtype=np.int64)
            return _columns(source.read())

        return self._refuse_what_is_not_parquet(read_all)

    def _check_unpacked(self, data: bytes, source: Any) -> None:
        """Refuse a file that unpacks to too much: it may hold a long text once, and name it in a million rows."""
        pa, pq = _import_pyarrow()
        packed, unpacked = len(data), 0
        for place in range(source.num_row_groups):
            group = source.metadata.row_group(place)
            texts = {}
            for at in range(group.num_columns):
                column = group.column(at)
                width = _VALUE + source.schema.column(at).length
                unpacked += column.total_uncompressed_size + width * column.num_values
                if column.physical_type == "BYTE_ARRAY":
                    texts[column.path_in_schema] = column.num_values
            self.reading.check_unpacked(unpacked, packed=packed)

            named = pq.ParquetFile(pa.BufferReader(data), read_dictionary=list(texts))
            try:
                # The texts that rows name stand before the first of them.
                first = next(named.iter_batches(1, row_groups=[place], use_threads=False), None)
                at_most = _longest_text(first) * sum(texts.values())
                if unpacked + at_most <= most_unpacked(packed):
                    unpacked += at_most
                    continue
                tables: Iterable[Any] = [named.read_row_group(place)]
            except OSError:
                # Texts that begin as the text before are read only as a whole.
                tables = source.iter_batches(_ROWS, row_groups=[place])
            for table in tables:
                unpacked += sum(map(_text_bytes, _leaves(table)))
                self.reading.check_unpacked(unpacked, packed=packed)

    def read_rows(self, positions: Sequence[int]) -> ParquetColumns:
        """Some rows, in the order asked for.

        Args:
            positions: Their places in the file.

        Raises:
            InputError: The file is not the one that was read as a whole.
            MissingExtraError: pyarrow is not installed.
        """
        pa, _ = _import_pyarrow()
        with self.reading.open(self._path) as file:
            if _state(file) != self._state:
                self.reading.refuse("The file has changed since it was loaded. Load it again.")
        at, groups = np.asarray(positions), self._groups(positions)
        starts = np.r_[0, self._ends][groups]
        sizes = self._ends[groups] - starts
        # Where each row stands in the table of only these row groups.
        held = np.searchsorted(self._ends[groups], at, side="right")
        local = at - starts[held] + np.r_[0, np.cumsum(sizes)][held]

        def read_some() -> ParquetColumns:
            tables = [_read_group(str(self._path), self._state, group) for group in groups.tolist()]
            return _columns(pa.concat_tables(tables).take(pa.array(local)))

        return self._refuse_what_is_not_parquet(read_some)

    def can_read_rows(self, positions: Sequence[int]) -> bool:
        """Whether to read rows is little work: their row groups are few or hold little else."""
        groups = self._groups(positions)
        held = np.diff(self._ends, prepend=0)[groups].sum()
        return len(groups) * 2 <= _MOST_GROUPS or bool(held <= _MOST_READ * len(positions))

    def _groups(self, positions: Sequence[int]) -> Any:
        """The row groups that hold rows."""
        return np.unique(np.searchsorted(self._ends, positions, side="right"))

    def _refuse_what_is_not_parquet(self, read: Callable[[], Found]) -> Found:
        pa, _ = _import_pyarrow()
        try:
            return read()
        except InputError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            self.reading.refuse(f"This is not Parquet: {str(error).splitlines()[0]}")


def _import_pyarrow(part: str = "parquet") -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        return pa, importlib.import_module(f"pyarrow.{part}")
    except ImportError:
        raise MissingExtraError("Reading Parquet", extra="parquet") from None


def _state(file: BinaryIO) -> tuple[int, int]:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=_MOST_GROUPS)
def _read_group(path: str, state: tuple[int, int], group: int) -> Any:  # noqa: ARG001 - a changed file is another one
    """A row group. A process runs many parts of a file, and most of them lie in the same one."""
    _, pq = _import_pyarrow()
    with Path(path).open("rb") as file:
        return pq.ParquetFile(file).read_row_group(group)


def _leaves(values: Any) -> Iterator[Any]:
    """The arrays that hold the values of a table, of lists, maps and structs; none of no table."""
    pa, _ = _import_pyarrow()
    if isinstance(values, (pa.Table, pa.RecordBatch)):
        parts = values.columns
    elif isinstance(values, pa.ChunkedArray):
        parts = values.chunks
    elif isinstance(values, pa.MapArray):
        parts = [values.keys, values.items]
    elif isinstance(values, pa.StructArray):
        parts = values.flatten()
    elif hasattr(values, "flatten") and pa.types.is_nested(values.type):
        parts = [values.flatten()]
    else:
        parts = []
        if values is not None:
            yield values
    for part in parts:
        yield from _leaves(part)


def _longest_text(table: Any) -> int:
    """The longest text that rows may name."""
    _, pc = _import_pyarrow("compute")
    named = [leaf.dictionary for leaf in _leaves(table) if hasattr(leaf, "dictionary")]
    return max((pc.max(pc.binary_length(texts)).as_py() or 0 for texts in named), default=0)


def _text_bytes(values: Any) -> int:
    """The bytes of values where each has a text of its own."""
    _, pc = _import_pyarrow("compute")
    if not hasattr(values, "dictionary"):
        return int(values.nbytes)
    return pc.sum(pc.binary_length(values.dictionary).take(values.indices)).as_py() or 0


def _columns(table: Any) -> ParquetColumns:
    return ParquetColumns(table.column_names, table.schema.types, [column.to_pylist() for column in table.columns])
