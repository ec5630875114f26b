"""Headline numbers of each tag, and how they differ from those of all other items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from deemster.alignment.cells import Cells
from deemster.alignment.measures import Key, Sheet, kappa_of, mean_of, pairs_of, tables_at
from deemster.alignment.models import BootstrapResult, SliceMetrics
from deemster.alignment.panel import Floats, Panel
from deemster.alignment.scores import Moments, differences
from deemster.stats.coincidence import quotient

# Below this many items a slice is told without intervals.
FEWEST = 10
_NAMES = ("criterion_accuracy", "mean_kappa", "score_rmse", "bias")
_DIFFERENCES = ("accuracy_difference", "kappa_difference", "rmse_difference", "bias_difference")


def tags_of(whole: Panel) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Every tag, in order, and which items have it, items × tags."""
    tags = tuple(sorted({tag for own in whole.tags for tag in own}))
    place = {tag: number for number, tag in enumerate(tags)}
    members = np.zeros((len(whole.ids), len(tags)), dtype=bool)
    for row, own in enumerate(whole.tags):
        for tag in own:
            members[row, place[tag]] = True
    return tags, members


def small_slices(members: NDArray[np.bool_] | None) -> frozenset[int]:
    """The places of slices with too few items for intervals."""
    return frozenset() if members is None else frozenset(np.flatnonzero(members.sum(axis=0) < FEWEST).tolist())


def slice_measures(cells: Cells, moments: Moments, counts: Floats, sums: Floats) -> Sheet:
    """Accuracy, mean kappa, error and bias of each slice, and the differences to the rest.

    Args:
        cells: Where the counts stand.
        moments: Where the sums stand.
        counts: Cells × replicates.
        sums: Features × replicates.
    """
    sheet: Sheet = {}
    scored = np.array(differences(moments.duels[0], sums))
    for member in range(moments.n_slices):
        inside, outside = [], []
        for shelf in cells.shelves:
            shape = (shelf.size, shelf.size, moments.n_slices, len(shelf.columns))
            own = tables_at(counts, shelf.slices, shape)[member]
            inside.append((shelf.classes[0].kind, own))
            outside.append((shelf.classes[0].kind, pairs_of(shelf, counts) - own))
        first = moments.slices + 3 * member
        here = _headline(inside, sums[first : first + 3])
        there = _headline(outside, scored - sums[first : first + 3])
        for name, difference in zip(_NAMES, _DIFFERENCES, strict=True):
            sheet["slice", member, name] = here[name]
            sheet["slice", member, difference] = here[name] - there[name]
    return sheet


def _headline(shelves: Sequence[tuple[str, Floats]], scored: Floats) -> dict[str, Floats]:
    hits = sum(np.einsum("...ii->...", pairs).sum(axis=0) for _, pairs in shelves)
    total = sum(pairs.sum(axis=(0, -1, -2)) for _, pairs in shelves)
    n = np.rint(scored[0])
    return {
        "criterion_accuracy": quotient(hits, total),
        "mean_kappa": mean_of(np.concatenate([kappa_of(kind, pairs) for kind, pairs in shelves])),
        "score_rmse": np.sqrt(quotient(np.maximum(scored[2], 0.0), n)),
        "bias": quotient(scored[1], n),
    }


def slices_of(
    whole: Panel,
    cells: Cells,
    counts: Floats,
    estimates: Mapping[Key, float | None],
    intervals: Mapping[Key, BootstrapResult] | None,
) -> tuple[SliceMetrics, ...]:
    """The slices of a panel, by tag.

    Args:
        whole: The panel.
        cells: Where the counts stand.
        counts: Of the data as they are, cells × 1.
        estimates: Their numbers.
        intervals: Of the numbers, where there are any.
    """
    tags, members = tags_of(whole)
    scored = ~(np.isnan(whole.predicted) | np.isnan(whole.true))
    found = []
    for number, tag in enumerate(tags):
        pairs = 0
        for shelf in cells.shelves:
            shape = (shelf.size, shelf.size, len(tags), len(shelf.columns))
            pairs += int(tables_at(counts, shelf.slices, shape)[number].sum())
        names = (*_NAMES, *_DIFFERENCES)
        items = int(members[:, number].sum())
        known = None
        if intervals is not None and items >= FEWEST:
            known = {name: intervals["slice", number, name] for name in names}
        numbers = {name: estimates["slice", number, name] for name in names}
        n_scores = int((members[:, number] & scored).sum())
        found.append(
            SliceMetrics(tag=tag, n_items=items, n_samples=pairs, n_scores=n_scores, intervals=known, **numbers)
        )
    return tuple(found)
