"""Headline numbers of each tag, and how they differ from those of all other items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._joint_counts import Cells, Shelf
from deemster.alignment._labelled_votes import Floats, Panel, Places
from deemster.alignment._score_statistics import Moments, differences
from deemster.alignment._table_measures import Key, Sheet, kappa_of, mean_of, pairs_of, tables_at
from deemster.alignment.metrics_result import BootstrapResult, SliceMetrics
from deemster.stats.agreement_from_sums import quotient

# Below this many items a slice is told without intervals.
FEWEST = 10
_NAMES = ("criterion_accuracy", "mean_kappa", "score_rmse", "bias")
_DIFFERENCES = ("accuracy_difference", "kappa_difference", "rmse_difference", "bias_difference")
# Slices whose tables are computed together: in replicates, and of the data as they are.
_TOGETHER, _TOGETHER_ONCE = 16, 4096


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Which items have which tag.

    Attributes:
        tags: Every tag, in order.
        item: The item of each membership; memberships stand by tag, then by item.
        tag: The number of its tag.
        sizes: How many items each tag has.
        large: The numbers of the tags with enough items for intervals.
    """

    tags: tuple[str, ...]
    item: Places
    tag: Places
    sizes: Places
    large: Places

    def members(self, items: int) -> NDArray[np.bool_]:
        """Which of so many items have which of the large tags, items × tags."""
        found = np.zeros((items, len(self.large)), dtype=bool)
        for place, number in enumerate(self.large.tolist()):
            first, last = np.searchsorted(self.tag, (number, number + 1))
            found[self.item[first:last], place] = True
        return found


def tagged_of(whole: Panel) -> Tagged:
    """The tags of a panel's items."""
    tags = tuple(sorted({tag for own in whole.tags for tag in own}))
    place = {tag: number for number, tag in enumerate(tags)}
    held = np.array([(place[tag], row) for row, own in enumerate(whole.tags) for tag in own], dtype=np.intp)
    held = held.reshape(-1, 2)
    held = held[np.argsort(held[:, 0], kind="stable")]
    sizes = np.bincount(held[:, 0], minlength=len(tags))
    return Tagged(tags=tags, item=held[:, 1], tag=held[:, 0], sizes=sizes, large=np.flatnonzero(sizes >= FEWEST))


def slice_measures(cells: Cells, moments: Moments, counts: Floats, sums: Floats, *, numbers: Places) -> Sheet:
    """Accuracy, mean kappa, error and bias of each slice, and the differences to the rest.

    Args:
        cells: Where the counts stand.
        moments: Where the sums stand.
        counts: Cells × replicates.
        sums: Features × replicates.
        numbers: How the slices are numbered.
    """
    sheet: Sheet = {}
    many = moments.n_slices
    scored = np.array(differences(moments.duels[0], sums))[:, None]
    own = sums[moments.slices : moments.slices + 3 * many].reshape(many, 3, -1).swapaxes(0, 1)
    for start in range(0, many, _TOGETHER):
        chosen = slice(start, start + _TOGETHER)
        tables = []
        for shelf in cells.shelves:
            shape = (shelf.size, shelf.size, many, len(shelf.columns))
            tables.append(tables_at(counts, shelf.slices, shape)[chosen].swapaxes(0, 1))
        everything = [pairs_of(shelf, counts)[:, None] for shelf in cells.shelves]
        found = _compared(cells.shelves, tables, everything, own[:, chosen], scored)
        for name, rows in found.items():
            for number, row in zip(numbers[chosen].tolist(), rows, strict=True):
                sheet["slice", number, name] = row
    return sheet


def _compared(
    shelves: Sequence[Shelf], inside: Sequence[Floats], everything: Sequence[Floats], own: Floats, scored: Floats
) -> dict[str, Floats]:
    """Numbers of slices and their differences to the rest: tables by shelf and sums of scores, of slices and of all."""
    kinds = [shelf.classes[0].kind for shelf in shelves]
    outside = [whole - part for whole, part in zip(everything, inside, strict=True)]
    here, there = _headline(kinds, inside, own), _headline(kinds, outside, scored - own)
    return here | {difference: here[name] - there[name] for name, difference in zip(_NAMES, _DIFFERENCES, strict=True)}


def _headline(kinds: Sequence[str], tables: Sequence[Floats], scored: Floats) -> dict[str, Floats]:
    hits = sum(np.einsum("...ii->...", pairs).sum(axis=0) for pairs in tables)
    total = sum(pairs.sum(axis=(0, -1, -2)) for pairs in tables)
    kappas = [kappa_of(kind, pairs) for kind, pairs in zip(kinds, tables, strict=True)]
    n = np.rint(scored[0])
    return {
        "criterion_accuracy": quotient(hits, total),
        "mean_kappa": mean_of(np.concatenate(kappas)),
        "score_rmse": np.sqrt(quotient(np.maximum(scored[2], 0.0), n)),
        "bias": quotient(scored[1], n),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """The slices of the data as they are.

    Attributes:
        tagged: Which they are.
        pairs: Pairs of truth and verdict of each.
        scores: Pairs of scores of each.
        numbers: Headline numbers by name, one for each; NaN where undefined.
    """

    tagged: Tagged
    pairs: Places
    scores: Places
    numbers: Mapping[str, Floats]

    def estimates(self) -> Iterator[tuple[Key, float]]:
        """Every number by its key."""
        for name, values in self.numbers.items():
            for number, value in enumerate(values.tolist()):
                yield ("slice", number, name), value


def plain_slices(tagged: Tagged, whole: Panel, cells: Cells, moments: Moments, counts: Floats) -> Plain:
    """The numbers of all slices at once, each from its own items.

    Args:
        tagged: Which items are in which slice.
        whole: The panel.
        cells: Where the counts stand.
        moments: Where the sums stand.
        counts: Of the data as they are, cells × 1.
    """
    many = len(tagged.tags)
    apart = whole.predicted - whole.true
    held = ~np.isnan(apart)[tagged.item]
    which, distance = tagged.tag[held], apart[tagged.item[held]]
    features = (None, distance, distance * distance)
    own = np.array([np.bincount(which, weights=each, minlength=many) for each in features])
    scored = np.array(differences(moments.duels[0], moments.totals()))
    everything = [pairs_of(shelf, counts) for shelf in cells.shelves]
    parts: list[dict[str, Floats]] = []
    pairs = np.zeros(many, dtype=np.intp)
    for start in range(0, many, _TOGETHER_ONCE):
        stop = min(start + _TOGETHER_ONCE, many)
        tables = [_tables(shelf, whole, tagged, start, stop) for shelf in cells.shelves]
        pairs[start:stop] = sum(each.sum(axis=(0, -1, -2)) for each in tables)
        parts.append(_compared(cells.shelves, tables, everything, own[:, start:stop], scored))
    numbers = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    return Plain(tagged=tagged, pairs=pairs, scores=own[0].astype(np.intp), numbers=numbers)


def _tables(shelf: Shelf, whole: Panel, tagged: Tagged, start: int, stop: int) -> Floats:
    """The tables truth × final of some slices, ``[columns, slices, K, K]``."""
    first, last = np.searchsorted(tagged.tag, (start, stop))
    item, tag = tagged.item[first:last], tagged.tag[first:last] - start
    found = np.empty((len(shelf.columns), stop - start, shelf.size, shelf.size))
    for slot, (place, classes) in enumerate(zip(shelf.columns, shelf.classes, strict=True)):
        column = whole.columns[place]
        seen = classes.of(np.column_stack([column.truth, column.final]), column.worst).astype(np.intp)
        # The cell of each item; none where it does not have the criterion, or no pair of classes.
        cell = np.full(len(whole.ids), -1, dtype=np.intp)
        cell[column.rows] = np.where((seen >= 0).all(axis=1), seen[:, 0] * shelf.size + seen[:, 1], -1)
        own = cell[item]
        flat = (tag * shelf.size**2 + own)[own >= 0]
        found[slot] = np.bincount(flat, minlength=found[slot].size).reshape(found[slot].shape)
    return found


def slices_of(
    plain: Plain, estimates: Mapping[Key, float | None], intervals: Mapping[Key, BootstrapResult] | None
) -> tuple[SliceMetrics, ...]:
    """The slices of a panel, by tag.

    Args:
        plain: The slices.
        estimates: Their numbers, by key.
        intervals: Of the numbers, where there are any.
    """
    names = (*_NAMES, *_DIFFERENCES)
    sizes, pairs, scores = plain.tagged.sizes.tolist(), plain.pairs.tolist(), plain.scores.tolist()
    found = []
    for number, tag in enumerate(plain.tagged.tags):
        known = None
        if intervals is not None and sizes[number] >= FEWEST:
            known = {name: intervals["slice", number, name] for name in names}
        found.append(
            SliceMetrics(
                tag=tag,
                n_items=sizes[number],
                n_samples=pairs[number],
                n_scores=scores[number],
                intervals=known,
                **{name: estimates["slice", number, name] for name in names},
            )
        )
    return tuple(found)
