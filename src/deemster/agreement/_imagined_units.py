"""Imagined units of the smoothed bootstrap: agreement and disagreement that no item of the sample shows.

A sample in which nothing went wrong says little about how often something goes wrong, and no resampling of it can show
that. So each replicate adds a few units of the average size, with small random weights: for each cell of each table,
for each way to leave a pair out, and for each way in which votes may fall. An imagined unit has the same answers on all
criteria of a kind, so that the mean over many criteria does not look more certain than each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.stats.sparse_rows import SparseRows

# How much agreement and disagreement a replicate adds, in units. Chosen by simulation (`bench/coverage.py`).
AGREEMENT = 0.5
DISAGREEMENT = 0.25


def table_shapes(size: int) -> Floats:
    """The parameters of the imagined units in the cells of a table of so many classes, row by row.

    >>> table_shapes(2), table_shapes(5)[:2]
    (array([0.5 , 0.25, 0.25, 0.5 ]), array([0.5   , 0.0625]))
    """
    return np.where(np.eye(size) == 1, AGREEMENT, DISAGREEMENT / max(1, size - 1)).ravel()


def imagined_votes(raters: int, size: int) -> Floats:
    """The votes of imagined units by class: full agreement on each class, then votes that agree least.

    >>> imagined_votes(3, 2)
    array([[3., 0.],
           [0., 3.],
           [2., 1.],
           [1., 2.]])
    """
    cast = (np.arange(raters) * size // raters + np.arange(size)[:, None]) % size
    return np.concatenate([raters * np.eye(size), (cast[:, :, None] == np.arange(size)).sum(axis=1)])


def vote_shapes(size: int) -> Floats:
    """The parameters of the units of `imagined_votes`.

    >>> vote_shapes(2)
    array([0.5 , 0.5 , 0.25, 0.25])
    """
    return np.repeat([AGREEMENT, DISAGREEMENT], size)


def unit_size(votes: LabelledVotes, column: CriterionColumn) -> float:
    """How many items of a column an average unit holds."""
    units = int(np.count_nonzero(np.bincount(votes.unit_of_item[column.rows])))
    return len(column.rows) / max(1, units)


class ImaginedUnits:
    """Collects imagined units: the parameter of each, and the cells that it falls on.

    Attributes:
        sizes: How many items an average unit of each column holds.
    """

    def __init__(self, votes: LabelledVotes) -> None:
        self.sizes = [unit_size(votes, column) for column in votes.columns]
        self._shapes: list[float] = []
        self._cells: list[int] = []
        self._owners: list[int] = []
        self._amounts: list[float] = []

    def add(self, shape: float, cells: Iterable[tuple[int, int]]) -> None:
        """Imagine a unit with this parameter; for each column it has an answer on, the cell it falls on."""
        for column, cell in cells:
            self._cells.append(cell)
            self._owners.append(len(self._shapes))
            self._amounts.append(self.sizes[column])
        self._shapes.append(shape)

    def build(self, n_cells: int) -> ImaginedCells:
        """The collected units over so many cells."""
        amounts = SparseRows(
            np.array(self._cells, dtype=np.intp),
            np.array(self._owners, dtype=np.intp),
            np.array(self._amounts),
            shape=(n_cells, len(self._shapes)),
        )
        return ImaginedCells(amounts, np.array(self._shapes))


@dataclass(frozen=True, slots=True, eq=False)
class ImaginedCells:
    """What imagined units add to cells.

    Attributes:
        amounts: Cells × units.
        shapes: The parameter of each unit.
    """

    amounts: SparseRows
    shapes: Floats

    def draw(self, replicates: int, rng: np.random.Generator) -> Floats:
        """The weights of the units in each replicate, units × replicates, unit after unit.

        So the weights of the first units do not depend on how many others there are.
        """
        found: Floats = rng.standard_gamma(self.shapes[:, None], (len(self.shapes), replicates))
        return found
