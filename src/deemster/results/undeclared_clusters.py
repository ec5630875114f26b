"""Finds samples that come out alike although nobody said that they belong together: documents, customers, templates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.stats import holm

# Larger runs are not looked at: it would take seconds.
MOST_SAMPLES: Final = 20_000
# With fewer groups, intervals by group would say nothing.
_FEWEST_GROUPS = 5
# Two for each group.
FEWEST_SAMPLES: Final = 2 * _FEWEST_GROUPS
_MOST_KEYS = 20
_LEVEL = 0.01
_DRAWS = 9_999
# A key is worth a permutation test where the analysis of variance, which is quick, finds this much.
_SUSPICIOUS = 0.005
_BLOCK = 1 << 21
_WARNING = re.compile(r"Samples with the same `metadata\.(.*?)` come out alike ", re.DOTALL)


class Likeness(NamedTuple):
    """How alike the values of one group are.

    Attributes:
        groups: How many groups there are.
        size: How many values a group has on average.
        icc: The intraclass correlation.
        f: The variance between groups over that within.
    """

    groups: int
    size: float
    icc: float
    f: float


def group_likeness(values: NDArray[np.float64], groups: NDArray[np.intp]) -> Likeness:
    """How alike the values of one group are, by analysis of variance.

    Reference: A. Donner, International Statistical Review 54 (1986), for groups of unequal size.

    Args:
        values: The values.
        groups: The number of each value's group, from 0 without a gap.
    """
    sizes = np.bincount(groups)
    n, count = len(values), len(sizes)
    size = max(1.0, n / count)
    if count < 2 or n == count:
        return Likeness(count, size, 0.0, 0.0)

    means = np.bincount(groups, weights=values) / sizes
    between = float((sizes * np.square(means - values.mean())).sum()) / (count - 1)
    within = float(np.square(values - means[groups]).sum()) / (n - count)
    common = (n - float(np.square(sizes).sum()) / n) / (count - 1)
    total = between + (common - 1) * within
    icc = min(1.0, max(0.0, (between - within) / total)) if total > 0 else 0.0
    return Likeness(count, size, icc, between / within if within > 0 else np.inf if between > 0 else 0.0)


def alike_warnings(
    values: Mapping[str, NDArray[np.float64]], metadata: Iterable[Mapping[str, Any]], *, seed: int = 0
) -> list[str]:
    """A warning for each metadata key whose groups of samples come out more alike than chance allows.

    Every key that puts samples into five groups or more is tested on every number, by permuting the groups; by Holm's
    correction, any warning is wrong in 1 % of the runs at most.

    Args:
        values: By what it is called, a number of each sample; NaN where it has none.
        metadata: The metadata of the samples.
        seed: The seed of the permutations.
    """
    rows = iter(metadata)
    first = next(rows, {})
    if not may_group(first):
        return []

    keys = _grouping_keys([first, *rows])
    tests = [(key, name) for key in keys for name in values]
    p_values: list[float] = []
    found: list[Likeness] = []
    for key, name in tests:
        known = ~np.isnan(values[name])
        _, groups = np.unique(keys[key][known], return_inverse=True)
        likeness, p_value = _test(values[name][known], groups, seed=seed)
        found.append(likeness)
        p_values.append(p_value)

    worst: dict[str, tuple[Likeness, str]] = {}
    for (key, name), likeness, adjusted in zip(tests, found, holm(p_values).adjusted, strict=True):
        is_worse = key not in worst or likeness.icc > worst[key][0].icc
        if adjusted is not None and adjusted <= _LEVEL and is_worse:
            worst[key] = likeness, name
    return [_warning(key, *most) for key, most in worst.items()]


def alike_key(warning: str) -> str | None:
    """The metadata key that a warning of `alike_warnings` is about; None for any other warning."""
    match = _WARNING.match(warning)
    return None if match is None else match[1]


def may_group(metadata: Mapping[str, Any]) -> list[str]:
    """The keys of a sample whose values may be shared: words and whole numbers."""
    return [key for key, value in metadata.items() if _is_name(value)]


def _is_name(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def _grouping_keys(metadata: list[Mapping[str, Any]]) -> dict[str, NDArray[np.intp]]:
    """By metadata key that every sample has, the number of each sample's group."""
    keys: dict[str, NDArray[np.intp]] = {}
    for key in may_group(metadata[0]):
        kept = [row.get(key) for row in metadata]
        if not all(map(_is_name, kept)):
            continue
        numbers: dict[Any, int] = {}
        groups = np.array([numbers.setdefault(value, len(numbers)) for value in kept], dtype=np.intp)
        # Groups of two or more: at most half as many groups as samples.
        if _FEWEST_GROUPS <= len(numbers) <= len(kept) / 2 and len(keys) < _MOST_KEYS:
            keys[key] = groups
    return keys


def _test(values: NDArray[np.float64], groups: NDArray[np.intp], *, seed: int) -> tuple[Likeness, float]:
    """How alike groups are, and the p-value of groups that are drawn at random."""
    likeness = group_likeness(values, groups)
    n, count = len(values), likeness.groups
    if likeness.icc <= 0 or n <= count:
        return likeness, 1.0

    from scipy.special import fdtrc  # noqa: PLC0415 - few runs have keys that group samples

    if np.isfinite(likeness.f) and fdtrc(count - 1, n - count, likeness.f) > _SUSPICIOUS:
        return likeness, 1.0

    sizes = np.bincount(groups)
    draws = np.random.default_rng(seed)
    centred = values - values.mean()

    def spread(permuted: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = np.add.reduceat(permuted, np.concatenate([[0], np.cumsum(sizes)[:-1]]), axis=1)
        return np.asarray((np.square(sums) / sizes).sum(axis=1))

    observed = spread(centred[np.argsort(groups, kind="stable")][None])[0]
    hits, left = 0, _DRAWS
    while left:
        rows = min(left, max(1, _BLOCK // n))
        permuted = draws.permuted(np.broadcast_to(centred, (rows, n)), axis=1)
        hits += int((spread(permuted) >= observed - 1e-9).sum())
        left -= rows
        # So many hits are far from significant.
        if hits > _DRAWS * _LEVEL:
            break
    return likeness, (hits + 1) / (_DRAWS - left + 1)


def _warning(key: str, likeness: Likeness, name: str) -> str:
    wider = (1 + (likeness.size - 1) * likeness.icc) ** 0.5
    return (
        f"Samples with the same `metadata.{key}` come out alike ({likeness.groups:,} groups, {name}), so they say less "
        f"than as many samples on their own: with `cluster: {key}` in the dataset, intervals are about {wider:.1f} "
        "times as wide."
    )
