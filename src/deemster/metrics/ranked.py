"""Metrics of rankings, computed for many pairs at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deemster.metrics.contract import Fault, Scored
from deemster.metrics.hits import WHOLE, Hits, Pairs, located, relevant_pairs
from deemster.metrics.ranking import check_k, depth, relevance
from deemster.records import FrozenDict, Mark, MetricScore, Output, Sample, Unscored

Depths = NDArray[np.int64]
Columns = tuple[NDArray[np.float64], Iterable[dict[str, Any]]]


class Ranked(Scored, frozen=True, kw_only=True):
    """A metric of ranked ids, computed for many pairs at once.

    A subclass implements ``columns``: the scores and details of all pairs, from where the relevant ids stand. It says
    whether it looks at everything where it has no k (``whole``), and for the first relevant id alone (``first``).
    """

    family: ClassVar[str] = "retrieval"
    reads: ClassVar[frozenset[str]] = frozenset({"relevant", "k"})
    whole: ClassVar[bool] = False
    first: ClassVar[bool] = False

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

    @property
    def wants_first(self) -> bool:
        """Whether it looks for the first relevant id however deep that stands, and for nothing else."""
        return self.first and self.own_k is None

    def is_even(self, pairs: Pairs) -> bool:  # noqa: ARG002 - others need them
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
    columns = ranked_columns(metrics, samples, outputs)
    return [_marks(column, metric.threshold) for metric, column in zip(metrics, columns, strict=True)]


class Column(NamedTuple):
    """What one metric finds in a batch.

    Attributes:
        places: Which of the batch have a score.
        scores: Their scores.
        details: Their details, made as they are asked for.
        faults: Why the others have none, by position in the batch.
    """

    places: Sequence[int]
    scores: NDArray[np.float64]
    details: Iterable[dict[str, Any]]
    faults: Mapping[int, Fault]


def ranked_columns(metrics: Sequence[Ranked], samples: Sequence[Sample], outputs: Sequence[Output]) -> list[Column]:
    """Score many outputs by several metrics, reading every ranking once, and no deeper than these look.

    Returns:
        A column for each metric.

    >>> from deemster.metrics.retrieval import RetrievalMrr
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
    hits, unread = located(pairs, depths=needed.tolist(), first=any(metric.wants_first for metric in metrics))
    # What is wrong with a sample comes before what is wrong with its output.
    return [
        _column(metric, hits, deep, {**pairs.faults, **unread, **unclear})
        for metric, (deep, unclear) in zip(metrics, reaches, strict=True)
    ]


def _column(metric: Ranked, hits: Hits, deep: Depths, faults: Mapping[int, Fault]) -> Column:
    if faults:
        is_sound = np.isin(hits.places, list(faults), invert=True)
        hits, deep = hits.only(is_sound), deep[is_sound]
    return Column(hits.places, *metric.columns(hits, deep), faults)


def _reach(metric: Ranked, samples: Sequence[Sample], pairs: Pairs) -> tuple[Depths, dict[int, Fault]]:
    """How deep to look into each ranking, and what is wrong with the samples that do not say."""
    deep = np.full(len(pairs.places), min(metric.own_k or WHOLE, WHOLE), dtype=np.int64)
    faults: dict[int, Fault] = {}
    if metric.is_even(pairs):
        return deep, faults
    for pair, (place, gains) in enumerate(zip(pairs.places, pairs.gains, strict=True)):
        try:
            deep[pair] = min(metric.reach(samples[place], gains) or WHOLE, WHOLE)
        except Fault as fault:
            faults[place] = fault
    return deep, faults


def _marks(column: Column, threshold: Any) -> list[Mark]:
    """The marks of one metric, in the order of the batch."""
    places, scores, details, faults = column
    # Counts, ids and finite sums need no second look, so the details go in frozen.
    scored: list[Mark] = [
        MetricScore(score, FrozenDict(detail), None, threshold)
        for score, detail in zip(scores.tolist(), details, strict=True)
    ]
    if not faults:
        return scored
    marks: dict[int, Mark] = {place: Unscored(fault.cause, fault.message) for place, fault in faults.items()}
    marks.update(zip(places, scored, strict=True))
    return [marks[place] for place in sorted(marks)]
