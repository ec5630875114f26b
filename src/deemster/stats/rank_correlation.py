"""Rank correlation in O(n log n): concordant pairs, weighted replicates, influence values.

Everything rests on one sign kernel: twice a centred mid-rank is Σ_j w_j·sign(x_i - x_j), and tau-b is
Σw·w·sign(Δx)·sign(Δy) over the root of the same sums of sign². So ties, weights and influence follow from one form,
and a column of whole-number weights gives what the repeated items would give. Undefined is NaN inside arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.stats.nan_arithmetic import Floats, quotient

Ints = NDArray[np.int64]
# Replicates are taken in blocks of columns, so that memory does not grow with their number.
BLOCK = 512
# The parts of 1 that weights are rounded to where many are summed in single precision.
_GRID = np.float32(4096)


class Dominance(NamedTuple):
    """How each item stands to all others, as counts.

    ``concordant`` and ``discordant`` others differ from it in x and y, in the same or the opposite direction;
    ``x_ties``, ``y_ties`` and ``ties`` share its x, its y, or both (the item itself left out).
    """

    concordant: Ints
    discordant: Ints
    x_ties: Ints
    y_ties: Ints
    ties: Ints


def distinct_ranks(values: Floats) -> tuple[Ints, Ints]:
    """Each value's place among the distinct values, and how often each of these occurs.

    >>> distinct_ranks(np.array([0.5, 0.1, 0.5]))
    (array([1, 0, 1]), array([1, 2]))
    """
    _, places, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return places.astype(np.int64), sizes.astype(np.int64)


def dominance(x: Floats, y: Floats) -> Dominance:
    """Concordant, discordant and tied others of each item, in O(n log n).

    >>> dominance(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])).concordant
    array([2, 1, 1])
    """
    (u, columns), (v, rows) = distinct_ranks(x), distinct_ranks(y)
    n = len(u)
    if len(columns) * len(rows) <= 4 * n:
        opposite, both = _opposite_of_few(u, v, (len(columns), len(rows)))
    else:
        opposite, both = _opposite(u, v, columns, rows)
    tied_x, tied_y = columns[u] - 1, rows[v] - 1
    same = n - 1 - opposite - tied_x - tied_y + (both - 1)
    return Dominance(same, opposite, tied_x, tied_y, both - 1)


def _opposite_of_few(u: Ints, v: Ints, shape: tuple[int, int]) -> tuple[Ints, Ints]:
    """Discordant others of each item, and its equals: from a table of all cells, where values are few."""
    wide, tall = shape
    table = np.bincount(u * tall + v, minlength=wide * tall).reshape(shape)
    # With an empty row and column in front: [i, j] counts the items left of i and below j.
    under = np.zeros((wide + 1, tall + 1), dtype=np.int64)
    under[1:, 1:] = table.cumsum(axis=0).cumsum(axis=1)
    opposite = (under[:-1, -1:] - under[:-1, 1:]) + (under[-1:, :-1] - under[1:, :-1])
    return opposite[u, v], table[u, v].astype(np.int64)


def _opposite(u: Ints, v: Ints, columns: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Discordant others of each item, and its equals: by sorting, where values are many."""
    n = len(u)
    left, below = _before(columns)[u], _before(rows)[v]
    # In order of x, then of y, so that equal items stand together, in a cell.
    by_cell = np.argsort(u * len(rows) + v, kind="stable")
    rank = _inverse(by_cell)
    fresh = np.ones(n, dtype=bool)
    fresh[1:] = (np.diff(u[by_cell]) != 0) | (np.diff(v[by_cell]) != 0)
    starts = np.flatnonzero(fresh)
    cell = (np.cumsum(fresh) - 1)[rank]
    sizes = np.diff(starts, append=n)
    level_below = starts[cell] - left
    # The same order with ties of x by falling y: an item with the same x and a smaller y comes later.
    place = 2 * left + columns[u] - 1 - rank
    by_y = np.argsort(v * n - place, kind="stable")
    lower = _smaller_before(place[by_y])[place]
    # Among items of one y, places and x fall together: the items further left stand behind the cell.
    last = np.maximum.reduceat(_inverse(by_y)[by_cell], starts)
    left_level = below + rows[v] - 1 - last[cell]
    return (left - lower - left_level) + (below - lower - level_below), sizes[cell]


def _inverse(order: Ints) -> Ints:
    """Where each item stands in an order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place


def _before(sizes: Ints) -> Ints:
    """How many items stand before each group."""
    return np.cumsum(sizes) - sizes


def _smaller_before(places: Ints) -> Ints:
    """For each place 0..n-1, how many smaller places come before it in the sequence.

    The sequence is split by the highest bit of the place, then by the next, keeping its order: at each bit, what lies
    in the upper half has before it the members of the lower half that came earlier. A whole pass is a running sum.
    """
    n = len(places)
    counts = np.zeros(n, dtype=np.int64)
    sequence = places
    index = np.arange(n)
    for bit in reversed(range(max(n - 1, 0).bit_length())):
        upper = (sequence >> bit) & 1
        start = (sequence >> (bit + 1)) << (bit + 1)
        # Every block before this one is full, and half of it is lower.
        lower = np.cumsum(1 - upper) - (1 - upper) - (start >> 1)
        counts[sequence] += upper * lower
        target = np.where(upper == 1, start + (1 << bit) + (index - start - lower), start + lower)
        moved = np.empty_like(sequence)
        moved[target] = sequence
        sequence = moved
    return counts


def centred_ranks(values: Floats) -> Ints:
    """How many items lie below each less how many lie above: twice its centred mid-rank.

    >>> centred_ranks(np.array([0.5, 0.1, 0.5]))
    array([ 1, -2,  1])
    """
    return _centred(*distinct_ranks(values))


def _centred(places: Ints, sizes: Ints) -> Ints:
    return (2 * _before(sizes) + sizes - len(places))[places]


def _pull(places: Ints, amounts: Floats) -> Floats:
    """For each item, the amounts of the items above it less those of the items below it."""
    by_group = np.bincount(places, weights=amounts)
    upto = np.cumsum(by_group)
    return np.asarray((upto[-1] - upto - (upto - by_group))[places])


def spearman_influence(x: Floats, y: Floats) -> Floats:
    """What each item adds to Spearman's correlation to first order.

    With A, B the centred ranks, IF_i = P_i/√(E A²·E B²) - ρ/2·(Q_i/E A² + R_i/E B²), where P, Q, R are the derivatives
    of E AB, E A², E B² in the direction of item i, ranks included. The values sum to 0; a replicate with weights w is
    about ρ + Σw·IF/n. NaN below 3 items or for a constant side.

    >>> bool(abs(spearman_influence(np.arange(4.0), np.array([1.0, 3.0, 2.0, 4.0])).sum()) < 1e-12)
    True
    """
    n = len(x)
    ranks = distinct_ranks(x), distinct_ranks(y)
    a, b = (_centred(*each) / max(n, 1) for each in ranks)
    if n < 3 or not a.any() or not b.any():
        return np.full(n, np.nan)
    spread_a, spread_b = np.mean(a * a), np.mean(b * b)
    scale = np.sqrt(spread_a * spread_b)
    rho = np.mean(a * b) / scale
    (u, _), (v, _) = ranks
    joint = a * b + (_pull(u, b) + _pull(v, a)) / n
    own_a, own_b = a * a + 2 * _pull(u, a) / n, b * b + 2 * _pull(v, b) / n
    return np.asarray(joint / scale - rho / 2 * (own_a / spread_a + own_b / spread_b))


def kendall_influence(counts: Dominance) -> Floats:
    """What each item adds to Kendall's tau-b to first order.

    With N_i, X_i, Y_i the means over all items of sign(Δx)·sign(Δy), sign²(Δx), sign²(Δy), and N, X, Y their means:
    IF_i = 2N_i/√(XY) - τ·(X_i/X + Y_i/Y). The values sum to 0; a replicate with weights w is about τ + Σw·IF/n. NaN
    below 3 items or for a constant side.

    >>> counts = dominance(np.arange(4.0), np.array([1.0, 3.0, 2.0, 4.0]))
    >>> bool(abs(kendall_influence(counts).sum()) < 1e-12)
    True
    """
    n = len(counts.ties)
    apart = (counts.concordant - counts.discordant) / max(n, 1)
    untied_x, untied_y = (n - 1 - counts.x_ties) / max(n, 1), (n - 1 - counts.y_ties) / max(n, 1)
    if n < 3 or not untied_x.any() or not untied_y.any():
        return np.full(n, np.nan)
    scale = np.sqrt(untied_x.mean() * untied_y.mean())
    tau = apart.mean() / scale
    return np.asarray(2 * apart / scale - tau * (untied_x / untied_x.mean() + untied_y / untied_y.mean()))


def weighted_spearman(x: Floats, y: Floats, weights: NDArray[Any]) -> Floats:
    """Spearman's correlation of each replicate, given how often each item was drawn.

    NaN where fewer than 3 items were drawn or a side is constant.

    Args:
        x: One value for each item.
        y: The other value.
        weights: How often each item is drawn, or its weight, items × replicates.

    >>> weighted_spearman(np.arange(3.0), np.array([1.0, 3.0, 2.0]), np.array([[1, 2], [1, 1], [1, 0]]))
    array([0.5, 1. ])
    """
    groups = _Groups(x), _Groups(y)
    blocks = [np.empty(0)]
    for start in range(0, weights.shape[1], BLOCK):
        w = weights[:, start : start + BLOCK].astype(np.float64)
        total = w.sum(axis=0)
        (a, spread_a), (b, spread_b) = (group.standing(w, total) for group in groups)
        joint = np.einsum("ib,ib,ib->b", w, a, b)
        spread = np.sqrt(np.where(total > 2.5, spread_a * spread_b, 0.0))
        blocks.append(np.clip(quotient(joint, spread), -1, 1))
    return np.concatenate(blocks)


def weighted_kendall(x: Floats, y: Floats, weights: NDArray[Any]) -> Floats:
    """Kendall's tau-b of each replicate, given how often each item was drawn.

    It holds an items × items matrix of signs, so it is meant for some hundreds of items; for more, see
    ``kendall_influence``. NaN where fewer than 3 items were drawn or a side is constant.

    Args:
        x: One value for each item.
        y: The other value.
        weights: How often each item is drawn, or its weight, items × replicates.

    >>> weighted_kendall(np.arange(3.0), np.array([1.0, 3.0, 2.0]), np.array([[1, 2], [1, 1], [1, 0]])).round(4)
    array([0.3333, 1.    ])
    """
    u, v = distinct_ranks(x)[0], distinct_ranks(y)[0]
    kernel = (np.sign(u[:, None] - u[None, :]) * np.sign(v[:, None] - v[None, :])).astype(np.float32)
    groups = _Groups(x), _Groups(y)
    blocks = [np.empty(0)]
    for start in range(0, weights.shape[1], BLOCK):
        # Single precision halves the time of the product. On this grid its sums are exact for some hundreds of items,
        # and so the same on every processor, whatever the order of its additions.
        w = np.rint(weights[:, start : start + BLOCK].astype(np.float32) * _GRID) / _GRID
        total = w.sum(axis=0, dtype=np.float64)
        excess = np.einsum("ib,ib->b", w, kernel @ w, dtype=np.float64)
        untied = [total * total - np.square(group.sums(w)).sum(axis=0) for group in groups]
        spread = np.sqrt(np.where(total > 2.5, untied[0] * untied[1], 0.0))
        blocks.append(np.clip(quotient(excess, spread), -1, 1))
    return np.concatenate(blocks)


class _Groups:
    """Items by their value, in order, to sum weights over ties."""

    def __init__(self, values: Floats) -> None:
        self.places, sizes = distinct_ranks(values)
        self.order = np.argsort(self.places, kind="stable")
        self.starts = _before(sizes)

    def sums(self, weights: Floats | NDArray[np.float32]) -> Floats:
        """The weights of each group, groups × replicates."""
        if not len(self.starts):
            return np.zeros((0, weights.shape[1]))
        return np.add.reduceat(weights[self.order], self.starts, axis=0, dtype=np.float64)

    def standing(self, weights: Floats, total: Floats) -> tuple[Floats, Floats]:
        """Twice the centred mid-rank of each item, and the weighted sum of its squares."""
        sums = self.sums(weights)
        ranks = 2 * np.cumsum(sums, axis=0) - sums - total
        return ranks[self.places], np.einsum("gb,gb,gb->b", sums, ranks, ranks)
