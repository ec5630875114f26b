"""Joint patterns of truth, verdict and votes, and the cells that are sums over them.

On one criterion an item is a pattern: its truth, its final verdict, each judge's vote. Patterns are few, so a replicate
is counted by pattern first, and every table follows from those counts. All of it is whole numbers, so no order of
summation can change a digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._labelled_votes import Codes, Column, Floats, Panel, Places
from deemster.alignment._verdict_classes import Classes
from deemster.alignment._vote_counts import Ballots, ballots_of

Counts: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct patterns of one column.

    Attributes:
        codes: Truth, final verdict and votes of each pattern; failures of a vote are as if it were not there.
        number: The pattern of each row of the column.
        worst: The code of the worst case of each pattern.
    """

    codes: NDArray[Any]
    number: Places
    worst: Codes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.codes)


def patterns_of(sides: Sequence[NDArray[Any]], worst: Codes) -> Patterns:
    """Find the distinct rows of several columns of codes.

    Args:
        sides: Codes by row; nothing is below -2.
        worst: The code of the worst case by row.
    """
    rows = len(worst)
    key = np.zeros(rows, dtype=np.int64)
    span = 1
    for codes in (worst, *sides):
        radix = int(codes.max(initial=0)) + 3
        if span * radix > 2**62:
            _, key = np.unique(key, return_inverse=True)
            span = rows
        key *= radix
        key += codes
        key += 2
        span *= radix
    if span <= 16 * rows + 1024:
        held = np.zeros(span, dtype=bool)
        held[key] = True
        number = (np.cumsum(held) - 1)[key]
        first = np.empty(int(held.sum()), dtype=np.intp)
        first[number] = np.arange(rows)
    else:
        _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return Patterns(
        codes=np.column_stack([codes[first] for codes in sides]), number=number.astype(np.intp), worst=worst[first]
    )


@dataclass(frozen=True, slots=True, eq=False)
class Shelf:
    """Columns of one kind and size, whose tables are computed together.

    Attributes:
        columns: Their places.
        classes: Their classes.
        size: How many classes each has.
        pairs: First cell of the tables truth × final, ``[size, size, columns]``.
        judges: First cell of the tables truth × vote, ``[size, size, judges, columns]``.
        slices: First cell of the tables truth × final of each slice, ``[size, size, slices, columns]``.
    """

    columns: tuple[int, ...]
    classes: tuple[Classes, ...]
    size: int
    pairs: int
    judges: int
    slices: int


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Everything that is counted, and where it stands.

    Attributes:
        units: Patterns × units (items or clusters), a sparse matrix of counts.
        sums: Cells × patterns, a sparse matrix of counts.
        shelves: Tables of pairs.
        ballots: The judges among each other; None below two.
        coverage: First cell of four by column: labelled, judge abstains, truth abstains, failed.
        abstaining: First cell of the tables abstains × abstains, ``[columns, 2, 2]``.
        lost: Labelled cells of errored items by column, which no replicate changes.
    """

    units: Any
    sums: Any
    shelves: tuple[Shelf, ...]
    ballots: Ballots | None
    coverage: int
    abstaining: int
    lost: Floats

    def counted(self, drawn: Counts) -> Floats:
        """The cells of each replicate, cells × replicates.

        Args:
            drawn: How often each unit is drawn, units × replicates.
        """
        return self.summed(self.units @ drawn)

    def summed(self, patterns: Counts) -> Floats:
        """The cells, from counts by pattern, patterns × replicates."""
        found: Floats = (self.sums @ patterns).astype(np.float64)
        return found

    def totals(self) -> Counts:
        """Counts by pattern in the data as they are, patterns × 1."""
        found: Counts = np.asarray(self.units.sum(axis=1, dtype=self.units.dtype)).reshape(-1, 1)
        return found


class _Plan:
    """Collects which patterns add to which cell."""

    def __init__(self) -> None:
        self.cells: list[Places] = []
        self.patterns: list[Places] = []
        self.size = 0

    def reserve(self, cells: int) -> int:
        first = self.size
        self.size += cells
        return first

    def add(self, cells: Places, patterns: Places) -> None:
        self.cells.append(cells)
        self.patterns.append(patterns)


def cells_of(
    whole: Panel, classes: Sequence[Classes], *, per_judge: bool, slices: NDArray[np.bool_] | None = None
) -> Cells:
    """Lay out every count that the statistics of a panel need.

    Args:
        whole: The panel.
        classes: Of each column.
        per_judge: Count each judge against the truth too.
        slices: Which items are in which slice, items × slices.
    """
    found = [_patterns(column) for column in whole.columns]
    holders = [column.rows for column in whole.columns]
    first = np.concatenate([[0], np.cumsum([each.size for each in found])]).astype(np.intp)
    plan = _Plan()
    shelves = _shelves(plan, found, first, classes, len(whole.judges) if per_judge else 0)
    ballots = None
    if len(whole.judges) >= 2:
        ballots = _ballots(plan, shelves, found, first)
    coverage, abstaining = _coverage(plan, whole.columns, found, first)
    if slices is not None:
        shelves, sliced, members = _sliced(plan, shelves, whole.columns, slices, int(first[-1]))
        found, holders = found + sliced, holders + members
    from scipy.sparse import csr_array  # noqa: PLC0415 - takes a tenth of a second to load

    dtype = _exact(whole)
    rows, columns = np.concatenate(plan.cells), np.concatenate(plan.patterns)
    patterns = sum(each.size for each in found)
    sums = csr_array((np.ones(len(rows), dtype=dtype), (rows, columns)), shape=(plan.size, patterns))
    return Cells(
        units=_units(whole, found, holders, dtype),
        sums=sums,
        shelves=shelves,
        ballots=ballots,
        coverage=coverage,
        abstaining=abstaining,
        lost=np.array([column.lost for column in whole.columns], dtype=np.float64),
    )


def _exact(whole: Panel) -> type[np.generic]:
    """The smallest type that holds every count: a replicate has at most this many cells of one column."""
    most = len(whole.ids)
    if whole.clusters is not None:
        most = whole.n_units * int(np.bincount(whole.clusters).max())
    if most < 2**16:
        return np.uint16
    return np.float32 if most < 2**24 else np.float64


def _patterns(column: Column) -> Patterns:
    # A judge whose call failed and one who was not asked are both silent; a failed final verdict is told apart.
    votes = np.maximum(column.votes, -1).T
    return patterns_of([np.maximum(column.truth, -1), np.maximum(column.final, -2), *votes], column.worst)


def _units(whole: Panel, found: list[Patterns], holders: list[Places], dtype: type[np.generic]) -> Any:
    from scipy.sparse import csr_array  # noqa: PLC0415 - takes a tenth of a second to load

    unit = np.arange(len(whole.ids)) if whole.clusters is None else whole.clusters
    start, rows = 0, []
    for each in found:
        rows.append(each.number + start)
        start += each.size
    places, columns = np.concatenate(rows), np.concatenate([unit[held] for held in holders])
    return csr_array((np.ones(len(places), dtype=dtype), (places, columns)), shape=(start, whole.n_units))


def _shelves(
    plan: _Plan, found: list[Patterns], first: Places, classes: Sequence[Classes], judges: int
) -> tuple[Shelf, ...]:
    groups: dict[tuple[str, int], list[int]] = {}
    for place, each in enumerate(classes):
        groups.setdefault((each.kind, each.size), []).append(place)
    shelves = []
    for (_, size), columns in groups.items():
        width = len(columns)
        pairs = plan.reserve(size * size * width)
        own = plan.reserve(size * size * judges * width)
        for slot, place in enumerate(columns):
            patterns = found[place]
            number = np.arange(patterns.size) + first[place]
            seen = classes[place].of(patterns.codes[:, : 2 + judges], patterns.worst)
            truth = seen[:, 0].astype(np.intp)
            for side in range(1 + judges):
                other = seen[:, 1 + side].astype(np.intp)
                both = (truth >= 0) & (other >= 0)
                table = (truth * size + other)[both]
                cell = pairs + table * width + slot if side == 0 else own + (table * judges + side - 1) * width + slot
                plan.add(cell, number[both])
        chosen = tuple(classes[place] for place in columns)
        shelves.append(Shelf(columns=tuple(columns), classes=chosen, size=size, pairs=pairs, judges=own, slices=0))
    return tuple(shelves)


def _ballots(plan: _Plan, shelves: Sequence[Shelf], found: list[Patterns], first: Places) -> Ballots:
    start = plan.size
    groups = []
    raters = found[0].codes.shape[1] - 2
    for shelf in shelves:
        ways = []
        for place, classes in zip(shelf.columns, shelf.classes, strict=True):
            patterns = found[place]
            cast = classes.of(patterns.codes[:, 2:], patterns.worst)
            votes = (cast[:, :, None] == np.arange(classes.size)).sum(axis=1)
            distinct = patterns_of(list(votes.T), np.zeros(patterns.size, dtype=np.int16))
            plan.add(plan.reserve(distinct.size) + distinct.number, np.arange(patterns.size) + first[place])
            ways.append(distinct.codes.astype(np.float64))
        groups.append((shelf.columns, shelf.classes[0].kind == "ordinal", ways))
    return ballots_of(start, groups, raters=raters)


def _coverage(plan: _Plan, columns: Sequence[Column], found: list[Patterns], first: Places) -> tuple[int, int]:
    coverage = plan.reserve(4 * len(columns))
    # A table for each column, since the sum over columns need not fit the type of a count.
    abstaining = plan.reserve(4 * len(columns))
    for place, (column, patterns) in enumerate(zip(columns, found, strict=True)):
        number = np.arange(patterns.size) + first[place]
        truth, final = patterns.codes[:, 0], patterns.codes[:, 1]
        silent = np.zeros(len(column.criterion.labels), dtype=bool)
        silent[list(column.criterion.abstentions)] = True
        labelled, judged = truth >= 0, (truth >= 0) & (final >= 0)
        truth_silent, final_silent = judged & silent[truth], judged & silent[final]
        for step, held in enumerate((labelled, final_silent, truth_silent, labelled & (final == -2))):
            plan.add(np.full(int(held.sum()), coverage + 4 * place + step, dtype=np.intp), number[held])
        table = 2 * (~truth_silent[judged]).astype(np.intp) + ~final_silent[judged]
        plan.add(abstaining + 4 * place + table, number[judged])
    return coverage, abstaining


def _sliced(
    plan: _Plan, shelves: tuple[Shelf, ...], columns: Sequence[Column], slices: NDArray[np.bool_], start: int
) -> tuple[tuple[Shelf, ...], list[Patterns], list[Places]]:
    """Tables truth × final of every slice, with patterns of their own: truth, final verdict and set of slices."""
    sets, number = np.unique(slices, axis=0, return_inverse=True)
    number = number.reshape(-1)
    many = slices.shape[1]
    filled, found, members = [], [], []
    for shelf in shelves:
        width, size = len(shelf.columns), shelf.size
        base = plan.reserve(size * size * many * width)
        for slot, (place, classes) in enumerate(zip(shelf.columns, shelf.classes, strict=True)):
            column = columns[place]
            inside = slices[column.rows].any(axis=1)
            seen = np.column_stack([column.truth, column.final])[inside]
            pairs = classes.of(seen, column.worst[inside])
            group = number[column.rows[inside]].astype(np.int32)
            patterns = patterns_of([*pairs.T.astype(np.int32), group], np.zeros(len(group), dtype=np.int16))
            truth, final, group = patterns.codes.astype(np.intp).T
            both = (truth >= 0) & (final >= 0)
            for member in range(many):
                held = both & sets[group, member]
                table = (truth * size + final)[held]
                plan.add(base + (table * many + member) * width + slot, np.flatnonzero(held) + start)
            found.append(patterns)
            members.append(column.rows[inside])
            start += patterns.size
        filled.append(replace(shelf, slices=base))
    return tuple(filled), found, members
