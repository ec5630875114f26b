"""Rows of numbers of which most are 0, without the tenth of a second that scipy takes to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A row with more numbers than this is summed by itself, shorter rows together.
_SHORT = 16
# Replicates at a time, so that what is summed stays in the processor's cache.
_STRIP = 512


class _Terms(NamedTuple):
    """Numbers of a matrix that are multiplied together.

    Attributes:
        columns: Their columns.
        values: The numbers, terms × 1; None where all are 1.
    """

    columns: NDArray[Any]
    values: NDArray[Any] | None

    def multiply(self, weights: NDArray[Any], room: NDArray[Any]) -> NDArray[Any]:
        """The products with weights, in a part of the room."""
        weighted = weights.take(self.columns, axis=0, out=room[: len(self.columns)], mode="clip")
        if self.values is not None:
            weighted *= self.values
        return weighted


class SparseRows:
    """A matrix to be multiplied with weights.

    A sum adds one number after the other, in the order of the columns, so that neither threads nor the width of a block
    change its last digit.

    Args:
        rows: The row of each number.
        columns: The column of each number; numbers in one place are added.
        values: The numbers.
        shape: How many rows and columns there are.

    Attributes:
        shape: How many rows and columns there are.
        dtype: The type of the numbers.

    >>> matrix = SparseRows(np.array([1, 0, 1]), np.array([2, 0, 0]), np.array([1.0, 2.0, 3.0]), shape=(2, 3))
    >>> matrix @ np.array([[1.0], [10.0], [100.0]])
    array([[  2.],
           [103.]])
    """

    def __init__(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp], values: NDArray[Any], *, shape: tuple[int, int]
    ) -> None:
        places, number_of_value = np.unique(rows * shape[1] + columns, return_inverse=True)
        self.shape = shape
        self.dtype = values.dtype
        self._rows, self._columns = np.divmod(places, shape[1])
        self._values = np.zeros(len(places), dtype=values.dtype)
        np.add.at(self._values, number_of_value, values)

        ends = np.searchsorted(self._rows, np.arange(shape[0] + 1))
        lengths = np.diff(ends)
        longest_first = np.argsort(-lengths, kind="stable")
        n_long = int((lengths > _SHORT).sum())
        self._long_rows = [
            (row, self._terms(np.arange(ends[row], ends[row + 1]))) for row in longest_first[:n_long].tolist()
        ]

        # The first numbers of all short rows, then the second ones of those that have two, and so on.
        self._short_rows = longest_first[n_long : int((lengths > 0).sum())]
        starts, left = ends[self._short_rows], lengths[self._short_rows]
        self._short_terms = [self._terms(starts[left > step] + step) for step in range(int(left.max(initial=0)))]
        self._most_terms = max(len(self._short_rows), int(lengths.max(initial=0)))

    @classmethod
    def of(cls, dense: NDArray[Any]) -> Self:
        """The rows of a matrix."""
        rows, columns = np.nonzero(dense)
        return cls(rows, columns, dense[rows, columns], shape=dense.shape)

    def __matmul__(self, weights: NDArray[Any]) -> NDArray[Any]:
        """The product with weights, columns × replicates."""
        replicates = weights.shape[1]
        product = np.zeros((self.shape[0], replicates), dtype=np.result_type(self.dtype, weights))

        for start in range(0, replicates, _STRIP):
            strip = np.ascontiguousarray(weights[:, start : start + _STRIP], dtype=product.dtype)
            self._multiply(strip, out=product[:, start : start + _STRIP])

        return product

    def _multiply(self, weights: NDArray[Any], *, out: NDArray[Any]) -> None:
        sums = np.zeros((len(self._short_rows), out.shape[1]), dtype=out.dtype)
        room = np.empty((self._most_terms, out.shape[1]), dtype=out.dtype)
        for terms in self._short_terms:
            sums[: len(terms.columns)] += terms.multiply(weights, room)
        out[self._short_rows] = sums

        for row, terms in self._long_rows:
            products = terms.multiply(weights, room)
            # A single column would be added pairwise.
            out[row] = np.add.accumulate(products)[-1] if out.shape[1] == 1 else np.add.reduce(products)

    def row_sums(self) -> NDArray[Any]:
        """The sum of each row, rows × 1."""
        return self @ np.ones((self.shape[1], 1), dtype=self.dtype)

    def dense_columns(self, start: int, stop: int) -> NDArray[Any]:
        """Some columns, with their zeros."""
        chosen = (self._columns >= start) & (self._columns < stop)
        dense = np.zeros((self.shape[0], stop - start), dtype=self.dtype)
        dense[self._rows[chosen], self._columns[chosen] - start] = self._values[chosen]
        return dense

    def _terms(self, numbers: NDArray[np.intp]) -> _Terms:
        values = self._values[numbers, None]
        return _Terms(self._columns[numbers], None if (values == 1).all() else values)
