"""Krippendorff's alpha, Fleiss' kappa and Gwet's AC from sums over units, for replicates too.

Every sum here is linear in the units, so a bootstrap multiplies resample counts by them and asks the same formula.
Leading axes are stacks; undefined is NaN inside arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.nan_arithmetic import DUST, Floats, quotient

Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")


def row_sums(tables: Floats) -> Floats:
    """Sums along the last axis of tables ``[..., K, K]``.

    Over axes this short einsum takes a quarter of the time of ``sum``; replicates ask for little else.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    return np.asarray(np.einsum("...ij->...i", tables))


def column_sums(tables: Floats) -> Floats:
    """Sums along the last axis but one of tables ``[..., K, K]``.

    >>> column_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    return np.asarray(np.einsum("...ij->...j", tables))


def table_sums(tables: Floats) -> Floats:
    """Sums of whole tables ``[..., K, K]``.

    >>> table_sums(np.array([[1.0, 2.0], [3.0, 4.0]])).item()
    10.0
    """
    return np.asarray(np.einsum("...ij->...", tables))


def order_signs(positions: ArrayLike) -> Floats:
    """Which of two classes stands higher: 1 where the row's position is above the column's, -1 below, 0 level.

    >>> order_signs([0, 1])
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    place = np.asarray(positions, dtype=np.float64)
    return np.sign(place[:, None] - place[None, :])


def quadratic_agreement(size: int) -> Floats:
    """Agreement weights of ordered classes: 1 - d²/max d², with d the distance of two classes.

    >>> quadratic_agreement(3)[0]
    array([1.  , 0.75, 0.  ])
    """
    place = np.arange(size)
    distance = np.square(np.abs(place[:, None] - place[None, :]).astype(np.float64))
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
        # Twice the mid-rank of each class, centred: the sum between two classes is half the difference of theirs.
        ranks = totals @ order_signs(class_values).T
        return np.square((ranks[..., :, None] - ranks[..., None, :]) / 2)
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
    return answer if units is None else np.where(np.asarray(units) >= 2, answer, np.nan)


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
    return quotient(observed - squares, np.where(every >= 2 * raters, every * every - squares, 0.0))


def gwet_from_sums(
    pairs: ArrayLike, shares: ArrayLike, *, weights: ArrayLike | None = None, least: float = 2
) -> Floats:
    """Gwet's AC1, or AC2 with weights, from sums over units.

    p_o = Σw·pairs/Σpairs, π = shares/Σshares, p_e = Σw·Σπ(1 - π)/(K(K - 1)); (p_o - p_e)/(1 - p_e). NaN where fewer
    than ``least`` units have two votes or there is only one class.

    Args:
        pairs: Sums of ``pair_shares``, ``[..., K, K]``.
        shares: Sums of ``vote_shares``, ``[..., K]``.
        weights: Agreement weights, 1 on the diagonal; the identity where not given.
        least: How many units with two votes it needs.

    Reference: K. L. Gwet, Computing inter-rater reliability and its variance in the presence of high agreement,
    British Journal of Mathematical and Statistical Psychology 61 (2008).

    >>> round(gwet_from_sums([[118, 3.5], [3.5, 0]], [121.5, 3.5]).item(), 4)
    0.9408
    """
    seen = np.asarray(pairs, dtype=np.float64)
    votes = np.asarray(shares, dtype=np.float64)
    size = votes.shape[-1]
    if size < 2:
        return np.full(votes.shape[:-1], np.nan)
    agreement = np.eye(size) if weights is None else np.asarray(weights, dtype=np.float64)
    units = table_sums(seen)
    # The count of units is a sum of shares and so has rounding errors.
    enough = units > least - 0.5
    observed = quotient(np.einsum("...ij,ij->...", seen, agreement), np.where(enough, units, 0.0))
    prevalence = quotient(votes, votes.sum(axis=-1, keepdims=True))
    chance = agreement.sum() * np.einsum("...k,...k->...", prevalence, 1 - prevalence) / (size * (size - 1))
    return quotient(observed - chance, 1 - chance)


@dataclass(frozen=True, slots=True, eq=False)
class _SumRows:
    """Where the sums of columns of one size stand among all rows.

    Attributes:
        columns: Places of the columns.
        size: How many classes each has.
        ordinal: Whether the classes are ordered.
        coincidences: First row of the coincidences, ``[size, size, columns]``.
        pair_shares: First row of the shares of pairs of votes, likewise.
        vote_shares: First row of the shares of votes, ``[size, columns]``.
        complete_votes: First row of the votes on units that every rater voted on, likewise.
        n_paired: First row of the count of units with two votes or more, ``[columns]``.
        equal_pairs: First row of the agreeing pairs on units that every rater voted on, likewise.
    """

    columns: tuple[int, ...]
    size: int
    ordinal: bool
    coincidences: int
    pair_shares: int
    vote_shares: int
    complete_votes: int
    n_paired: int
    equal_pairs: int


@dataclass(frozen=True, slots=True, eq=False)
class AgreementSums:
    """Agreement among raters on several columns, from counts of the distinct ways in which votes fall on classes.

    Attributes:
        sums: Rows × ways, a sparse matrix. Rows are multiplied to whole numbers, so that sums are exact.
        rows: Where the rows stand.
        pair_multiple: The multiple of the coincidences.
        vote_multiple: The multiple of the shares of votes. The multiple of the shares of pairs is the product of both.
        raters: How many raters there are.
    """

    sums: Any
    rows: tuple[_SumRows, ...]
    pair_multiple: int
    vote_multiple: int
    raters: int

    def statistics(self, ways: Floats) -> dict[str, Floats]:
        """Krippendorff's alpha, Gwet's coefficient and Fleiss' kappa of each column, columns × replicates.

        Args:
            ways: How many units have each way, ways × replicates.
        """
        replicates = ways.shape[1]
        summed = self.sums @ ways
        columns = sum(len(rows.columns) for rows in self.rows)
        alphas, gwets, fleiss = (np.full((columns, replicates), np.nan) for _ in range(3))

        def rows_at(first: int, *shape: int, multiple: int = 1) -> Floats:
            rows: Floats = summed[first : first + math.prod(shape)].reshape(*shape, replicates) / multiple
            return np.moveaxis(rows, range(len(shape) - 1), range(-len(shape) + 1, 0))

        for rows in self.rows:
            size, places, width = rows.size, list(rows.columns), len(rows.columns)
            coincidences = rows_at(rows.coincidences, size, size, width, multiple=self.pair_multiple)
            pairs = rows_at(rows.pair_shares, size, size, width, multiple=self.pair_multiple * self.vote_multiple)
            shares = rows_at(rows.vote_shares, size, width, multiple=self.vote_multiple)
            level: Level = "ordinal" if rows.ordinal else "nominal"
            weights = quadratic_agreement(size) if rows.ordinal else None
            alphas[places] = alpha_from_coincidences(coincidences, level, units=rows_at(rows.n_paired, width))
            gwets[places] = gwet_from_sums(pairs, shares, weights=weights)
            fleiss[places] = fleiss_from_sums(
                rows_at(rows.equal_pairs, width), rows_at(rows.complete_votes, size, width), raters=self.raters
            )
        return {"krippendorff_alpha": alphas, "panel_gwet_ac": gwets, "fleiss_kappa": fleiss}


def build_agreement_sums(
    groups: Sequence[tuple[tuple[int, ...], bool, Sequence[Floats]]], *, raters: int
) -> AgreementSums:
    """Lay out the sums over the distinct ways in which votes fall on classes.

    Args:
        groups: Columns of one size: their places, whether their classes are ordered, and the ways of each column as
            votes by way and class. Ways are numbered group by group, column by column.
        raters: How many raters there are.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - scipy takes a tenth of a second to load

    multiples = _common_multiple(raters - 1), _common_multiple(raters)
    found: list[_SumRows] = []
    rows: list[Any] = []
    columns: list[Any] = []
    data: list[Any] = []
    n_rows = n_ways = 0
    for places, ordinal, ways in groups:
        width, size = len(places), ways[0].shape[1]
        lengths = (size * size, size * size, size, size, 1, 1)
        starts = [n_rows + width * sum(lengths[:step]) for step in range(len(lengths))]
        n_rows += width * sum(lengths)
        for slot, votes in enumerate(ways):
            for start, length, sums in zip(starts, lengths, _way_sums(votes, raters, multiples), strict=True):
                flat = sums.reshape(len(votes), length)
                way, row = np.nonzero(flat)
                rows.append(start + row * width + slot)
                columns.append(n_ways + way)
                data.append(flat[way, row])
            n_ways += len(votes)
        found.append(_SumRows(places, size, ordinal, *starts))
    where = (np.concatenate(rows), np.concatenate(columns))
    matrix = csr_array((np.concatenate(data), where), shape=(n_rows, n_ways))
    return AgreementSums(matrix, tuple(found), *multiples, raters)


def _way_sums(votes: Floats, raters: int, multiples: tuple[int, int]) -> list[Floats]:
    """What each way adds to the sums, in the order of `_SumRows`."""
    cast = votes.sum(axis=1)
    complete = (cast == raters)[:, None] * votes
    pair_multiple, vote_multiple = multiples
    parts = (
        (coincidence_shares(votes), pair_multiple),
        (pair_shares(votes), pair_multiple * vote_multiple),
        (vote_shares(votes), vote_multiple),
        (complete, 1),
        ((cast >= 2).astype(np.float64), 1),
        ((complete * (complete - 1)).sum(axis=1), 1),
    )
    return [np.rint(sums * multiple) if multiple > 1 else sums for sums, multiple in parts]


def _common_multiple(most: int) -> int:
    """The least common multiple of 1 to ``most``; 1 where it would be too large to keep sums exact.

    >>> _common_multiple(4), _common_multiple(40)
    (12, 1)
    """
    multiple = math.lcm(*range(1, max(most, 1) + 1))
    return multiple if multiple < 2**16 else 1
