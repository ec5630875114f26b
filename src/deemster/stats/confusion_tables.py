"""Statistics of confusion tables as arrays: accuracy, kappa, precision, recall, F1, phi, Gwet's AC.

A table ``T[..., K, K]`` holds counts over the full scale: rows are the truth (or the first rater), columns the other
side, leading axes a stack (replicates, judges). Undefined is NaN inside arrays, without a warning. In 2×2 tables the
first class is the positive one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.agreement_from_sums import (
    agreement,
    column_sums,
    disagreement,
    gwet_from_sums,
    order_signs,
    row_sums,
    table_sums,
)
from deemster.stats.nan_arithmetic import Floats, quotient

# Numbers are no classes: a table of them has one, and says only how many pairs there are.
Scale = Literal["binary", "ordinal", "nominal", "numeric"]


def stack(tables: ArrayLike) -> Floats:
    """The tables as an array of floats, checked for shape.

    Raises:
        ValueError: The last two axes are no square.

    >>> stack([[1, 0], [0, 1]]).dtype
    dtype('float64')
    """
    array = np.asarray(tables, dtype=np.float64)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"A table of pairs is square, not {' × '.join(map(str, array.shape)) or 'a number'}.")
    return array


def accuracy(tables: ArrayLike) -> Floats:
    """The share of pairs on the diagonal. NaN without a pair.

    >>> accuracy([[40, 9], [6, 45]]).item()
    0.85
    """
    t = stack(tables)
    return quotient(np.einsum("...ii->...", t), table_sums(t))


def weighted_kappa(tables: ArrayLike, weights: ArrayLike) -> Floats:
    """Kappa with disagreement weights w: 1 - n·Σw·T/Σw·r_i·c_j.

    1 is full agreement, 0 what the margins give by chance. NaN without a pair and where both sides are constant on one
    same class.

    Reference: J. Cohen, Weighted kappa, Psychological Bulletin 70 (1968).

    >>> round(weighted_kappa([[40, 9], [6, 45]], disagreement(2, "nominal")).item(), 4)
    0.6995
    """
    t = stack(tables)
    w = np.asarray(weights, dtype=np.float64)
    rows, columns = row_sums(t), column_sums(t)
    seen = np.einsum("...ij,ij->...", t, w)
    chance = np.einsum("...i,...i->...", rows @ w, columns)
    return 1 - quotient(table_sums(t) * seen, chance)


def adjacent_accuracy(tables: ArrayLike) -> Floats:
    """The share of pairs at most one class apart. NaN without a pair.

    >>> adjacent_accuracy([[1, 1, 2], [0, 0, 0], [0, 0, 0]]).item()
    0.5
    """
    t = stack(tables)
    near = disagreement(t.shape[-1], "linear") <= 1
    return quotient(np.einsum("...ij,ij->...", t, near.astype(np.float64)), table_sums(t))


def precision(tables: ArrayLike) -> Floats:
    """tp/(tp + fp) of 2×2 tables. NaN where nothing was called positive.

    >>> precision([[3, 1], [1, 5]]).item()
    0.75
    """
    t = stack(tables)
    return quotient(t[..., 0, 0], t[..., 0, 0] + t[..., 1, 0])


def recall(tables: ArrayLike) -> Floats:
    """tp/(tp + fn) of 2×2 tables. NaN where nothing is positive.

    >>> recall([[3, 1], [2, 4]]).item()
    0.75
    """
    t = stack(tables)
    return quotient(t[..., 0, 0], t[..., 0, 0] + t[..., 0, 1])


def f1(tables: ArrayLike) -> Floats:
    """2tp/(2tp + fp + fn) of 2×2 tables. NaN where nothing is positive on either side.

    >>> f1([[3, 1], [1, 4]]).item()
    0.75
    """
    t = stack(tables)
    twice = 2 * t[..., 0, 0]
    return quotient(twice, twice + t[..., 1, 0] + t[..., 0, 1])


def phi(tables: ArrayLike) -> Floats:
    """The correlation of 2×2 tables, (tp·tn - fp·fn)/√((tp+fp)(tp+fn)(tn+fp)(tn+fn)). NaN where a side is constant.

    >>> round(phi([[40, 9], [6, 45]]).item(), 4)
    0.7008
    """
    t = stack(tables)
    tp, fn, fp, tn = t[..., 0, 0], t[..., 0, 1], t[..., 1, 0], t[..., 1, 1]
    # Equal factors stand together, so that full agreement is 1 to the last digit.
    spread = np.sqrt((tp + fp) * (tp + fn)) * np.sqrt((tn + fp) * (tn + fn))
    return np.clip(quotient(tp * tn - fp * fn, spread), -1, 1)


def balanced_accuracy(tables: ArrayLike) -> Floats:
    """The mean recall of the classes that occur in the truth. NaN where fewer than two occur.

    >>> balanced_accuracy([[3, 1], [2, 2]]).item()
    0.625
    """
    t = stack(tables)
    rows = row_sums(t)
    occurs = rows > 0
    classes = occurs.sum(axis=-1)
    recalls = np.where(occurs, np.einsum("...ii->...i", t) / np.where(occurs, rows, 1.0), 0.0)
    return quotient(recalls.sum(axis=-1), np.where(classes >= 2, classes, 0))


def scott_pi(tables: ArrayLike) -> Floats:
    """Scott's pi, (p_o - Σπ²)/(1 - Σπ²) with π the mean margins. NaN without a pair or where all is one class.

    >>> round(scott_pi([[40, 9], [6, 45]]).item(), 4)
    0.6992
    """
    t = stack(tables)
    n = table_sums(t)
    margins = row_sums(t) + column_sums(t)
    squares = np.einsum("...k,...k->...", margins, margins)
    # In counts rather than shares, so that "all is one class" is an exact zero.
    return quotient(4 * n * np.einsum("...ii->...", t) - squares, 4 * n * n - squares)


def pabak(tables: ArrayLike) -> Floats:
    """The prevalence- and bias-adjusted kappa (K·p_o - 1)/(K - 1). NaN without a pair or with one class.

    >>> round(pabak([[40, 9], [6, 45]]).item(), 4)
    0.7
    """
    t = stack(tables)
    size = t.shape[-1]
    n = table_sums(t)
    return quotient(size * np.einsum("...ii->...", t) - n, (size - 1) * n)


def gwet_ac(tables: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Gwet's AC1 of two raters, or AC2 with agreement weights. NaN without a pair.

    >>> round(gwet_ac([[40, 9], [6, 45]]).item(), 4)
    0.7007
    """
    t = stack(tables)
    shares = (row_sums(t) + column_sums(t)) / 2
    return gwet_from_sums(t, shares, weights=weights, least=1)


def spearman(tables: ArrayLike, positions: ArrayLike | None = None) -> Floats:
    """Spearman's correlation of the positions, ties at their mid-ranks. NaN below 3 pairs or for a constant side.

    >>> round(spearman([[2, 1, 0], [0, 2, 1], [0, 0, 2]]).item(), 4)
    0.8533
    """
    t = stack(tables)
    higher = order_signs(np.arange(t.shape[-1]) if positions is None else positions)
    rows, columns = row_sums(t), column_sums(t)
    # Votes below a class less votes above it: twice its centred mid-rank, a whole number.
    x, y = rows @ higher.T, columns @ higher.T
    product = np.einsum("...i,...i->...", x, np.einsum("...ij,...j->...i", t, y))
    # The root of the product, not the product of roots: full agreement is 1 to the last digit.
    spread = np.sqrt(np.einsum("...i,...i->...", rows * x, x) * np.einsum("...i,...i->...", columns * y, y))
    # A sum of weights has rounding errors.
    enough = table_sums(t) > 2.5
    return np.clip(quotient(product, np.where(enough, spread, 0.0)), -1, 1)


def kendall(tables: ArrayLike) -> Floats:
    """Kendall's tau-b of ordered classes. NaN below 3 pairs or for a constant side.

    >>> round(kendall([[2, 1, 0], [0, 2, 1], [0, 0, 2]]).item(), 4)
    0.8095
    """
    t = stack(tables)
    higher = order_signs(np.arange(t.shape[-1]))
    distance = np.abs(higher)
    rows, columns = row_sums(t), column_sums(t)
    # Every pair of pairs is counted twice, in the numerator and in the denominator.
    excess = np.einsum("...ij,...ij->...", t, higher @ t @ higher.T)
    untied = (
        np.einsum("...i,...i->...", rows @ distance, rows),
        np.einsum("...i,...i->...", columns @ distance, columns),
    )
    # A sum of weights has rounding errors.
    enough = table_sums(t) > 2.5
    spread = np.sqrt(untied[0] * untied[1])
    return np.clip(quotient(excess, np.where(enough, spread, 0.0)), -1, 1)


def pearson(tables: ArrayLike, values: ArrayLike) -> Floats:
    """Pearson's correlation of the classes' values. NaN below 3 pairs or for a constant side.

    >>> round(pearson([[2, 1, 0], [0, 2, 1], [0, 0, 2]], [0.0, 0.5, 1.0]).item(), 4)
    0.8462
    """
    t = stack(tables)
    class_values = np.asarray(values, dtype=np.float64)
    rows, columns = t.sum(axis=-1), t.sum(axis=-2)
    n = rows.sum(axis=-1)
    x, y = (
        class_values - quotient(rows @ class_values, n)[..., None],
        class_values - quotient(columns @ class_values, n)[..., None],
    )
    joint = np.einsum("...i,...ij,...j->...", x, t, y)
    varied = (n > 2.5) & ((rows > 0).sum(axis=-1) > 1) & ((columns > 0).sum(axis=-1) > 1)
    spread = np.sqrt((rows * x * x).sum(axis=-1)) * np.sqrt((columns * y * y).sum(axis=-1))
    return np.clip(quotient(joint, np.where(varied, spread, 0.0)), -1, 1)


def rmse(tables: ArrayLike, values: ArrayLike) -> Floats:
    """The root mean squared difference of the classes' values. NaN without a pair.

    >>> rmse([[0, 1], [1, 2]], [0.0, 1.0]).item() ** 2
    0.5000000000000001
    """
    t = stack(tables)
    distance = disagreement(t.shape[-1], "quadratic", positions=values)
    return np.sqrt(quotient(np.einsum("...ij,ij->...", t, distance), table_sums(t)))


def mae(tables: ArrayLike, values: ArrayLike) -> Floats:
    """The mean absolute difference of the classes' values. NaN without a pair.

    >>> mae([[0, 1], [1, 2]], [0.0, 1.0]).item()
    0.5
    """
    t = stack(tables)
    distance = disagreement(t.shape[-1], "linear", positions=values)
    return quotient(np.einsum("...ij,ij->...", t, distance), table_sums(t))


def one_against_rest(tables: ArrayLike) -> Floats:
    """A 2×2 table for each class, that class first and all others together second: ``[..., K, 2, 2]``.

    >>> one_against_rest([[2, 1], [0, 3]])[1]
    array([[3., 0.],
           [1., 2.]])
    """
    t = stack(tables)
    hits = np.einsum("...ii->...i", t)
    missed, extra = row_sums(t) - hits, column_sums(t) - hits
    rest = table_sums(t)[..., None] - hits - missed - extra
    return np.stack([np.stack([hits, missed], axis=-1), np.stack([extra, rest], axis=-1)], axis=-2)


def kappa(tables: ArrayLike, scale: Scale) -> Floats:
    """The kappa of a scale: quadratically weighted where classes are ordered, else Cohen's.

    >>> round(kappa([[40, 9], [6, 45]], "binary").item(), 4)
    0.6995
    """
    t = stack(tables)
    return weighted_kappa(t, disagreement(t.shape[-1], "quadratic" if scale == "ordinal" else "nominal"))


def positive_against_rest(tables: Floats) -> Floats:
    """2×2 tables of the first class against all others.

    >>> positive_against_rest(np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 3.0]]))
    array([[2., 1.],
           [1., 4.]])
    """
    return tables if tables.shape[-1] == 2 else one_against_rest(tables)[..., 0, :, :]


def positive_statistics(tables: ArrayLike) -> dict[str, Floats]:
    """Precision, recall, F1, phi and error rates of the first class against all others, by name.

    >>> positive_statistics([[3, 1], [1, 4]])["f1"].item()
    0.75
    """
    table = positive_against_rest(stack(tables))
    return {
        "precision": precision(table),
        "recall": recall(table),
        "f1": f1(table),
        "phi": phi(table),
        "fpr": quotient(table[..., 1, 0], row_sums(table)[..., 1]),
        "fnr": quotient(table[..., 0, 1], row_sums(table)[..., 0]),
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
    weights = agreement(disagreement(tables.shape[-1], "quadratic")) if scale == "ordinal" else None
    found = {
        "hits": np.einsum("...ii->...", tables),
        "pairs": tables.sum(axis=(-1, -2)),
        "accuracy": accuracy(tables),
        "kappa": kappa(tables, scale),
        "balanced_accuracy": balanced_accuracy(tables),
        "scott_pi": scott_pi(tables),
        "pabak": pabak(tables),
        "gwet_ac": gwet_ac(tables, weights),
    }
    if scale == "binary":
        return found | positive_statistics(tables)
    if scale == "ordinal":
        found |= {
            "linear_kappa": weighted_kappa(tables, disagreement(tables.shape[-1], "linear")),
            "adjacent_accuracy": adjacent_accuracy(tables),
            "spearman": spearman(tables),
            "kendall": kendall(tables),
            "rmse": np.array([rmse(table, own) for table, own in zip(tables, values, strict=True)]),
            "mae": np.array([mae(table, own) for table, own in zip(tables, values, strict=True)]),
        }
    by_class = one_against_rest(tables)
    return found | {
        "class_precision": precision(by_class),
        "class_recall": recall(by_class),
        "class_f1": f1(by_class),
    }
