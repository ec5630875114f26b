"""The summary of every sample over its repetitions, computed in blocks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.formats.streamed_list import Stream
from deemster.records import SampleFacts
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import SCORED
from deemster.stats import wilson
from deemster.stats.confidence_interval import Interval, interval_ends

# Reports show so many decimals. Rounding here, in blocks, makes writing a million samples faster.
DECIMALS = 9
_BLOCK = 4096


class MetricSpread(msgspec.Struct, frozen=True, gc=False):
    """One metric over the repetitions of one sample."""

    mean: float | None
    stdev: float | None
    min: float | None
    max: float | None
    n: int


_NOTHING = MetricSpread(None, None, None, None, 0)


class AggregateEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an aggregator makes of one sample: success in every repetition, and the mean score."""

    success: bool
    score: float


class SampleEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """One sample of a report, over its repetitions.

    Attributes:
        id: The sample's id.
        row_hash: The hash of its input and expected output.
        tags: Its tags.
        repetitions: How often it was run.
        passed: Repetitions in which every metric that applies passed; 0 where none applies.
        unscored: Marks without a score, those not run included.
        pass_rate: passed / repetitions; None where no metric applies.
        interval: Wilson's 95 % interval of the pass rate.
        unstable: Whether it passed sometimes but not always.
        score_mean: Mean over repetitions of the mean score of the repetition's scored marks.
        score_stdev: Their standard deviation; None below two repetitions.
        metrics: Each metric over the repetitions.
        aggregate: What the aggregator makes of it; None without an aggregator, or where no metric of it applies.
        expected_output: What should come out.
        input: What the target receives.
        not_applicable: Metrics that do not apply to it.
    """

    id: str
    row_hash: str | None
    tags: tuple[str, ...]
    repetitions: int
    passed: int
    unscored: int
    pass_rate: float | None
    interval: Interval | None
    unstable: bool
    score_mean: float | None
    score_stdev: float | None
    metrics: dict[str, MetricSpread]
    aggregate: AggregateEntry | None
    expected_output: Any
    input: Any
    not_applicable: tuple[str, ...] = ()


def summarize_samples(marks: MarkTable, samples: Iterable[SampleFacts]) -> Iterator[SampleEntry]:
    """The entry of every sample.

    Args:
        marks: The marks of a run.
        samples: Its samples, in the order of the dataset.
    """
    facts = iter(samples)
    for start in range(0, marks.samples, _BLOCK):
        yield from _summarize_block(marks, slice(start, start + _BLOCK), facts)


def summarize_sample(marks: MarkTable, position: int, sample: SampleFacts) -> SampleEntry:
    """The entry of one sample.

    Args:
        marks: The marks of a run.
        position: The place of the sample in it.
        sample: The sample.
    """
    return next(_summarize_block(marks, slice(position, position + 1), iter((sample,))))


def _summarize_block(marks: MarkTable, block: slice, facts: Iterator[SampleFacts]) -> Iterator[SampleEntry]:
    names = [card.name for card in marks.cards]
    repetitions = marks.repetitions
    intervals = [_interval(passed, repetitions) for passed in range(repetitions + 1)]
    rates = [round(passed / repetitions, DECIMALS) for passed in range(repetitions + 1)]

    scores, scored = marks.scores[block], marks.causes[block] == SCORED
    applies = marks.applies_to(block)
    outside = np.logical_not(applies)[:, None, :]
    passed = _passed_repetitions(marks, block, applies).tolist()
    unscored = (~scored & ~outside).sum(axis=(1, 2)).tolist()
    left_out = [tuple(compress(names, row)) for row in (~applies).tolist()] if outside.any() else None
    columns = [_spreads(scores[:, :, place], scored[:, :, place]) for place in range(len(names))]
    means = _spreads(*_repetition_means(scores, scored))
    aggregates = _aggregates(marks, block)

    for place, (count, mean) in enumerate(zip(passed, means, strict=True)):
        sample = next(facts)
        without = () if left_out is None else left_out[place]
        is_marked = len(without) < len(names)
        yield SampleEntry(
            id=sample.id,
            row_hash=sample.row_hash,
            tags=sample.tags,
            repetitions=repetitions,
            passed=count,
            unscored=unscored[place],
            pass_rate=rates[count] if is_marked else None,
            interval=intervals[count] if is_marked else None,
            unstable=repetitions > 1 and 0 < count < repetitions,
            score_mean=mean.mean,
            score_stdev=mean.stdev,
            metrics={name: column[place] for name, column in zip(names, columns, strict=True)},
            aggregate=None if aggregates is None else aggregates[place],
            expected_output=sample.expected_output,
            input=sample.input,
            not_applicable=without,
        )


def _passed_repetitions(marks: MarkTable, block: slice, applies: NDArray[np.bool_]) -> NDArray[np.int64]:
    """In how many repetitions every metric that applies to a sample passed; 0 where none applies."""
    every = (marks.passed[block] | np.logical_not(applies)[:, None, :]).all(axis=2).sum(axis=1)
    return np.where(applies.any(axis=1), every, 0)


def failing_positions(marks: MarkTable, higher_is_better: Sequence[bool]) -> NDArray[np.int64]:
    """The samples that did not pass in every repetition, worst first; equal ones in the order of the dataset.

    The worst pass in the fewest repetitions, and of these have the lowest mean score over their metrics, where 1 is
    best and a metric without a score counts as 0.

    Args:
        marks: The marks of a run.
        higher_is_better: For each metric, whether 1 is its best score.
    """
    whole = slice(None)
    applies = marks.applies_to(whole)
    passed = _passed_repetitions(marks, whole, applies)
    failing = np.flatnonzero((passed < marks.repetitions) & applies.any(axis=1))

    totals = np.zeros(len(failing))
    for place, is_upwards in enumerate(higher_is_better):
        scored = marks.causes[failing, :, place] == SCORED
        means = np.array(_rounded(_means(marks.scores[failing, :, place], scored)))
        goodness = np.where(scored.any(axis=1), means if is_upwards else 1 - means, 0.0)
        totals += np.where(applies[failing, place], goodness, 0.0)
    scores = totals / np.maximum(applies[failing].sum(axis=1), 1)
    return np.asarray(failing[np.lexsort((failing, scores, passed[failing]))])


class SampleEntries(Stream[SampleEntry]):
    """The entries of the samples of a run, with what their marks tell without making them.

    Args:
        make: Makes the entries, from the first on.
        pick: Makes the entry at a position.
        marks: Gives the marks of the run, once they are needed.
        higher_is_better: For each metric, whether 1 is its best score.
    """

    def __init__(
        self,
        make: Callable[[], Iterator[SampleEntry]],
        *,
        pick: Callable[[int], SampleEntry],
        marks: Callable[[], MarkTable],
        higher_is_better: Sequence[bool],
    ) -> None:
        super().__init__(make, pick=pick)
        self._entry = pick
        self._marks = marks
        self._higher_is_better = higher_is_better

    def map(self, change: Callable[[SampleEntry], SampleEntry]) -> SampleEntries:
        """The same entries, each changed in what its marks do not tell."""
        return SampleEntries(
            lambda: map(change, self),
            pick=lambda position: change(self._entry(position)),
            marks=self._marks,
            higher_is_better=self._higher_is_better,
        )

    @functools.cached_property
    def failing(self) -> list[int]:
        """The places of the samples that did not pass in every repetition, worst first."""
        return list(map(int, failing_positions(self._marks(), self._higher_is_better)))

    def output_chars(self) -> NDArray[np.float64]:
        """The length of each sample's output, the mean over its repetitions; an output that is not there has none."""
        return np.asarray(np.maximum(self._marks().output_chars, 0).mean(axis=1))

    def mean_scores(self, metric: str) -> list[float | None]:
        """The score of each sample, the mean over its repetitions; None where it has none."""
        marks = self._marks()
        place = marks.names.index(metric)
        scored = marks.causes[:, :, place] == SCORED
        means = _rounded(_means(marks.scores[:, :, place], scored))
        return [mean if known else None for mean, known in zip(means, scored.any(axis=1).tolist(), strict=True)]


def _aggregates(marks: MarkTable, block: slice) -> list[AggregateEntry | None] | None:
    if marks.aggregates is None:
        return None
    successes, scores = marks.aggregates.successes[block], marks.aggregates.scores[block]
    # Sorted within the sample, so that the order of repetitions cannot change a digit.
    means = np.sort(scores, axis=1).sum(axis=1) / marks.repetitions
    every: list[bool] = np.all(successes, axis=1).tolist()
    covered = marks.aggregates.covers(marks.applies_to(block)).tolist()
    found = map(AggregateEntry, every, _rounded(means))
    return [entry if is_covered else None for entry, is_covered in zip(found, covered, strict=True)]


def _interval(passed: int, repetitions: int) -> Interval:
    interval = interval_ends(wilson(passed, repetitions).interval)
    if interval is None:
        raise ValueError("A sample is run at least once.")
    return Interval(*(round(end, DECIMALS) for end in interval))


def _repetition_means(
    scores: NDArray[np.float64], scored: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    counts = scored.sum(axis=2)
    sums = np.where(scored, scores, 0.0).sum(axis=2)
    return sums / np.maximum(counts, 1), counts > 0


def _rounded(values: NDArray[np.float64]) -> list[float]:
    # Scores repeat, most of all 0 and 1, and rounding to decimals is slow: each value is rounded once.
    distinct, places = np.unique(values, return_inverse=True)
    rounded = [round(value, DECIMALS) for value in distinct.tolist()]
    return [rounded[place] for place in places.tolist()]


def _means(scores: NDArray[np.float64], scored: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean score of each sample over the repetitions that have one; 0 where none has."""
    if scores.shape[1] == 1:
        return np.where(scored, scores, 0.0)[:, 0]
    # Sorted within the sample, so that the order of repetitions cannot change a digit.
    ascending = np.sort(np.where(scored, scores, 0.0), axis=1)
    return np.asarray(ascending.sum(axis=1) / np.maximum(scored.sum(axis=1), 1))


def _spreads(scores: NDArray[np.float64], scored: NDArray[np.bool_]) -> list[MetricSpread]:
    if scores.shape[1] == 1:
        only = zip(_rounded(scores[:, 0]), scored[:, 0].tolist(), strict=True)
        return [MetricSpread(score, None, score, score, 1) if known else _NOTHING for score, known in only]
    counts = scored.sum(axis=1)
    means = _means(scores, scored)
    squares = np.sort(np.where(scored, (scores - means[:, None]) ** 2, 0.0), axis=1).sum(axis=1)
    stdevs = np.sqrt(squares / np.maximum(counts - 1, 1))
    low = np.where(scored, scores, np.inf).min(axis=1)
    high = np.where(scored, scores, -np.inf).max(axis=1)
    stdevs[low == high] = 0.0
    return [
        MetricSpread(mean, stdev if n > 1 else None, least, most, n) if n else _NOTHING
        for mean, stdev, least, most, n in zip(*map(_rounded, (means, stdevs, low, high)), counts.tolist(), strict=True)
    ]
