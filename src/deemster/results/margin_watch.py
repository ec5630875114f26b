"""Watches the margins of a gate while a run goes on, and says when they are settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from deemster.records import Execution, Mark, MetricScore, NotApplicable
from deemster.results.compare_columns import comparable_metrics
from deemster.results.gate_rules import EVERY, BaselineRules, Gate
from deemster.results.metric_summary import Interval
from deemster.results.run_columns import RunColumns, join_samples
from deemster.results.run_summary import cohort_label
from deemster.stats import EarlyStopping, confidence_sequence
from deemster.stats.early_stopping import Settled


class SequentialCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the samples that were run so far say about one margin, however often it was looked at.

    Attributes:
        n: How many units were seen: samples, or clusters of them.
        settled: Whether the drop is settled to be within the margin or beyond it; None for neither.
        at: After how many units it was settled.
        p_within: Against a drop of the margin or more, valid at every look.
        p_beyond: Against a drop of at most the margin, in the same way.
        interval: The interval of the difference that holds at every look; None where units are clusters.
    """

    n: int
    settled: Settled | None
    at: int | None
    p_within: float
    p_beyond: float
    interval: Interval | None


class MarginWatch:
    """Watches every margin check of a gate, sample by sample in the order in which they were drawn.

    Samples may finish in another order. Each counts once all of its repetitions, and all samples before it, are there:
    otherwise those that are quick to answer would count first.

    Args:
        gate: The gate.
        rules: Its rules about a baseline; they have a margin.
        baseline: The run before.
        candidate: The run now, in the order in which its samples were drawn, without marks.
    """

    def __init__(self, gate: Gate, rules: BaselineRules, baseline: RunColumns, candidate: RunColumns) -> None:
        self._confidence = rules.confidence
        joined = join_samples(baseline, candidate)
        names, _ = comparable_metrics(baseline, candidate)
        places = {card.name: place for place, card in enumerate(candidate.marks.cards)}
        before = {card.name: place for place, card in enumerate(baseline.marks.cards)}
        self._names, self._columns = names, [places[name] for name in names]
        columns = [before[name] for name in names]
        self._applies = baseline.marks.applies_to(joined.before)[:, columns]
        self._passed = baseline.marks.passed[joined.before][:, :, columns]
        self._partners = {int(position): place for place, position in enumerate(joined.after)}
        self._repetitions = candidate.marks.repetitions
        self._parts = _parts(gate, rules, candidate, self._partners)
        units = candidate.clusters or range(candidate.marks.samples)
        self._units: Sequence[object] = units
        sizes: dict[object, int] = {}
        for position in self._partners:
            sizes[units[position]] = sizes.get(units[position], 0) + 1
        self._checks = self._open(rules, largest=max(sizes.values(), default=1))
        self._waiting: dict[int, list[tuple[Mark, ...]]] = {}
        self._next, self._samples = 0, candidate.marks.samples
        self._sums: dict[str, tuple[float, int]] = {}

    def _open(self, rules: BaselineRules, *, largest: int) -> dict[str, _Watched]:
        numbers = [*(["pass_rate"] if len(self._names) > 1 else []), *(f"metrics.{name}" for name in self._names)]
        prefixes = dict.fromkeys(prefix for found in self._parts.values() for prefix in found)
        names = [f"{prefix}{number}" for prefix in prefixes for number in numbers]
        margin = rules.margin or 0.0
        return {
            name: _Watched(
                EarlyStopping(
                    margin, confidence=rules.confidence, checks=max(1, len(names)), largest_size=float(largest)
                )
            )
            for name in names
        }

    def add(self, executions: Sequence[Execution]) -> None:
        """Note executions that finished, in any order."""
        for execution in executions:
            self._waiting.setdefault(execution.position, []).append(execution.marks)
        # What finishes after the decision does not count, so that the same run ends with the same samples.
        while self.decision is None and len(self._waiting.get(self._next, ())) == self._repetitions:
            self._count(self._next, self._waiting.pop(self._next))
            self._next += 1
            if self._next == self._samples or self._units[self._next] != self._units[self._next - 1]:
                self._close_unit()

    @property
    def counted(self) -> int:
        """How many samples were counted: all of the first so many are there."""
        return self._next

    @property
    def decision(self) -> Settled | None:
        """`fail` once a margin is exceeded, `pass` once all are kept; None before that, or where there is none."""
        settled = [check.settled for check in self._checks.values()]
        if "fail" in settled:
            return "fail"
        return "pass" if settled and None not in settled else None

    def checks(self) -> dict[str, SequentialCheck]:
        """What is known of each margin, by the name of its check."""
        return {name: check.describe(self._confidence) for name, check in self._checks.items()}

    def _count(self, position: int, marks: Sequence[tuple[Mark, ...]]) -> None:
        """Add the differences of a sample to its unit."""
        place = self._partners.get(position)
        if place is None:
            return
        own = [[repetition[column] for column in self._columns] for repetition in marks]
        moved = dict(self._differences(place, own))
        for prefix in self._parts[position]:
            for number, difference in moved.items():
                if (name := f"{prefix}{number}") in self._checks:
                    total, size = self._sums.get(name, (0.0, 0))
                    self._sums[name] = (total + difference, size + 1)

    def _differences(self, place: int, marks: Sequence[Sequence[Mark]]) -> Iterator[tuple[str, float]]:
        inside = np.array([not isinstance(mark, NotApplicable) for mark in marks[0]], dtype=np.bool_)
        passes = [[isinstance(mark, MetricScore) and mark.success for mark in each] for each in marks]
        applies, passed = self._applies[place] & inside, np.array(passes, dtype=np.bool_)
        before = self._passed[place]
        for column in np.flatnonzero(applies).tolist():
            yield f"metrics.{self._names[column]}", float(passed[:, column].mean() - before[:, column].mean())
        if applies.any():
            whole = (passed | ~applies).all(axis=1).mean() - (before | ~applies).all(axis=1).mean()
            yield "pass_rate", float(whole)

    def _close_unit(self) -> None:
        for name, (total, size) in self._sums.items():
            self._checks[name].add(total, size)
        self._sums = {}


class _Watched:
    """One margin, and the units that it has seen."""

    def __init__(self, stopping: EarlyStopping) -> None:
        self._stopping, self._evidence = stopping, stopping.add([])
        self._differences: list[float] = []
        self._is_plain = True

    @property
    def settled(self) -> Settled | None:
        """Whether it is settled, and how."""
        return self._evidence.settled

    def add(self, total: float, size: int) -> None:
        """Add a unit."""
        self._evidence = self._stopping.add([total], [float(size)])
        self._differences.append(total)
        self._is_plain = self._is_plain and size == 1

    def describe(self, confidence: float) -> SequentialCheck:
        """What is known."""
        found = self._evidence
        interval = confidence_sequence(self._differences, confidence=confidence) if self._is_plain else None
        return SequentialCheck(
            n=found.n,
            settled=found.settled,
            at=found.at,
            p_within=found.p_within,
            p_beyond=found.p_beyond,
            interval=None if interval is None else Interval(interval.lower, interval.upper),
        )


def _parts(
    gate: Gate, rules: BaselineRules, candidate: RunColumns, partners: Mapping[int, int]
) -> dict[int, list[str]]:
    """By the position of a joined sample, the beginnings of the names of its checks: the run, and its cohorts."""
    found: dict[int, list[str]] = {position: [""] for position in partners}
    for tag, positions in candidate.marks.cohorts:
        label = cohort_label(tag)
        inside = [int(position) for position in positions if int(position) in partners]
        least, _ = gate.min_samples.get(label, gate.min_samples.get(EVERY, (0, "")))
        if (EVERY in rules.cohorts or label in rules.cohorts) and len(inside) >= least:
            for position in inside:
                found[position].append(f"cohorts.{label}.")
    return found
