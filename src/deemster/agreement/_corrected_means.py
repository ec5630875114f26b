"""Mean score and MET rates of all items, corrected for the judge's errors (PPI++, Rogan-Gladen)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._verdict_classes import Codes
from deemster.agreement.result_models import CorrectedMeans, CorrectedMetRate, CorrectedScore
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.corrected_rate import corrected_rate
from deemster.stats.debiased_estimates import PpiMean, ppi_mean, reach_by_unit
from deemster.stats.proportion_intervals import weighted_wilson


def corrected_means(votes: LabelledVotes, *, confidence: float = 0.95) -> CorrectedMeans | None:
    """Estimate the mean true score and the MET rates over all items, though people labelled only some.

    The estimates are right only where the labelled items were drawn at random from all items. The score is
    prediction-powered (PPI++): items with a true and a predicted score measure the judge's errors, items with a
    predicted score alone add precision. The rate of a binary criterion is that of the final verdicts on all items,
    corrected by their sensitivity and specificity on labelled ones (Rogan, Gladen); its interval takes the two as
    independent, which makes it wider than it need be. Clusters count once; those of which nothing is labelled add
    precision to the score.

    Args:
        votes: The labelled votes.
        confidence: The level of the intervals.

    Returns:
        None where every item that was graded is labelled.

    References: A. N. Angelopoulos, J. C. Duchi, T. Zrnic, PPI++, arXiv:2311.01453 (2023); W. J. Rogan, B. Gladen,
    American Journal of Epidemiology 107 (1978).
    """
    blocks = votes.votes.blocks
    # An item on which annotators are tied is among the labelled ones, where it counts as one without a true score.
    others = [np.flatnonzero(~block.labelled & ~block.no_consensus.any(axis=1) & ~block.errored) for block in blocks]
    if not any(len(rows) for rows in others):
        return None
    facts = votes.derived
    units = votes.clusters_of_all
    units_of_others = [
        None if units is None else units[part.items[rows]] for part, rows in zip(blocks, others, strict=True)
    ]
    bare = [part.score[rows] for part, rows in zip(facts, others, strict=True)]
    rates = []
    for column in votes.columns:
        if column.criterion.kind == "binary":
            verdicts = [facts[block].final.codes[others[block], place] for block, place in column.sources]
            of_others = _joined([units_of_others[block] for block, _ in column.sources])
            rates.append(_met_rate(votes, column, np.concatenate(verdicts), of_others, confidence))
    score = _score(votes, np.concatenate(bare), _joined(units_of_others), confidence)
    return CorrectedMeans(score=score, met_rates=tuple(rates))


def _joined(parts: Sequence[Indices | None]) -> Indices | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None


def _score(votes: LabelledVotes, bare: Floats, units: Indices | None, confidence: float) -> CorrectedScore | None:
    """An item whose truth has a gap has no true score, and counts as unlabelled."""
    both = ~np.isnan(votes.predicted) & ~np.isnan(votes.true)
    partly = votes.predicted[np.isnan(votes.true)]
    unlabelled = np.concatenate([bare, partly])
    known = ~np.isnan(unlabelled)
    if not both.any() or not known.any():
        return None
    everyone = np.concatenate([votes.predicted[both], np.sort(unlabelled[known])]).tolist()
    truth, predicted, others = votes.true[both], votes.predicted[both], unlabelled[known]
    bounds = (0.0, 1.0) if votes.votes.scoring.normalize else None
    # Sorted, so that the order of the file cannot change the last digit of a sum.
    result = ppi_mean(truth, predicted, np.sort(others), bounds=bounds, confidence=confidence)
    if units is not None and votes.clusters is not None:
        of_others = np.concatenate([units, votes.clusters[np.isnan(votes.true)]])[known]
        parts = truth - (result.lam or 0.0) * predicted, (result.lam or 0.0) * others
        result = _by_cluster(result, parts, (votes.clusters[both], of_others), bounds, confidence)
    return CorrectedScore(
        value=result.value,
        ci=result.interval,
        standard_error=result.standard_error,
        weight=result.lam,
        labelled_mean=result.classical,
        predicted_mean=sum(everyone) / len(everyone),
        n_labelled=int(both.sum()),
        n_unlabelled=int(known.sum()),
    )


def _by_cluster(
    result: PpiMean,
    parts: tuple[Floats, Floats],
    clusters: tuple[Indices, Indices],
    bounds: tuple[float, float] | None,
    confidence: float,
) -> PpiMean:
    """The estimate with a t interval whose units are clusters.

    Args:
        result: The estimate, with items as units.
        parts: The errors of labelled items and the weighted predictions of the others, whose means it is the sum of.
        clusters: The clusters of both.
        bounds: The least and the greatest possible score.
        confidence: The level of the interval.
    """
    away = np.concatenate([(part - part.mean()) / len(part) for part in parts])
    reach = reach_by_unit(away, np.concatenate(clusters), confidence=confidence)
    if result.value is None or reach is None:
        return msgspec.structs.replace(result, interval=None)
    error, half = reach
    low, high = bounds or (-math.inf, math.inf)
    interval = ConfidenceInterval(max(low, result.value - half), min(high, result.value + half), confidence, "ppi++")
    return msgspec.structs.replace(result, standard_error=error, interval=interval)


def _met_rate(
    votes: LabelledVotes, column: CriterionColumn, others: Codes, units: Indices | None, confidence: float
) -> CorrectedMetRate:
    truth, final = column.truth_classes, column.final_classes
    covered = (truth >= 0) & (final >= 0)
    met, called_met = truth[covered] == 0, final[covered] == 0
    n_positive, n_negative = int(met.sum()), int((~met).sum())
    # On a binary criterion an abstention never takes the worst class, so one code does for all rows.
    everyone = np.concatenate([final, column.classes.from_codes(others, column.criterion.worst)])
    seen = everyone[everyone >= 0]
    size, labelled_units = float(len(seen)), None
    if units is not None and votes.clusters is not None and len(seen):
        of_rows = votes.clusters[column.rows]
        labelled_units = of_rows[covered]
        unit = np.unique(np.concatenate([of_rows, units])[everyone >= 0], return_inverse=True)[1]
        sizes = np.bincount(unit)
        size = weighted_wilson(np.bincount(unit, weights=seen == 0) / sizes, sizes, most=size).n
    observed = float((seen == 0).mean()) if len(seen) else None
    sensitivity = float(called_met[met].mean()) if n_positive else None
    specificity = float((~called_met[~met]).mean()) if n_negative else None
    result = corrected_rate(met, called_met, observed or 0.0, n=size, units=labelled_units, confidence=confidence)
    return CorrectedMetRate(
        name=column.name,
        index=column.index,
        value=result.value,
        ci=result.interval,
        observed_rate=observed,
        sensitivity=sensitivity,
        specificity=specificity,
        is_clipped=result.out_of_range,
        note=result.note,
        n_samples=len(seen),
        n_positive=n_positive,
        n_negative=n_negative,
    )
