"""A long list that is made again each time it is read, and never stands in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

_T = TypeVar("_T")


class Stream(Sequence[_T]):
    """A long list that is made again each time it is read, and never stands in memory.

    Going through it is cheap; asking for its length goes through it too, and so does asking for one entry, unless that
    can be made alone.

    Args:
        make: Makes the entries, from the first on.
        pick: Makes the entry at an index; None where all entries before it must be made too.
    """

    def __init__(self, make: Callable[[], Iterator[_T]], *, pick: Callable[[int], _T] | None = None) -> None:
        self._make = make
        self._pick = pick

    def map(self, change: Callable[[_T], _T]) -> Stream[_T]:
        """The same list with every entry changed."""
        pick = self._pick
        return Stream(lambda: map(change, self), pick=None if pick is None else lambda index: change(pick(index)))

    def __iter__(self) -> Iterator[_T]:
        return self._make()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @overload
    def __getitem__(self, index: int) -> _T: ...

    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...

    def __getitem__(self, index: int | slice) -> _T | list[_T]:
        if isinstance(index, slice) or index < 0:
            return list(self)[index]
        if self._pick is not None:
            return self._pick(index)
        for entry in islice(self, index, None):
            return entry
        raise IndexError(f"There is no entry {index}.")


def map_stream(entries: Sequence[_T], change: Callable[[_T], _T]) -> Sequence[_T]:
    """A list with every entry changed, none of which stands in memory."""
    return entries.map(change) if isinstance(entries, Stream) else Stream(lambda: map(change, entries))
