"""Intraclass correlation: agreement of numeric ratings, as shares of variance; from sums of units too.

The sums are linear in the units, so a bootstrap multiplies resample counts by the features of the units and asks the
same formulas. In these formulas leading axes are stacks, and undefined is NaN.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._number_arrays import constant, matrix
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.nan_arithmetic import DUST, Floats, float_or_none, quotient


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
    return np.where((n > 1.5)[..., None], answer, np.nan)


class ICCForm(msgspec.Struct, frozen=True, kw_only=True):
    """One form of the intraclass correlation, with its F test (of 0) and its interval.

    An infinite F, where ratings of a unit are all equal, has p 0 and the interval and F None.
    """

    value: float | None = None
    f: float | None = None
    df1: int
    df2: int
    p_value: float | None = None
    interval: ConfidenceInterval | None = None


class ICC(msgspec.Struct, frozen=True, kw_only=True):
    """The six intraclass correlations of Shrout and Fleiss, and the mean squares they are made of.

    Single ratings end in 1, means of all raters in k. (1) takes each unit's raters as others drawn at random, (2) the
    same raters for all units, drawn at random, (3) these raters and no others; only (1) and (2) count a rater's
    constant shift as disagreement. ``icc_3_k`` is Cronbach's alpha.

    Attributes:
        n: Units that every rater rated.
        raters: How many raters.
        missing: Units left out because a rating is missing.
        between: Mean square between units.
        within: Mean square within units.
        between_raters: Mean square between raters.
        error: Mean square of the rest.
    """

    icc_1_1: ICCForm
    icc_2_1: ICCForm
    icc_3_1: ICCForm
    icc_1_k: ICCForm
    icc_2_k: ICCForm
    icc_3_k: ICCForm
    n: int
    raters: int
    missing: int
    between: float | None = None
    within: float | None = None
    between_raters: float | None = None
    error: float | None = None


def icc(ratings: ArrayLike, *, confidence: float = 0.95) -> ICC:
    """All six intraclass correlations of units × raters, from the units that every rater rated.

    With B, W, J, E the mean squares between units, within units, between raters and of the rest, n units, k raters:
    (1,1) (B-W)/(B+(k-1)W); (2,1) (B-E)/(B+(k-1)E+k(J-E)/n); (3,1) (B-E)/(B+(k-1)E); (1,k) (B-W)/B;
    (2,k) (B-E)/(B+(J-E)/n); (3,k) (B-E)/B. 1 is full agreement; values may fall below 0. Undefined (None) below two
    units or raters, and where a denominator is 0.

    Args:
        ratings: A row for each unit, a column for each rater; None or NaN is missing.
        confidence: The level of the intervals.

    Reference: P. E. Shrout, J. L. Fleiss, Intraclass correlations, Psychological Bulletin 86 (1979); K. O. McGraw,
    S. P. Wong, Forming inferences about some intraclass correlation coefficients, Psychological Methods 1 (1996).

    Raises:
        ValueError: The rows differ in length, a rating is no finite number, or the level is not in (0, 1).

    >>> result = icc([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    >>> round(result.icc_1_1.value, 4), round(result.icc_2_1.value, 4), round(result.icc_3_k.value, 4)
    (0.1657, 0.2898, 0.9093)
    """
    check_confidence(confidence)
    every = matrix(ratings)
    complete = every[~np.isnan(every).any(axis=1)]
    n, k = complete.shape
    missing = len(every) - n
    if n < 2 or k < 2 or constant(complete.ravel()):
        return _undefined(n, k, missing)
    squares = mean_squares(icc_features(complete - complete.mean()).sum(axis=0), n)
    values = [float_or_none(value) for value in icc_forms(squares, n, k)]
    between, within, judged, error = (float(square) for square in squares)
    simple = _Test.compare(between, within, n - 1, n * (k - 1), confidence)
    crossed = _Test.compare(between, error, n - 1, (n - 1) * (k - 1), confidence)
    mixed = _random_raters(values[1], (between, judged, error), (n, k), confidence)
    return ICC(
        icc_1_1=simple.form(values[0], simple.single(k)),
        icc_2_1=crossed.form(values[1], mixed),
        icc_3_1=crossed.form(values[2], crossed.single(k)),
        icc_1_k=simple.form(values[3], simple.mean()),
        icc_2_k=crossed.form(
            values[4], None if mixed is None else (_spearman_brown(mixed[0], k), _spearman_brown(mixed[1], k))
        ),
        icc_3_k=crossed.form(values[5], crossed.mean()),
        n=n,
        raters=k,
        missing=missing,
        between=between,
        within=within,
        between_raters=judged,
        error=error,
    )


class _Test(msgspec.Struct, frozen=True):
    """An F test and what its quantiles make of F: the two ends that intervals are built from."""

    f: float | None
    df1: int
    df2: int
    p_value: float | None
    ends: tuple[float, float] | None
    confidence: float

    @classmethod
    def compare(cls, above: float, below: float, df1: int, df2: int, confidence: float) -> _Test:
        from scipy.special import fdtrc, fdtri  # noqa: PLC0415 - scipy takes a tenth of a second to load

        if not below:
            return cls(None, df1, df2, 0.0 if above else None, None, confidence)
        f = above / below
        share = (1 + confidence) / 2
        ends = f / float(fdtri(df1, df2, share)), f * float(fdtri(df2, df1, share))
        return cls(f, df1, df2, float(fdtrc(df1, df2, f)), ends, confidence)

    def single(self, k: int) -> tuple[float, float] | None:
        if self.ends is None:
            return None
        low, high = self.ends
        return (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)

    def mean(self) -> tuple[float, float] | None:
        if self.ends is None or not self.ends[0]:
            return None
        return 1 - 1 / self.ends[0], 1 - 1 / self.ends[1]

    def form(self, value: float | None, ends: tuple[float, float] | None) -> ICCForm:
        usable = value is not None and ends is not None and all(map(math.isfinite, ends))
        interval = ConfidenceInterval(*ends, self.confidence, "f") if usable and ends else None
        return ICCForm(
            value=value,
            f=self.f,
            df1=self.df1,
            df2=self.df2,
            p_value=None if value is None else self.p_value,
            interval=interval,
        )


def _random_raters(
    value: float | None, squares: tuple[float, float, float], shape: tuple[int, int], confidence: float
) -> tuple[float, float] | None:
    """The ends for form (2,1), whose degrees of freedom are Satterthwaite's."""
    between, judged, error = squares
    n, k = shape
    if value is None or not error:
        return None
    from scipy.special import fdtri  # noqa: PLC0415 - scipy takes a tenth of a second to load

    ratio = judged / error
    rest = n * (1 + (k - 1) * value) - k * value
    below = (n - 1) * (k * value * ratio) ** 2 + rest**2
    freedom = (n - 1) * (k - 1) * (k * value * ratio + rest) ** 2 / below if below else 0.0
    if not freedom > 0:
        return None
    share = (1 + confidence) / 2
    low, high = float(fdtri(n - 1, freedom, share)), float(fdtri(freedom, n - 1, share))
    noise = k * judged + (k * n - k - n) * error
    return (
        n * (between - low * error) / (low * noise + n * between),
        n * (high * between - error) / (noise + n * high * between),
    )


def _spearman_brown(single: float, k: int) -> float:
    """What the mean of k raters reaches, given what one does (Spearman and Brown)."""
    below = 1 + single * (k - 1)
    return single * k / below if below else math.nan


def _undefined(n: int, k: int, missing: int) -> ICC:
    empty = ICCForm(df1=max(n - 1, 0), df2=max(n - 1, 0) * max(k - 1, 0))
    return ICC(
        icc_1_1=empty,
        icc_2_1=empty,
        icc_3_1=empty,
        icc_1_k=empty,
        icc_2_k=empty,
        icc_3_k=empty,
        n=n,
        raters=k,
        missing=missing,
    )
