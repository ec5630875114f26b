"""Where the relevant ids of many samples stand in their rankings, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.metrics.contract import Fault
from deemster.metrics.ranking import entries_of, ranks_of, relevance
from deemster.records import Output, Sample

WHOLE = 2**62


class Hits(NamedTuple):
    """The relevant ids of readable pairs, one entry per relevant id, pair by pair.

    Attributes:
        places: For each pair, its position in the batch.
        gains: For each pair, its relevant ids with their gains.
        relevant: For each pair, how many ids are relevant.
        retrieved: For each pair, how many distinct ids were retrieved.
        owner: For each relevant id, the pair it belongs to.
        gain: For each relevant id, its gain.
        rank: For each relevant id, its rank among the distinct ids from 1, or 0 where it was not retrieved.
    """

    places: list[int]
    gains: list[Mapping[str, float]]
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


class Unread(NamedTuple):
    """A pair that cannot be marked; the gains are None where the sample is at fault."""

    place: int
    gains: Mapping[str, float] | None
    fault: Fault


def gathered(samples: Sequence[Sample], outputs: Sequence[Output]) -> tuple[Hits, list[Unread]]:
    """Read every ranking once, and find the relevant ids in it."""
    unread: list[Unread] = []
    places: list[int] = []

    def pairs() -> Iterator[tuple[Mapping[str, int], Mapping[str, float]]]:
        for place, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
            gains = None
            try:
                gains = relevance(sample)
                retrieved = output.retrieved
                ranks = ranks_of(retrieved if type(retrieved) is list else entries_of(output))
            except Fault as fault:
                unread.append(Unread(place, gains, fault))
                continue
            places.append(place)
            yield ranks, gains

    return located(pairs())._replace(places=places), unread


def located(pairs: Iterable[tuple[Mapping[str, int], Mapping[str, float]]]) -> Hits:
    """Find relevant ids in rankings.

    The loop does what only Python can, looking ids up; all arithmetic is left to arrays.

    Args:
        pairs: The ranks of what was retrieved, and the relevant ids with their gains, which are above 0.
    """
    every: list[Mapping[str, float]] = []
    gain: list[float] = []
    rank: list[int] = []
    retrieved: list[int] = []
    for ranks, gains in pairs:
        every.append(gains)
        retrieved.append(len(ranks))
        gain += gains.values()
        rank += map(ranks.get, gains, repeat(0))
    relevant = np.fromiter(map(len, every), np.int64, len(every))
    return Hits(
        places=list(range(len(every))),
        gains=every,
        relevant=relevant,
        retrieved=np.array(retrieved, dtype=np.int64),
        owner=np.repeat(np.arange(len(every)), relevant),
        gain=np.array(gain, dtype=np.float64),
        rank=np.array(rank, dtype=np.int64),
    )


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
