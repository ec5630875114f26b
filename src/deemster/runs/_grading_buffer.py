"""Graded items, kept in memory while few, else in a temporary file, and read one by one."""

from __future__ import annotations

import tempfile
import threading
import weakref
from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import msgspec

from deemster.judges.grading_result import ItemGrading

_IN_MEMORY = 8 * 1024 * 1024
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ItemGrading)


class GradingBuffer(Sequence[ItemGrading]):
    """Graded items by position, whatever order they come in.

    Args:
        count: How many there will be.
    """

    def __init__(self, count: int) -> None:
        self._offsets = array("q", [-1]) * count
        self._lengths = array("q", [0]) * count
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as the grading
        self._end = 0
        # Reading is seek and read, which two threads must not interleave.
        self._lock = threading.Lock()
        weakref.finalize(self, self._file.close)

    def put(self, position: int, item: ItemGrading) -> None:
        """Keep an item.

        Raises:
            OSError: The temporary file cannot be written.
        """
        row = _ENCODER.encode(item)
        with self._lock:
            self._offsets[position], self._lengths[position] = self._end, len(row)
            self._end += len(row)
            self._file.seek(0, 2)
            self._file.write(row)

    def holds(self, position: int) -> bool:
        """Whether there is an item at a position already."""
        return self._offsets[position] >= 0

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[ItemGrading]:
        return (self._read(position) for position in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> ItemGrading: ...

    @overload
    def __getitem__(self, index: slice) -> list[ItemGrading]: ...

    def __getitem__(self, index: int | slice) -> ItemGrading | list[ItemGrading]:
        found = range(len(self))[index]
        return self._read(found) if isinstance(found, int) else [self._read(position) for position in found]

    def whole(self, position: int) -> ItemGrading:
        """An item as it was put, with the calls that its votes stand on."""
        with self._lock:
            self._file.seek(self._offsets[position])
            row = self._file.read(self._lengths[position])
        return _DECODER.decode(row)

    def _read(self, position: int) -> ItemGrading:
        return self.whole(position).without_calls()
