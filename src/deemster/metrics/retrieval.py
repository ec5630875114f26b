"""Metrics of rankings: was the relevant found, and how high."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deemster.metrics.contract import Fault, Scored, malformed
from deemster.metrics.hits import WHOLE, Hits, gathered, located, place_within
from deemster.metrics.option import one_of
from deemster.metrics.ranking import check_k, depth, plain_ids, relevance
from deemster.records import FrozenDict, Mark, MetricScore, Output, Sample, Unscored

DENOMINATORS = ("k", "retrieved")
GAINS = ("linear", "exponential")
SHOWN = 20
LARGEST_EXPONENT = 900
Depths = NDArray[np.int64]
Columns = tuple[NDArray[np.float64], Iterable[dict[str, Any]]]


class Ranked(Scored, frozen=True, kw_only=True):
    """A metric of ranked ids, computed for many pairs at once.

    A subclass implements ``columns``: the scores and details of all pairs, from where the relevant ids stand.
    """

    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant", "k"})

    def validate(self) -> None:
        """Refuse options that make no sense."""
        check_k(self.own_k, self.alias)

    @property
    def own_k(self) -> int | None:
        """The k this metric was given; it may not take one."""
        return getattr(self, "k", None)

    def expect(self, sample: Sample) -> tuple[Mapping[str, float], int | None]:
        """The relevant ids with their gains, and how deep to look."""
        gains = relevance(sample)
        return gains, self.reach(sample, gains)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """How deep to look: the metric's k, else the sample's, else 5; None is the whole list.

        Raises:
            Fault: The sample tells no depth, or has gains that this metric cannot use.
        """
        return self.own_k or depth(sample)

    def is_even(self, hits: Hits) -> bool:  # noqa: ARG002 - others need them
        """Whether every sample is looked at to the metric's own k, so that none has to be asked."""
        return self.own_k is not None

    if TYPE_CHECKING:

        def columns(self, hits: Hits, deep: Depths) -> Columns:
            """The scores and the details of all pairs."""

    def score(self, sample: Sample, output: Output) -> Mark:
        """Mark one output."""
        return self.score_many((sample,), (output,))[0]

    def score_many(self, samples: Sequence[Sample], outputs: Sequence[Output]) -> list[Mark]:
        """Mark many outputs."""
        return score_ranked((self,), samples, outputs)[0]


def score_ranked(metrics: Sequence[Ranked], samples: Sequence[Sample], outputs: Sequence[Output]) -> list[list[Mark]]:
    """Mark many outputs by several metrics, reading every ranking once.

    Returns:
        For each metric its marks, in the order of the samples.
    """
    hits, unread = gathered(samples, outputs)
    columns = []
    for metric in metrics:
        marks: list[Mark] = [_NO_MARK] * len(samples)
        deep, faults = _depths(metric, samples, hits)
        readable = hits
        if faults:
            sound = np.isin(hits.places, [place for place, _ in faults], invert=True)
            readable, deep = hits.only(sound), deep[sound]
        scores, details = metric.columns(readable, deep)
        threshold = metric.threshold
        for place, score, detail in zip(readable.places, scores.tolist(), details, strict=True):
            # Counts, ids and finite sums need no second look, so the details go in frozen.
            marks[place] = MetricScore(score, FrozenDict(detail), None, threshold)  # type: ignore[arg-type]
        for place, fault in faults:
            marks[place] = Unscored(fault.cause, fault.message)
        for place, gains, fault in unread:
            marks[place] = _unread(metric, samples[place], gains, fault)
        columns.append(marks)
    return columns


def ranking_scores(
    metrics: Sequence[Ranked], rankings: Sequence[Sequence[str]], gains: Sequence[Mapping[str, float]]
) -> list[NDArray[np.float64]]:
    """Score rankings that are at hand already: numbers only, without samples, outputs, marks or details.

    Args:
        metrics: What to compute; one without k looks at the first 5, `mrr` and `map` at everything.
        rankings: Ids, best first.
        gains: The relevant ids of each ranking with their gains, which are above 0; never empty.

    Returns:
        For each metric its scores, in the order of the rankings.

    Raises:
        Fault: A ranking holds something that is no id.

    >>> [[scores]] = ranking_scores([RetrievalMrr()], [["b", "a"]], [{"a": 1}])
    >>> float(scores)
    0.5
    """
    hits = located(zip(map(plain_ids, rankings), gains, strict=True))
    bare = [Sample("ranking", {})] * len(rankings)
    return [metric.columns(hits, _depths(metric, bare, hits)[0])[0] for metric in metrics]


_NO_MARK = Unscored("not_run", "Not marked.")


def _depths(metric: Ranked, samples: Sequence[Sample], hits: Hits) -> tuple[Depths, list[tuple[int, Fault]]]:
    """How deep to look into each ranking, and the samples that do not say."""
    deep = np.full(len(hits.places), min(metric.own_k or WHOLE, WHOLE), dtype=np.int64)
    faults: list[tuple[int, Fault]] = []
    if metric.is_even(hits):
        return deep, faults
    for pair, (place, gains) in enumerate(zip(hits.places, hits.gains, strict=True)):
        try:
            deep[pair] = min(metric.reach(samples[place], gains) or WHOLE, WHOLE)
        except Fault as fault:
            faults.append((place, fault))
    return deep, faults


def _unread(metric: Ranked, sample: Sample, gains: Mapping[str, float] | None, fault: Fault) -> Unscored:
    """The mark of a pair that cannot be read: what is wrong with the sample comes before what is with the output."""
    if gains is not None:
        try:
            metric.reach(sample, gains)
        except Fault as earlier:
            fault = earlier
    return Unscored(fault.cause, fault.message)


class RetrievalHitAtK(Ranked, frozen=True, kw_only=True):
    """1 if a relevant id is among the first k, else 0.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `hit@10`.
    """

    alias: ClassVar[str] = "retrieval-hit-at-k"
    short: ClassVar[str | None] = "hit"

    k: int | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """Was anything found."""
        found = hits.found(deep)
        return (found > 0).astype(np.float64), _counts(hits, deep, found)


class RetrievalRecallAtK(Ranked, frozen=True, kw_only=True):
    """The share of the relevant ids that is among the first k: found/relevant.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found, missing (ids of the sample, at most 20).

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `recall@10`.
    """

    alias: ClassVar[str] = "retrieval-recall-at-k"
    short: ClassVar[str | None] = "recall"
    quotes: ClassVar[frozenset[str]] = frozenset({"missing"})

    k: int | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """How much was found."""
        found = hits.found(deep)
        return found / hits.relevant, _with_missing(hits, deep, _counts(hits, deep, found))


class RetrievalPrecisionAtK(Ranked, frozen=True, kw_only=True):
    """The share of the first k places that is relevant: found/k, even where fewer were retrieved.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        denominator: `k` (the default, as trec_eval) or `retrieved` (the smaller of k and what was retrieved).

    Example: `precision(denominator=retrieved)@10`.
    """

    alias: ClassVar[str] = "retrieval-precision-at-k"
    short: ClassVar[str | None] = "precision"

    k: int | None = None
    denominator: str = "k"

    def validate(self) -> None:
        """Refuse options that make no sense."""
        check_k(self.own_k, self.alias)
        one_of(self.denominator, DENOMINATORS, option="denominator", metric=self.alias)

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """How much of what was retrieved is relevant."""
        found = hits.found(deep)
        places = deep if self.denominator == "k" else np.maximum(np.minimum(deep, hits.retrieved), 1)
        return found / places, _counts(hits, deep, found)


class RetrievalF1AtK(Ranked, frozen=True, kw_only=True):
    """The harmonic mean of precision and recall among the first k: 2·found/(k + relevant).

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `f1@10`.
    """

    alias: ClassVar[str] = "retrieval-f1-at-k"
    short: ClassVar[str | None] = "f1"

    k: int | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """Both at once."""
        found = hits.found(deep)
        return 2 * found / (deep + hits.relevant), _counts(hits, deep, found)


class RetrievalMrr(Ranked, frozen=True, kw_only=True):
    """1/rank of the first relevant id, or 0 where there is none; the mean of it is MRR.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved,
    all of it unless k is given. Details: first_relevant_rank (from 1, or null).

    Options:
        k: How deep to look. Default: the whole list; `metadata.k` is not read.

    Example: `mrr@10`.
    """

    alias: ClassVar[str] = "retrieval-mrr"
    short: ClassVar[str | None] = "mrr"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})

    k: int | None = None

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the whole list."""
        return self.own_k

    def is_even(self, hits: Hits) -> bool:  # noqa: ARG002 - others need them
        """No sample is asked."""
        return True

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The reciprocal of the first relevant rank."""
        ranks = np.where(hits.within(deep), hits.rank, WHOLE)
        first = np.minimum.reduceat(ranks, hits.starts()) if len(ranks) else ranks
        shown = ({"first_relevant_rank": None if rank == WHOLE else rank} for rank in first.tolist())
        return np.where(first == WHOLE, 0.0, 1 / first), shown


class RetrievalMap(Ranked, frozen=True, kw_only=True):
    """Average precision: the sum of precision@i over the ranks i of relevant ids, over the number of relevant ids.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved,
    all of it unless k is given. The mean of it is MAP. Details: relevant, found.

    Options:
        k: How deep to look. Default: the whole list; `metadata.k` is not read.

    Example: `map@100`.
    """

    alias: ClassVar[str] = "retrieval-map"
    short: ClassVar[str | None] = "map"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})

    k: int | None = None

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the whole list."""
        return self.own_k

    def is_even(self, hits: Hits) -> bool:  # noqa: ARG002 - others need them
        """No sample is asked."""
        return True

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The mean precision at the ranks of relevant ids."""
        within = hits.within(deep)
        order = np.lexsort((hits.rank[within], hits.owner[within]))
        owner, rank = hits.owner[within][order], hits.rank[within][order]
        sums = hits.per_pair(owner, place_within(owner) / rank)
        return np.minimum(sums / hits.relevant, 1.0), _relevant_found(hits, deep)


class RetrievalRPrecision(Ranked, frozen=True, kw_only=True):
    """The share of relevant ids among as many first places as there are relevant ids.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved.
    Details: relevant, found.

    Example: `rprec`.
    """

    alias: ClassVar[str] = "retrieval-r-precision"
    short: ClassVar[str | None] = "rprec"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})

    def columns(self, hits: Hits, deep: Depths) -> Columns:  # noqa: ARG002 - others need them
        """How much was found in as many places as there are relevant ids."""
        return hits.found(hits.relevant) / hits.relevant, _relevant_found(hits, hits.relevant)


class RetrievalNdcgAtK(Ranked, frozen=True, kw_only=True):
    """Normalised discounted cumulative gain: the sum of g/log2(i + 1) over the first k, over that of the ideal order.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, gain, dcg, idcg.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        gain: `linear` (the default) or `exponential` (2^g - 1).

    Example: `ndcg(gain=exponential)@10`.
    """

    alias: ClassVar[str] = "retrieval-ndcg-at-k"
    short: ClassVar[str | None] = "ndcg"

    k: int | None = None
    gain: str = "linear"

    def validate(self) -> None:
        """Refuse options that make no sense."""
        check_k(self.own_k, self.alias)
        one_of(self.gain, GAINS, option="gain", metric=self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:
        """The metric's k, else the sample's, else 5.

        Raises:
            Fault: The gains are too large to be added.
        """
        largest = max(gains.values())
        if largest > (LARGEST_EXPONENT if self.gain == "exponential" else sys.float_info.max / len(gains)):
            raise malformed(f"A gain of {largest:g} is too large to be added up.")
        return self.own_k or depth(sample)

    def is_even(self, hits: Hits) -> bool:
        """Whether k is given and no gain is large enough to be looked at."""
        return self.own_k is not None and bool(hits.gain.max(initial=0.0) <= LARGEST_EXPONENT)

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The discounted sum over the ideal one, both added best place first."""
        gain = hits.gain
        if self.gain == "exponential":
            # 2^g - 1 of a tiny gain is 0 when subtracted, and nothing would be relevant.
            gain = np.expm1(gain * np.log(2))
        within = hits.within(deep)
        order = np.lexsort((hits.rank[within], hits.owner[within]))
        dcg = hits.per_pair(hits.owner[within][order], _discounted(gain[within][order], hits.rank[within][order]))
        order = np.lexsort((-gain, hits.owner))
        place = place_within(hits.owner[order])
        seen = place <= deep[hits.owner[order]]
        idcg = hits.per_pair(hits.owner[order][seen], _discounted(gain[order][seen], place[seen]))
        return np.minimum(dcg / idcg, 1.0), self._shown(deep, dcg, idcg)

    def _shown(self, deep: Depths, dcg: NDArray[np.float64], idcg: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
        for k, found, ideal in zip(deep.tolist(), dcg.tolist(), idcg.tolist(), strict=True):
            yield {"k": k, "gain": self.gain, "dcg": found, "idcg": ideal}


def _discounted(gain: NDArray[np.float64], rank: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gain / np.log2(rank + 1))


def _counts(hits: Hits, deep: Depths, found: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    within = np.minimum(deep, hits.retrieved)
    rows = zip(deep.tolist(), within.tolist(), hits.relevant.tolist(), found.tolist(), strict=True)
    for k, retrieved, relevant, had in rows:
        yield {"k": k, "retrieved": retrieved, "relevant": relevant, "found": had}


def _relevant_found(hits: Hits, deep: Depths) -> Iterator[dict[str, Any]]:
    for relevant, found in zip(hits.relevant.tolist(), hits.found(deep).tolist(), strict=True):
        yield {"relevant": relevant, "found": found}


def _with_missing(hits: Hits, deep: Depths, counts: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The counts, and the relevant ids that were not found."""
    outside = (~hits.within(deep)).tolist()
    start = 0
    for gains, detail in zip(hits.gains, counts, strict=True):
        end = start + len(gains)
        missing = tuple(compress(gains, outside[start:end])) if detail["found"] < detail["relevant"] else ()
        detail["missing"] = missing[:SHOWN]
        if len(missing) > SHOWN:
            detail["truncated"] = True
        start = end
        yield detail
