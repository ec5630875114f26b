"""Confusion tables, coverage counts and agreement sums of votes, for the data and for replicates.

On one criterion an item is a pattern: its truth, its final verdict, and each judge's vote. Patterns are few, so a
replicate is counted by pattern first, and every table follows from those counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._imagined_units import (
    DISAGREEMENT,
    ImaginedCells,
    ImaginedUnits,
    imagined_votes,
    table_shapes,
    vote_shapes,
)
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._verdict_classes import Codes, VerdictClasses
from deemster.agreement.result_models import CriterionType
from deemster.stats.agreement_from_sums import vote_features
from deemster.stats.sparse_rows import SparseRows

Counts: TypeAlias = NDArray[Any]
# The code of a truth that annotators are tied on, in patterns only. It has no class.
_DISPUTED = -2
_STRIP = 128
# Cells of coverage by column.
_COVERAGE_CELLS = 5


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """The distinct rows of several columns of codes.

    Attributes:
        codes: The codes of each pattern.
        of_row: The number of each row's pattern.
        worst_codes: The code of the worst verdict of each pattern.
    """

    codes: NDArray[Any]
    of_row: Indices
    worst_codes: Codes

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.codes)


def find_patterns(sides: Sequence[NDArray[Any]], worst_codes: Codes) -> Patterns:
    """Find the distinct rows of several columns of codes.

    Args:
        sides: Codes by row; no code is below -2.
        worst_codes: The code of the worst verdict by row.
    """
    rows = len(worst_codes)
    key = np.zeros(rows, dtype=np.int64)
    span = 1
    for codes in (worst_codes, *sides):
        radix = int(codes.max(initial=0)) + 3
        if span * radix > 2**62:
            _, key = np.unique(key, return_inverse=True)
            span = rows
        key *= radix
        key += codes
        key += 2
        span *= radix
    _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
    codes = np.column_stack([side[first] for side in sides])
    return Patterns(codes=codes, of_row=of_row.astype(np.intp), worst_codes=worst_codes[first])


def count_by_unit(cells: Any, units: Indices, *, n_cells: int, n_units: int, dtype: Any = np.float64) -> SparseRows:
    """Count how often each cell occurs in each unit, ``[cells, units]``; a negative cell is none."""
    used = cells >= 0
    ones = np.ones(int(used.sum()), dtype=dtype)
    return SparseRows(cells[used].astype(np.intp), units[used], ones, shape=(n_cells, n_units))


class VoteWays(NamedTuple):
    """The distinct ways in which the judges' votes on the criteria of a group fall on their classes.

    Attributes:
        features: What an item of each way adds to the sums of agreement.
        cells: The cells that count the items of each way, criterion by criterion.
        ends: Where the cells of each criterion end; the ways of imagined items come last.
    """

    features: SparseRows
    cells: slice
    ends: tuple[int, ...]


class TableCells(NamedTuple):
    """Where tables of the truth against several sides stand among the cells, ``[size, size, sides, columns]``.

    Attributes:
        first: The first cell.
        size: How many classes the columns have.
        sides: How many sides are compared with the truth.
        columns: Places of the columns.
    """

    first: int
    size: int
    sides: int
    columns: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many cells there are."""
        return self.size**2 * self.sides * len(self.columns)

    def number(self, cell: Any, side: int, slot: int) -> Any:
        """The number of a cell of the table of one side and column."""
        return self.first + (cell * self.sides + side) * len(self.columns) + slot

    def across(self, cell: int, side: int) -> list[tuple[int, int]]:
        """One cell of the tables of a side in all columns, by column."""
        return [(place, self.number(cell, side, slot)) for slot, place in enumerate(self.columns)]

    def of(self, counts: Floats) -> Floats:
        """The tables, ``[sides, columns, replicates, K, K]``.

        A view that keeps replicates side by side in memory, so that sums over classes run along them.
        """
        shape = (self.size, self.size, self.sides, len(self.columns), counts.shape[1])
        cells = counts[self.first : self.first + self.length].reshape(shape)
        return np.moveaxis(cells, (0, 1), (-2, -1))


@dataclass(frozen=True, slots=True, eq=False)
class CriterionGroup:
    """Criteria of one kind with equally many classes, whose confusion tables are computed together.

    Attributes:
        kind: The kind of criterion.
        classes: Their classes.
        values: The values of the classes of each column; NaN for an abstention.
        negative: Whether MET counts against an item, by column.
        tables: Truth × final verdict, then truth × vote of each judge that is compared with the truth.
        votes: The judges among each other; None below two judges.
        slices: Truth × final verdict of each slice; None without slices.
    """

    kind: CriterionType
    classes: tuple[VerdictClasses, ...]
    values: tuple[Floats, ...]
    negative: NDArray[np.bool_]
    tables: TableCells
    votes: VoteWays | None
    slices: TableCells | None = None


@dataclass(frozen=True, slots=True, eq=False)
class ContingencyCounts:
    """Everything that is counted, and where it stands.

    Attributes:
        patterns_by_unit: Patterns × units (items or clusters), counts.
        cells_by_pattern: Cells × patterns, counts.
        groups: The confusion tables, by kind and size of criteria.
        n_judges: How many judges there are.
        first_coverage: First cell of five by column: labelled, judge abstains, truth abstains, failed, disputed.
        first_abstention: First cell of the tables abstains × abstains, ``[columns, 2, 2]``.
        n_errored: Labelled cells of errored items by column, which no replicate changes.
        may_abstain: Whether a column has an abstention, offered or not.
        imagined: What imagined units add to the cells.
    """

    patterns_by_unit: SparseRows
    cells_by_pattern: SparseRows
    groups: tuple[CriterionGroup, ...]
    n_judges: int
    first_coverage: int
    first_abstention: int
    n_errored: Floats
    may_abstain: tuple[bool, ...]
    imagined: ImaginedCells

    def count_draws(self, draws: Counts, imagined: Floats | None = None) -> Floats:
        """The cells of each replicate, cells × replicates; with imagined units once more, with what they add.

        Args:
            draws: How often each unit is drawn, or its weight, units × replicates.
            imagined: The weights of imagined units, units × replicates.
        """
        width = draws.shape[1]
        found = np.empty((self.cells_by_pattern.shape[0], width if imagined is None else 2 * width))
        # A few replicates at a time stay in the processor's cache.
        for start in range(0, width, _STRIP):
            stop = min(start + _STRIP, width)
            patterns = self.patterns_by_unit @ draws[:, start:stop]
            # In double precision the parts of a whole add up to it, so that no share of weights lies above 1.
            cells = self.count_cells(patterns.astype(np.float64) if patterns.dtype.kind == "f" else patterns)
            found[:, start:stop] = cells
            if imagined is not None:
                more = self.imagined.amounts @ imagined[:, start:stop]
                np.add(cells, more, out=found[:, width + start : width + stop])
        return found

    def count_cells(self, patterns: Counts) -> Floats:
        """The cells, from counts by pattern, patterns × replicates."""
        found: Floats = (self.cells_by_pattern @ patterns).astype(np.float64, copy=False)
        return found

    def pattern_totals(self) -> Counts:
        """Counts by pattern in the data themselves, patterns × 1."""
        return self.patterns_by_unit.row_sums()

    def coverage_cells(self, counts: Floats) -> Floats:
        """The counts of labelled, abstaining, failed and disputed cells, ``[columns, 5, replicates]``."""
        columns = len(self.n_errored)
        cells = counts[self.first_coverage : self.first_coverage + _COVERAGE_CELLS * columns]
        return cells.reshape(columns, _COVERAGE_CELLS, counts.shape[1])

    def abstention_tables(self, counts: Floats, *, binary: bool) -> Floats:
        """The 2×2 tables of who abstains, truth × final, as ``[replicates, 2, 2]``.

        Args:
            counts: Cells × replicates.
            binary: Sum over the binary columns, or over all others that have an abstention.
        """
        columns = len(self.n_errored)
        of_kind = [
            place for group in self.groups if (group.kind == "binary") == binary for place in group.tables.columns
        ]
        chosen = [place for place in of_kind if binary or self.may_abstain[place]]
        cells = counts[self.first_abstention : self.first_abstention + 4 * columns].reshape(columns, 2, 2, -1)
        return np.moveaxis(cells[chosen].sum(axis=0), -1, 0)


def count_votes(votes: LabelledVotes, *, per_judge: bool, slices: NDArray[np.bool_] | None = None) -> ContingencyCounts:
    """Lay out every count that the statistics need.

    Args:
        votes: The labelled votes.
        per_judge: Count each judge against the truth too.
        slices: Which items are in which slice, items × slices.
    """
    patterns = [_column_patterns(column) for column in votes.columns]
    rows = [column.rows for column in votes.columns]
    first = np.concatenate([[0], np.cumsum([each.size for each in patterns])]).astype(np.intp)
    layout = _CellLayout()
    imagined = ImaginedUnits(votes)
    groups = _group_criteria(layout, votes.columns, patterns, first, len(votes.judges) if per_judge else 0)
    first_coverage, first_abstention = _count_coverage(layout, votes.columns, patterns, first)
    if slices is not None:
        groups, slice_patterns, slice_rows = _count_slices(layout, groups, votes.columns, slices, int(first[-1]))
        patterns, rows = patterns + slice_patterns, rows + slice_rows
    _imagine_tables(imagined, groups, first_coverage)
    _imagine_abstentions(imagined, first_coverage, first_abstention)
    _imagine_slices(imagined, groups)
    dtype = _count_dtype(votes)
    starts = np.cumsum([0, *(each.size for each in patterns)])
    pattern_of_row = np.concatenate(
        [each.of_row + start for each, start in zip(patterns, starts[:-1].tolist(), strict=True)]
    )
    units = np.concatenate([votes.unit_of_item[each] for each in rows])
    n_patterns = int(starts[-1])
    return ContingencyCounts(
        patterns_by_unit=count_by_unit(pattern_of_row, units, n_cells=n_patterns, n_units=votes.n_units, dtype=dtype),
        cells_by_pattern=count_by_unit(
            np.concatenate(layout.cells),
            np.concatenate(layout.patterns),
            n_cells=layout.size,
            n_units=n_patterns,
            dtype=dtype,
        ),
        groups=groups,
        n_judges=len(votes.judges),
        first_coverage=first_coverage,
        first_abstention=first_abstention,
        n_errored=np.array([column.n_errored for column in votes.columns], dtype=np.float64),
        may_abstain=tuple(column.has_abstention for column in votes.columns),
        imagined=imagined.build(layout.size),
    )


def _imagine_tables(imagined: ImaginedUnits, groups: Sequence[CriterionGroup], first_coverage: int) -> None:
    """Imagine a unit for each cell of a table, on which panel and judges fall, and for each way votes may fall.

    No number compares a judge with the panel, so they may share units. The panel's pairs count as labelled.
    """
    for group in groups:
        labelled = [(place, first_coverage + _COVERAGE_CELLS * place) for place in group.tables.columns]
        for cell, shape in enumerate(table_shapes(group.tables.size).tolist()):
            of_sides = [each for side in range(group.tables.sides) for each in group.tables.across(cell, side)]
            imagined.add(shape, labelled + of_sides)
        if group.votes is not None:
            shapes = vote_shapes(group.tables.size).tolist()
            for step, shape in enumerate(shapes):
                ends = zip(group.tables.columns, group.votes.ends, strict=True)
                imagined.add(shape, [(place, end - len(shapes) + step) for place, end in ends])


def _imagine_slices(imagined: ImaginedUnits, groups: Sequence[CriterionGroup]) -> None:
    """Imagine a unit for each cell of the tables of slices.

    They come last: asking for them must not change the draws of the others.
    """
    for slices in [group.slices for group in groups if group.slices is not None]:
        for cell, shape in enumerate(table_shapes(slices.size).tolist()):
            for member in range(slices.sides):
                imagined.add(shape, slices.across(cell, member))


def _imagine_abstentions(imagined: ImaginedUnits, first_coverage: int, first_abstention: int) -> None:
    """Imagine a unit for each way to leave a pair out, and for each cell of the tables of who abstains."""
    columns = range(len(imagined.sizes))
    for step in range(1, _COVERAGE_CELLS):
        out = [(place, first_coverage + _COVERAGE_CELLS * place + each) for place in columns for each in (0, step)]
        imagined.add(DISAGREEMENT, out)
    for cell, shape in enumerate(table_shapes(2).tolist()):
        imagined.add(shape, [(place, first_abstention + 4 * place + cell) for place in columns])


class _CellLayout:
    """Collects which patterns add to which cell."""

    def __init__(self) -> None:
        self.cells: list[Indices] = []
        self.patterns: list[Indices] = []
        self.size = 0

    def reserve(self, cells: int) -> int:
        first = self.size
        self.size += cells
        return first

    def add(self, cells: Indices, patterns: Indices) -> None:
        self.cells.append(cells)
        self.patterns.append(patterns)


def _count_dtype(votes: LabelledVotes) -> type[np.generic]:
    """The smallest type that holds every count: a replicate has at most this many cells of one column."""
    most = len(votes.ids)
    if votes.clusters is not None:
        most = votes.n_units * int(np.bincount(votes.clusters).max())
    if most < 2**16:
        return np.uint16
    return np.float32 if most < 2**24 else np.float64


def _column_patterns(column: CriterionColumn) -> Patterns:
    # A failed vote counts as a missing one; a failed final verdict does not, and neither does a disputed truth.
    votes = np.maximum(column.votes, -1).T
    truth = np.where(column.disputed, _DISPUTED, np.maximum(column.truth, -1))
    return find_patterns([truth, np.maximum(column.final, -2), *votes], column.worst_codes)


def _group_criteria(
    layout: _CellLayout, columns: Sequence[CriterionColumn], patterns: list[Patterns], first: Indices, judges: int
) -> tuple[CriterionGroup, ...]:
    """Reserve and fill the tables truth × final and truth × vote, and count how the votes fall."""
    places_by_group: dict[tuple[CriterionType, int], list[int]] = {}
    for place, column in enumerate(columns):
        places_by_group.setdefault((column.classes.kind, column.classes.size), []).append(place)
    groups = []
    for (kind, size), places in places_by_group.items():
        tables = TableCells(layout.size, size, 1 + judges, tuple(places))
        layout.reserve(tables.length)
        classes = tuple(columns[place].classes for place in places)
        for slot, place in enumerate(places):
            number = np.arange(patterns[place].size) + first[place]
            found = classes[slot].from_codes(patterns[place].codes[:, : 2 + judges], patterns[place].worst_codes)
            truth = found[:, 0].astype(np.intp)
            for side in range(1 + judges):
                other = found[:, 1 + side].astype(np.intp)
                both = (truth >= 0) & (other >= 0)
                layout.add(tables.number((truth * size + other)[both], side, slot), number[both])
        values = tuple(np.array(each.values, dtype=np.float64) for each in classes)
        negative = np.array([columns[place].criterion.weight < 0 for place in places])
        votes = None
        if columns[0].votes.shape[1] >= 2:
            votes = _count_vote_ways(layout, classes, [patterns[place] for place in places], first[places])
        groups.append(CriterionGroup(kind, classes, values, negative, tables, votes))
    return tuple(groups)


def _count_vote_ways(
    layout: _CellLayout, classes: Sequence[VerdictClasses], patterns: Sequence[Patterns], first: Indices
) -> VoteWays:
    """Reserve and fill a cell for each way in which the votes on each criterion of a group fall on its classes."""
    start, raters = layout.size, patterns[0].codes.shape[1] - 2
    found, ends = [], []
    for own, each, number in zip(classes, patterns, first, strict=True):
        votes = own.count(own.from_codes(each.codes[:, 2:], each.worst_codes))
        ways = find_patterns(list(votes.T), np.zeros(each.size, dtype=np.int16))
        found.append(np.concatenate([ways.codes.astype(np.float64), imagined_votes(raters, own.size)]))
        layout.add(layout.reserve(len(found[-1])) + ways.of_row, np.arange(each.size) + number)
        ends.append(layout.size)
    columns = np.repeat(np.arange(len(found)), [len(each) for each in found])
    ordinal = classes[0].kind == "ordinal"
    features = vote_features(np.concatenate(found), columns, raters=raters, ordinal=ordinal)
    return VoteWays(features, slice(start, layout.size), tuple(ends))


def _count_coverage(
    layout: _CellLayout, columns: Sequence[CriterionColumn], patterns: list[Patterns], first: Indices
) -> tuple[int, int]:
    first_coverage = layout.reserve(_COVERAGE_CELLS * len(columns))
    # A table for each column, since the sum over columns need not fit the type of a count.
    first_abstention = layout.reserve(4 * len(columns))
    for place, (column, own) in enumerate(zip(columns, patterns, strict=True)):
        number = np.arange(own.size) + first[place]
        truth, final = own.codes[:, 0], own.codes[:, 1]
        abstains = np.zeros(len(column.criterion.labels), dtype=bool)
        abstains[list(column.criterion.abstentions)] = True
        labelled, disputed, judged = truth >= 0, truth == _DISPUTED, (truth >= 0) & (final >= 0)
        truth_abstains, judge_abstains = judged & abstains[truth], judged & abstains[final]
        failed = labelled & (final == -2)
        for step, counted in enumerate((labelled | disputed, judge_abstains, truth_abstains, failed, disputed)):
            cell = np.full(int(counted.sum()), first_coverage + _COVERAGE_CELLS * place + step, dtype=np.intp)
            layout.add(cell, number[counted])
        table = 2 * (~truth_abstains[judged]).astype(np.intp) + ~judge_abstains[judged]
        layout.add(first_abstention + 4 * place + table, number[judged])
    return first_coverage, first_abstention


def _count_slices(
    layout: _CellLayout,
    groups: tuple[CriterionGroup, ...],
    columns: Sequence[CriterionColumn],
    slices: NDArray[np.bool_],
    start: int,
) -> tuple[tuple[CriterionGroup, ...], list[Patterns], list[Indices]]:
    """Tables truth × final of every slice, with patterns of their own: truth, final verdict and set of slices."""
    sets, set_of_item = np.unique(slices, axis=0, return_inverse=True)
    set_of_item = set_of_item.reshape(-1)
    filled, found, rows = [], [], []
    for group in groups:
        tables = TableCells(layout.size, group.tables.size, slices.shape[1], group.tables.columns)
        layout.reserve(tables.length)
        for slot, place in enumerate(group.tables.columns):
            column = columns[place]
            inside = slices[column.rows].any(axis=1)
            item_set = set_of_item[column.rows[inside]].astype(np.int32)
            sides = [side[inside].astype(np.int32) for side in (column.truth_classes, column.final_classes)]
            patterns = find_patterns([*sides, item_set], np.zeros(len(item_set), dtype=np.int16))
            truth, final, pattern_set = patterns.codes.astype(np.intp).T
            both = (truth >= 0) & (final >= 0)
            for member in range(tables.sides):
                counted = both & sets[pattern_set, member]
                cell = tables.number((truth * group.tables.size + final)[counted], member, slot)
                layout.add(cell, np.flatnonzero(counted) + start)
            found.append(patterns)
            rows.append(column.rows[inside])
            start += patterns.size
        filled.append(replace(group, slices=tables))
    return tuple(filled), found, rows
