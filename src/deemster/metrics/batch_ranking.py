"""Computes ranking metrics for many samples at once, from arrays of hits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, repeat
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.metrics._relevance_reader import (
    entry_ids,
    find_ranks,
    ranking_depth,
    read_relevance,
    retrieved_entries,
    simple_relevance,
)
from deemster.metrics.builtin_metric import BuiltinMetric, UnscoredError
from deemster.records import FrozenDict, Mark, MetricScore, Output, Sample, Unscored

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


class RankedPairs(NamedTuple):
    """Pairs whose sample says what is relevant.

    Attributes:
        places: For each pair, its position in the batch.
        outputs: For each pair, its output, which may still prove unreadable.
        gains: For each pair, its relevant ids with their gains, which are above 0.
        errors: What is wrong with the other samples, by position in the batch.
    """

    places: Sequence[int]
    outputs: Sequence[Output]
    gains: Sequence[Mapping[str, float]]
    errors: Mapping[int, UnscoredError]

    def all_gains(self) -> Iterator[float]:
        """The gains of all pairs, pair by pair."""
        return chain.from_iterable(gains.values() for gains in self.gains)


def relevant_pairs(samples: Sequence[Sample], outputs: Sequence[Output]) -> RankedPairs:
    """Read what is relevant."""
    plain = simple_relevance(samples)
    if plain is not None:
        return RankedPairs(range(len(samples)), outputs, plain, {})
    places: list[int] = []
    answered: list[Output] = []
    every: list[Mapping[str, float]] = []
    errors: dict[int, UnscoredError] = {}
    for place, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
        try:
            gains = read_relevance(sample)
        except UnscoredError as error:
            errors[place] = error
            continue
        places.append(place)
        answered.append(output)
        every.append(gains)
    return RankedPairs(places, answered, every, errors)


def find_hits(pairs: RankedPairs, *, depths: Iterable[int], first: bool) -> tuple[Hits, dict[int, UnscoredError]]:
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
    errors: dict[int, UnscoredError] = {}
    ids: Sequence[str]
    for place, output, gains, deepest in zip(pairs.places, pairs.outputs, pairs.gains, depths, strict=True):
        try:
            ids = entry_ids(output.retrieved if type(output.retrieved) is list else retrieved_entries(output))
        except UnscoredError as error:
            errors[place] = error
            ids = ()
        ranks, seen = find_ranks(gains, ids, depth=deepest, first=first)
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
    return hits, errors


def position_within_group(owner: NDArray[np.int64]) -> NDArray[np.int64]:
    """For entries sorted by owner, the place of each among its owner's, from 1.

    >>> position_within_group(np.array([0, 0, 2, 2, 2])).tolist()
    [1, 2, 1, 2, 3]
    """
    if not len(owner):
        return owner
    begins = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    sizes = np.diff(np.r_[begins, len(owner)])
    return np.arange(1, len(owner) + 1) - np.repeat(begins, sizes)


Depths = NDArray[np.int64]
Columns = tuple[NDArray[np.float64], Iterable[dict[str, Any]]]


class RankingMetric(BuiltinMetric, frozen=True, kw_only=True):
    """A metric of ranked ids, computed for many pairs at once.

    A subclass implements ``columns``: the scores and details of all pairs, from where the relevant ids stand. It says
    whether it looks at everything where it has no k (``reads_whole_list``), and whether for the first relevant id alone
    (``first``).
    """

    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant", "k"})
    reads_whole_list: ClassVar[bool] = False
    first: ClassVar[bool] = False

    @property
    def own_k(self) -> int | None:
        """The k this metric was given; it may not take one."""
        return getattr(self, "k", None)

    @property
    def needs(self) -> tuple[str, ...]:
        """The relevant ids. An expected output in their place may be an answer, so it does not count."""
        return ("relevant",)

    def expect(self, sample: Sample) -> tuple[Mapping[str, float], int | None]:
        """The relevant ids with their gains, and how deep to look."""
        gains = read_relevance(sample)
        return gains, self.reach(sample, gains)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """How deep to look: the metric's k; else everything (None) where `reads_whole_list`, else the sample's k or 5.

        Raises:
            UnscoredError: The sample's k is wrong, or it has gains that this metric cannot use.
        """
        return self.own_k if self.reads_whole_list else self.own_k or ranking_depth(sample)

    @property
    def wants_first(self) -> bool:
        """Whether it looks for the first relevant id however deep that stands, and for nothing else."""
        return self.first and self.own_k is None

    def is_even(self, pairs: RankedPairs) -> bool:  # noqa: ARG002 - others need them
        """Whether every ranking is looked at to the same depth, so that no sample has to be asked."""
        return self.reads_whole_list or self.own_k is not None

    if TYPE_CHECKING:

        def columns(self, hits: Hits, deep: Depths) -> Columns:
            """The scores and the details of all pairs."""

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output."""
        return self.score_many((sample,), (output,))[0]

    def score_many(self, samples: Sequence[Sample], outputs: Sequence[Output]) -> list[Mark]:
        """Mark many outputs."""
        return score_rankings((self,), samples, outputs)[0]


def score_rankings(
    metrics: Sequence[RankingMetric], samples: Sequence[Sample], outputs: Sequence[Output]
) -> list[list[Mark]]:
    """Mark many outputs by several metrics, reading every ranking once.

    Returns:
        For each metric its marks, in the order of the samples.
    """
    columns = ranked_columns(metrics, samples, outputs)
    return [_marks(column, metric.threshold) for metric, column in zip(metrics, columns, strict=True)]


class MetricColumn(NamedTuple):
    """What one metric finds in a batch.

    Attributes:
        places: Which of the batch have a score.
        scores: Their scores.
        details: Their details, made as they are asked for.
        errors: Why the others have none, by position in the batch.
    """

    places: Sequence[int]
    scores: NDArray[np.float64]
    details: Iterable[dict[str, Any]]
    errors: Mapping[int, UnscoredError]


def ranked_columns(
    metrics: Sequence[RankingMetric], samples: Sequence[Sample], outputs: Sequence[Output]
) -> list[MetricColumn]:
    """Score many outputs by several metrics, reading every ranking once, and no deeper than these look.

    Returns:
        A column for each metric.

    >>> from deemster.metrics.retrieval_metrics import RetrievalMrr
    >>> [column] = ranked_columns([RetrievalMrr()], [Sample("s", {}, ["a"])], [Output("", ["b", "a"])])
    >>> column.scores.tolist(), list(column.details)
    ([0.5], [{'first_relevant_rank': 2}])
    """
    pairs = relevant_pairs(samples, outputs)
    reaches = [_reach(metric, samples, pairs) for metric in metrics]
    needed = np.zeros(len(pairs.places), dtype=np.int64)
    for metric, (deep, _) in zip(metrics, reaches, strict=True):
        if not metric.wants_first:
            np.maximum(needed, deep, out=needed)
    hits, unread = find_hits(pairs, depths=needed.tolist(), first=any(metric.wants_first for metric in metrics))
    # An error of the sample goes before an error of its output.
    return [
        _column(metric, hits, deep, {**pairs.errors, **unread, **unclear})
        for metric, (deep, unclear) in zip(metrics, reaches, strict=True)
    ]


def _column(metric: RankingMetric, hits: Hits, deep: Depths, errors: Mapping[int, UnscoredError]) -> MetricColumn:
    if errors:
        is_sound = np.isin(hits.places, list(errors), invert=True)
        hits, deep = hits.only(is_sound), deep[is_sound]
    return MetricColumn(hits.places, *metric.columns(hits, deep), errors)


def _reach(
    metric: RankingMetric, samples: Sequence[Sample], pairs: RankedPairs
) -> tuple[Depths, dict[int, UnscoredError]]:
    """How deep to look into each ranking, and what is wrong with the samples that do not say."""
    deep = np.full(len(pairs.places), min(metric.own_k or WHOLE, WHOLE), dtype=np.int64)
    errors: dict[int, UnscoredError] = {}
    if metric.is_even(pairs):
        return deep, errors
    for pair, (place, gains) in enumerate(zip(pairs.places, pairs.gains, strict=True)):
        try:
            deep[pair] = min(metric.reach(samples[place], gains) or WHOLE, WHOLE)
        except UnscoredError as error:
            errors[place] = error
    return deep, errors


def _marks(column: MetricColumn, threshold: Any) -> list[Mark]:
    """The marks of one metric, in the order of the batch."""
    places, scores, details, errors = column
    # Details hold counts, ids and finite sums only, so freezing needs no check.
    scored: list[Mark] = [
        MetricScore(score, FrozenDict(detail), None, threshold)
        for score, detail in zip(scores.tolist(), details, strict=True)
    ]
    if not errors:
        return scored
    marks: dict[int, Mark] = {place: Unscored(error.cause, error.message) for place, error in errors.items()}
    marks.update(zip(places, scored, strict=True))
    return [marks[place] for place in sorted(marks)]
