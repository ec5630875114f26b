"""Mean score and MET rates of all items, corrected for the judge's errors (PPI++, Rogan-Gladen)."""

from __future__ import annotations

import numpy as np

from deemster.alignment._labelled_votes import CriterionColumn, Floats, LabelledVotes
from deemster.alignment._verdict_classes import Codes
from deemster.alignment.result_models import CorrectedMeans, CorrectedMetRate, CorrectedScore
from deemster.stats.corrected_rate import CorrectedRate, rogan_gladen
from deemster.stats.debiased_estimates import ppi_mean


def corrected_means(votes: LabelledVotes, *, confidence: float = 0.95) -> CorrectedMeans | None:
    """Estimate the mean true score and the MET rates over all items, though people labelled only some.

    The estimates are right only where the labelled items were drawn at random from all items. The score is
    prediction-powered (PPI++): items with a true and a predicted score measure the judge's errors, items with a
    predicted score alone add precision. The rate of a binary criterion is that of the final verdicts on all items,
    corrected by their sensitivity and specificity on labelled ones (Rogan, Gladen); its interval takes the two as
    independent, which makes it wider than it need be. Items are taken as independent of each other.

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
    bare = [part.score[rows] for part, rows in zip(facts, others, strict=True)]
    rates = []
    for column in votes.columns:
        if column.criterion.kind == "binary":
            verdicts = [facts[block].final.codes[others[block], place] for block, place in column.sources]
            rates.append(_met_rate(column, np.concatenate(verdicts), confidence))
    return CorrectedMeans(score=_score(votes, np.concatenate(bare), confidence), met_rates=tuple(rates))


def _score(votes: LabelledVotes, bare: Floats, confidence: float) -> CorrectedScore | None:
    """An item whose truth has a gap has no true score, and counts as unlabelled."""
    both = ~np.isnan(votes.predicted) & ~np.isnan(votes.true)
    partly = votes.predicted[np.isnan(votes.true)]
    unlabelled = np.concatenate([bare, partly])
    # Sorted, so that the order of the file cannot change the last digit of a sum.
    unlabelled = np.sort(unlabelled[~np.isnan(unlabelled)])
    if not both.any() or not len(unlabelled):
        return None
    everyone = np.concatenate([votes.predicted[both], unlabelled]).tolist()
    bounds = (0.0, 1.0) if votes.votes.scoring.normalize else None
    result = ppi_mean(votes.true[both], votes.predicted[both], unlabelled, bounds=bounds, confidence=confidence)
    return CorrectedScore(
        value=result.value,
        ci=result.interval,
        standard_error=result.standard_error,
        weight=result.lam,
        labelled_mean=result.classical,
        predicted_mean=sum(everyone) / len(everyone),
        n_labelled=result.n,
        n_unlabelled=result.n_unlabelled,
    )


def _met_rate(column: CriterionColumn, others: Codes, confidence: float) -> CorrectedMetRate:
    truth, final = column.truth_classes, column.final_classes
    covered = (truth >= 0) & (final >= 0)
    met, called_met = truth[covered] == 0, final[covered] == 0
    n_positive, n_negative = int(met.sum()), int((~met).sum())
    # On a binary criterion an abstention never takes the worst class, so one code does for all rows.
    seen = np.concatenate([final, column.classes.from_codes(others, column.criterion.worst)])
    seen = seen[seen >= 0]
    observed = float((seen == 0).mean()) if len(seen) else None
    sensitivity = float(called_met[met].mean()) if n_positive else None
    specificity = float((~called_met[~met]).mean()) if n_negative else None
    result = CorrectedRate(value=None, n=len(seen), note=_missing_labels(n_positive, n_negative))
    if observed is not None and sensitivity is not None and specificity is not None:
        result = rogan_gladen(
            observed,
            n=len(seen),
            sensitivity=sensitivity,
            positives=n_positive,
            specificity=specificity,
            negatives=n_negative,
            confidence=confidence,
        )
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


def _missing_labels(n_positive: int, n_negative: int) -> str:
    known = {"MET": n_positive, "UNMET": n_negative}
    missing = " or ".join(label for label, count in known.items() if not count)
    return f"No label of a judged item is {missing}, so nothing measures how often the judge errs there."
