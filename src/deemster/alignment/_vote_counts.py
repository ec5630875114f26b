"""How the judges' votes fall on the classes, summed over items for agreement among the judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deemster.alignment._labelled_votes import Floats
from deemster.stats import agreement_from_sums as coincidence
from deemster.stats import confusion_tables as tables


@dataclass(frozen=True, slots=True, eq=False)
class Sheaf:
    """Where the sums of columns of one kind and size stand.

    Attributes:
        columns: Places of the columns.
        ordinal: Whether their classes are in order.
        size: How many classes each has.
        together: First row of the coincidences, ``[size, size, columns]``.
        shares: First row of the shares of pairs, likewise.
        chosen: First row of the shares of votes, ``[size, columns]``.
        totals: First row of the votes of complete items, likewise.
        units: First row of the count of items with two votes or more, ``[columns]``.
        agreeing: First row of the agreeing pairs of complete items, likewise.
    """

    columns: tuple[int, ...]
    ordinal: bool
    size: int
    together: int
    shares: int
    chosen: int
    totals: int
    units: int
    agreeing: int


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """Sums over the distinct ways in which votes fall on classes.

    Attributes:
        first: First cell of the ways: how many items have each.
        sums: Rows × ways, a sparse matrix. Whole multiples of what a way adds, so that sums are exact.
        sheaves: Where the rows stand.
        pairs_whole: The multiple of the coincidences.
        votes_whole: The multiple of the shares of votes; that of the shares of pairs is the product of both.
        raters: How many judges there are.
    """

    first: int
    sums: Any
    sheaves: tuple[Sheaf, ...]
    pairs_whole: int
    votes_whole: int
    raters: int

    def measures(self, counts: Floats) -> dict[str, Floats]:
        """Alpha, Gwet's coefficient and Fleiss' kappa of each column, columns × replicates.

        Args:
            counts: Cells × replicates.
        """
        summed = self.sums @ counts[self.first : self.first + self.sums.shape[1]]
        columns = sum(len(sheaf.columns) for sheaf in self.sheaves)
        names = ("krippendorff_alpha", "panel_gwet_ac", "fleiss_kappa")
        found = {name: np.full((columns, counts.shape[1]), np.nan) for name in names}
        for sheaf in self.sheaves:
            width, size, places = len(sheaf.columns), sheaf.size, list(sheaf.columns)

            def held(first: int, *shape: int, whole: int = 1) -> Floats:
                rows: Floats = summed[first : first + math.prod(shape)].reshape(*shape, counts.shape[1]) / whole
                return np.moveaxis(rows, range(len(shape) - 1), range(-len(shape) + 1, 0))

            together = held(sheaf.together, size, size, width, whole=self.pairs_whole)
            shares = held(sheaf.shares, size, size, width, whole=self.pairs_whole * self.votes_whole)
            chosen = held(sheaf.chosen, size, width, whole=self.votes_whole)
            level: coincidence.Level = "ordinal" if sheaf.ordinal else "nominal"
            weights = tables.agreement(tables.disagreement(size, "quadratic")) if sheaf.ordinal else None
            found["krippendorff_alpha"][places] = coincidence.alpha(together, level, units=held(sheaf.units, width))
            found["panel_gwet_ac"][places] = coincidence.gwet_from(shares, chosen, weights=weights)
            found["fleiss_kappa"][places] = coincidence.fleiss_from(
                held(sheaf.agreeing, width), held(sheaf.totals, size, width), raters=self.raters
            )
        return found


def common(most: int) -> int:
    """The least number that all up to one divide; 1 where it would be too large to keep sums exact.

    >>> common(4), common(40)
    (12, 1)
    """
    whole = math.lcm(*range(1, max(most, 1) + 1))
    return whole if whole < 2**16 else 1


def ballots_of(first: int, groups: Sequence[tuple[tuple[int, ...], bool, list[Floats]]], *, raters: int) -> Ballots:
    """Lay out the sums of the ways in which votes fall on classes.

    Args:
        first: First cell of the ways, which stand group after group, column after column.
        groups: Places of columns, whether their classes are in order, and the ways of each: votes by way and class.
        raters: How many judges there are.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - takes a tenth of a second to load

    pairs_whole, votes_whole = common(raters - 1), common(raters)
    rows: list[Any] = []
    columns: list[Any] = []
    data: list[Any] = []
    sheaves = []
    size = start = 0

    def add(place: int, width: int, slot: int, each: Floats) -> None:
        """What each way adds to one row after another, ``[ways, rows]``."""
        way, row = np.nonzero(each)
        rows.append(place + row * width + slot)
        columns.append(start + way)
        data.append(each[way, row])

    for places, ordinal, ways in groups:
        width, classes = len(places), ways[0].shape[1]
        square = classes * classes
        lengths = (square, square, classes, classes, 1, 1)
        offsets = [size + width * sum(lengths[:step]) for step in range(len(lengths))]
        size += width * sum(lengths)
        for slot, votes in enumerate(ways):
            cast = votes.sum(axis=1)
            complete = (cast == raters)[:, None] * votes
            parts = (
                (coincidence.contribution(votes), pairs_whole),
                (coincidence.pair_shares(votes), pairs_whole * votes_whole),
                (coincidence.vote_shares(votes), votes_whole),
                (complete, 1),
                ((cast >= 2).astype(np.float64), 1),
                ((complete * (complete - 1)).sum(axis=1), 1),
            )
            for place, length, (each, whole) in zip(offsets, lengths, parts, strict=True):
                scaled = each.reshape(len(votes), length) * whole
                add(place, width, slot, np.rint(scaled) if whole > 1 else scaled)
            start += len(votes)
        sheaves.append(Sheaf(places, ordinal, classes, *(offsets[step] for step in (0, 1, 2, 3, 4, 5))))
    where = (np.concatenate(rows), np.concatenate(columns))
    return Ballots(
        first=first,
        sums=csr_array((np.concatenate(data), where), shape=(size, start)),
        sheaves=tuple(sheaves),
        pairs_whole=pairs_whole,
        votes_whole=votes_whole,
        raters=raters,
    )
