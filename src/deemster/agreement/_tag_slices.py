"""Metrics of each slice (tag), and their differences to all other items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._contingency_counts import ContingencyCounts, CriterionGroup
from deemster.agreement._criterion_columns import Floats, Indices
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._score_statistics import ScoreSums
from deemster.agreement._verdict_statistics import Key, Values, accuracy_and_mean_kappa
from deemster.stats.nan_arithmetic import quotient

# A slice with fewer items has no intervals.
FEWEST_ITEMS = 10
_HEADLINES = ("criterion_accuracy", "mean_kappa", "score_rmse", "bias")
_DIFFERENCES = ("accuracy_difference", "kappa_difference", "rmse_difference", "bias_difference")
# How many slices are computed together: in replicates, and in the data themselves.
_REPLICATE_BLOCK, _DATA_BLOCK = 16, 4096


@dataclass(frozen=True, slots=True, eq=False)
class Tags:
    """Which items have which tag.

    Attributes:
        names: Every tag, in order.
        item: The item of each membership; memberships stand by tag, then by item.
        tag: The number of its tag.
        sizes: How many items each tag has.
        large: The numbers of the tags with enough items for intervals.
    """

    names: tuple[str, ...]
    item: Indices
    tag: Indices
    sizes: Indices
    large: Indices

    def large_members(self, n_items: int) -> NDArray[np.bool_]:
        """Which items have which of the large tags, items × tags."""
        found = np.zeros((n_items, len(self.large)), dtype=bool)
        for place, number in enumerate(self.large.tolist()):
            first, last = np.searchsorted(self.tag, (number, number + 1))
            found[self.item[first:last], place] = True
        return found


def read_tags(votes: LabelledVotes) -> Tags:
    """Read the tags of the items."""
    names = tuple(sorted({tag for own in votes.tags for tag in own}))
    place = {tag: number for number, tag in enumerate(names)}
    pairs = np.array([(place[tag], row) for row, own in enumerate(votes.tags) for tag in own], dtype=np.intp)
    pairs = pairs.reshape(-1, 2)
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    sizes = np.bincount(pairs[:, 0], minlength=len(names))
    large = np.flatnonzero(sizes >= FEWEST_ITEMS)
    return Tags(names=names, item=pairs[:, 1], tag=pairs[:, 0], sizes=sizes, large=large)


def slice_statistics(
    layout: ContingencyCounts,
    scores: ScoreSums,
    counts: Floats,
    sums: Floats,
    *,
    numbers: Indices,
    twice: bool = False,
) -> Values:
    """Accuracy, mean kappa, error and bias of each large slice, and the differences to the rest, in replicates.

    Args:
        layout: Where the counts stand.
        scores: Where the sums stand.
        counts: Cells × replicates.
        sums: Features × replicates.
        numbers: The number of each slice.
        twice: Whether the replicates come twice, the second time with imagined units.
    """
    values: Values = {}
    half = counts.shape[1] // 2
    if twice:
        # An item is imagined in no slice.
        sums = np.tile(sums[:, :half], 2)
    all_sums = np.array(scores.comparisons[0].differences(sums))[:, None]
    own_sums = scores.slice_sums(sums)
    for start in range(0, scores.n_slices, _REPLICATE_BLOCK):
        block = slice(start, start + _REPLICATE_BLOCK)
        inside = [group.slices.of(counts)[block].swapaxes(0, 1) for group in layout.groups if group.slices is not None]
        everything = [group.tables.of(counts)[0, :, None] for group in layout.groups]
        # What rounding of weights leaves of an empty cell is nothing.
        outside = [np.maximum(every - part, 0.0) for every, part in zip(everything, inside, strict=True)]
        if twice:
            for part, every in zip(outside, everything, strict=True):
                part[:, :, half:] = part[:, :, :half] + (every[:, :, half:] - every[:, :, :half])
        found = _compare_with_rest(layout.groups, inside, outside, own_sums[:, block], all_sums - own_sums[:, block])
        for name, rows in found.items():
            for number, row in zip(numbers[block].tolist(), rows, strict=True):
                values["slice", number, name] = row
    return values


def _compare_with_rest(
    groups: Sequence[CriterionGroup],
    inside: Sequence[Floats],
    outside: Sequence[Floats],
    own_sums: Floats,
    other_sums: Floats,
) -> dict[str, Floats]:
    """Statistics of slices and their differences to the rest, from tables by group and sums of scores."""
    here, there = _headlines(groups, inside, own_sums), _headlines(groups, outside, other_sums)
    return here | {
        difference: here[name] - there[name] for name, difference in zip(_HEADLINES, _DIFFERENCES, strict=True)
    }


def _headlines(groups: Sequence[CriterionGroup], by_group: Sequence[Floats], sums: Floats) -> dict[str, Floats]:
    accuracy, mean_kappa = accuracy_and_mean_kappa(groups, by_group)
    n = sums[0]
    return {
        "criterion_accuracy": accuracy,
        "mean_kappa": mean_kappa,
        "score_rmse": np.sqrt(quotient(np.maximum(sums[2], 0.0), n)),
        "bias": quotient(sums[1], n),
    }


@dataclass(frozen=True, slots=True, eq=False)
class SliceEstimates:
    """The slices of the data themselves.

    Attributes:
        tags: Which slices there are.
        n_pairs: Pairs of truth and verdict of each.
        n_scores: Pairs of scores of each.
        statistics: Statistics by name, one value for each slice; NaN where undefined.
    """

    tags: Tags
    n_pairs: Indices
    n_scores: Indices
    statistics: Mapping[str, Floats]

    def by_key(self) -> Iterator[tuple[Key, float]]:
        """Every statistic by its key."""
        for name, values in self.statistics.items():
            for number, value in enumerate(values.tolist()):
                yield ("slice", number, name), value


def estimate_slices(
    tags: Tags, votes: LabelledVotes, layout: ContingencyCounts, scores: ScoreSums, counts: Floats
) -> SliceEstimates:
    """Compute the statistics of all slices at once, each from its own items.

    Args:
        tags: Which items are in which slice.
        votes: The labelled votes.
        layout: Where the counts stand.
        scores: Where the sums stand.
        counts: Counts of the data themselves, cells × 1.
    """
    many = len(tags.names)
    difference = votes.predicted - votes.true
    scored = ~np.isnan(difference)[tags.item]
    which, distance = tags.tag[scored], difference[tags.item[scored]]
    features = (None, distance, distance * distance)
    own_sums = np.array([np.bincount(which, weights=each, minlength=many) for each in features])
    all_sums = np.array(scores.comparisons[0].differences(scores.totals()))
    everything = [group.tables.of(counts)[0] for group in layout.groups]
    parts: list[dict[str, Floats]] = []
    n_pairs = np.zeros(many, dtype=np.intp)
    for start in range(0, many, _DATA_BLOCK):
        stop = min(start + _DATA_BLOCK, many)
        inside = [_slice_tables(group, votes, tags, start, stop) for group in layout.groups]
        n_pairs[start:stop] = sum(each.sum(axis=(0, -1, -2)) for each in inside)
        outside = [every - part for every, part in zip(everything, inside, strict=True)]
        own = own_sums[:, start:stop]
        parts.append(_compare_with_rest(layout.groups, inside, outside, own, all_sums - own))
    statistics = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    return SliceEstimates(tags=tags, n_pairs=n_pairs, n_scores=own_sums[0].astype(np.intp), statistics=statistics)


def _slice_tables(group: CriterionGroup, votes: LabelledVotes, tags: Tags, start: int, stop: int) -> Floats:
    """The tables truth × final of some slices, ``[columns, slices, K, K]``."""
    first, last = np.searchsorted(tags.tag, (start, stop))
    item, tag = tags.item[first:last], tags.tag[first:last] - start
    found = np.empty((len(group.tables.columns), stop - start, group.tables.size, group.tables.size))
    for slot, place in enumerate(group.tables.columns):
        column = votes.columns[place]
        truth, final = column.truth_classes.astype(np.intp), column.final_classes.astype(np.intp)
        # The cell of each item; none where it does not have the criterion, or no pair of classes.
        cell = np.full(len(votes.ids), -1, dtype=np.intp)
        cell[column.rows] = np.where((truth >= 0) & (final >= 0), truth * group.tables.size + final, -1)
        own = cell[item]
        flat = (tag * group.tables.size**2 + own)[own >= 0]
        found[slot] = np.bincount(flat, minlength=found[slot].size).reshape(found[slot].shape)
    return found
