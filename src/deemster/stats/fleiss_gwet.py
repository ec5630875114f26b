"""Fleiss' kappa and Gwet's AC1 and AC2 of any number of raters, votes missing or not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import Codes, Labels, encode
from deemster.stats._number_arrays import matrix
from deemster.stats.agreement_from_sums import agreement, fleiss_from_sums, gwet_from_sums, pair_shares, vote_shares
from deemster.stats.cohen_kappa import Agreement, Weights, disagreement_weights
from deemster.stats.confidence_interval import ConfidenceInterval, check_confidence
from deemster.stats.nan_arithmetic import Floats, float_or_none
from deemster.stats.student_distribution import t_quantile

Ratings = Sequence[Sequence[Hashable]] | NDArray[Any]


class Fleiss(msgspec.Struct, frozen=True, kw_only=True):
    """Fleiss' kappa with its parts.

    Attributes:
        value: 1 is full agreement, 0 chance.
        n: Units.
        raters: Votes of each unit.
        observed: The mean share of agreeing pairs of votes in a unit.
        expected: Σp², the agreement of votes drawn at random.
        categories: A kappa for each category against the rest; None where a category has no vote or all.
        randolph: The same with chance 1/K, which does not depend on the margins.
        standard_error: If kappa were 0 (Fleiss, Nee, Landis 1979).
        z: value/standard_error.
        p_value: Two-sided, of z.
    """

    value: float | None = None
    n: int
    raters: int
    observed: float | None = None
    expected: float | None = None
    categories: tuple[float | None, ...]
    randolph: float | None = None
    standard_error: float | None = None
    z: float | None = None
    p_value: float | None = None


def encode_ratings(ratings: Ratings, *, labels: Iterable[Hashable] | None = None) -> tuple[Codes, Labels]:
    """Rows of labels, a row for each rater, as codes ``[raters, units]`` (-1 missing) and the labels they stand for.

    Raises:
        ValueError: There are no rows, they differ in length, or a label is none of ``labels``.

    >>> encode_ratings([["a", None], ["b", "a"]])
    (array([[ 0, -1],
           [ 1,  0]]), ('a', 'b'))
    """
    if isinstance(ratings, np.ndarray) and ratings.ndim != 2:
        raise ValueError(f"Ratings are raters × units, not an array of {ratings.ndim} dimensions.")
    rows = list(ratings)
    if any(isinstance(row, str) or not hasattr(row, "__len__") for row in rows):
        # Iterating over a data frame gives its column names, not its rows.
        raise ValueError("Ratings are a row for each rater with a place for each unit; a word or a number is no row.")
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        raise ValueError(f"Every rater has a place for every unit, but the rows have {min(lengths)} to {max(lengths)}.")
    sides, scale = encode(*rows, labels=labels)
    return np.array(sides, dtype=np.int64).reshape(len(rows), max(lengths, default=0)), scale


def vote_counts(codes: Codes, size: int) -> Floats:
    """How many votes each unit gives each class: ``[units, size]`` from codes ``[raters, units]``, -1 missing.

    >>> vote_counts(np.array([[0, -1], [1, 1]]), 2)
    array([[1., 1.],
           [0., 1.]])
    """
    units = codes.shape[1]
    present = codes >= 0
    cells = (np.arange(units) * size + codes)[present]
    return np.bincount(cells, minlength=units * size).reshape(units, size).astype(np.float64)


def fleiss_kappa(table: ArrayLike) -> Fleiss:
    """Fleiss' kappa of many raters: (P - Σp²)/(1 - Σp²).

    P is the mean share of agreeing pairs of votes in a unit, p the shares of the categories over all votes. 1 is full
    agreement, 0 chance. Undefined (None) below two units or two raters and where every vote is one category.

    Args:
        table: Units × categories, how many raters chose each; every unit has the same number of votes.

    Reference: J. L. Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971);
    J. L. Fleiss, J. C. M. Nee, J. R. Landis, Large sample variance of kappa in the case of different sets of raters,
    Psychological Bulletin 86 (1979).

    Raises:
        ValueError: A count is negative or no whole number, or units have different numbers of votes.

    >>> result = fleiss_kappa([[0, 3], [3, 0], [2, 1], [3, 0]])
    >>> round(result.value, 4), round(result.observed, 4)
    (0.625, 0.8333)
    """
    counts = matrix(table, name="table")
    if np.isnan(counts).any() or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise ValueError("A table of votes holds whole numbers, none negative and none missing.")
    votes = counts.sum(axis=1)
    if len(votes) and votes.min() != votes.max():
        least, most = int(votes.min()), int(votes.max())
        raise ValueError(f"Fleiss' kappa needs as many votes for every unit; these have {least} to {most}.")
    units, size = counts.shape
    raters = int(votes[0]) if units else 0
    totals = counts.sum(axis=0)
    agreeing = float((counts * (counts - 1)).sum())
    value = float_or_none(fleiss_from_sums(agreeing, totals, raters=raters))
    if units < 2 or raters < 2:
        return Fleiss(n=units, raters=raters, categories=(None,) * size)
    observed = agreeing / (units * raters * (raters - 1))
    p = totals / (units * raters)
    error, z = _null_error(p, units, raters), None
    if value is not None and error:
        z = value / error
    return Fleiss(
        value=value,
        n=units,
        raters=raters,
        observed=observed,
        expected=float(np.square(p).sum()),
        categories=_category_kappas(counts, raters),
        randolph=(size * observed - 1) / (size - 1) if size > 1 else None,
        standard_error=error,
        z=z,
        p_value=None if z is None else math.erfc(abs(z) / math.sqrt(2)),
    )


def _null_error(p: Floats, units: int, raters: int) -> float | None:
    q = 1 - p
    spread = float((p * q).sum())
    if not spread > 0:
        return None
    inner = spread**2 - float((p * q * (q - p)).sum())
    return math.sqrt(2 * max(0.0, inner) / (units * raters * (raters - 1))) / spread


def _category_kappas(counts: Floats, raters: int) -> tuple[float | None, ...]:
    every = counts.shape[0] * raters
    totals = counts.sum(axis=0)
    split = (counts * (raters - counts)).sum(axis=0)
    return tuple(
        1 - float(apart) * every / ((raters - 1) * float(total) * float(every - total)) if 0 < total < every else None
        for apart, total in zip(split, totals, strict=True)
    )


def gwet_ac(
    ratings: Ratings, *, weights: Weights = None, labels: Iterable[Hashable] | None = None, confidence: float = 0.95
) -> Agreement:
    """Gwet's AC1 of two or more raters, or AC2 with weights: (p_o - p_e)/(1 - p_e).

    p_o is the mean share of agreeing pairs of votes over units with two votes or more, p_e = Σw·Σπ(1-π)/(K(K-1)) with
    π the mean shares of the classes over units with a vote. It stays high where nearly all votes are one class, where
    kappa falls to 0. Weights are of disagreement as in ``cohen_kappa`` and enter as 1 - w/max w. K counts the scale, so
    give ``labels`` where some may not occur. Undefined (None) below two units with two votes, or with one label.

    Args:
        ratings: A row for each rater with a place for each unit; any hashable label, None or NaN is missing.
        weights: ``None``, ``linear``, ``quadratic`` or a matrix of disagreement weights.
        labels: The full scale in order; what occurs, sorted, where not given.
        confidence: The level of the interval (Student's t).

    Reference: K. L. Gwet, Computing inter-rater reliability and its variance in the presence of high agreement,
    British Journal of Mathematical and Statistical Psychology 61 (2008).

    Raises:
        ValueError: The rows differ in length, a label is none of ``labels``, or the weights do not fit.

    >>> round(gwet_ac([[1, 1, 0, 1, 1, 1], [1, 1, 1, 1, 1, 1]]).value, 4)
    0.8033
    """
    check_confidence(confidence)
    codes, scale = encode_ratings(ratings, labels=labels)
    size = len(scale)
    likeness = agreement(disagreement_weights(weights, size))
    counts = vote_counts(codes, size)
    votes = counts.sum(axis=1)
    pairable = int((votes >= 2).sum())
    agreeing, shares = (pair_shares(counts) * likeness).sum(axis=(1, 2)), vote_shares(counts)
    value = float_or_none(gwet_from_sums(agreeing.sum(), pairable, shares.sum(axis=0), weights=likeness))
    missing = len(votes) - pairable
    if value is None:
        return Agreement(n=pairable, missing=missing)
    seen = agreeing[votes >= 1]
    prevalence = shares.sum(axis=0) / float((votes >= 1).sum())
    factor = float(likeness.sum()) / (size * (size - 1))
    expected = factor * float((prevalence * (1 - prevalence)).sum())
    # What each unit adds, by its own agreement and by its pull on the prevalences.
    n = len(seen)
    own = n / pairable * (seen - expected * (votes >= 2)[votes >= 1]) / (1 - expected)
    pull = factor * (shares[votes >= 1] @ (1 - prevalence)) - expected
    spread = np.square(own - 2 * (1 - value) * pull / (1 - expected) - value).sum()
    error = math.sqrt(float(spread) / (n * (n - 1)))
    return Agreement(
        value=value,
        n=pairable,
        observed=float(seen.sum()) / pairable,
        expected=expected,
        standard_error=error,
        interval=_student_interval(value, error, n - 1, confidence),
        missing=missing,
    )


def _student_interval(value: float, error: float, freedom: int, confidence: float) -> ConfidenceInterval | None:
    if not error > 1e-12:
        return None
    half = t_quantile(confidence, freedom) * error
    return ConfidenceInterval(max(-1.0, value - half), min(1.0, value + half), confidence, "t")
