"""Which samples broke a rule of the gate: by their ids, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from deemster.datasets.attack_facts import AttackedSamples, Severity
from deemster.errors import list_first
from deemster.gate.gate_decision import AGGREGATES, BrokenRule
from deemster.gate.read_gate import REPEATED
from deemster.report.run_samples import RunSamples
from deemster.results.attack_success import succeeded_attacks
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import NOT_RUN, OUTSIDE, SCORED
from deemster.results.run_summary import cohort_label

# So many samples are named.
MOST_NAMED = 4
# What is left of a line on a terminal beside `the estimate is below the bound`.
_ROOM = 45
_QUALITIES = frozenset({"macro_f1", "pass_rate", "mean", *REPEATED})
_UNSCORED = frozenset({"unscored", "samples_unscored"})
_ATTACKS = frozenset({"attack_success", "critical_successes"})


class BrokenSamples:
    """Finds the samples that broke rules among the marks of a run.

    Args:
        table: The marks.
        samples: The samples.
        attacks: Which of them are attacks; None where none is.
    """

    def __init__(self, table: MarkTable, samples: RunSamples, attacks: AttackedSamples | None) -> None:
        self._table, self._samples, self._attacks = table, samples, attacks

    def name(self, rules: Sequence[BrokenRule]) -> list[str]:
        """What is said of each rule: the samples that broke it, as half a sentence; empty where none is known.

        Args:
            rules: The rules.
        """
        broken = [self._positions(rule) for rule in rules]
        ids = self._ids({position for positions in broken for position in positions[:MOST_NAMED].tolist()})
        return [
            _sentence(rule, [ids[position] for position in positions[:MOST_NAMED].tolist()], len(positions))
            for rule, positions in zip(rules, broken, strict=True)
        ]

    def _ids(self, positions: set[int]) -> Mapping[int, str]:
        if not positions:
            return {}
        return {
            sample.position: sample.id for sample in self._samples.facts(content=False) if sample.position in positions
        }

    def _positions(self, rule: BrokenRule) -> NDArray[np.int64]:
        """The places of the samples that broke a rule, the worst first; none where that cannot be told."""
        table = self._table
        if rule.quantity in _UNSCORED:
            missing = ~np.isin(table.causes, (SCORED, NOT_RUN, OUTSIDE))
            return np.flatnonzero(missing.any(axis=(1, 2)))

        if rule.quantity in _ATTACKS:
            severity: Severity | None = "critical" if rule.quantity == "critical_successes" else None
            found = [] if self._attacks is None else succeeded_attacks(table, self._attacks, severity=severity)
            return np.array(found, dtype=np.int64)

        if rule.quantity in AGGREGATES and table.aggregates is not None:
            failed = ~table.aggregates.successes & table.aggregates.covers(table.applies_to(slice(None)))[:, None]
            return self._worst_first(failed, table.aggregates.scores, rule.cohort)

        if rule.quantity not in _QUALITIES:
            return np.zeros(0, dtype=np.int64)

        names = [card.name for card in table.cards]
        columns = range(len(names)) if rule.metric is None else [names.index(rule.metric)]
        applies = table.causes[:, :, columns] != OUTSIDE
        failed = (applies & ~table.passed[:, :, columns]).any(axis=2)
        if rule.quantity == "pass_at_k":
            # A sample of which one repetition passes did not break it.
            failed &= failed.all(axis=1)[:, None]
        return self._worst_first(failed, self._goodness(columns), rule.cohort)

    def _goodness(self, columns: Sequence[int]) -> NDArray[np.float64]:
        """How good each output is by some metrics: the mean of their scores, where 1 is best; no score counts as 0."""
        table = self._table
        goodness: NDArray[np.float64] = np.zeros((table.samples, table.repetitions))
        for column in columns:
            is_higher_better = table.directions[column] != {False}
            scores = table.scores[:, :, column] if is_higher_better else 1 - table.scores[:, :, column]
            goodness += np.where(table.causes[:, :, column] == SCORED, scores, 0.0)

        applied = (table.causes[:, :, columns] != OUTSIDE).sum(axis=2)
        goodness /= np.maximum(applied, 1)
        return goodness

    def _worst_first(
        self, failed: NDArray[np.bool_], goodness: NDArray[np.float64], cohort: str | None
    ) -> NDArray[np.int64]:
        """The samples of a cohort that failed in a repetition; equally bad ones in the order of the dataset."""
        is_broken: NDArray[np.bool_] = np.asarray(failed.any(axis=1))
        if cohort is not None:
            inside = np.zeros(len(is_broken), dtype=np.bool_)
            for tag, positions in self._table.cohorts:
                if cohort_label(tag) == cohort:
                    inside[positions] = True
            is_broken &= inside

        positions = np.flatnonzero(is_broken)
        passed = (~failed[positions]).sum(axis=1)
        order = np.lexsort((goodness[positions].mean(axis=1), passed))
        return positions[order]


def _sentence(rule: BrokenRule, ids: Sequence[str], count: int) -> str:
    if not ids:
        return ""
    happened = "did not pass"
    if rule.quantity in _UNSCORED:
        happened = "could not be scored"
    elif rule.quantity in _ATTACKS:
        happened = "got through"
    noun = "sample" if count == 1 else "samples"
    named = f"{noun} {list_first([f'`{name}`' for name in ids], count)} {happened}"
    return named if len(named) <= _ROOM else f"{list_first(ids, count)} {happened}"
