"""Corrects the pass-rates and means of a run for the errors of its judges, by labels of people."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.datasets.human_labels import LabelledMetric, SuiteCalibration
from deemster.errors import ConfigurationError, Issue
from deemster.records.marks import reaches
from deemster.report.compare_columns import describe_identity_changes
from deemster.results.gate_rules import CORRECTED, Gate
from deemster.results.mark_table import MarkTable
from deemster.results.metric_summary import (
    SCORED,
    CorrectedMean,
    CorrectedPassRate,
    RunMetricSummary,
    interval_ends,
    sample_means,
)
from deemster.results.run_summary import RunSummary
from deemster.stats import corrected_rate, effective_size, ppi_mean


def check_corrected_rules(gate: Gate, calibrated: Collection[str], metrics: Mapping[str, str]) -> None:
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
                found = _correct(figures, labels, *_columns(marks, place), source=calibration.source)
            metrics[card.name] = msgspec.structs.replace(figures, pass_rate_corrected=found)
    return msgspec.structs.replace(summary, metrics=metrics)


def _columns(marks: MarkTable, place: int) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """How often each sample passes that is scored in every repetition, and the mean score of each sample."""
    scored = marks.causes[:, :, place] == SCORED
    whole = scored.all(axis=1)
    passed = marks.passed[whole, :, place].sum(axis=1)
    return passed, sample_means(marks.scores[:, :, place], scored), marks.repetitions


def _correct(
    figures: RunMetricSummary,
    labels: LabelledMetric,
    passed: NDArray[np.int64],
    means: NDArray[np.float64],
    repetitions: int,
    *,
    source: str,
) -> CorrectedPassRate:
    bound, better = 0.5, True
    if labels.kind == "score":
        bound, better = (0.5 if figures.threshold is None else figures.threshold), figures.higher_is_better
    known: dict[str, Any] = {"labels": len(labels.pairs), "source": source, "mean": _mean(labels, means)}
    if not len(passed):
        return CorrectedPassRate(note="No mark of this metric was scored.", **known)
    found = corrected_rate(
        [reaches(pair.truth, bound, higher_is_better=better) for pair in labels.pairs],
        [pair.passed for pair in labels.pairs],
        int(passed.sum()) / (len(passed) * repetitions),
        n=effective_size(passed, marks=repetitions),
        probabilities=labels.probabilities,
        strata=labels.strata,
    )
    share = figures.n_scored / figures.n
    low, high = interval_ends(found.interval) or (None, None)
    return CorrectedPassRate(
        value=None if found.value is None else found.value * share,
        low=None if low is None else low * share,
        high=None if high is None else high * share,
        note=found.note,
        **known,
    )


def _mean(labels: LabelledMetric, means: NDArray[np.float64]) -> CorrectedMean | None:
    """The corrected mean score; None where people gave verdicts, or nothing was scored."""
    if labels.kind != "score" or not len(means):
        return None
    chances = labels.probabilities
    found = ppi_mean(
        [pair.truth for pair in labels.pairs],
        [pair.score for pair in labels.pairs],
        means,
        weights=None if chances is None else [1 / chance for chance in chances],
        bounds=(0.0, 1.0),
    )
    low, high = interval_ends(found.interval) or (None, None)
    return None if found.value is None else CorrectedMean(value=found.value, low=low, high=high)
