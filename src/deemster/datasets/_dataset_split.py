"""Divides a rubric dataset in two: each label stands in both parts, no cluster does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deemster.errors import DatasetError, Issue

if TYPE_CHECKING:
    from deemster.datasets.rubric_dataset import RubricDataset
    from deemster.rubrics.criterion import Criterion

Pair = tuple[str, str]
TRAIN, TEST = 0, 1


def split_positions(
    dataset: RubricDataset, train: float, *, stratify: bool, cluster: str | Mapping[str, str | float] | None, seed: int
) -> frozenset[int]:
    """The positions of the items of the first part.

    Args:
        dataset: What is divided.
        train: How many items the first part has, or which share of them.
        stratify: Whether both parts are to hold each label in the same proportion.
        cluster: The key of the metadata that names an item's cluster, or clusters by item id.
        seed: What everything random derives from.

    Raises:
        DatasetError: The size is no size of a part, the seed no seed, or an item has no label to stratify by or no
            cluster.
    """
    size = part_size(train, len(dataset))
    if type(seed) is not int or seed < 0:
        raise DatasetError(f"seed is a whole number from 0 on, not {seed!r}.")
    units = _units(dataset, cluster)
    sums = subset_sums(Counter(map(len, units)))
    sizes = [count for count in range(1, len(dataset)) if sums >> count & 1]
    if not sizes:
        raise DatasetError("All items belong to one cluster, which cannot be divided.")
    size = min(sizes, key=lambda count: (abs(count - size), count))
    pairs = _pairs(dataset) if stratify else [Counter[Pair]() for _ in dataset.items]
    labels = [sum((pairs[at] for at in unit), Counter[Pair]()) for unit in units]
    sides = _Allocation([len(unit) for unit in units], labels, size, seed=seed).sides()
    return frozenset(at for unit, side in zip(units, sides, strict=True) if side == TRAIN for at in unit)


def part_size(train: float, total: int) -> int:
    """How many items a part has, by count or share.

    Args:
        train: A whole number, or a share between 0 and 1.
        total: How many items there are.

    Raises:
        DatasetError: Either part would be empty.

    >>> part_size(0.2, 11), part_size(100, 250)
    (2, 100)
    """
    if total < 2:
        raise DatasetError("A dataset of one item cannot be divided.")
    if type(train) is int and 1 <= train < total:
        return train
    if isinstance(train, float) and 0 < train < 1:
        return min(max(math.floor(train * total + 0.5), 1), total - 1)
    raise DatasetError(f"train is a number of items from 1 to {total - 1}, or a share between 0 and 1, not {train!r}.")


def subset_sums(sizes: Mapping[int, int]) -> int:
    """The sums that some of the sizes come to, as the bits that are set.

    Args:
        sizes: How often there is each size.

    >>> [total for total in range(8) if subset_sums({2: 2, 3: 1}) >> total & 1]
    [0, 2, 3, 4, 5, 7]
    """
    sums = 1
    for size, count in sizes.items():
        # Powers of two and a rest come to every number up to the count.
        step, left = 1, count
        while left:
            step = min(step, left)
            sums |= sums << (size * step)
            left -= step
            step *= 2
    return sums


def _units(dataset: RubricDataset, cluster: str | Mapping[str, str | float] | None) -> list[list[int]]:
    """Positions that stay together, in the order of their first id."""
    order = sorted(range(len(dataset)), key=lambda at: str(dataset.items[at].id))
    if cluster is None:
        return [[at] for at in order]
    units: dict[Any, list[int]] = {}
    issues = []
    for at in order:
        item = dataset.items[at]
        name = item.metadata.get(cluster) if isinstance(cluster, str) else cluster.get(str(item.id))
        if name is None:
            where = f"its metadata has no `{cluster}`" if isinstance(cluster, str) else "it is not named"
            issues.append(Issue(f"The item belongs to no cluster: {where}.", None, item.id))
        # 1 and true are one key of a dict and two clusters.
        units.setdefault((type(name) is bool, name), []).append(at)
    if issues:
        raise DatasetError(issues)
    return list(units.values())


def _stratum(criterion: Criterion, label: str | float) -> str:
    """The label; a number stands for its third of the range."""
    if not isinstance(label, float):
        return str(label)
    return ("low", "middle", "high")[min(int(3 * criterion.share(label)), 2)]


def _pairs(dataset: RubricDataset) -> list[Counter[Pair]]:
    """Pairs of criterion and label of every item."""
    found = []
    issues = []
    for item, rubric, truth in zip(dataset.items, dataset.rubrics, dataset.truths, strict=True):
        labels = zip(rubric.criteria, truth or (), strict=False)
        pairs = Counter({(each.name, _stratum(each, label)): 1 for each, label in labels if label is not None})
        if not pairs:
            issues.append(Issue("The item has no label to stratify by; use stratify=False.", None, item.id))
        found.append(pairs)
    if issues:
        raise DatasetError(issues)
    return found


class _Allocation:
    """Iterative stratification of units into two parts of fixed size.

    The label with the fewest units left goes first; each of its units goes where most of that label is still wanted,
    then where most room is. A part takes no unit that would leave the other short of its size.
    """

    def __init__(self, sizes: Sequence[int], labels: Sequence[Counter[Pair]], train: int, *, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._sizes = sizes
        self._room = [train, sum(sizes) - train]
        names = sorted({pair for counts in labels for pair in counts})
        place = {pair: at for at, pair in enumerate(names)}
        self._labels = [[(place[pair], count) for pair, count in counts.items()] for counts in labels]
        self._members: list[list[int]] = [[] for _ in names]
        self._left = np.zeros(len(names), dtype=np.int64)
        for unit, counts in enumerate(self._labels):
            for label, count in counts:
                self._members[label].append(unit)
                self._left[label] += count
        share = train / sum(sizes)
        self._wanted = [(self._left * share).tolist(), (self._left * (1 - share)).tolist()]
        self._sides: list[int | None] = [None] * len(sizes)
        self._unplaced = Counter(sizes)
        self._is_clustered = len(self._unplaced) > 1 or 1 not in self._unplaced

    def sides(self) -> list[int | None]:
        """The part of every unit."""
        turn = self._rng.permutation(len(self._sizes)).tolist()
        lot = self._rng.permutation(len(self._left))

        def large_first(unit: int) -> tuple[int, int]:
            return -self._sizes[unit], turn[unit]

        none_left = np.iinfo(np.int64).max
        while self._left.any():
            ranked = np.where(self._left > 0, self._left * len(lot) + lot, none_left)
            label = int(ranked.argmin())
            open_units = [unit for unit in self._members[label] if self._sides[unit] is None]
            for unit in sorted(open_units, key=large_first):
                self._place(unit, label)
        for unit in sorted(range(len(self._sizes)), key=turn.__getitem__):
            if self._sides[unit] is None:
                self._place(unit, None)
        return self._sides

    def _place(self, unit: int, label: int | None) -> None:
        size = self._sizes[unit]
        self._unplaced[size] -= 1
        side = self._side(size, label)
        self._sides[unit] = side
        self._room[side] -= size
        for at, count in self._labels[unit]:
            self._left[at] -= count
            self._wanted[side][at] -= count

    def _side(self, size: int, label: int | None) -> int:
        """The part that a unit goes to."""
        room = self._room
        fits = [room[TRAIN] >= size, room[TEST] >= size]
        if self._is_clustered:
            sums = subset_sums(self._unplaced)
            fits[TRAIN] = fits[TRAIN] and bool(sums >> (room[TRAIN] - size) & 1)
            fits[TEST] = fits[TEST] and bool(sums >> room[TRAIN] & 1)
        if not all(fits):
            return TRAIN if fits[TRAIN] else TEST
        wanted = (0.0, 0.0) if label is None else (self._wanted[TRAIN][label], self._wanted[TEST][label])
        if not math.isclose(*wanted, rel_tol=0, abs_tol=1e-9):
            return TRAIN if wanted[TRAIN] > wanted[TEST] else TEST
        if room[TRAIN] != room[TEST]:
            return TRAIN if room[TRAIN] > room[TEST] else TEST
        return int(self._rng.integers(2))
