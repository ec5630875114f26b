"""Tests of paired differences: McNemar's test and the sign-flip permutation test."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import cluster_codes
from deemster.stats._number_arrays import finite_vector
from deemster.stats.beta_distribution import beta_cdf
from deemster.stats.bootstrap_resampling import BLOCK_BYTES, drawn_seed
from deemster.stats.means import exact_mean
from deemster.stats.nan_arithmetic import Floats

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]

# Up to this many signs all patterns are enumerated: a million sums.
_ENUMERATED = 20
# The longest distribution of sums, and the most products on the way to it, before drawing is the better choice.
_LATTICE = 2_000_000
_PRODUCTS = 500_000_000
_ROUNDING = 1e-12
# Where Σu⁴ is at most this share of (Σu²)², the total is normal to two or three digits of its p-value, as
# good as a draw of 10,000 patterns or better. Exact convolution is then worth a tenth of a second.
_KURTOSIS = 5e-3
_QUICK_PRODUCTS = 20_000_000


class McNemar(msgspec.Struct, frozen=True, kw_only=True):
    """McNemar's test of `n` discordant pairs.

    Attributes:
        value: The share b/(b + c) of the discordant pairs.
        n: b + c.
        p_value: The exact two-sided p-value.
        mid_p: The same with half the weight of the observed table.
        chi2: (b - c)²/(b + c).
        chi2_p: Its asymptotic p-value.
        corrected_chi2: The same with Edwards' correction for continuity.
        corrected_p: Its asymptotic p-value.
    """

    value: float | None = None
    n: int
    p_value: float | None = None
    mid_p: float | None = None
    chi2: float | None = None
    chi2_p: float | None = None
    corrected_chi2: float | None = None
    corrected_p: float | None = None


class SignFlip(msgspec.Struct, frozen=True, kw_only=True):
    """A sign-flip test of the mean of `n` differences.

    Attributes:
        value: The mean difference.
        n: How many differences.
        units: How many items or clusters could change their sign.
        p_value: The p-value.
        alternative: What it speaks against.
        method: "enumeration" and "convolution" are exact; "normal" is the limit for many units; "monte carlo" is drawn.
        n_resamples: How many patterns of signs were drawn; None where exact.
        seed: The seed of the draws; None where exact.
    """

    value: float | None = None
    n: int
    units: int
    p_value: float | None = None
    alternative: Alternative
    method: str
    n_resamples: int | None = None
    seed: int | None = None


def mcnemar(b: int, c: int) -> McNemar:
    """McNemar's test that both kinds of discordant pairs are equally frequent.

    Exact: min(1, 2·P(X ≤ m)) with X ~ Bin(b + c, ½) and m = min(b, c). Mid-p: P(X < m) + P(X ≤ m). Asymptotic:
    (b - c)²/(b + c), and with correction `max(0, |b - c| - 1)²/(b + c)`, against chi-squared of one degree of freedom.
    p is 1 where b = c. Undefined (None) for b + c = 0.

    References: Q. McNemar, Psychometrika 12 (1947); M. W. Fagerland, S. Lydersen, P. Laake, The McNemar test for binary
    matched-pairs data, BMC Medical Research Methodology 13 (2013).

    Args:
        b: Pairs in which only the first is right.
        c: Pairs in which only the second is right.

    Raises:
        ValueError: A count is negative or no whole number.

    >>> round(mcnemar(8, 2).p_value, 9)
    0.109375
    """
    for count in (b, c):
        if not 0 <= count < math.inf or count != int(count):
            raise ValueError(f"Discordant pairs are counted in whole numbers from 0 on, not {count!r}.")
    first, second = int(b), int(c)
    n, fewer = first + second, min(first, second)
    if n == 0:
        return McNemar(n=0)
    up_to = beta_cdf(0.5, n - fewer, fewer + 1)
    below = beta_cdf(0.5, n - fewer + 1, fewer) if fewer else 0.0
    plain = (first - second) ** 2 / n
    corrected = max(0, abs(first - second) - 1) ** 2 / n
    return McNemar(
        value=first / n,
        n=n,
        p_value=min(1.0, 2 * up_to),
        mid_p=1.0 if first == second else min(1.0, below + up_to),
        chi2=plain,
        chi2_p=math.erfc(math.sqrt(plain / 2)),
        corrected_chi2=corrected,
        corrected_p=math.erfc(math.sqrt(corrected / 2)),
    )


def sign_flip(
    differences: ArrayLike,
    *,
    clusters: Sequence[Hashable] | NDArray[np.generic] | None = None,
    alternative: Alternative = "two-sided",
    seed: int | None = None,
    n_resamples: int = 9_999,
) -> SignFlip:
    """The permutation test that differences are as likely positive as negative.

    Every unit (item, or whole cluster) keeps or changes the sign of its sum; p is the share of the sign patterns whose
    total is at least as far out as the observed one. Up to 20 units that are not 0 all patterns are gone through; sums
    that lie on a common grid (passes, counts, steps of a scale) are convolved, which is exact too. Where there is no
    grid or that takes long, and Σu⁴ is at most (Σu²)²/200, the total is normal with the variance Σu². Otherwise
    patterns are drawn and p = (hits + 1)/(draws + 1). p is 1 (two-sided) where all sums are 0. Undefined
    (None) without a difference.

    References: R. A. Fisher, The design of experiments (1935), section 21; B. Phipson, G. K. Smyth, Permutation
    p-values should never be zero, SAGMB 9 (2010).

    Args:
        differences: Second minus first, one for each item.
        clusters: The cluster of each item; the items of one change signs together.
        alternative: "two-sided", or that the mean is "less" or "greater" than 0.
        seed: The seed of the draws, if any; None draws a fresh one, which the result names.
        n_resamples: How many patterns to draw.

    Raises:
        ValueError: A difference is not finite, clusters are not one for each item, there is no draw, or the alternative
            is unknown.

    >>> sign_flip([1, 1, 1, 0, 1, 1]).p_value
    0.0625
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise ValueError(f'The alternative is "two-sided", "less" or "greater", not {alternative!r}.')
    if n_resamples < 1:
        raise ValueError(f"There is at least one draw, not {n_resamples}.")
    array = finite_vector(differences, name="differences")
    units = array.size
    sums: Floats = array
    if clusters is not None:
        codes, units = cluster_codes(clusters, array.size)
        sums = np.bincount(codes, weights=array, minlength=units).astype(np.float64, copy=False)
    mean = exact_mean(array)
    if mean is None:
        return SignFlip(n=0, units=0, alternative=alternative, method="enumeration")
    p_value, method, drawn = _test_sums(sums, alternative, seed, n_resamples)
    return SignFlip(
        value=mean,
        n=array.size,
        units=units,
        p_value=p_value,
        alternative=alternative,
        method=method,
        n_resamples=None if drawn is None else n_resamples,
        seed=drawn,
    )


def _test_sums(sums: Floats, alternative: Alternative, seed: int | None, draws: int) -> tuple[float, str, int | None]:
    """The p-value, how it was found, and the seed where it was drawn."""
    sums = sums[np.abs(sums) > _ROUNDING * float(np.abs(sums).max())]
    if sums.size <= _ENUMERATED:
        return _tail(*_enumerate_totals(sums), math.fsum(sums), alternative), "enumeration", None
    squares = np.square(sums)
    is_normal = float(np.square(squares).sum()) <= _KURTOSIS * float(squares.sum()) ** 2
    grid = _grid(sums)
    if grid is not None and (law := _convolve_totals(grid, _QUICK_PRODUCTS if is_normal else _PRODUCTS)) is not None:
        return _tail(*law, float(grid.sum()), alternative), "convolution", None
    if is_normal:
        z = math.fsum(sums) / math.sqrt(math.fsum(squares))
        away = {"two-sided": abs(z), "greater": z, "less": -z}[alternative]
        return math.erfc(away / math.sqrt(2)) / (1 if alternative == "two-sided" else 2), "normal", None
    drawn = drawn_seed(seed)
    return _draw_p_value(sums, alternative, drawn, draws), "monte carlo", drawn


def _enumerate_totals(sums: Floats) -> tuple[Floats, Floats]:
    totals = np.zeros(1)
    for value in np.abs(sums):
        totals = np.concatenate([totals - value, totals + value])
    return totals, np.full(totals.size, 1 / totals.size)


def _grid(sums: Floats) -> NDArray[np.int64] | None:
    """The sums as whole multiples of a common step, or None where no step of a tried kind fits."""
    if not sums.size:
        return None
    smallest = float(np.abs(sums).min())
    for parts in (1, 2, 3, 4, 5, 6, 10, 12, 20, 60, 100):
        steps = sums / (smallest / parts)
        rounded = np.rint(steps)
        if np.abs(rounded).sum() <= _LATTICE and np.allclose(steps, rounded, rtol=1e-11, atol=1e-9):
            return rounded.astype(np.int64)
    return None


def _convolve_totals(grid: NDArray[np.int64], most: int) -> tuple[Floats, Floats] | None:
    """The totals that signs can give and their probabilities; None where that takes too many products.

    Of m units of one size the total is that size times 2·Bin(m, ½) - m.
    """
    from scipy.special import gammaln  # noqa: PLC0415 - scipy takes a tenth of a second to load

    sizes, counts = np.unique(np.abs(grid), return_counts=True)
    law, products = np.ones(1), 0
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        products += law.size * (count + 1)
        if products > most:
            return None
        ups = np.arange(count + 1)
        chances = np.exp(gammaln(count + 1) - gammaln(ups + 1) - gammaln(count - ups + 1) - count * math.log(2))
        wider = np.zeros(law.size + size * count)
        # The loop goes over the shorter of the two.
        if law.size > count:
            for up, chance in enumerate(chances.tolist()):
                wider[size * up : size * up + law.size] += chance * law
        else:
            for place, chance in enumerate(law.tolist()):
                wider[place : place + size * count + 1 : size] += chance * chances
        law = wider
    totals = 2 * np.arange(law.size, dtype=np.float64) - int(np.abs(grid).sum())
    return totals, np.asarray(law / law.sum(), dtype=np.float64)


def _tail(totals: Floats, chances: Floats, observed: float, alternative: Alternative) -> float:
    return min(1.0, float(chances[_as_far(totals, observed, alternative)].sum()))


def _draw_p_value(sums: Floats, alternative: Alternative, seed: int, draws: int) -> float:
    rng = np.random.default_rng(seed)
    observed, largest = math.fsum(sums), math.fsum(np.abs(sums))
    width = sums.size
    step = max(1, BLOCK_BYTES // (8 * width))
    hits = 0
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        bits = rng.integers(0, 256, (rows, -(-width // 8)), dtype=np.uint8)
        ups = np.unpackbits(bits, axis=1, count=width).astype(np.float64) @ np.abs(sums)
        hits += int(np.count_nonzero(_as_far(2 * ups - largest, observed, alternative)))
    return (hits + 1) / (draws + 1)


def _as_far(totals: Floats, observed: float, alternative: Alternative) -> NDArray[np.bool_]:
    slack = _ROUNDING * max(1e-300, float(np.abs(totals).max()))
    if alternative == "two-sided":
        return np.asarray(np.abs(totals) >= abs(observed) - slack)
    if alternative == "greater":
        return np.asarray(totals >= observed - slack)
    return np.asarray(totals <= observed + slack)
