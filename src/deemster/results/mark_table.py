"""The marks of a run as arrays, filled in whatever order executions arrive."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.errors import ConfigurationError, Issue
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats.json_values import json_bytes
from deemster.records import (
    BROKEN_OFF,
    CAUSES,
    BrokenOff,
    Execution,
    MetricCard,
    MetricScore,
    NotApplicable,
    Output,
    TargetFailure,
    Usage,
)
from deemster.records.marks import failed_votes
from deemster.results.metric_aggregators import Aggregator, aggregator_name, narrow_aggregator, result_from_mark
from deemster.results.metric_summary import (
    NOT_RUN,
    OUTSIDE,
    SCORED,
    Clusters,
    CriterionSummary,
    PanelSummary,
    mean_interval,
    sample_means,
)
from deemster.results.usage_and_cost import USAGE, UsageAccount, usage_numbers

# The detail of a mark that reports on its criteria, by name.
_DETAIL = "criteria"
# How the state of a criterion is coded; the values that occur have the codes from `_FIRST` on.
_ABSENT, _FAILED, _ABSTAINED, _FIRST = 0, 1, 2, 3


def output_digest(text: str, retrieved: Any, trajectory: Any) -> int:
    """A number that two outputs share only if text, retrieved passages and trajectory are the same; never 0.

    >>> output_digest("Yes.", None, None) == output_digest("Yes.", ["doc-1"], None)
    False
    """
    said = text.encode("utf-8", "surrogatepass")
    if retrieved is not None or trajectory is not None:
        said += b"\0" + json_bytes([retrieved, trajectory])
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "little", signed=True) or 1


class AggregateColumns:
    """The aggregates of a run, as arrays of samples x repetitions.

    A missing execution counts as failed with a score of 0, like one whose marks are all errors. Only metrics that apply
    to the sample count.

    Args:
        aggregator: Makes one result of the marks of an execution.
        names: The metrics, in the order of the marks.
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, aggregator: Aggregator, names: Sequence[str], *, samples: int, repetitions: int) -> None:
        self.aggregator = aggregator
        self.name = aggregator_name(aggregator)
        self.names = tuple(names)
        self.successes: NDArray[np.bool_] = np.zeros((samples, repetitions), dtype=np.bool_)
        self.scores: NDArray[np.float64] = np.zeros((samples, repetitions))
        self._narrow = functools.cache(self._narrowed)

    def covers(self, applies: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """For each sample, whether it has an aggregate: some of the metrics that the aggregator looks at apply to it.

        Args:
            applies: For each sample and metric, whether the metric applies to the sample.
        """
        if applies.all():
            return np.ones(len(applies), dtype=np.bool_)
        patterns, places = np.unique(applies, axis=0, return_inverse=True)
        found = [self._narrow(tuple(compress(self.names, pattern))) is not None for pattern in patterns.tolist()]
        return np.array(found, dtype=np.bool_)[places.ravel()]

    def _narrowed(self, names: tuple[str, ...]) -> Aggregator | None:
        return self.aggregator if names == self.names else narrow_aggregator(self.aggregator, names)

    def add(self, executions: Sequence[Execution]) -> None:
        """Aggregate executions. Their order changes nothing.

        Raises:
            ConfigurationError: The aggregator does not fit a mark or raises, or its score is outside [0, 1].
        """
        found = [self._outcome(execution) for execution in executions]
        at = [execution.position for execution in executions], [execution.repetition for execution in executions]
        self.successes[at] = [success for success, _ in found]
        self.scores[at] = [score for _, score in found]

    def _outcome(self, execution: Execution) -> tuple[bool, float]:
        results = {
            name: result_from_mark(mark)
            for name, mark in zip(self.names, execution.marks, strict=True)
            if not isinstance(mark, NotApplicable)
        }
        aggregator = self._narrow(tuple(results))
        if aggregator is None:
            return False, 0.0
        with UserCodeGuard() as caught:
            found = aggregator.aggregate(results)
        if isinstance(caught.error, ConfigurationError):
            raise ConfigurationError(issue._replace(sample=execution.id) for issue in caught.error.issues) from None
        if caught.error is not None:
            message = f"The aggregator {self.name} failed: {caught.message}"
            raise ConfigurationError(Issue(message, sample=execution.id)) from caught.error
        if not 0.0 <= found.aggregate_score <= 1.0:
            message = f"The aggregator {self.name} gives the score {found.aggregate_score!r}; it lies between 0 and 1."
            raise ConfigurationError(Issue(message, sample=execution.id))
        return found.aggregate_success, found.aggregate_score


class CriterionColumns:
    """The criteria of one metric over a run, filled in whatever order marks arrive.

    Args:
        names: The criteria, in the order of the rubric.
        samples: How many samples the dataset has.
        repetitions: How often each is run.
    """

    def __init__(self, names: Sequence[str], *, samples: int, repetitions: int) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        # Few values occur, so each is stored as a code of two bytes, or four if there are too many for two.
        self._codes: NDArray[np.unsignedinteger] = np.zeros((samples, repetitions, len(names)), dtype=np.uint16)
        self._most = np.iinfo(np.uint16).max
        self._values: dict[float, int] = {}
        self._agreements: list[Counter[float]] = [Counter() for _ in names]

    def add(self, executions: Sequence[Execution], column: int) -> None:
        """Count the marks of one column of executions.

        Args:
            executions: What was run.
            column: The place of the metric among their marks.
        """
        for execution in executions:
            mark = execution.marks[column]
            details = mark.details.get(_DETAIL) if isinstance(mark, MetricScore) else None
            if isinstance(details, Mapping):
                self.put(execution.position, execution.repetition, details)

    def put(self, position: int, repetition: int, details: Mapping[str, Any]) -> None:
        """Count what was said of one output.

        Args:
            position: The place of its sample.
            repetition: Its repetition.
            details: By criterion, its value, whether it failed, and the agreement of the judges.
        """
        for name, entry in details.items():
            place = self._places.get(name)
            if place is not None and isinstance(entry, Mapping):
                # The code comes first: one that needs four bytes makes a new array.
                code = self._code(entry)
                self._codes[position, repetition, place] = code
                agreement = entry.get("agreement")
                if isinstance(agreement, (int, float)):
                    self._agreements[place][float(agreement)] += 1

    def _code(self, entry: Mapping[str, Any]) -> int:
        value = entry.get("value")
        if not isinstance(value, (int, float)):
            return _FAILED if entry.get("failed") else _ABSTAINED
        code = self._values.setdefault(float(value), len(self._values) + _FIRST)
        if code > self._most:
            self._codes, self._most = self._codes.astype(np.uint32), np.iinfo(np.uint32).max
        return code

    def with_rows(self, other: CriterionColumns, rows: NDArray[np.bool_]) -> CriterionColumns:
        """The criteria with some samples taken from another run of the same samples; agreements stay as they are.

        Args:
            other: The other run.
            rows: For each sample, whether it is taken from there.
        """
        samples, repetitions, _ = self._codes.shape
        mixed = CriterionColumns(tuple(self._places), samples=samples, repetitions=repetitions)
        mixed._values, mixed._agreements = dict(self._values), self._agreements
        known = (mixed._values.setdefault(value, len(mixed._values) + _FIRST) for value in other._values)
        codes = np.array([*range(_FIRST), *known], dtype=np.uint32)
        mixed._codes = self._codes.astype(np.uint32)
        mixed._codes[rows] = codes[other._codes[rows]]
        return mixed

    def values(self) -> dict[str, NDArray[np.float64]]:
        """The value of each criterion by sample and repetition; NaN where it was not judged."""
        known = np.array([math.nan] * _FIRST + list(self._values))
        return {name: known[self._codes[:, :, place]] for name, place in self._places.items()}

    def summarize(self, clusters: Clusters = None) -> dict[str, CriterionSummary]:
        """The summary of each criterion, in the order of the rubric."""
        known = np.array([0.0] * _FIRST + list(self._values))
        found = {}
        for name, place in self._places.items():
            codes = self._codes[:, :, place]
            judged = codes >= _FIRST
            count = int(np.count_nonzero(judged))
            values = known[codes]
            agreements = self._agreements[place]
            found[name] = CriterionSummary(
                n=int(np.count_nonzero(codes != _ABSENT)),
                n_judged=count,
                n_abstained=int(np.count_nonzero(codes == _ABSTAINED)),
                n_failed=int(np.count_nonzero(codes == _FAILED)),
                mean=math.fsum(values[judged].tolist()) / count if count else None,
                mean_interval=mean_interval(
                    sample_means(values, judged), None if clusters is None else clusters[judged.any(axis=1)]
                ),
                mean_agreement=_mean(agreements),
            )
        return found


class PanelColumn:
    """Counts the scores of one metric that panels of judges gave."""

    def __init__(self, counted: PanelSummary = PanelSummary()) -> None:  # noqa: B008 - frozen
        self._scores = counted.n
        self._incomplete = counted.n_incomplete
        self._quorum = counted.quorum

    def add(self, mark: MetricScore) -> None:
        """Count a score that has votes."""
        self._scores += 1
        self._incomplete += any(True for _ in failed_votes(mark.details))
        quorum = mark.details.get("quorum")
        self._quorum = quorum if type(quorum) is int else self._quorum

    def summarize(self) -> PanelSummary | None:
        """The counts; None where no vote is missing, and none may be."""
        if not self._incomplete and self._quorum is None:
            return None
        return PanelSummary(n=self._scores, n_incomplete=self._incomplete, quorum=self._quorum)


_CAUSE_CODES = {cause: place for place, cause in enumerate(CAUSES, start=1)}


class MarkTable:
    """The marks of a run, as arrays of samples x repetitions x metrics.

    In `causes`, `SCORED` stands for a score, `OUTSIDE` for a metric that does not apply to the sample, and any other
    number for 1 + the place of the cause in ``CAUSES``.

    Args:
        cards: The metrics, in the order of the suite.
        samples: How many samples the dataset has.
        repetitions: How often each is run.
        aggregator: Makes one result of the marks of an execution; None if the run has none.

    Attributes:
        broken_off: Why each output ends early, by sample and repetition: 1 + its place in `BROKEN_OFF`, and 0 where it
            does not.
        counted: How many executions were added.
        clusters: The number of each sample's cluster; None where samples stand alone.
        outputs: A digest of each output, by sample and repetition; 0 where there is none.
        output_chars: The length of each output, by sample and repetition; -1 where there is none.
        usage: What the target used for each output, by sample, repetition and place in `USAGE`; NaN where that is not
            known, and None where it is known of no output.
    """

    def __init__(
        self, cards: Sequence[MetricCard], *, samples: int, repetitions: int, aggregator: Aggregator | None = None
    ) -> None:
        shape = (samples, repetitions, len(cards))
        self.cards = tuple(cards)
        self.samples = samples
        self.repetitions = repetitions
        self.scores: NDArray[np.float64] = np.zeros(shape)
        self.causes: NDArray[np.uint8] = np.full(shape, NOT_RUN, dtype=np.uint8)
        self.passed: NDArray[np.bool_] = np.zeros(shape, dtype=np.bool_)
        self.aggregates: AggregateColumns | None = None
        if aggregator is not None:
            names = [card.name for card in cards]
            self.aggregates = AggregateColumns(aggregator, names, samples=samples, repetitions=repetitions)
        self.outputs: NDArray[np.int64] = np.zeros((samples, repetitions), dtype=np.int64)
        self.output_chars: NDArray[np.int32] = np.full((samples, repetitions), -1, dtype=np.int32)
        self.broken_off: NDArray[np.uint8] = np.zeros((samples, repetitions), dtype=np.uint8)
        self.usage: NDArray[np.float64] | None = None
        self.counted = 0
        self.target_failures = 0
        self.without_usage = 0
        self.thresholds: list[set[float]] = [set() for _ in cards]
        self.criteria = {
            place: CriterionColumns(card.parts, samples=samples, repetitions=repetitions)
            for place, card in enumerate(cards)
            if card.parts
        }
        self.directions: list[set[bool]] = [set() for _ in cards]
        self._panels: dict[str, PanelColumn] = {}
        self.target_usage = UsageAccount()
        self.scoring_usage = [UsageAccount() for _ in cards]
        self.further_usage = UsageAccount()
        self.clusters: Clusters = None
        self._tags: dict[str, array[int]] = {}
        self._untagged = array("i")

    @property
    def names(self) -> list[str]:
        """The metrics, in the order of the suite."""
        return [card.name for card in self.cards]

    def panel_summaries(self) -> dict[str, PanelSummary]:
        """The panels behind the scores of each metric that lacks a vote, or may lack one."""
        summaries = {}
        for card in self.cards:
            if card.name in self._panels and (summary := self._panels[card.name].summarize()) is not None:
                summaries[card.name] = summary
        return summaries

    def restore_panels(self, summaries: Mapping[str, PanelSummary] | None) -> None:
        """Take over what was counted when the marks were made.

        Args:
            summaries: What `panel_summaries` gave then.
        """
        self._panels = {name: PanelColumn(summary) for name, summary in (summaries or {}).items()}

    def tag(self, position: int, tags: Iterable[str]) -> None:
        """Note the tags of the sample at a position.

        Args:
            position: The place of the sample in the dataset.
            tags: Its tags.
        """
        noted = False
        for tag in tags:
            self._tags.setdefault(tag, array("i")).append(position)
            noted = True
        if not noted:
            self._untagged.append(position)

    def tag_many(self, positions: NDArray[np.int64], tag: str | None) -> None:
        """Note a tag of several samples.

        Args:
            positions: The places of the samples in the dataset, in order, behind those noted before.
            tag: The tag; None for samples without any.
        """
        noted = self._untagged if tag is None else self._tags.setdefault(tag, array("i"))
        noted.frombytes(positions.astype(np.intc).tobytes())

    @property
    def cohorts(self) -> list[tuple[str | None, NDArray[np.int64]]]:
        """The tags by code point, each with the positions of its samples; untagged samples come last, if any."""
        found: list[tuple[str | None, NDArray[np.int64]]] = [
            (tag, np.array(self._tags[tag], dtype=np.int64)) for tag in sorted(self._tags)
        ]
        if self._untagged:
            found.append((None, np.array(self._untagged, dtype=np.int64)))
        return found

    def keep_cohorts(self, is_kept: Callable[[str | None], bool]) -> None:
        """Forget the cohorts that nobody looks at, which makes summaries and comparisons quicker.

        Args:
            is_kept: Whether a tag is kept; None stands for samples without one.
        """
        self._tags = {tag: positions for tag, positions in self._tags.items() if is_kept(tag)}
        self._untagged = self._untagged if is_kept(None) else array("i")

    def leave_out(self, position: int, place: int) -> None:
        """Note that a metric does not apply to the sample at a position.

        Args:
            position: The place of the sample in the dataset.
            place: The place of the metric among the cards.
        """
        self.causes[position, :, place] = OUTSIDE

    def clusters_at(self, positions: NDArray[np.int64] | slice) -> Clusters:
        """The clusters of some samples; None where samples stand alone."""
        return None if self.clusters is None else self.clusters[positions]

    def applies_to(self, positions: NDArray[np.int64] | slice) -> NDArray[np.bool_]:
        """For each of some samples and each metric, whether the metric applies to the sample.

        Args:
            positions: The places of the samples in the dataset.
        """
        return np.asarray((self.causes[positions] != OUTSIDE).any(axis=1))

    def empty_copy(self) -> MarkTable:
        """A table of the same run with the tags of its samples and no mark."""
        aggregator = None if self.aggregates is None else self.aggregates.aggregator
        empty = MarkTable(self.cards, samples=self.samples, repetitions=self.repetitions, aggregator=aggregator)
        empty._tags, empty._untagged = self._tags, self._untagged
        empty.causes[self.causes == OUTSIDE] = OUTSIDE
        return empty

    def with_rows(self, other: MarkTable, rows: NDArray[np.bool_]) -> MarkTable:
        """The marks with some samples taken from another run of the same samples; usage stays as it is.

        Args:
            other: The other run.
            rows: For each sample, whether it is taken from there.
        """
        mixed = copy.copy(self)
        for name in ("scores", "causes", "passed", "outputs", "output_chars", "broken_off"):
            setattr(mixed, name, _with_rows(getattr(self, name), getattr(other, name), rows))
        if self.aggregates is not None and other.aggregates is not None:
            mixed.aggregates = copy.copy(self.aggregates)
            mixed.aggregates.successes = _with_rows(self.aggregates.successes, other.aggregates.successes, rows)
            mixed.aggregates.scores = _with_rows(self.aggregates.scores, other.aggregates.scores, rows)
        mixed.criteria = {place: own.with_rows(other.criteria[place], rows) for place, own in self.criteria.items()}
        return mixed

    def add(self, executions: Sequence[Execution]) -> None:
        """Add executions. Their order changes nothing.

        Args:
            executions: The executions, as `PaidExecutions` gives them, so that no call counts twice.

        Raises:
            ConfigurationError: The aggregator does not fit a mark.
        """
        at = (
            np.fromiter((execution.position for execution in executions), np.int64, len(executions)),
            np.fromiter((execution.repetition for execution in executions), np.int64, len(executions)),
        )
        for execution in executions:
            self._add_answer(execution)
        for column in range(len(self.cards)):
            scores, causes, passed = self._column(executions, column)
            self.scores[*at, column] = scores
            if self.cards[column].where is not None:
                # A mark that was not made, of a metric that does not apply, would not have been made either.
                known = self.causes[*at, column] == OUTSIDE
                causes = np.where(known & (np.asarray(causes) == NOT_RUN), OUTSIDE, causes)
            self.causes[*at, column] = causes
            self.passed[*at, column] = passed
        for column, criteria in self.criteria.items():
            criteria.add(executions, column)
        if self.aggregates is not None:
            self.aggregates.add(executions)
        self.counted += len(executions)

    def _add_answer(self, execution: Execution) -> None:
        answer = execution.answer
        if isinstance(answer, Output):
            at = execution.position, execution.repetition
            self.outputs[at] = output_digest(answer.text, answer.retrieved, answer.trajectory)
            self.output_chars[at] = len(answer.text) if execution.cut is None else execution.cut.chars
            if answer.broken_off is not None:
                self.note_broken_off(at, answer.broken_off)
            if answer.usage is not None:
                self.target_usage.add(answer.usage, model=answer.model)
                self.note_usage(at, answer.usage)
            else:
                self.without_usage += 1
        elif isinstance(answer, TargetFailure):
            self.target_failures += 1

    def note_broken_off(self, at: tuple[int, int], reason: BrokenOff) -> None:
        """Note that an output ends early.

        Args:
            at: The place of its sample in the dataset, and its repetition.
            reason: Why it does.
        """
        self.broken_off[at] = 1 + BROKEN_OFF.index(reason)

    def note_usage(self, at: tuple[int, int], usage: Usage) -> None:
        """Note what the target used for an output.

        Args:
            at: The place of its sample in the dataset, and its repetition.
            usage: What it used.
        """
        if self.usage is None:
            self.usage = np.full((self.samples, self.repetitions, len(USAGE)), np.nan)
        self.usage[at] = usage_numbers(usage)

    def _column(self, executions: Sequence[Execution], column: int) -> tuple[list[float], NDArray[np.uint8], bytearray]:
        scores = [0.0] * len(executions)
        causes = bytearray(len(executions))
        passed = bytearray(len(executions))
        spending = self.scoring_usage[column]
        threshold: float | None = None
        upwards: bool | None = None
        for place, execution in enumerate(executions):
            mark = execution.marks[column]
            usage: Usage | None = mark.usage
            if usage is not None:
                spending.add(usage)
            if isinstance(mark, MetricScore):
                scores[place] = mark.score
                causes[place] = SCORED
                passed[place] = mark.success
                if mark.details and mark.details.get("votes"):
                    self._panels.setdefault(self.cards[column].name, PanelColumn()).add(mark)
                if mark.threshold != threshold or mark.higher_is_better is not upwards:
                    threshold, upwards = mark.threshold, mark.higher_is_better
                    self.thresholds[column].add(float(threshold))
                    self.directions[column].add(upwards)
            else:
                causes[place] = OUTSIDE if isinstance(mark, NotApplicable) else _CAUSE_CODES[mark.cause]
        return scores, np.frombuffer(causes, dtype=np.uint8), passed


def _with_rows(own: NDArray[Any], other: NDArray[Any], rows: NDArray[np.bool_]) -> NDArray[Any]:
    mixed = own.copy()
    mixed[rows] = other[rows]
    return mixed


def _mean(counts: Counter[float]) -> float | None:
    """The mean of counted numbers, added in ascending order, so that the order of arrival changes no digit."""
    total = counts.total()
    return math.fsum(value * counts[value] for value in sorted(counts)) / total if total else None
