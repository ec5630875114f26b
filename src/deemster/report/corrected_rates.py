"""Corrects the pass-rates and means of a run for the errors of its judges, by labels of people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from deemster.datasets.human_labels import LabelledMetric, SuiteCalibration
from deemster.errors import ConfigurationError, Issue
from deemster.gate.read_gate import CORRECTED, GateRules
from deemster.records.marks import reaches
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import (
    SCORED,
    CorrectedMean,
    CorrectedPassRate,
    RunMetricSummary,
    clustered_share,
    sample_means,
)
from deemster.results.run_columns import describe_identity_changes
from deemster.results.run_summary import RunSummary
from deemster.stats import corrected_rate, ppi_mean
from deemster.stats.confidence_interval import interval_ends
from deemster.stats.debiased_estimates import unit_values


def check_corrected_rules(gate: GateRules, calibrated: Collection[str], metrics: Mapping[str, str]) -> None:
    """Refuse rules `on: corrected` about numbers that no calibration corrects.

    Args:
        gate: The rules.
        calibrated: The metrics that the calibration of the suite has labels of.
        metrics: Names of the run's metrics, and other spellings of them, by name.

    Raises:
        ConfigurationError: There are some; all are listed.
    """
    issues = []
    for rule in gate.rules:
        if rule.on not in CORRECTED:
            continue
        if rule.metric is None or rule.cohort is not None or rule.metric not in metrics:
            message = f"`on: {rule.on}` is for the rules of a metric over the whole run, not for `{rule.name}`."
            issues.append(Issue(message, rule.where))
        elif metrics[rule.metric] not in calibrated:
            hint = "Name a calibration that has them: `calibration: FILE`."
            message = f"`on: {rule.on}` needs labels of people on `{metrics[rule.metric]}`. {hint}"
            issues.append(Issue(message, rule.where))
    if issues:
        raise ConfigurationError(issues)


def with_corrections(
    summary: RunSummary, marks: MarkTable, calibration: SuiteCalibration, *, identities: Mapping[str, Any]
) -> RunSummary:
    """A summary whose calibrated metrics have a corrected pass-rate, and a corrected mean where people gave scores.

    The labels are of outputs of another run, so its judge must be the same and err as often on this one. An unscored
    mark does not pass, here as everywhere.

    Args:
        summary: The summary.
        marks: The marks behind it.
        calibration: The labels.
        identities: By a metric's name, everything that must be equal for it to be the one that was labelled.
    """
    metrics = dict(summary.metrics)
    for place, card in enumerate(marks.cards):
        labels = calibration.metrics.get(card.name)
        if labels is not None:
            figures = metrics[card.name]
            changes = describe_identity_changes(labels.identity, identities[card.name])
            if changes:
                note = f"The calibration is of another metric: {'; '.join(changes)}."
                found = CorrectedPassRate(labels=len(labels.pairs), source=calibration.source, note=note)
            else:
                found = _correct(figures, labels, _scored_samples(marks, place), source=calibration.source)
            metrics[card.name] = replace(figures, pass_rate_corrected=found)
    return replace(summary, metrics=metrics)


class _ScoredSamples(NamedTuple):
    """The samples of a run that are scored in every repetition: how often each passes; and mean scores, by unit.

    Attributes:
        rate: The share of their marks that pass.
        size: How many independent marks that is of.
        means: A score for each sample, or cluster of them, that has one.
    """

    rate: float | None
    size: float
    means: NDArray[np.float64]


def _scored_samples(marks: MarkTable, place: int) -> _ScoredSamples:
    scored = marks.causes[:, :, place] == SCORED
    whole = scored.all(axis=1)
    passed = marks.passed[whole, :, place].sum(axis=1)
    means = sample_means(marks.scores[:, :, place], scored)
    share = clustered_share(passed, marks.repetitions, marks.clusters_at(whole))
    clusters = marks.clusters_at(scored.any(axis=1))
    return _ScoredSamples(share.value, share.n, means if clusters is None else unit_values(means, clusters))


def _correct(
    figures: RunMetricSummary,
    labels: LabelledMetric,
    run: _ScoredSamples,
    *,
    source: str,
) -> CorrectedPassRate:
    bound, better = 0.5, True
    if labels.kind == "score":
        bound, better = (0.5 if figures.threshold is None else figures.threshold), figures.higher_is_better
    known = CorrectedPassRate(labels=len(labels.pairs), source=source, mean=_mean(labels, run.means))
    if run.rate is None:
        return replace(known, note="This metric scored nothing.")
    found = corrected_rate(
        [reaches(pair.truth, bound, higher_is_better=better) for pair in labels.pairs],
        [pair.passed for pair in labels.pairs],
        run.rate,
        n=run.size,
        probabilities=labels.probabilities,
        strata=labels.strata,
        units=labels.units,
    )
    share = figures.n_scored / figures.n
    low, high = interval_ends(found.interval) or (None, None)
    return replace(
        known,
        value=None if found.value is None else found.value * share,
        low=None if low is None else low * share,
        high=None if high is None else high * share,
        note=found.note,
    )


def _mean(labels: LabelledMetric, means: NDArray[np.float64]) -> CorrectedMean | None:
    """The corrected mean score; None where people gave verdicts, or nothing was scored."""
    if labels.kind != "score" or not len(means):
        return None
    _, unit = np.unique(labels.units, return_inverse=True)
    weights = 1 / np.array(labels.probabilities or [1.0] * len(labels.pairs))
    sizes = np.bincount(unit, weights=weights)
    truth, score = (
        np.bincount(unit, weights=weights * [getattr(pair, side) for pair in labels.pairs]) / sizes
        for side in ("truth", "score")
    )
    found = ppi_mean(truth, score, means, weights=sizes, bounds=(0.0, 1.0))
    low, high = interval_ends(found.interval) or (None, None)
    return None if found.value is None else CorrectedMean(value=found.value, low=low, high=high)
