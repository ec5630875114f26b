"""Which items belong together: their clusters, by a metadata key or as they are given."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from deemster.agreement._criterion_columns import Indices
from deemster.agreement.trust_verdict import ENOUGH_CLUSTERS
from deemster.errors import InputError, Issue, did_you_mean, plural, visible
from deemster.formats.json_values import name_kind

if TYPE_CHECKING:
    from deemster.agreement._labelled_votes import LabelledVotes

Cluster: TypeAlias = str | Mapping[str, str | float]


def with_clusters(labelled: LabelledVotes, cluster: Cluster) -> LabelledVotes:
    """Number the cluster of each item, in order of first appearance.

    Raises:
        InputError: No item has such a key, or some items have no cluster; all of these are listed.
    """
    if not isinstance(cluster, (str, Mapping)):
        message = f"`cluster` is a metadata key or a map from item ids to clusters, not {name_kind(cluster)}."
        raise InputError(message)

    votes = labelled.votes
    sources = np.argsort(labelled.item_index, kind="stable")[-len(labelled.ids) :].tolist()
    if isinstance(cluster, str):
        require_key(cluster, [votes.metadata[source] for source in sources], "to cluster by")
        keys: list[Any] = [metadata.get(cluster) for metadata in votes.metadata]
    else:
        keys = [cluster.get(name) for name in votes.ids]
    issues = [issue for source in sources for issue in _key_issues(keys[source], source, labelled, cluster)]
    if issues:
        raise InputError(issues)

    clusters, of_all = np.split(_cluster_numbers(keys, sources), [len(sources)])
    warnings = labelled.warnings
    n_clusters = int(clusters.max()) + 1
    if n_clusters < ENOUGH_CLUSTERS:
        few = f"few-clusters: {plural(n_clusters, 'cluster')} only"
        warnings = (*warnings, f"{few}; intervals from fewer than {ENOUGH_CLUSTERS} may be too narrow.")
    return replace(labelled, clusters=clusters, clusters_of_all=of_all, warnings=warnings)


def _key_issues(key: Any, source: int, labelled: LabelledVotes, cluster: Cluster) -> Iterator[Issue]:
    """What is wrong with the key of an item's cluster."""
    votes = labelled.votes
    if key is None or key != key:  # noqa: PLR0124 - NaN is no cluster, and differs from itself
        yield Issue(_missing_cluster(cluster, votes.metadata[source]), sample=votes.ids[source])
    elif not isinstance(key, Hashable):
        yield Issue(f"A cluster is a word or a number, not {name_kind(key)}.", sample=votes.ids[source])


def _cluster_numbers(keys: Sequence[Any], sources: Sequence[int]) -> Indices:
    """The number of the cluster of each used item, then of every item of the votes."""
    # A dict takes 1 and True for one key; they are two clusters. An item without a cluster, which nobody labelled,
    # stands alone.
    typed = [(None, index) if key is None else (isinstance(key, bool), key) for index, key in enumerate(keys)]
    numbers: dict[Any, int] = {}
    order = [*sources, *range(len(keys))]
    return np.array([numbers.setdefault(typed[index], len(numbers)) for index in order], dtype=np.intp)


def require_key(key: str, metadata: Sequence[Mapping[str, Any]], purpose: str) -> None:
    """Refuse a metadata key that no item has.

    Raises:
        InputError: There is none.
    """
    known = {name: None for entries in metadata for name in entries}
    if key not in known:
        hint = did_you_mean(key, known) if known else "The items have no metadata."
        raise InputError(f"No item's metadata has `{visible(key, limit=60)}` {purpose}. {hint}")


def _missing_cluster(cluster: Cluster, metadata: Mapping[str, Any]) -> str:
    if not isinstance(cluster, str):
        return "The item has no cluster in the mapping given."
    hint = did_you_mean(cluster, metadata) if metadata else "It has no metadata."
    return f"The item's metadata has no `{visible(cluster, limit=60)}` to cluster by. {hint}"
