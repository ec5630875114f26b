"""Krippendorff's alpha, Fleiss' kappa and Gwet's AC from sums over units, for replicates too.

Every sum here is linear in the units, so a bootstrap multiplies resample counts by them and asks the same formula.
Leading axes are stacks; undefined is NaN inside arrays.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats.nan_arithmetic import DUST, Floats, quotient
from deemster.stats.sparse_rows import SparseRows

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Weighting = Literal["nominal", "linear", "quadratic"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


def row_sums(tables: Floats) -> Floats:
    """Sums along the last axis of tables ``[..., K, K]``.

    Over axes this short einsum takes a quarter of the time of ``sum``; replicates ask for little else.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    return np.asarray(np.einsum("...ij->...i", tables))


def order_signs(positions: ArrayLike) -> Floats:
    """Which of two classes stands higher: 1 where the row's position is above the column's, -1 below, 0 level.

    >>> order_signs([0, 1])
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    place = np.asarray(positions, dtype=np.float64)
    return np.sign(place[:, None] - place[None, :])


def disagreement(size: int, kind: Weighting, *, positions: ArrayLike | None = None) -> Floats:
    """Disagreement weights: [i≠j], the distance of positions, or its square.

    Args:
        size: How many classes.
        kind: ``nominal``, ``linear`` or ``quadratic``.
        positions: Place of each class on the scale; 0, 1, 2, ... where not given.

    Raises:
        ValueError: There is no such kind.

    >>> disagreement(3, "quadratic")[0]
    array([0., 1., 4.])
    """
    if kind == "nominal":
        return 1 - np.eye(size)
    place = np.arange(size) if positions is None else np.asarray(positions, dtype=np.float64)
    distance = np.abs(place[:, None] - place[None, :]).astype(np.float64)
    if kind == "linear":
        return distance
    if kind == "quadratic":
        return np.square(distance)
    raise ValueError(f"Weights are nominal, linear, quadratic or a matrix, not {kind!r}.")


def agreement(weights: ArrayLike) -> Floats:
    """Agreement weights from disagreement weights: 1 - w/max w, so 1 on the diagonal and 0 for the worst pair.

    >>> agreement(disagreement(3, "quadratic"))[0]
    array([1.  , 0.75, 0.  ])
    """
    distance = np.asarray(weights, dtype=np.float64)
    worst = distance.max(initial=0.0)
    return 1 - distance / worst if worst > 0 else np.ones(distance.shape)


def coincidence_shares(counts: ArrayLike) -> Floats:
    """What each unit adds to the coincidence matrix: (n_c·n_k - [c=k]·n_c)/(m - 1), nothing below two votes.

    Args:
        counts: Votes by unit and class, ``[..., K]``.

    >>> coincidence_shares([2, 1])
    array([[1., 1.],
           [1., 0.]])
    """
    votes = np.asarray(counts, dtype=np.float64)
    total = votes.sum(axis=-1)
    pairs = votes[..., :, None] * votes[..., None, :]
    diagonal = np.arange(votes.shape[-1])
    pairs[..., diagonal, diagonal] -= votes
    scale = np.divide(1.0, total - 1, out=np.zeros(total.shape), where=total >= 2)
    pairs *= scale[..., None, None]
    return pairs


def pair_shares(counts: ArrayLike) -> Floats:
    """How each unit's ordered pairs of votes fall on pairs of classes, as shares that sum to 1; 0 below two votes.

    Args:
        counts: Votes by unit and class, ``[..., K]``.

    >>> pair_shares([3, 1])
    array([[0.5 , 0.25],
           [0.25, 0.  ]])
    """
    votes = np.asarray(counts, dtype=np.float64)
    total = votes.sum(axis=-1)
    scale = np.divide(1.0, total, out=np.zeros(total.shape), where=total >= 2)
    answer: Floats = coincidence_shares(votes) * scale[..., None, None]
    return answer


def vote_shares(counts: ArrayLike) -> Floats:
    """How each unit's votes fall on the classes, as shares that sum to 1; 0 without a vote.

    Args:
        counts: Votes by unit and class, ``[..., K]``.

    >>> vote_shares([[1, 3], [0, 0]])
    array([[0.25, 0.75],
           [0.  , 0.  ]])
    """
    votes = np.asarray(counts, dtype=np.float64)
    total = votes.sum(axis=-1, keepdims=True)
    answer: Floats = np.divide(votes, total, out=np.zeros(votes.shape), where=total > 0)
    return answer


def squared_differences(margins: ArrayLike, level: Level, *, values: ArrayLike | None = None) -> Floats:
    """The squared difference δ² between classes that a level of measurement sees.

    Nominal [c≠k]; ordinal (Σ_{g=c..k} n_g - (n_c + n_k)/2)²; interval (c - k)²; ratio ((c - k)/(c + k))², which is 0
    between 0 and 0.

    Args:
        margins: Pairable votes by class, ``[..., K]``; only the ordinal level looks at them.
        level: ``nominal``, ``ordinal``, ``interval`` or ``ratio``.
        values: What each class is worth, or its place in order; 0, 1, 2, ... where not given.

    >>> squared_differences([2, 2, 1], "ordinal")[0]
    array([ 0.  ,  4.  , 12.25])
    """
    totals = np.asarray(margins, dtype=np.float64)
    size = totals.shape[-1]
    class_values = np.arange(size, dtype=np.float64) if values is None else np.asarray(values, dtype=np.float64)
    if level == "nominal":
        return 1 - np.eye(size)
    if level == "ordinal":
        # The mid-rank of each class, centred: the sum between two classes is the difference of theirs.
        ranks = totals @ order_signs(class_values).T / 2
        return np.square(ranks[..., :, None] - ranks[..., None, :])
    distance = class_values[:, None] - class_values[None, :]
    if level == "interval":
        return np.square(distance)
    both = class_values[:, None] + class_values[None, :]
    return np.square(np.divide(distance, both, out=np.zeros(both.shape), where=both != 0))


def alpha_from_coincidences(
    coincidences: ArrayLike,
    level: Level | Floats = "nominal",
    *,
    values: ArrayLike | None = None,
    units: ArrayLike | None = None,
) -> Floats:
    """Krippendorff's alpha of coincidence matrices: 1 - (n - 1)·Σo·δ² / Σn_c·n_k·δ².

    NaN where every vote is one value, and, if ``units`` is given, where fewer than two units are pairable.

    Args:
        coincidences: Summed contributions, ``[..., K, K]``.
        level: A level of measurement, or the matrix of δ² itself.
        values: What each class is worth (see ``squared_differences``).
        units: How many units have two votes or more, one for each matrix.

    Reference: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011).

    >>> round(alpha_from_coincidences([[10, 4], [4, 2]]).item(), 4)
    0.0952
    """
    observed = np.asarray(coincidences, dtype=np.float64)
    margins = row_sums(observed)
    total = margins.sum(axis=-1)
    delta = squared_differences(margins, level, values=values) if isinstance(level, str) else level
    seen = np.einsum("...ij,...ij->...", observed, delta)
    chance = np.einsum("...i,...j,...ij->...", margins, margins, delta)
    # Rounding leaves tiny sums in classes without a vote, which must not count as disagreement.
    spread = total * total - np.einsum("...i,...i->...", margins, margins)
    answer = 1 - (total - 1) * quotient(seen, np.where(spread > DUST * total * total, chance, 0.0))
    return answer if units is None else np.where(np.asarray(units) > 1.5, answer, np.nan)


def fleiss_from_sums(agreeing: ArrayLike, totals: ArrayLike, *, raters: float) -> Floats:
    """Fleiss' kappa from sums over units that ``raters`` raters each judged: (P - Σp²)/(1 - Σp²).

    NaN below two units, below two raters and where every vote is one class.

    Args:
        agreeing: Ordered agreeing pairs, Σ_u Σ_k n_uk·(n_uk - 1), ``[...]``.
        totals: Votes by class, Σ_u n_uk, ``[..., K]``.
        raters: Votes of each unit.

    Reference: J. L. Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971).

    >>> round(fleiss_from_sums(10, [6, 4], raters=2).item(), 4)
    1.0
    """
    votes = np.asarray(totals, dtype=np.float64)
    every = votes.sum(axis=-1)
    squares = np.einsum("...k,...k->...", votes, votes)
    if raters < 2:
        return np.full(every.shape, np.nan)
    observed = np.asarray(agreeing, dtype=np.float64) * every / (raters - 1)
    return quotient(observed - squares, np.where(every > 1.5 * raters, every * every - squares, 0.0))


def gwet_from_sums(
    agreeing: ArrayLike, units: ArrayLike, shares: ArrayLike, *, weights: ArrayLike | None = None, least: float = 2
) -> Floats:
    """Gwet's AC1, or AC2 with weights, from sums over units.

    p_o = agreeing/units, π = shares/Σshares, p_e = Σw·Σπ(1 - π)/(K(K - 1)); (p_o - p_e)/(1 - p_e). NaN where fewer than
    ``least`` units have two votes or there is only one class.

    Args:
        agreeing: Sums of w·``pair_shares``, ``[...]``.
        units: How many units have two votes or more, ``[...]``.
        shares: Sums of ``vote_shares``, ``[..., K]``.
        weights: Agreement weights w, 1 on the diagonal; the identity where not given.
        least: How many units with two votes it needs.

    Reference: K. L. Gwet, Computing inter-rater reliability and its variance in the presence of high agreement,
    British Journal of Mathematical and Statistical Psychology 61 (2008).

    >>> round(gwet_from_sums(118, 125, [121.5, 3.5]).item(), 4)
    0.9408
    """
    votes = np.asarray(shares, dtype=np.float64)
    size = votes.shape[-1]
    if size < 2:
        return np.full(votes.shape[:-1], np.nan)
    enough = np.asarray(units) > least - 0.5
    observed = quotient(agreeing, np.where(enough, units, 0.0))
    prevalence = quotient(votes, votes.sum(axis=-1, keepdims=True))
    factor = (size if weights is None else np.sum(weights)) / (size * (size - 1))
    chance = factor * np.einsum("...k,...k->...", prevalence, 1 - prevalence)
    return quotient(observed - chance, 1 - chance)


def vote_features(votes: Floats, columns: NDArray[np.intp], *, raters: int, ordinal: bool) -> SparseRows:
    """What each way in which votes fall on classes adds to the sums of ``rater_agreement``.

    Its rows are the sums of the first column, then of the next; its columns are the ways. It is multiplied to whole
    numbers, so that sums are exact in every order.

    Args:
        votes: Votes by way and class.
        columns: The column that each way belongs to.
        raters: How many raters there are; a way that misses a vote does not count for Fleiss' kappa.
        ordinal: Whether the classes are ordered.
    """
    cast = votes.sum(axis=1)
    complete = (cast == raters)[:, None] * votes
    features = (
        coincidence_shares(votes),
        (pair_shares(votes) * _likeness(votes.shape[1], ordinal=ordinal)).sum(axis=(1, 2)),
        vote_shares(votes),
        complete,
        (complete * (complete - 1)).sum(axis=1),
        (cast >= 2).astype(np.float64),
    )
    flat = [feature.reshape(len(votes), math.prod(feature.shape[1:])) for feature in features]
    rows = [
        np.rint(rows * multiple) if multiple > 1 else rows
        for rows, multiple in zip(flat, _multiples(raters, votes.shape[1], ordinal=ordinal), strict=True)
    ]
    every = np.concatenate(rows, axis=1)
    way, number = np.nonzero(every)
    shape = ((int(columns.max()) + 1) * every.shape[1], len(votes))
    return SparseRows(columns[way] * every.shape[1] + number, way, every[way, number], shape=shape)


def rater_agreement(sums: Floats, *, size: int, raters: int, ordinal: bool) -> dict[str, Floats]:
    """Krippendorff's alpha, Gwet's coefficient and Fleiss' kappa of several columns, by name, columns × replicates.

    What a unit adds to a sum depends only on the way in which its votes fall on the classes, so units are counted by
    way.

    Args:
        sums: ``vote_features`` times how many units have each way, ``[columns · sums, replicates]``.
        size: How many classes every column has.
        raters: How many raters there are.
        ordinal: Whether the classes are ordered.

    >>> ways, counts = np.array([[3.0, 0.0], [1.0, 2.0]]), np.array([[4.0], [2.0]])
    >>> sums = vote_features(ways, np.zeros(2, dtype=np.intp), raters=3, ordinal=False) @ counts
    >>> rater_agreement(sums, size=2, raters=3, ordinal=False)["fleiss_kappa"].round(4)
    array([[0.3571]])
    """
    shapes = [(size, size), (), (size,), (size,), (), ()]
    lengths = [math.prod(shape) for shape in shapes]
    by_column = sums.reshape(-1, sum(lengths), sums.shape[1])
    rows = np.split(by_column, np.cumsum(lengths)[:-1], axis=1)
    # Replicates stay side by side in memory, so that sums over classes run along them.
    coincidences, alike, shares, complete, agreeing, n_paired = (
        np.moveaxis((part / multiple).reshape(len(part), *shape, -1), -1, 1)
        for part, shape, multiple in zip(rows, shapes, _multiples(raters, size, ordinal=ordinal), strict=True)
    )
    weights = _likeness(size, ordinal=ordinal)
    return {
        "krippendorff_alpha": alpha_from_coincidences(
            coincidences, "ordinal" if ordinal else "nominal", units=n_paired
        ),
        "panel_gwet_ac": gwet_from_sums(alike, n_paired, shares, weights=weights),
        "fleiss_kappa": fleiss_from_sums(agreeing, complete, raters=raters),
    }


def _likeness(size: int, *, ordinal: bool) -> Floats:
    """The agreement weights of Gwet's coefficient."""
    return agreement(disagreement(size, "quadratic" if ordinal else "nominal"))


def _multiples(raters: int, size: int, *, ordinal: bool) -> tuple[int, ...]:
    """What makes whole numbers of each feature of a way."""
    of_pairs, of_votes = _common_multiple(raters - 1), _common_multiple(raters)
    of_weights = max(1, size - 1) ** 2 if ordinal else 1
    return of_pairs, of_pairs * of_votes * of_weights, of_votes, 1, 1, 1


def _common_multiple(most: int) -> int:
    """The least common multiple of 1 to ``most``; 1 where it would be too large to keep sums exact.

    >>> _common_multiple(4), _common_multiple(40)
    (12, 1)
    """
    multiple = math.lcm(*range(1, max(most, 1) + 1))
    return multiple if multiple < 2**16 else 1
