"""Where lines stand in a file, by key: a table that takes thirty bytes a line where a dictionary takes two hundred."""

from __future__ import annotations

from array import array
from typing import NamedTuple

_SMALLEST = 1024
_EIGHT_BYTES = (1 << 64) - 1


class Place(NamedTuple):
    """A stretch of a file."""

    start: int
    length: int


class Places:
    """Places by the eight bytes of a key's hash; whoever reads a line compares the key itself.

    Two of a billion keys have one hash about once in forty such tables. Open addressing with linear probing, at most
    two thirds full.
    """

    def __init__(self) -> None:
        self._count = 0
        self._clear(_SMALLEST)

    def _clear(self, size: int) -> None:
        self._mask = size - 1
        self._names = array("Q", bytes(8 * size))
        self._starts = array("Q", bytes(8 * size))
        # A length of 0 is a place that was taken back.
        self._lengths = array("I", bytes(4 * size))
        self._used, self._most = 0, 2 * size // 3

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: bytes) -> bool:
        return self._lengths[self._slot(_name(key))] > 0

    def get(self, key: bytes) -> Place | None:
        """The place of a key, or None."""
        at = self._slot(_name(key))
        length = self._lengths[at]
        return Place(self._starts[at], length) if length else None

    def put(self, key: bytes, place: Place) -> None:
        """Note the place of a key, in place of the one it had."""
        if self._used >= self._most:
            self._grow()
        self._put(_name(key), place)

    def drop(self, key: bytes) -> None:
        """Forget the place of a key."""
        at = self._slot(_name(key))
        if self._lengths[at]:
            self._lengths[at] = 0
            self._count -= 1

    def _put(self, name: int, place: Place) -> None:
        at = self._slot(name)
        self._used += not self._names[at]
        self._count += not self._lengths[at]
        self._names[at], self._starts[at], self._lengths[at] = name, *place

    def _slot(self, name: int) -> int:
        """Where a name stands, or would stand."""
        names, mask = self._names, self._mask
        at = name & mask
        while (found := names[at]) and found != name:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        held = zip(self._names, self._starts, self._lengths, strict=True)
        # Where most of what is there was taken back, clearing up makes room enough.
        size = len(self._names) if 3 * self._count < len(self._names) else 2 * len(self._names)
        self._count = 0
        self._clear(size)
        for name, start, length in held:
            if length:
                self._put(name, Place(start, length))


def _name(key: bytes) -> int:
    """The hash of a key as a number that is not 0, which stands for nothing."""
    return hash(key) & _EIGHT_BYTES or 1
