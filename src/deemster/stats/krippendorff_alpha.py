"""Krippendorff's alpha: agreement of any number of raters at any level of measurement."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable
from typing import TypeAlias, overload

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._label_codes import Codes, Labels
from deemster.stats.agreement_from_sums import LEVELS, Level, alpha_from_coincidences
from deemster.stats.fleiss_gwet import Ratings, encode_ratings, vote_counts
from deemster.stats.nan_arithmetic import DUST, Floats, float_or_none, quotient
from deemster.stats.rank_correlation import centred_ranks

# With more distinct values than this a table of coincidences costs more than it saves.
WIDEST_TABLE = 200
_BLOCK = 1024

Mask: TypeAlias = NDArray[np.bool_]


class Alpha(msgspec.Struct, frozen=True, kw_only=True):
    """Krippendorff's alpha with what it rests on.

    Attributes:
        value: 1 is full agreement, 0 what votes drawn at random would give, below 0 systematic disagreement.
        level: The level of measurement.
        n: Units with two votes or more.
        votes: Votes in these units.
        missing: Cells without a vote.
    """

    value: float | None
    level: Level
    n: int
    votes: int
    missing: int


@overload
def krippendorff_alpha(data: Ratings, *, level: Level = ..., labels: Iterable[Hashable] | None = ...) -> Alpha: ...
@overload
def krippendorff_alpha(
    data: Ratings, *, level: tuple[Level, ...] | list[Level], labels: Iterable[Hashable] | None = ...
) -> dict[Level, Alpha]: ...
def krippendorff_alpha(
    data: Ratings,
    *,
    level: Level | tuple[Level, ...] | list[Level] = "nominal",
    labels: Iterable[Hashable] | None = None,
) -> Alpha | dict[Level, Alpha]:
    """Krippendorff's alpha: 1 - (n - 1)·Σo·δ²/Σn_c·n_k·δ² over the coincidences o of values in one unit.

    δ² is [c≠k] for ``nominal`` labels, the squared number of votes between two values for ``ordinal`` ones (half of
    either end), (c-k)² for ``interval`` and ((c-k)/(c+k))² for ``ratio``. Units with one vote say nothing and are left
    out. 1 is full agreement, 0 chance. Undefined (None) below two units with two votes, and where all votes are one
    value.

    Args:
        data: A row for each rater with a place for each unit; any hashable label, None or NaN is missing.
        level: One level, or several: then a result for each, all from one count of the votes.
        labels: The full scale in order, where the order is not that of the labels; needed for ordinal words.

    Reference: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011); A. F. Hayes, K. Krippendorff,
    Answering the call for a standard reliability measure for coding data, Communication Methods and Measures 1 (2007).

    Raises:
        ValueError: The rows differ in length, a label is none of ``labels``, a level is unknown, or the labels are no
            numbers where the level needs them (for a ratio, none negative).

    >>> votes = [[1, 2, 3, 3, 2, None], [1, 2, 3, 3, 2, 2], [None, 3, 3, 3, 2, 3]]
    >>> round(krippendorff_alpha(votes).value, 4)
    0.6053
    >>> sorted(krippendorff_alpha(votes, level=("nominal", "ordinal")))
    ['nominal', 'ordinal']
    """
    levels = (level,) if isinstance(level, str) else tuple(level)
    for name in levels:
        if name not in LEVELS:
            raise ValueError(f"A level is {', '.join(LEVELS)}, not {name!r}.")

    codes, scale = encode_ratings(data, labels=labels)
    values_by_level = {name: _level_values(name, scale, ordered=labels is not None) for name in levels}
    present = codes >= 0
    votes_per_unit = present.sum(axis=0)
    pairable = votes_per_unit >= 2
    n = int(pairable.sum())
    votes = int(votes_per_unit[pairable].sum())
    missing = int(codes.size - present.sum())

    compute = _from_table if len(scale) <= WIDEST_TABLE else _from_values
    alpha_by_level = compute(codes, votes_per_unit, scale, values_by_level)
    results = {
        name: Alpha(value=alpha_by_level[name] if n >= 2 else None, level=name, n=n, votes=votes, missing=missing)
        for name in levels
    }
    return results[levels[0]] if isinstance(level, str) else results


def _level_values(level: Level, scale: Labels, *, ordered: bool) -> Floats:
    """What each label is worth at a level: its rank, or its own value."""
    are_numbers = all(isinstance(label, int | float) for label in scale)
    if level == "ordinal" and not are_numbers and not ordered:
        raise ValueError("The order of words is not that of the alphabet: give the scale as `labels`.")
    if level in {"nominal", "ordinal"}:
        return np.arange(len(scale), dtype=np.float64)

    if not are_numbers or not np.isfinite(np.array(scale, dtype=np.float64)).all():
        raise ValueError(f"The {level} level needs labels that are finite numbers.")
    values = np.array(scale, dtype=np.float64)
    if level == "ratio" and (values < 0).any():
        raise ValueError("The ratio level has a true zero, so no label may be negative.")
    return values


def _from_table(
    codes: Codes, votes_per_unit: Codes, scale: Labels, by_level: dict[Level, Floats]
) -> dict[Level, float | None]:
    """Alpha from the table of coincidences, made once for all levels."""
    if not scale:
        return dict.fromkeys(by_level)

    counts = vote_counts(codes, len(scale))
    pairable = votes_per_unit >= 2
    has_one_value = np.count_nonzero(pairable @ counts) < 2
    if has_one_value:
        return dict.fromkeys(by_level)

    weights = np.where(pairable, 1 / np.maximum(votes_per_unit - 1, 1), 0.0)
    observed = (counts * weights[:, None]).T @ counts
    observed[np.diag_indices(len(scale))] -= weights @ counts
    return {
        level: float_or_none(alpha_from_coincidences(observed, level, values=values).item())
        for level, values in by_level.items()
    }


def _from_values(
    codes: Codes, votes_per_unit: Codes, scale: Labels, by_level: dict[Level, Floats]
) -> dict[Level, float | None]:
    """Alpha without a table of coincidences, for scores that hardly repeat."""
    paired_codes = codes[:, votes_per_unit >= 2].T
    present = paired_codes >= 0
    alpha_by_level: dict[Level, float | None] = {}
    for level, values in by_level.items():
        if level == "nominal":
            alpha_by_level[level] = _nominal(paired_codes, present, len(scale))
        elif level == "ratio":
            alpha_by_level[level] = _ratio(paired_codes, present, values)
        else:
            # The ordinal difference is the distance of mid-ranks, so ordinal is interval on them.
            scores = values[paired_codes[present]]
            if level == "ordinal":
                scores = centred_ranks(scores).astype(np.float64)
            alpha_by_level[level] = _interval(present, scores)
    return alpha_by_level


def _interval(present: Mask, scores: Floats) -> float | None:
    """Alpha at the interval level, by what each unit adds to it."""
    ratings = np.full(present.shape, np.nan)
    ratings[present] = scores
    if present.any():
        ratings -= np.nanmean(ratings)
    return float_or_none(interval_alpha(spread_features(ratings).sum(axis=0)).item())


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
    present = ~np.isnan(values)
    votes = present.sum(axis=1)
    pairable = votes >= 2
    votes = np.where(pairable, votes, 0)
    counts = present & pairable[:, None]

    filled = np.where(counts, values, 0.0)
    sums = filled.sum(axis=1)
    means = sums / np.maximum(votes, 1)
    deviations = np.where(counts, filled - means[:, None], 0.0)

    within = np.square(deviations).sum(axis=1) * votes / np.maximum(votes - 1, 1)
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
    defined = (units > 1.5) & (spread > DUST * votes * squares)
    return np.asarray(1 - (votes - 1) * quotient(within, np.where(defined, spread, 0.0)))


def _nominal(paired_codes: Codes, present: Mask, n_labels: int) -> float | None:
    """1 - (n - 1)·(n - Σ n_uc·(n_uc - 1)/(m_u - 1))/(n² - Σ n_c²) over units u of m_u votes and labels c.

    None where all votes are one label.
    """
    votes = present.sum(axis=1)
    total = int(votes.sum())

    cell_of_vote = (np.arange(len(paired_codes))[:, None] * n_labels + paired_codes)[present]
    cells, cell_sizes = np.unique(cell_of_vote, return_counts=True)
    agreeing = float((cell_sizes * (cell_sizes - 1) / (votes[cells // n_labels] - 1)).sum())

    label_sizes = np.bincount(paired_codes[present], minlength=n_labels)
    expected = total * total - float(np.square(label_sizes).sum())
    return 1 - (total - 1) * (total - agreeing) / expected if expected else None


def _ratio(paired_codes: Codes, present: Mask, values: Floats) -> float | None:
    """1 - (n - 1)·Σ_u Σ_ij δ²/(m_u - 1) / Σ_ck n_c·n_k·δ² over units u of m_u votes i, j and values c, k.

    δ² is ((c - k)/(c + k))². None where all votes are one value.
    """
    votes = present.sum(axis=1)
    observed = float((_ratio_disagreement(paired_codes, present, values) / (votes - 1)).sum())
    counts = np.bincount(paired_codes[present], minlength=len(values)).astype(np.float64)
    expected = _expected_ratio_disagreement(counts, values)
    return 1 - (int(votes.sum()) - 1) * observed / expected if expected else None


def _ratio_disagreement(paired_codes: Codes, present: Mask, values: Floats) -> Floats:
    """Σ δ² over all pairs of votes of each unit."""
    disagreement = np.zeros(len(paired_codes))
    for first, second in itertools.combinations(range(paired_codes.shape[1]), 2):
        both = present[:, first] & present[:, second]
        differences = _ratio_differences(values[paired_codes[both, first]], values[paired_codes[both, second]])
        disagreement[both] += 2 * differences
    return disagreement


def _expected_ratio_disagreement(counts: Floats, values: Floats) -> float:
    """Σ n_c·n_k·δ² over all values, in blocks of rows: all pairs of ten thousand values would not fit."""
    expected = 0.0
    for start in range(0, len(values), _BLOCK):
        rows = slice(start, start + _BLOCK)
        differences = _ratio_differences(values[rows, None], values[None, :])
        expected += float(counts[rows] @ differences @ counts)
    return expected


def _ratio_differences(first: Floats, second: Floats) -> Floats:
    """δ² = ((c - k)/(c + k))²; 0 where both are 0."""
    sums = first + second
    return np.square(np.divide(first - second, sums, out=np.zeros(sums.shape), where=sums != 0))
