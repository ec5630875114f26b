"""Statistics of confusion tables as arrays: accuracy, kappa, precision, recall, F1, phi, Gwet's AC.

A table ``T[..., K, K]`` holds counts over the full scale: rows are the truth (or the first rater), columns the other
side, leading axes a stack (replicates, judges). Undefined is NaN inside arrays, without a warning. In 2×2 tables the
first class is the positive one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.agreement_from_sums import (
    agreement,
    disagreement,
    gwet_from_sums,
    order_signs,
    row_sums,
)
from deemster.stats.nan_arithmetic import Floats, quotient

# Numbers are no classes: a table of them has one, and says only how many pairs there are.
Scale = Literal["binary", "ordinal", "nominal", "numeric"]


class Tables:
    """A stack of tables whose sums are computed once, for all statistics that ask for them.

    Attributes:
        cells: The tables themselves, ``[..., K, K]``.
        size: How many classes they have.

    Raises:
        ValueError: The last two axes are no square.

    >>> Tables([[3, 1], [2, 4]]).rows
    array([4., 6.])
    """

    def __init__(self, tables: ArrayLike) -> None:
        self.cells: Floats = np.asarray(tables, dtype=np.float64)
        shape = self.cells.shape
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(f"A table of pairs is square, not {' × '.join(map(str, shape)) or 'a number'}.")
        self.size = shape[-1]

    @cached_property
    def rows(self) -> Floats:
        """The sum of each row, ``[..., K]``."""
        return row_sums(self.cells)

    @cached_property
    def columns(self) -> Floats:
        """The sum of each column, ``[..., K]``."""
        return np.asarray(np.einsum("...ij->...j", self.cells))

    @cached_property
    def pairs(self) -> Floats:
        """How many pairs each table holds."""
        return np.asarray(np.einsum("...i->...", self.rows))

    @cached_property
    def agreed(self) -> Floats:
        """The diagonal, ``[..., K]``."""
        return np.asarray(np.einsum("...ii->...i", self.cells))

    @cached_property
    def hits(self) -> Floats:
        """How many pairs stand on the diagonal."""
        return np.asarray(np.einsum("...ii->...", self.cells))


AnyTables: TypeAlias = ArrayLike | Tables


def _summed(tables: AnyTables) -> Tables:
    return tables if isinstance(tables, Tables) else Tables(tables)


def accuracy(tables: AnyTables) -> Floats:
    """The share of pairs on the diagonal. NaN without a pair.

    >>> accuracy([[40, 9], [6, 45]]).item()
    0.85
    """
    t = _summed(tables)
    return quotient(t.hits, t.pairs)


def weighted_kappa(tables: AnyTables, weights: ArrayLike) -> Floats:
    """Kappa with disagreement weights w: 1 - n·Σw·T/Σw·r_i·c_j.

    1 is full agreement, 0 what the margins give by chance. NaN without a pair and where both sides are constant on one
    same class.

    Reference: J. Cohen, Weighted kappa, Psychological Bulletin 70 (1968).

    >>> round(weighted_kappa([[40, 9], [6, 45]], disagreement(2, "nominal")).item(), 4)
    0.6995
    """
    t = _summed(tables)
    w = np.asarray(weights, dtype=np.float64)
    seen = np.einsum("...ij,ij->...", t.cells, w)
    chance = np.einsum("...i,...i->...", t.rows @ w, t.columns)
    return 1 - quotient(t.pairs * seen, chance)


def adjacent_accuracy(tables: AnyTables) -> Floats:
    """The share of pairs at most one class apart. NaN without a pair.

    >>> adjacent_accuracy([[1, 1, 2], [0, 0, 0], [0, 0, 0]]).item()
    0.5
    """
    t = _summed(tables)
    near = disagreement(t.size, "linear") <= 1
    return quotient(np.einsum("...ij,ij->...", t.cells, near.astype(np.float64)), t.pairs)


def precision(tables: AnyTables) -> Floats:
    """tp/(tp + fp) of 2×2 tables. NaN where nothing was called positive.

    >>> precision([[3, 1], [1, 5]]).item()
    0.75
    """
    t = _summed(tables)
    return quotient(t.cells[..., 0, 0], t.columns[..., 0])


def recall(tables: AnyTables) -> Floats:
    """tp/(tp + fn) of 2×2 tables. NaN where nothing is positive.

    >>> recall([[3, 1], [2, 4]]).item()
    0.75
    """
    t = _summed(tables)
    return quotient(t.cells[..., 0, 0], t.rows[..., 0])


def f1(tables: AnyTables) -> Floats:
    """2tp/(2tp + fp + fn) of 2×2 tables. NaN where nothing is positive on either side.

    >>> f1([[3, 1], [1, 4]]).item()
    0.75
    """
    t = _summed(tables)
    return quotient(2 * t.cells[..., 0, 0], t.rows[..., 0] + t.columns[..., 0])


def phi(tables: AnyTables) -> Floats:
    """The correlation of 2×2 tables, (tp·tn - fp·fn)/√((tp+fp)(tp+fn)(tn+fp)(tn+fn)). NaN where a side is constant.

    >>> round(phi([[40, 9], [6, 45]]).item(), 4)
    0.7008
    """
    t = _summed(tables)
    tp, fn, fp, tn = t.cells[..., 0, 0], t.cells[..., 0, 1], t.cells[..., 1, 0], t.cells[..., 1, 1]
    # Equal factors stand together, so that full agreement is 1 to the last digit.
    spread = np.sqrt(t.columns[..., 0] * t.rows[..., 0]) * np.sqrt(t.columns[..., 1] * t.rows[..., 1])
    return np.clip(quotient(tp * tn - fp * fn, spread), -1, 1)


def balanced_accuracy(tables: AnyTables) -> Floats:
    """The mean recall of the classes that occur in the truth. NaN where fewer than two occur.

    >>> balanced_accuracy([[3, 1], [2, 2]]).item()
    0.625
    """
    t = _summed(tables)
    occurs = t.rows > 0
    classes = occurs.sum(axis=-1)
    recalls = np.where(occurs, t.agreed / np.where(occurs, t.rows, 1.0), 0.0)
    return quotient(recalls.sum(axis=-1), np.where(classes >= 2, classes, 0))


def scott_pi(tables: AnyTables) -> Floats:
    """Scott's pi, (p_o - Σπ²)/(1 - Σπ²) with π the mean margins. NaN without a pair or where all is one class.

    >>> round(scott_pi([[40, 9], [6, 45]]).item(), 4)
    0.6992
    """
    t = _summed(tables)
    margins = t.rows + t.columns
    squares = np.einsum("...k,...k->...", margins, margins)
    # In counts rather than shares, so that "all is one class" is an exact zero.
    return quotient(4 * t.pairs * t.hits - squares, 4 * t.pairs * t.pairs - squares)


def pabak(tables: AnyTables) -> Floats:
    """The prevalence- and bias-adjusted kappa (K·p_o - 1)/(K - 1). NaN without a pair or with one class.

    >>> round(pabak([[40, 9], [6, 45]]).item(), 4)
    0.7
    """
    t = _summed(tables)
    return quotient(t.size * t.hits - t.pairs, (t.size - 1) * t.pairs)


def gwet_ac(tables: AnyTables, weights: ArrayLike | None = None) -> Floats:
    """Gwet's AC1 of two raters, or AC2 with agreement weights. NaN without a pair.

    >>> round(gwet_ac([[40, 9], [6, 45]]).item(), 4)
    0.7007
    """
    t = _summed(tables)
    agreeing = t.hits if weights is None else np.einsum("...ij,ij->...", t.cells, np.asarray(weights, dtype=np.float64))
    return gwet_from_sums(agreeing, t.pairs, (t.rows + t.columns) / 2, weights=weights, least=1)


def spearman(tables: AnyTables, positions: ArrayLike | None = None) -> Floats:
    """Spearman's correlation of the positions, ties at their mid-ranks. NaN below 3 pairs or for a constant side.

    >>> round(spearman([[2, 1, 0], [0, 2, 1], [0, 0, 2]]).item(), 4)
    0.8533
    """
    t = _summed(tables)
    higher = order_signs(np.arange(t.size) if positions is None else positions)
    rows, columns = t.rows, t.columns
    # Votes below a class less votes above it: twice its centred mid-rank, a whole number.
    x, y = rows @ higher.T, columns @ higher.T
    product = np.einsum("...i,...i->...", x, np.einsum("...ij,...j->...i", t.cells, y))
    # The root of the product, not the product of roots: full agreement is 1 to the last digit.
    spread = np.sqrt(np.einsum("...i,...i->...", rows * x, x) * np.einsum("...i,...i->...", columns * y, y))
    # A sum of weights has rounding errors.
    return np.clip(quotient(product, np.where(t.pairs > 2.5, spread, 0.0)), -1, 1)


def kendall(tables: AnyTables) -> Floats:
    """Kendall's tau-b of ordered classes. NaN below 3 pairs or for a constant side.

    >>> round(kendall([[2, 1, 0], [0, 2, 1], [0, 0, 2]]).item(), 4)
    0.8095
    """
    t = _summed(tables)
    higher = order_signs(np.arange(t.size))
    distance = np.abs(higher)
    # Every pair of pairs is counted twice, in the numerator and in the denominator.
    excess = np.einsum("...ij,...ij->...", t.cells, higher @ t.cells @ higher.T)
    untied = [np.einsum("...i,...i->...", side @ distance, side) for side in (t.rows, t.columns)]
    spread = np.sqrt(untied[0] * untied[1])
    # A sum of weights has rounding errors.
    return np.clip(quotient(excess, np.where(t.pairs > 2.5, spread, 0.0)), -1, 1)


def pearson(tables: AnyTables, values: ArrayLike) -> Floats:
    """Pearson's correlation of the classes' values. NaN below 3 pairs or for a constant side.

    >>> round(pearson([[2, 1, 0], [0, 2, 1], [0, 0, 2]], [0.0, 0.5, 1.0]).item(), 4)
    0.8462
    """
    t = _summed(tables)
    class_values = np.asarray(values, dtype=np.float64)
    rows, columns, n = t.rows, t.columns, t.pairs
    x, y = (
        class_values - quotient(rows @ class_values, n)[..., None],
        class_values - quotient(columns @ class_values, n)[..., None],
    )
    joint = np.einsum("...i,...ij,...j->...", x, t.cells, y)
    varied = (n > 2.5) & ((rows > 0).sum(axis=-1) > 1) & ((columns > 0).sum(axis=-1) > 1)
    spread = np.sqrt((rows * x * x).sum(axis=-1)) * np.sqrt((columns * y * y).sum(axis=-1))
    return np.clip(quotient(joint, np.where(varied, spread, 0.0)), -1, 1)


def rmse(tables: AnyTables, values: ArrayLike) -> Floats:
    """The root mean squared difference of the classes' values. NaN without a pair.

    >>> rmse([[0, 1], [1, 2]], [0.0, 1.0]).item() ** 2
    0.5000000000000001
    """
    t = _summed(tables)
    distance = disagreement(t.size, "quadratic", positions=values)
    return np.sqrt(quotient(np.einsum("...ij,ij->...", t.cells, distance), t.pairs))


def mae(tables: AnyTables, values: ArrayLike) -> Floats:
    """The mean absolute difference of the classes' values. NaN without a pair.

    >>> mae([[0, 1], [1, 2]], [0.0, 1.0]).item()
    0.5
    """
    t = _summed(tables)
    distance = disagreement(t.size, "linear", positions=values)
    return quotient(np.einsum("...ij,ij->...", t.cells, distance), t.pairs)


def one_against_rest(tables: AnyTables) -> Floats:
    """A 2×2 table for each class, that class first and all others together second: ``[..., K, 2, 2]``.

    >>> one_against_rest([[2, 1], [0, 3]])[1]
    array([[3., 0.],
           [1., 2.]])
    """
    t = _summed(tables)
    missed, extra = t.rows - t.agreed, t.columns - t.agreed
    rest = t.pairs[..., None] - t.agreed - missed - extra
    return np.stack([np.stack([t.agreed, missed], axis=-1), np.stack([extra, rest], axis=-1)], axis=-2)


def kappa(tables: AnyTables, scale: Scale) -> Floats:
    """The kappa of a scale: quadratically weighted where classes are ordered, else Cohen's.

    >>> round(kappa([[40, 9], [6, 45]], "binary").item(), 4)
    0.6995
    """
    t = _summed(tables)
    return weighted_kappa(t, disagreement(t.size, "quadratic" if scale == "ordinal" else "nominal"))


def positive_against_rest(tables: Floats) -> Floats:
    """2×2 tables of the first class against all others.

    >>> positive_against_rest(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 3.0]]))
    array([[2., 1.],
           [1., 4.]])
    """
    return tables if tables.shape[-1] == 2 else one_against_rest(tables)[..., 0, :, :]


def positive_statistics(tables: AnyTables) -> dict[str, Floats]:
    """Precision, recall, F1, phi and error rates of the first class against all others, by name.

    >>> positive_statistics([[3, 1], [1, 4]])["f1"].item()
    0.75
    """
    t = _summed(tables)
    table = t if t.size == 2 else Tables(one_against_rest(t)[..., 0, :, :])
    return {
        "precision": precision(table),
        "recall": recall(table),
        "f1": f1(table),
        "phi": phi(table),
        "fpr": quotient(table.cells[..., 1, 0], table.rows[..., 1]),
        "fnr": quotient(table.cells[..., 0, 1], table.rows[..., 0]),
    }


def table_statistics(tables: Floats, scale: Scale, *, values: Sequence[Floats]) -> dict[str, Floats]:
    """Every statistic that a scale allows, by name.

    Args:
        tables: Columns × replicates of tables, ``[columns, replicates, K, K]``.
        scale: ``binary`` (the first class is the positive one), ``ordinal`` or ``nominal``.
        values: The values of the classes of each column; only an ordinal scale looks at them.

    >>> found = table_statistics(np.array([[[[40.0, 9.0], [6.0, 45.0]]]]), "binary", values=[])
    >>> found["accuracy"], found["kappa"].round(4)
    (array([[0.85]]), array([[0.6995]]))
    """
    t = _summed(tables)
    weights = agreement(disagreement(t.size, "quadratic")) if scale == "ordinal" else None
    found = {
        "hits": t.hits,
        "pairs": t.pairs,
        "accuracy": accuracy(t),
        "kappa": kappa(t, scale),
        "balanced_accuracy": balanced_accuracy(t),
        "scott_pi": scott_pi(t),
        "pabak": pabak(t),
        "gwet_ac": gwet_ac(t, weights),
    }
    if scale == "binary":
        return found | positive_statistics(t)
    if scale == "ordinal":
        found |= {
            "linear_kappa": weighted_kappa(t, disagreement(t.size, "linear")),
            "adjacent_accuracy": adjacent_accuracy(t),
            "spearman": spearman(t),
            "kendall": kendall(t),
            "rmse": np.array([rmse(table, own) for table, own in zip(t.cells, values, strict=True)]),
            "mae": np.array([mae(table, own) for table, own in zip(t.cells, values, strict=True)]),
        }
    # Of each class against all others.
    return found | {
        "class_precision": quotient(t.agreed, t.columns),
        "class_recall": quotient(t.agreed, t.rows),
        "class_f1": quotient(2 * t.agreed, t.rows + t.columns),
    }
