"""Intraclass correlations and interval alpha from sums of squares, for replicates too.

The sums are linear in the units, so a bootstrap multiplies resample counts by the features of the units and asks the
same formulas. Leading axes are stacks; undefined is NaN inside arrays.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deemster.stats.nan_arithmetic import DUST, Floats, quotient


class MeanSquares(NamedTuple):
    """Mean squares of a units × raters layout: between units, within units, between raters, and the rest."""

    between: Floats
    within: Floats
    raters: Floats
    error: Floats


def icc_features(ratings: ArrayLike) -> Floats:
    """What each complete unit adds: its ratings, its squared sum, its sum of squares; ``[units, raters + 2]``.

    Subtract one number from all ratings first (their mean), so that the sums do not drown the differences.

    >>> icc_features([[1.0, 2.0]])
    array([[1., 2., 9., 5.]])
    """
    values = np.asarray(ratings, dtype=np.float64)
    return np.column_stack([values, np.square(values.sum(axis=1)), np.square(values).sum(axis=1)])


def mean_squares(sums: ArrayLike, units: ArrayLike) -> MeanSquares:
    """The mean squares of an analysis of variance, from summed ``icc_features``.

    Args:
        sums: ``[..., raters + 2]``.
        units: How many complete units each sum holds, ``[...]``.

    >>> ratings = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(mean_squares(icc_features(ratings).sum(axis=0), 6).between.item(), 4)
    11.2417
    """
    every = np.asarray(sums, dtype=np.float64)
    n = np.asarray(units, dtype=np.float64)
    columns, rows, squares = every[..., :-2], every[..., -2], every[..., -1]
    k = columns.shape[-1]
    corrected = quotient(np.square(columns.sum(axis=-1)), n * k)
    floor = DUST * squares

    def cleared(amount: Floats) -> Floats:
        return np.where(amount > floor, amount, 0.0 * amount)

    between = cleared(rows / k - corrected)
    within = cleared(squares - rows / k)
    raters = cleared(quotient(np.square(columns).sum(axis=-1), n) - corrected)
    error = cleared(within - raters)
    return MeanSquares(
        quotient(between, n - 1),
        quotient(within, n * (k - 1)),
        quotient(raters, k - 1),
        quotient(error, (n - 1) * (k - 1)),
    )


def icc_forms(squares: MeanSquares, units: ArrayLike, raters: int) -> Floats:
    """The six intraclass correlations (1,1) (2,1) (3,1) (1,k) (2,k) (3,k), along the last axis.

    With B, W, J, E the mean squares, n units and k raters: (B-W)/(B+(k-1)W), (B-E)/(B+(k-1)E+k(J-E)/n),
    (B-E)/(B+(k-1)E), (B-W)/B, (B-E)/(B+(J-E)/n), (B-E)/B. NaN below two units or raters, and where a denominator is 0.

    Reference: P. E. Shrout, J. L. Fleiss, Intraclass correlations, Psychological Bulletin 86 (1979).

    >>> icc_forms(MeanSquares(*map(np.array, (11.24167, 6.26389, 32.48611, 1.01944))), 6, 4).round(4)
    array([0.1657, 0.2898, 0.7148, 0.4428, 0.6201, 0.9093])
    """
    between, within, judged, error = squares
    n, k = np.asarray(units, dtype=np.float64), raters
    if k < 2:
        return np.full((*np.shape(between), 6), np.nan)
    shift = quotient(judged - error, n)
    parts = [
        (between - within, between + (k - 1) * within),
        (between - error, between + (k - 1) * error + k * shift),
        (between - error, between + (k - 1) * error),
        (between - within, between),
        (between - error, between + shift),
        (between - error, between),
    ]
    answer = np.stack([quotient(above, below) for above, below in parts], axis=-1)
    return np.where((n >= 2)[..., None], answer, np.nan)


def spread_features(ratings: ArrayLike) -> Floats:
    """What each unit adds to interval alpha: m·SS/(m - 1), Σx, Σx², m, and 1; nothing below two values.

    SS is the sum of squares about the unit's own mean. NaN is a missing rating. Subtract one number from all ratings
    first (their mean), so that the sums do not drown the differences.

    Args:
        ratings: Units × raters.

    >>> spread_features([[1.0, 3.0], [2.0, float("nan")]])
    array([[ 4.,  4., 10.,  2.,  1.],
           [ 0.,  0.,  0.,  0.,  0.]])
    """
    values = np.asarray(ratings, dtype=np.float64)
    held = ~np.isnan(values)
    votes = held.sum(axis=1)
    pairable = votes >= 2
    filled = np.where(held & pairable[:, None], values, 0.0)
    votes = np.where(pairable, votes, 0)
    sums = filled.sum(axis=1)
    about = np.where(held & pairable[:, None], filled - (sums / np.maximum(votes, 1))[:, None], 0.0)
    within = np.square(about).sum(axis=1) * votes / np.maximum(votes - 1, 1)
    return np.column_stack([within, sums, np.square(filled).sum(axis=1), votes, pairable])


def interval_alpha(sums: ArrayLike) -> Floats:
    """Krippendorff's alpha at the interval level, from summed ``spread_features``, without a table of values.

    α = 1 - (n - 1)·W/(n·Q - S²) with W, S, Q, n the summed features: the coincidence formula with (c - k)² multiplied
    out. NaN below two units with two values, and where all values are one.

    Args:
        sums: ``[..., 5]``.

    >>> interval_alpha(spread_features([[-1.0, -1.0], [1.0, 0.0]]).sum(axis=0)).round(4).item()
    0.7273
    """
    within, total, squares, votes, units = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    spread = votes * squares - total * total
    defined = (units >= 2) & (spread > DUST * votes * squares)
    return np.asarray(1 - (votes - 1) * quotient(within, np.where(defined, spread, 0.0)))
