"""Krippendorff's alpha: agreement of any number of raters at any level of measurement."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, overload

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from deemster.stats._label_codes import Codes, Labels
from deemster.stats.agreement_from_sums import LEVELS, Level, alpha_from_coincidences
from deemster.stats.fleiss_gwet import Ratings, encode_ratings, vote_counts
from deemster.stats.nan_arithmetic import DUST, Floats, float_or_none, quotient
from deemster.stats.rank_correlation import centred_ranks

# With more distinct values than this a table of coincidences costs more than it saves.
WIDEST_TABLE = 200
_BLOCK = 1024


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
    values_by_level = _values_by_level(levels, scale, ordered=labels is not None)
    present = codes >= 0
    units = present.sum(axis=0)
    n, votes = int((units >= 2).sum()), int(units[units >= 2].sum())
    compute = _from_table if len(scale) <= WIDEST_TABLE else _from_values
    values = compute(codes, units, scale, values_by_level)
    missing = int(codes.size - present.sum())
    results = {
        name: Alpha(value=values[name] if n >= 2 else None, level=name, n=n, votes=votes, missing=missing)
        for name in levels
    }
    return results[levels[0]] if isinstance(level, str) else results


def _values_by_level(levels: Sequence[Level], scale: Labels, *, ordered: bool) -> dict[Level, Floats]:
    """What each label is worth at each level: its place, or its own value."""
    places = np.arange(len(scale), dtype=np.float64)
    values_by_level: dict[Level, Floats] = {}
    numbers = all(isinstance(label, int | float) for label in scale)
    for name in levels:
        if name in {"interval", "ratio"}:
            if not numbers or not np.isfinite(np.array(scale, dtype=np.float64)).all():
                raise ValueError(f"The {name} level needs labels that are finite numbers.")
            values_by_level[name] = np.array(scale, dtype=np.float64)
            if name == "ratio" and (values_by_level[name] < 0).any():
                raise ValueError("The ratio level has a true zero, so no label may be negative.")
        else:
            if name == "ordinal" and not numbers and not ordered:
                raise ValueError("The order of words is not that of the alphabet: give the scale as `labels`.")
            values_by_level[name] = places
    return values_by_level


def _from_table(codes: Codes, units: Codes, scale: Labels, by_level: dict[Level, Floats]) -> dict[Level, float | None]:
    """Alpha from the table of coincidences, made once for all levels."""
    if not scale:
        return dict.fromkeys(by_level)
    counts = vote_counts(codes, len(scale))
    pairable = units >= 2
    weights = np.where(pairable, 1 / np.maximum(units - 1, 1), 0.0)
    observed = (counts * weights[:, None]).T @ counts
    observed[np.diag_indices(len(scale))] -= weights @ counts
    single = np.count_nonzero(pairable @ counts) < 2
    return {
        name: None if single else float_or_none(alpha_from_coincidences(observed, name, values=values).item())
        for name, values in by_level.items()
    }


def _from_values(codes: Codes, units: Codes, scale: Labels, by_level: dict[Level, Floats]) -> dict[Level, float | None]:
    """Alpha without a table of coincidences, for scores that hardly repeat."""
    paired_codes = codes[:, units >= 2].T
    present = paired_codes >= 0
    answers: dict[Level, float | None] = {}
    for name, values in by_level.items():
        if name == "nominal":
            answers[name] = _nominal(paired_codes, present, len(scale))
            continue
        if name == "ratio":
            answers[name] = _ratio(paired_codes, present, values)
            continue
        amounts = np.full(paired_codes.shape, np.nan)
        # The ordinal difference is the distance of mid-ranks, so ordinal is interval on them.
        amounts[present] = (
            centred_ranks(paired_codes[present].astype(np.float64))
            if name == "ordinal"
            else values[paired_codes[present]]
        )
        if present.any():
            amounts -= np.nanmean(amounts)
        answers[name] = float_or_none(interval_alpha(spread_features(amounts).sum(axis=0)).item())
    return answers


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
    filled = np.where(present & pairable[:, None], values, 0.0)
    votes = np.where(pairable, votes, 0)
    sums = filled.sum(axis=1)
    about = np.where(present & pairable[:, None], filled - (sums / np.maximum(votes, 1))[:, None], 0.0)
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
    defined = (units > 1.5) & (spread > DUST * votes * squares)
    return np.asarray(1 - (votes - 1) * quotient(within, np.where(defined, spread, 0.0)))


def _nominal(paired_codes: Codes, present: np.ndarray[Any, Any], size: int) -> float | None:
    votes = present.sum(axis=1)
    total = int(votes.sum())
    cells, sizes = np.unique((np.arange(len(paired_codes))[:, None] * size + paired_codes)[present], return_counts=True)
    agreeing = float((sizes * (sizes - 1) / (votes[cells // size] - 1)).sum())
    disagreement = total * total - float(np.square(np.bincount(paired_codes[present], minlength=size)).sum())
    return 1 - (total - 1) * (total - agreeing) / disagreement if disagreement else None


def _ratio(paired_codes: Codes, present: np.ndarray[Any, Any], values: Floats) -> float | None:
    votes = present.sum(axis=1)
    total = int(votes.sum())
    seen = np.zeros(len(paired_codes))
    raters = paired_codes.shape[1]
    for i in range(raters):
        for j in range(i + 1, raters):
            both = present[:, i] & present[:, j]
            a, b = values[paired_codes[both, i]], values[paired_codes[both, j]]
            summed = a + b
            seen[both] += 2 * np.square(np.divide(a - b, summed, out=np.zeros(len(a)), where=summed != 0))
    margins = np.bincount(paired_codes[present], minlength=len(values)).astype(np.float64)
    chance = 0.0
    # In blocks of rows: all pairs of ten thousand values would not fit.
    for start in range(0, len(values), _BLOCK):
        rows = slice(start, start + _BLOCK)
        summed = values[rows, None] + values[None, :]
        disagreement = np.divide(
            values[rows, None] - values[None, :], summed, out=np.zeros(summed.shape), where=summed != 0
        )
        chance += float(margins[rows] @ np.square(disagreement) @ margins)
    return 1 - (total - 1) * float((seen / (votes - 1)).sum()) / chance if chance else None
