"""Metrics of rankings, computed for many pairs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from deemster.metrics.contract import Fault, Scored
from deemster.metrics.hits import WHOLE, Hits, gathered, located
from deemster.metrics.ranking import check_k, depth, ranks_of, relevance
from deemster.records import FrozenDict, Mark, MetricScore, Output, Sample, Unscored

Depths = NDArray[np.int64]
Columns = tuple[NDArray[np.float64], Iterable[dict[str, Any]]]


class Ranked(Scored, frozen=True, kw_only=True):
    """A metric of ranked ids, computed for many pairs at once.

    A subclass implements ``columns``: the scores and details of all pairs, from where the relevant ids stand.
    """

    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant", "k"})
    whole: ClassVar[bool] = False

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
        """How deep to look: the metric's k, else everything (None) or the sample's k or 5, as the metric has it.

        Raises:
            Fault: The sample tells no depth, or has gains that this metric cannot use.
        """
        return self.own_k if self.whole else self.own_k or depth(sample)

    def is_even(self, hits: Hits) -> bool:  # noqa: ARG002 - others need them
        """Whether every ranking is looked at to the same depth, so that no sample has to be asked."""
        return self.whole or self.own_k is not None

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

    >>> from deemster.metrics.retrieval import RetrievalMrr
    >>> [[score]] = ranking_scores([RetrievalMrr()], [["b", "a"]], [{"a": 1}])
    >>> float(score)
    0.5
    """
    hits = located(zip(map(ranks_of, rankings), gains, strict=True))
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
