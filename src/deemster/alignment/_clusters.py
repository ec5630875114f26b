"""Arguments of the bootstrap, and which items are drawn together."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.errors import InputError, Issue, did_you_mean, visible
from deemster.formats.json_values import kind_of
from deemster.stats.bootstrap_resampling import drawn_seed
from deemster.stats.proportion_intervals import checked_level


class Draws(NamedTuple):
    """How replicates are drawn, and what they say.

    Attributes:
        replicates: How many.
        confidence: The level of intervals.
        seed: Of the draws.
    """

    replicates: int
    confidence: float
    seed: int


def checked_draws(*, n_bootstrap: int, confidence_level: float, seed: int | None) -> Draws:
    """The draws that arguments ask for; a seed is drawn where none is given.

    Raises:
        InputError: One of them is not as described.

    >>> checked_draws(n_bootstrap=1000, confidence_level=0.95, seed=7)
    Draws(replicates=1000, confidence=0.95, seed=7)
    """
    replicates = _whole(n_bootstrap)
    if replicates is None or replicates < 1:
        raise InputError(f"`n_bootstrap` is a whole number from 1 on, not {n_bootstrap!r:.60}.")
    try:
        confidence = checked_level(confidence_level)
    except (ValueError, TypeError):
        message = f"`confidence_level` lies strictly between 0 and 1, not {confidence_level!r:.60}."
        raise InputError(message) from None
    given = None if seed is None else _whole(seed)
    if seed is not None and (given is None or given < 0):
        raise InputError(f"`seed` is a whole number from 0 on, not {seed!r:.60}.")
    return Draws(replicates, confidence, drawn_seed(given))


def _whole(value: object) -> int | None:
    """A whole number of any type; None for everything else, True and False included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


Cluster: TypeAlias = str | Mapping[str, Any]


def clusters_of(ids: Sequence[str], metadata: Sequence[Mapping[str, Any]], cluster: Cluster) -> NDArray[np.intp]:
    """The number of each item's cluster, in order of first appearance.

    Args:
        ids: The items.
        metadata: Of each item.
        cluster: A metadata key, or the cluster of each item by id.

    Raises:
        InputError: No item has such a key, or some items have no cluster; every one of these is given.
    """
    if not isinstance(cluster, (str, Mapping)):
        message = f"`cluster` is a metadata key or a map from item ids to clusters, not {kind_of(cluster)}."
        raise InputError(message)
    if isinstance(cluster, str):
        _refuse_unknown(cluster, metadata)
    keys: list[Any] = []
    issues = []
    for name, own in zip(ids, metadata, strict=True):
        key = own.get(cluster) if isinstance(cluster, str) else cluster.get(name)
        if key is None or key != key:  # noqa: PLR0124 - NaN is no cluster, and differs from itself
            issues.append(Issue(_clusterless(cluster, own), sample=name))
        elif not isinstance(key, Hashable):
            issues.append(Issue(f"A cluster is a word or a number, not {kind_of(key)}.", sample=name))
        keys.append(key)
    if issues:
        raise InputError(issues)
    numbers: dict[Any, int] = {}
    # 1 and true are one key of a dict and two clusters.
    told_apart = ((isinstance(key, bool), key) for key in keys)
    return np.array([numbers.setdefault(key, len(numbers)) for key in told_apart], dtype=np.intp)


def _refuse_unknown(key: str, metadata: Sequence[Mapping[str, Any]]) -> None:
    known = {name: None for own in metadata for name in own}
    if key not in known:
        hint = did_you_mean(key, known) if known else "The items have no metadata."
        raise InputError(f"No item's metadata has `{visible(key, limit=60)}` to cluster by. {hint}")


def _clusterless(cluster: Cluster, own: Mapping[str, Any]) -> str:
    if not isinstance(cluster, str):
        return "The item has no cluster in the mapping given."
    hint = did_you_mean(cluster, own) if own else "It has no metadata."
    return f"The item's metadata has no `{visible(cluster, limit=60)}` to cluster by. {hint}"
