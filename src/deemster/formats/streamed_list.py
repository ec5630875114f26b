"""A long list that is made again each time it is read, and never stands in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar, overload

_T = TypeVar("_T")


class Stream(Sequence[_T]):
    """A long list that is made again each time it is read, and never stands in memory.

    Going through it is cheap; asking for its length or for one entry goes through it too.
    """

    def __init__(self, make: Callable[[], Iterator[_T]]) -> None:
        self._make = make

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
        for entry in islice(self, index, None):
            return entry
        raise IndexError(f"There is no entry {index}.")
