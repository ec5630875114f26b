"""Metrics of rankings: was the relevant found, and how high."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from deemster.metrics.contract import Fault, Scored, absent, expected_text, kind, malformed, text_of, whole
from deemster.metrics.option import flag, one_of
from deemster.metrics.ranking import depth, distinct, entries_of, entry_id, ranked_ids, relevance
from deemster.metrics.text import loose
from deemster.records import FrozenDict, Mark, MetricScore, Output, Sample, Unscored

DENOMINATORS = ("k", "retrieved")
GAINS = ("linear", "exponential")
SHOWN = 20
LARGEST_EXPONENT = 900


class Ranked(Scored, frozen=True, kw_only=True):
    """A metric of ranked ids.

    What it counts is kept apart from the mark: where tallies recur, a batch builds equal marks once.
    """

    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant", "k"})
    recurs: ClassVar[bool] = True

    def expect(self, sample: Sample) -> tuple[Mapping[str, float], int | None]:
        """The relevant ids with their gains, and how deep to look."""
        gains = relevance(sample)
        return gains, self.reach(sample, gains)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:
        """How deep to look, or None for the whole list.

        Raises:
            Fault: The sample tells no depth, or has gains that this metric cannot use.
        """
        raise NotImplementedError

    def read(self, output: Output) -> Sequence[str]:
        """The ids, best first."""
        return ranked_ids(output)

    def grade(self, expected: tuple[Mapping[str, float], int | None], actual: Sequence[str]) -> Mark:
        """Count, then mark."""
        gains, k = expected
        return self.award(self.tally(gains, k, actual if k is None else distinct(actual, k)))

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """All that the mark depends on: the first k distinct ids, or without k the whole list as it stands."""
        raise NotImplementedError

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """The mark of a tally."""
        raise NotImplementedError

    def score_many(self, samples: Sequence[Sample], outputs: Sequence[Output]) -> list[Mark]:
        """Mark many outputs, each as `score` would."""
        return score_ranked((self,), samples, outputs)[0]


def score_ranked(metrics: Sequence[Ranked], samples: Sequence[Sample], outputs: Sequence[Output]) -> list[list[Mark]]:
    """Mark many outputs by several metrics, each as `score` would, reading every ranking once.

    Returns:
        For each metric its marks, in the order of the samples.
    """
    columns: list[tuple[Ranked, list[Mark], dict[tuple[Any, ...], MetricScore]]] = [
        (metric, [], {}) for metric in metrics
    ]
    for sample, output in zip(samples, outputs, strict=True):
        gains: Mapping[str, float] = {}
        ids: Sequence[str] = ()
        unreadable = None
        top, reached = ids, None
        try:
            gains = relevance(sample)
        except Fault as fault:
            for _, marks, _ in columns:
                marks.append(Unscored(fault.cause, fault.message))
            continue
        try:
            ids = ranked_ids(output)
        except Fault as fault:
            unreadable = fault
        for metric, marks, known in columns:
            try:
                k = metric.reach(sample, gains)
                if unreadable is not None:
                    raise unreadable
            except Fault as fault:
                marks.append(Unscored(fault.cause, fault.message))
                continue
            if k is not None and k != reached:
                top, reached = distinct(ids, k), k
            tally = metric.tally(gains, k, ids if k is None else top)
            mark = known.get(tally) if metric.recurs else None
            if mark is None:
                mark = metric.award(tally)
                if metric.recurs:
                    known[tally] = mark
            marks.append(mark)
    return [marks for _, marks, _ in columns]


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

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the sample's, else 5."""
        return self.k or depth(sample)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """k, retrieved, relevant, found."""
        return k, len(ids), len(gains), len(gains.keys() & ids)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """Was anything found."""
        return _mark(self, float(tally[3] > 0), _counts(tally))


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
    recurs: ClassVar[bool] = False
    quotes: ClassVar[frozenset[str]] = frozenset({"missing"})

    k: int | None = None

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the sample's, else 5."""
        return self.k or depth(sample)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """k, retrieved, relevant, found, missing."""
        found = gains.keys() & ids
        missing = () if len(found) == len(gains) else tuple([wanted for wanted in gains if wanted not in found][:SHOWN])
        return k, len(ids), len(gains), len(found), missing

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """How much was found."""
        k, retrieved, relevant, found, missing = tally
        details = {"k": k, "retrieved": retrieved, "relevant": relevant, "found": found, "missing": missing}
        if relevant - found > SHOWN:
            details["truncated"] = True
        return _mark(self, found / relevant, details)


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
        _check_k(self.k, self.alias)
        one_of(self.denominator, DENOMINATORS, option="denominator", metric=self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the sample's, else 5."""
        return self.k or depth(sample)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """k, retrieved, relevant, found."""
        return k, len(ids), len(gains), len(gains.keys() & ids)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """How much of what was retrieved is relevant."""
        k, retrieved, _, found = tally
        places = k if self.denominator == "k" else retrieved
        return _mark(self, found / places if places else 0.0, _counts(tally))


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

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the sample's, else 5."""
        return self.k or depth(sample)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """k, retrieved, relevant, found."""
        return k, len(ids), len(gains), len(gains.keys() & ids)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """Both at once."""
        k, _, relevant, found = tally
        return _mark(self, 2 * found / (k + relevant), _counts(tally))


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

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the whole list."""
        return self.k

    def tally(
        self,
        gains: Mapping[str, float],
        k: int | None,  # noqa: ARG002 - others need it
        ids: Sequence[str],
    ) -> tuple[Any, ...]:
        """The first relevant rank."""
        for position, found in enumerate(ids):
            if found in gains:
                return (len(set(ids[:position])) + 1,)
        return (None,)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """The reciprocal."""
        (rank,) = tally
        return _mark(self, 0.0 if rank is None else 1 / rank, {"first_relevant_rank": rank})


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

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need them
        """The metric's k, else the whole list."""
        return self.k

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """The number of relevant ids, and the ranks at which they stand."""
        ranks = [rank for rank, found in enumerate(distinct(ids, k), start=1) if found in gains]
        return len(gains), *ranks

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """The mean precision at those ranks."""
        relevant, *ranks = tally
        precisions = math.fsum(found / rank for found, rank in enumerate(ranks, start=1))
        return _mark(self, precisions / relevant, {"relevant": relevant, "found": len(ranks)})


class RetrievalRPrecision(Ranked, frozen=True, kw_only=True):
    """The share of relevant ids among as many first places as there are relevant ids.

    Reads `metadata.relevant`, else `expected_output` (ids, or a map of ids to gains), and what the output retrieved.
    Details: relevant, found.

    Example: `rprec`.
    """

    alias: ClassVar[str] = "retrieval-r-precision"
    short: ClassVar[str | None] = "rprec"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant"})

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:  # noqa: ARG002 - others need it
        """As deep as there are relevant ids."""
        return len(gains)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """relevant, found."""
        return k, len(gains.keys() & ids)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """How much was found."""
        relevant, found = tally
        return _mark(self, found / relevant, {"relevant": relevant, "found": found})


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
    recurs: ClassVar[bool] = False

    k: int | None = None
    gain: str = "linear"

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)
        one_of(self.gain, GAINS, option="gain", metric=self.alias)

    def reach(self, sample: Sample, gains: Mapping[str, float]) -> int | None:
        """The metric's k, else the sample's, else 5.

        Raises:
            Fault: The gains are too large to be added.
        """
        largest = max(gains.values())
        if largest > (LARGEST_EXPONENT if self.gain == "exponential" else sys.float_info.max / len(gains)):
            raise malformed(f"A gain of {largest:g} is too large to be added up.")
        return self.k or depth(sample)

    def tally(self, gains: Mapping[str, float], k: int | None, ids: Sequence[str]) -> tuple[Any, ...]:
        """k, dcg, idcg."""
        if self.gain == "exponential":
            gains = {name: _exponential(gain) for name, gain in gains.items()}
        top = enumerate(ids, start=2)
        dcg = math.fsum([gains[found] / math.log2(rank) for rank, found in top if found in gains])
        return k, dcg, _ideal(tuple(gains.values()), k)

    def award(self, tally: tuple[Any, ...]) -> MetricScore:
        """The quotient."""
        k, dcg, idcg = tally
        return _mark(self, min(dcg / idcg, 1.0), {"k": k, "gain": self.gain, "dcg": dcg, "idcg": idcg})


class AnswerContainmentAtK(Scored, frozen=True, kw_only=True):
    """1 if the expected text stands in one of the first k passages, else 0: was the answer within reach.

    Reads `expected_output` (non-blank text), `metadata.k`, and the `text` of what the output retrieved; an entry
    without text matches nothing. Both sides NFC, spaces collapsed, trimmed, case-folded.
    Details: k, passages (entries among the first k), matched_rank (from 1, or null).

    Options:
        k: How deep to look. Default: `metadata.k`, else 5.
        case_sensitive: True: case is kept. Default: false.

    Example: `containment@3`.
    """

    alias: ClassVar[str] = "answer-containment-at-k"
    short: ClassVar[str | None] = "containment"
    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"k"})

    k: int | None = None
    case_sensitive: bool = False

    def validate(self) -> None:
        """Refuse options that make no sense."""
        _check_k(self.k, self.alias)
        flag(self.case_sensitive, option="case_sensitive", metric=self.alias)

    def expect(self, sample: Sample) -> tuple[str, int]:
        """The text to be found, and how deep to look.

        Raises:
            Fault: The text is blank.
        """
        wanted = loose(expected_text(sample), fold=not self.case_sensitive)
        if not wanted:
            raise absent("The expected text is blank, and every passage would hold it.")
        return wanted, self.k or depth(sample)

    def read(self, output: Output) -> Sequence[Any]:
        """The entries of the ranking."""
        return entries_of(output)

    def grade(self, expected: tuple[str, int], actual: Sequence[Any]) -> Mark:
        """Look into the passages, best first."""
        wanted, k = expected
        passages = [_passage(entry, position) for position, entry in enumerate(actual[:k])]
        fold = not self.case_sensitive
        ranks = (rank for rank, text in enumerate(passages, start=1) if text and wanted in loose(text, fold=fold))
        rank = next(ranks, None)
        return self.mark(float(rank is not None), {"k": k, "passages": len(passages), "matched_rank": rank})


def _passage(entry: Any, position: int) -> str | None:
    entry_id(entry, position)
    text = entry.get("text") if isinstance(entry, Mapping) else None
    if text is None:
        return None
    if not isinstance(text, str):
        raise Fault("bad_output", f"The text of entry {position} of what was retrieved is no text but {kind(text)}.")
    return text_of(Output(text))


def _counts(tally: tuple[Any, ...]) -> dict[str, Any]:
    return {"k": tally[0], "retrieved": tally[1], "relevant": tally[2], "found": tally[3]}


def _mark(metric: Ranked, score: float, details: dict[str, Any]) -> MetricScore:
    # Counts, ids and finite sums need no second look.
    return MetricScore(score, FrozenDict(details), None, metric.threshold)  # type: ignore[arg-type]


@functools.lru_cache(maxsize=4096)
def _ideal(gains: tuple[float, ...], k: int | None) -> float:
    best_first = enumerate(sorted(gains, reverse=True)[:k], start=2)
    return math.fsum([gain / math.log2(rank) for rank, gain in best_first])


def _exponential(gain: float) -> float:
    # 2^g - 1 of a tiny gain is 0 when subtracted, and nothing would be relevant.
    return 2.0**gain - 1.0 if gain >= 1 else math.expm1(gain * math.log(2))


def _check_k(k: int | None, alias: str) -> None:
    if k is not None:
        whole(k, least=1, option="k", metric=alias)
