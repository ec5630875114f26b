"""Where the relevant ids of many samples stand in their rankings, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.metrics.contract import Fault
from deemster.metrics.ranking import entries_of, ids_of, plain_relevance, ranks_of, relevance
from deemster.records import Output, Sample

WHOLE = 2**62


class Hits(NamedTuple):
    """The relevant ids of readable pairs, one entry per relevant id, pair by pair.

    Attributes:
        places: For each pair, its position in the batch.
        gains: For each pair, its relevant ids with their gains.
        relevant: For each pair, how many ids are relevant.
        retrieved: For each pair, how many distinct ids were retrieved, of those that were looked at.
        owner: For each relevant id, the pair it belongs to.
        gain: For each relevant id, its gain.
        rank: For each relevant id, its rank among the distinct ids from 1, or 0 where it is not among those.
    """

    places: Sequence[int]
    gains: Sequence[Mapping[str, float]]
    relevant: NDArray[np.int64]
    retrieved: NDArray[np.int64]
    owner: NDArray[np.int64]
    gain: NDArray[np.float64]
    rank: NDArray[np.int64]

    def within(self, depth: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which relevant ids stand among the first places of their ranking."""
        return (self.rank > 0) & (self.rank <= depth[self.owner])

    def found(self, depth: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many relevant ids stand among the first places, pair by pair."""
        return self.per_pair(self.owner[self.within(depth)])

    def per_pair(self, owner: NDArray[np.int64], values: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """How often each pair occurs, or the sum of its values in the order they come in."""
        return np.bincount(owner, values, len(self.places))

    def only(self, kept: NDArray[np.bool_]) -> Hits:
        """The same of some pairs."""
        entries = kept[self.owner]
        return Hits(
            places=list(compress(self.places, kept)),
            gains=list(compress(self.gains, kept)),
            relevant=self.relevant[kept],
            retrieved=self.retrieved[kept],
            owner=(np.cumsum(kept) - 1)[self.owner[entries]],
            gain=self.gain[entries],
            rank=self.rank[entries],
        )

    def starts(self) -> NDArray[np.int64]:
        """Where the entries of each pair begin."""
        return np.cumsum(self.relevant) - self.relevant


class Pairs(NamedTuple):
    """Pairs whose sample says what is relevant.

    Attributes:
        places: For each pair, its position in the batch.
        outputs: For each pair, its output, which may still prove unreadable.
        gains: For each pair, its relevant ids with their gains, which are above 0.
        faults: What is wrong with the other samples, by position in the batch.
    """

    places: Sequence[int]
    outputs: Sequence[Output]
    gains: Sequence[Mapping[str, float]]
    faults: Mapping[int, Fault]

    def all_gains(self) -> Iterator[float]:
        """The gains of all pairs, pair by pair."""
        return chain.from_iterable(gains.values() for gains in self.gains)


def relevant_pairs(samples: Sequence[Sample], outputs: Sequence[Output]) -> Pairs:
    """Read what is relevant."""
    plain = plain_relevance(samples)
    if plain is not None:
        return Pairs(range(len(samples)), outputs, plain, {})
    places: list[int] = []
    answered: list[Output] = []
    every: list[Mapping[str, float]] = []
    faults: dict[int, Fault] = {}
    for place, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
        try:
            gains = relevance(sample)
        except Fault as fault:
            faults[place] = fault
            continue
        places.append(place)
        answered.append(output)
        every.append(gains)
    return Pairs(places, answered, every, faults)


def located(pairs: Pairs, *, depths: Iterable[int], first: bool) -> tuple[Hits, dict[int, Fault]]:
    """Read rankings, each once, and find the relevant ids in them.

    The loop does what only Python can, looking ids up; all arithmetic is left to arrays.

    Args:
        pairs: The pairs.
        depths: For each pair, how many distinct ids to look at.
        first: Whether to find the first relevant id of each pair however deep it stands.

    Returns:
        The hits of all pairs, and what is wrong with outputs, by position in the batch; an unreadable one has no hit.
    """
    rank: list[int] = []
    retrieved: list[int] = []
    faults: dict[int, Fault] = {}
    ids: Sequence[str]
    for place, output, gains, depth in zip(pairs.places, pairs.outputs, pairs.gains, depths, strict=True):
        try:
            ids = ids_of(output.retrieved if type(output.retrieved) is list else entries_of(output))
        except Fault as fault:
            faults[place] = fault
            ids = ()
        ranks, seen = ranks_of(gains, ids, depth=depth, first=first)
        retrieved.append(seen)
        rank += map(ranks.get, gains, repeat(0))
    relevant = np.fromiter(map(len, pairs.gains), np.int64, len(pairs.gains))
    hits = Hits(
        places=pairs.places,
        gains=pairs.gains,
        relevant=relevant,
        retrieved=np.array(retrieved, dtype=np.int64),
        owner=np.repeat(np.arange(len(pairs.gains)), relevant),
        gain=np.fromiter(pairs.all_gains(), np.float64, len(rank)),
        rank=np.array(rank, dtype=np.int64),
    )
    return hits, faults


def place_within(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """For entries sorted by owner, the place of each among its owner's, from 1.

    >>> place_within(np.array([0, 0, 2, 2, 2])).tolist()
    [1, 2, 1, 2, 3]
    """
    if not len(owner):
        return owner
    begins = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    sizes = np.diff(np.r_[begins, len(owner)])
    return np.arange(1, len(owner) + 1) - np.repeat(begins, sizes)
