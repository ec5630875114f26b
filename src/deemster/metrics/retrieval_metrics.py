"""Retrieval metrics of rankings: hit, recall, precision, F1, MRR, MAP, R-precision, nDCG."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import chain, compress
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deemster.metrics._relevance_reader import ranking_depth
from deemster.metrics.batch_ranking import (
    WHOLE,
    Columns,
    Depths,
    Hits,
    RankedPairs,
    RankingMetric,
    position_within_group,
)
from deemster.metrics.builtin_metric import invalid_sample
from deemster.metrics.option_checks import PositiveInteger
from deemster.records import Sample

SHOWN = 20
LARGEST_EXPONENT = 900


class RetrievalHitAtK(RankingMetric, frozen=True, kw_only=True):
    """1 if a relevant id is among the first k, else 0.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `hit@10`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 3}}
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 1}}
    """

    alias: ClassVar[str] = "retrieval-hit-at-k"
    core: ClassVar[bool] = True
    short: ClassVar[str | None] = "hit"

    k: PositiveInteger | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """Was anything found."""
        found = hits.found(deep)
        return (found > 0).astype(np.float64), _counts(hits, deep, found)


class RetrievalRecallAtK(RankingMetric, frozen=True, kw_only=True):
    """The share of the relevant ids that is among the first k: found/relevant.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found, missing (ids of the sample, at most 20).

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `recall@10`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 3}}
    """

    alias: ClassVar[str] = "retrieval-recall-at-k"
    core: ClassVar[bool] = True
    short: ClassVar[str | None] = "recall"
    quotes: ClassVar[frozenset[str]] = frozenset({"missing"})

    k: PositiveInteger | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """How much was found."""
        found = hits.found(deep)
        return found / hits.relevant, _with_missing(hits, deep, _counts(hits, deep, found))


class RetrievalPrecisionAtK(RankingMetric, frozen=True, kw_only=True):
    """The share of the first k places that is relevant: found/k, even where fewer were retrieved.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        denominator: `k` (the default, as trec_eval) or `retrieved` (the smaller of k and what was retrieved).

    Example: `precision(denominator=retrieved)@10`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 3}}
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 5}}
    """

    alias: ClassVar[str] = "retrieval-precision-at-k"
    short: ClassVar[str | None] = "precision"

    k: PositiveInteger | None = None
    denominator: Literal["k", "retrieved"] = "k"

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """How much of what was retrieved is relevant."""
        found = hits.found(deep)
        places = deep if self.denominator == "k" else np.maximum(np.minimum(deep, hits.retrieved), 1)
        return found / places, _counts(hits, deep, found)


class RetrievalF1AtK(RankingMetric, frozen=True, kw_only=True):
    """The harmonic mean of precision and recall among the first k: 2·found/(k + relevant).

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, retrieved (ids among the first k), relevant, found.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.

    Example: `f1@10`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y], options: {k: 3}}
    """

    alias: ClassVar[str] = "retrieval-f1-at-k"
    short: ClassVar[str | None] = "f1"

    k: PositiveInteger | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """Both at once."""
        found = hits.found(deep)
        return 2 * found / (deep + hits.relevant), _counts(hits, deep, found)


class RetrievalMrr(RankingMetric, frozen=True, kw_only=True):
    """1/rank of the first relevant id, or 0 where there is none; the mean of it is MRR.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved,
    all of it unless k is given. Details: first_relevant_rank (from 1, or null).

    Options:
        k: How deep to look. Default: the whole list; `metadata.k` is not read.

    Example: `mrr@10`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y]}
        - {metadata: {relevant: [a, b]}, retrieved: [x, y, z]}
    """

    alias: ClassVar[str] = "retrieval-mrr"
    core: ClassVar[bool] = True
    short: ClassVar[str | None] = "mrr"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})
    reads_whole_list: ClassVar[bool] = True
    first: ClassVar[bool] = True

    k: PositiveInteger | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The reciprocal of the first relevant rank."""
        ranks = np.where(hits.within(deep), hits.rank, WHOLE)
        first = np.minimum.reduceat(ranks, hits.starts()) if len(ranks) else ranks
        shown = ({"first_relevant_rank": None if rank == WHOLE else rank} for rank in first.tolist())
        return np.where(first == WHOLE, 0.0, 1 / first), shown


class RetrievalMap(RankingMetric, frozen=True, kw_only=True):
    """Average precision: the sum of precision@i over the ranks i of relevant ids, over the number of relevant ids.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved,
    all of it unless k is given. The mean of it is MAP. Details: relevant, found.

    Options:
        k: How deep to look. Default: the whole list; `metadata.k` is not read.

    Example: `map@100`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y, b]}
    """

    alias: ClassVar[str] = "retrieval-map"
    short: ClassVar[str | None] = "map"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})
    reads_whole_list: ClassVar[bool] = True

    k: PositiveInteger | None = None

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The mean precision at the ranks of relevant ids."""
        within = hits.within(deep)
        order = np.lexsort((hits.rank[within], hits.owner[within]))
        owner, rank = hits.owner[within][order], hits.rank[within][order]
        sums = hits.per_pair(owner, position_within_group(owner) / rank)
        return np.minimum(sums / hits.relevant, 1.0), _relevant_found(hits, deep)


class RetrievalRPrecision(RankingMetric, frozen=True, kw_only=True):
    """The share of relevant ids among as many first places as there are relevant ids.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved.
    Details: relevant, found.

    Example: `rprec`.

    Worked examples:
        - {metadata: {relevant: [a, b]}, retrieved: [x, a, y, b]}
    """

    alias: ClassVar[str] = "retrieval-r-precision"
    short: ClassVar[str | None] = "rprec"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})
    reads_whole_list: ClassVar[bool] = True

    def columns(self, hits: Hits, deep: Depths) -> Columns:  # noqa: ARG002 - others need them
        """How much was found in as many places as there are relevant ids."""
        return hits.found(hits.relevant) / hits.relevant, _relevant_found(hits, hits.relevant)


class RetrievalNdcgAtK(RankingMetric, frozen=True, kw_only=True):
    """Normalised discounted cumulative gain: the sum of g/log2(i + 1) over the first k, over that of the ideal order.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), `metadata.k`, and what the output
    retrieved. Details: k, gain, dcg, idcg.

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        gain: `linear` (the default) or `exponential` (2^g - 1).

    Example: `ndcg(gain=exponential)@10`.

    Worked examples:
        - {metadata: {relevant: {a: 3, b: 1}}, retrieved: [b, x, a], options: {k: 3}}
        - {metadata: {relevant: {a: 3, b: 1}}, retrieved: [a, b, x], options: {k: 3}}
    """

    alias: ClassVar[str] = "retrieval-ndcg-at-k"
    core: ClassVar[bool] = True
    short: ClassVar[str | None] = "ndcg"

    k: PositiveInteger | None = None
    gain: Literal["linear", "exponential"] = "linear"

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:
        """The metric's k, else the sample's, else 5.

        Raises:
            UnscoredError: The gains are too large to be added.
        """
        largest = max(gains.values())
        if largest > (LARGEST_EXPONENT if self.gain == "exponential" else sys.float_info.max / len(gains)):
            raise invalid_sample(f"A gain of {largest:g} is too large to be added up.")
        return self.own_k or ranking_depth(sample)

    def is_even(self, pairs: RankedPairs) -> bool:
        """Whether k is given and no gain is large enough to be looked at."""
        return self.own_k is not None and max(pairs.all_gains(), default=0) <= LARGEST_EXPONENT

    def columns(self, hits: Hits, deep: Depths) -> Columns:
        """The discounted sum over the ideal one, both added best place first."""
        gain = hits.gain
        if self.gain == "exponential":
            # expm1 keeps tiny gains above 0, where 2^g - 1 would round to 0.
            gain = np.expm1(gain * np.log(2))
        within = hits.within(deep)
        order = np.lexsort((hits.rank[within], hits.owner[within]))
        dcg = hits.per_pair(hits.owner[within][order], _discounted(gain[within][order], hits.rank[within][order]))
        order = np.lexsort((-gain, hits.owner))
        place = position_within_group(hits.owner[order])
        seen = place <= deep[hits.owner[order]]
        idcg = hits.per_pair(hits.owner[order][seen], _discounted(gain[order][seen], place[seen]))
        return np.minimum(dcg / idcg, 1.0), self._details(deep, dcg, idcg)

    def _details(self, deep: Depths, dcg: NDArray[np.float64], idcg: NDArray[np.float64]) -> Iterator[dict[str, Any]]:
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
    missing = tuple(compress(chain.from_iterable(hits.gains), (~hits.within(deep)).tolist()))
    start = 0
    for detail in counts:
        end = start + detail["relevant"] - detail["found"]
        detail["missing"] = missing[start:end]
        if end - start > SHOWN:
            detail["missing"] = missing[start : start + SHOWN]
            detail["truncated"] = True
        start = end
        yield detail
