"""What a gate looks at of a comparison, and what it decides of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from deemster.comparison.comparison import Comparison
from deemster.gate.baseline_gate import BaselineEvidence, BrokenSample, LostScore, baseline_checks
from deemster.gate.gate_decision import GateDecision, conclude
from deemster.gate.read_gate import EVERY, BaselineRules, GateRules
from deemster.results.sample_changes import newly_failing

# So many samples are named where a rule fails.
_MOST_NAMED = 4


def baseline_evidence(comparison: Comparison, *, cohorts: Sequence[str]) -> BaselineEvidence:
    """What a gate looks at of a comparison.

    Args:
        comparison: The comparison.
        cohorts: The cohorts that the gate names, `*` for each.
    """
    drops = [
        LostScore(metric=name, id=metric.largest_drop.id, drop=metric.largest_drop.drop)
        for name, metric in comparison.metrics.items()
        if metric.largest_drop is not None
    ]
    splits = {f"metrics.{name}": metric.noise for name, metric in comparison.metrics.items()}
    splits["pass_rate"] = comparison.noise
    return BaselineEvidence(
        baseline=comparison.baseline,
        confidence=comparison.confidence,
        margin=comparison.margin,
        is_part=comparison.candidate.part is not None,
        samples=comparison.samples,
        pass_rate=comparison.pass_rate,
        metrics={name: metric.pass_rate for name, metric in comparison.metrics.items()},
        cohorts=tuple(cohort for cohort in comparison.cohorts if EVERY in cohorts or cohort.label in cohorts),
        not_comparable=dict(comparison.not_comparable),
        drift={name: metric.drift for name, metric in comparison.metrics.items() if metric.drift is not None},
        newly_failing=comparison.table.newly_failing,
        first_broken=_first_broken(comparison),
        largest_drop=max(drops, key=lambda lost: lost.drop, default=None),
        noise={name: found for name, found in splits.items() if found is not None},
    )


def _first_broken(comparison: Comparison) -> tuple[BrokenSample, ...]:
    """The first samples that newly fail, the worst first."""
    sides = (change.candidate for change in newly_failing(comparison.changes))
    broken = (BrokenSample(id=side.id, position=side.position) for side in sides if side is not None)
    return tuple(islice(broken, _MOST_NAMED))


def decide_comparison(gate: GateRules, comparison: Comparison) -> GateDecision:
    """Check the rules of a gate about a baseline against a comparison, and decide.

    Args:
        gate: The gate; it has rules about a baseline.
        comparison: The comparison.
    """
    rules = gate.baseline or BaselineRules()
    evidence = baseline_evidence(comparison, cohorts=rules.cohorts)
    return conclude(baseline_checks(gate, rules, evidence), mode=gate.decision)
