"""The mutation score of a suite: which planted defects its metrics notice, and which its gate would let through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.audit.metric_audit_report import metric_audit_sections
from deemster.records import CAUSES
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import OUTSIDE, SCORED
from deemster.results.run_summary import cohort_label
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import interval_ends
from deemster.stats.proportion_intervals import Proportion, wilson
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

_Bools: TypeAlias = NDArray[np.bool_]
METRIC_AUDIT_SCHEMA: Final = "deemster.metric_audit.v1"
# Where good outputs come from unless a run or a file is named.
EXPECTED: Final = "expected outputs"
# The shares of outputs with a defect that a gate is tried with.
SHARES = (0.1, 0.25, 0.5, 1.0)
# A metric that cannot read an output has noticed it: it does not pass.
_NOTICED = np.array([1 + CAUSES.index(cause) for cause in ("bad_output", "no_trajectory", "too_large")])


class KillRate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of outputs with a planted defect, how many no longer pass.

    Attributes:
        killed: Outputs that passed without the defect and do not pass with it.
        n: Outputs that passed without the defect.
        rate: The share; None where no output passed.
        low: The lower end of its interval (Wilson; of all defects together, over samples).
        high: The upper end.
        unscored: Outputs that are left out, since a model gave no mark.
    """

    killed: int
    n: int
    rate: float | None
    low: float | None
    high: float | None
    unscored: int = 0


class LetThrough(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often the gate passes where a share of the outputs has a defect.

    Attributes:
        share: The chance of each output, of those that can have the defect, to have it.
        passed: Draws in which the gate passed.
        draws: All draws.
        rate: The share of draws in which it passed.
        low: The lower end of its interval (Wilson); at a share of 1 there is one draw, which is all there is to know.
        high: The upper end.
    """

    share: float
    passed: int
    draws: int
    rate: float
    low: float
    high: float


class DefectAudit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of one kind of defect.

    Attributes:
        what: What is wrong with an output that has it.
        planted: Samples in which it was planted.
        not_applicable: Samples in which it could not be.
        suite: Outputs with the defect that at least one metric no longer passes.
        metrics: The same for each metric.
        cohorts: The same as `suite` for each cohort.
        gate: What the gate does, for each share of outputs with the defect; empty where there is no gate to try.
    """

    what: str
    planted: int
    not_applicable: int
    suite: KillRate
    metrics: dict[str, KillRate]
    cohorts: dict[str, KillRate]
    gate: tuple[LetThrough, ...] = ()


class ReferenceFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A good output that does not pass a metric: the sample or the metric is broken.

    Attributes:
        id: The sample.
        metric: The metric.
        score: Its score; None where it has none.
        cause: Why it has no score.
    """

    id: str
    metric: str
    score: float | None
    cause: str | None


class MetricAudit(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mutation score of a suite.

    Attributes:
        suite: The suite's name.
        dataset: The dataset's name.
        source: Where the good outputs come from: the expected outputs, a run, or a file.
        samples: Samples whose good output was taken.
        left_out: The other samples: they have none, or were not drawn.
        confidence: The level of the intervals.
        seed: The seed of what was planted and drawn.
        metrics: The names of the metrics, in the order of the suite.
        references: Good outputs that a metric applies to, and how many pass it, over all metrics.
        faults: The good outputs that do not pass.
        score: Over all defects, the planted outputs that at least one metric no longer passes; it has no interval of
            its own, since one sample carries many defects.
        defects: What became of each kind of defect.
        gate_checks: The checks of the gate that were tried.
        gate_unmet: The checks that the good outputs themselves do not pass; the gate was tried without them.
        stopped: Why the audit ended early; None where it did not.
    """

    schema_version: str = METRIC_AUDIT_SCHEMA
    tool_version: str
    suite: str
    dataset: str
    source: str
    samples: int
    left_out: int
    confidence: float
    seed: int
    metrics: tuple[str, ...]
    references: KillRate
    faults: tuple[ReferenceFault, ...]
    score: KillRate
    defects: dict[str, DefectAudit]
    gate_checks: tuple[str, ...]
    gate_unmet: tuple[str, ...]
    stopped: str | None = None

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return metric_audit_sections(self)

    @property
    def is_of_expected_outputs(self) -> bool:
        """Whether the outputs that were spoiled are the expected ones."""
        return self.source == EXPECTED


class PlantedMarks(NamedTuple):
    """The marks of outputs with one kind of defect.

    Attributes:
        what: What is wrong with an output that has it.
        marks: The marks, at the places of the samples.
        planted: For each sample, whether the defect was planted.
    """

    what: str
    marks: MarkTable
    planted: NDArray[np.bool_]


def kill_rate(killed: int, n: int, *, confidence: float, unscored: int = 0) -> KillRate:
    """A share of killed outputs with its interval."""
    found = wilson(killed, n, confidence=confidence)
    return KillRate(killed=killed, n=n, unscored=unscored, **_ends(found), rate=found.value)


def _ends(found: Proportion) -> dict[str, float | None]:
    interval = found.interval
    return {"low": None, "high": None} if interval is None else {"low": interval.lower, "high": interval.upper}


def audit_defect(
    reference: MarkTable, defect: PlantedMarks, *, confidence: float, gate: Sequence[LetThrough] = ()
) -> DefectAudit:
    """Count which outputs with a defect no longer pass.

    An output counts for a metric where it passed without the defect. One that the metric cannot read any more is
    killed; one that has no mark because a model failed is left out.

    Args:
        reference: The marks of the good outputs.
        defect: The marks of the same outputs with the defect.
        confidence: The level of the intervals.
        gate: What the gate does with the defect.
    """
    counted, killed, unscored = _count_kills(reference, defect)

    def whole(rows: NDArray[np.int64] | slice) -> KillRate:
        any_killed, some = killed[rows].any(axis=1), counted[rows].any(axis=1)
        left_out = int(np.count_nonzero(unscored[rows].any(axis=1) & ~some))
        return kill_rate(int(any_killed.sum()), int(some.sum()), confidence=confidence, unscored=left_out)

    planted = int(defect.planted.sum())
    return DefectAudit(
        what=defect.what,
        planted=planted,
        not_applicable=reference.samples - planted,
        suite=whole(slice(None)),
        metrics={
            card.name: kill_rate(
                int(killed[:, place].sum()),
                int(counted[:, place].sum()),
                confidence=confidence,
                unscored=int(unscored[:, place].sum()),
            )
            for place, card in enumerate(reference.cards)
        },
        cohorts={cohort_label(tag): whole(rows) for tag, rows in reference.cohorts},
        gate=tuple(gate),
    )


def _count_kills(reference: MarkTable, defect: PlantedMarks) -> tuple[_Bools, _Bools, _Bools]:
    """By sample and metric: which marks count, which are kills, and which are left out because a model failed."""
    before = reference.passed[:, 0, :] & defect.planted[:, None]
    causes = defect.marks.causes[:, 0, :]
    known = (causes == SCORED) | np.isin(causes, _NOTICED)
    return before & known, before & known & ~defect.marks.passed[:, 0, :], before & ~known


def total_kill_rate(reference: MarkTable, defects: Iterable[PlantedMarks], *, confidence: float) -> KillRate:
    """The kills of all defects together; the outputs of one sample are one unit of the interval.

    Args:
        reference: The marks of the good outputs.
        defects: The marks of the same outputs with each defect.
        confidence: The level of the interval.
    """
    killed, counted = np.zeros(reference.samples), np.zeros(reference.samples)
    unscored = 0
    for defect in defects:
        counts, kills, lost = (found.any(axis=1) for found in _count_kills(reference, defect))
        counted += counts
        killed += kills
        unscored += int(np.count_nonzero(lost & ~counts))
    known = counted > 0
    found = bounded_mean(killed[known], counted[known], confidence=confidence)
    low, high = interval_ends(found.interval) or (None, None)
    total = int(counted.sum())
    return KillRate(killed=int(killed.sum()), n=total, rate=found.value, low=low, high=high, unscored=unscored)


def check_references(
    reference: MarkTable, ids: Sequence[str], *, confidence: float
) -> tuple[KillRate, tuple[ReferenceFault, ...]]:
    """Which good outputs do not pass their own metrics, over all pairs of output and metric that applies.

    Args:
        reference: The marks of the good outputs.
        ids: The ids of the samples.
        confidence: The level of the interval.

    Returns:
        How many pairs fail, of all, and the pairs.
    """
    causes = reference.causes[:, 0, :]
    applies = causes != OUTSIDE
    failing = applies & ~reference.passed[:, 0, :]
    faults = tuple(
        ReferenceFault(
            id=ids[row],
            metric=reference.cards[place].name,
            score=float(reference.scores[row, 0, place]) if causes[row, place] == SCORED else None,
            cause=None if causes[row, place] == SCORED else CAUSES[int(causes[row, place]) - 1],
        )
        for row, place in zip(*(found.tolist() for found in np.nonzero(failing)), strict=True)
    )
    return kill_rate(len(faults), int(applies.sum()), confidence=confidence), faults


def try_gate(
    reference: MarkTable,
    defect: PlantedMarks,
    lets_through: Callable[[MarkTable], bool],
    *,
    draws: int,
    confidence: float,
    seed: int,
) -> list[LetThrough]:
    """How often a gate passes, where a share of the outputs has a defect.

    Each output that can have the defect has it with the chance of the share, drawn anew every time.

    Args:
        reference: The marks of the good outputs.
        defect: The marks of the same outputs with the defect.
        lets_through: Whether the gate passes marks.
        draws: How often outputs are drawn for each share.
        confidence: The level of the intervals.
        seed: The seed of the draws.
    """
    found = []
    decided: dict[bytes, bool] = {}
    for share in SHARES:
        drawn = np.random.default_rng([seed, round(share * 1000)])
        times = 1 if share == 1 else draws
        rows = [defect.planted & (drawn.random(len(defect.planted)) < share) for _ in range(times)]
        passed = 0
        for row in rows:
            # Where few outputs can have the defect, many draws are equal.
            key = row.tobytes()
            if key not in decided:
                decided[key] = lets_through(reference.with_rows(defect.marks, row))
            passed += decided[key]
        rate = wilson(passed, times, confidence=confidence)
        ends = _ends(rate) if times > 1 else {"low": 0.0, "high": 1.0}
        found.append(LetThrough(share=share, passed=passed, draws=times, rate=passed / times, **ends))
    return found
