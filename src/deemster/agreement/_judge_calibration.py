"""Judge calibration: whether the probabilities that judges state come true."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement.result_models import CalibrationMetrics
from deemster.stats.probability_calibration import brier, calibration_error

Scale: TypeAlias = Literal["binary", "multi-choice"]


class _Stated(NamedTuple):
    """Cells with a probability and a truth: who stated it, what came true, and the probability of every class."""

    judges: Indices
    outcomes: Indices
    chances: Floats


def judge_calibration(votes: LabelledVotes, *, confidence: float = 0.95) -> tuple[CalibrationMetrics, ...] | None:
    """How well each judge's probabilities are calibrated, on binary and on multi-choice criteria.

    A cell is used where it has a probability, and the modes leave out neither the vote nor the truth. Binary: P(MET)
    against whether the truth is MET. Multi-choice: the Brier score sums over options; the calibration error and the
    curve look at the most probable option and whether it is the truth. Where several judges state probabilities, all of
    them together come last, with None for the judge.

    Returns:
        None where no judge states a probability on a labelled cell.

    References: G. W. Brier, Monthly Weather Review 78 (1950); M. P. Naeini, G. F. Cooper, M. Hauskrecht, AAAI (2015).
    """
    if not any(block.probabilities for block in votes.votes.blocks):
        return None
    found = []
    scales: tuple[Scale, ...] = ("binary", "multi-choice")
    for scale in scales:
        binary = scale == "binary"
        parts = [
            _stated_probabilities(votes, column)
            for column in votes.columns
            if (column.criterion.kind == "binary") == binary
        ]
        stated = _join([part for part in parts if len(part.judges)])
        if stated is None:
            continue
        judges = np.unique(stated.judges).tolist()
        for judge in [*judges, None] if len(judges) > 1 else judges:
            own = slice(None) if judge is None else stated.judges == judge
            name = None if judge is None else votes.judges[judge]
            found.append(_metrics(name, scale, stated.outcomes[own], stated.chances[own], confidence))
    # Judges in the order of the panel, then all of them together.
    found.sort(key=lambda one: len(votes.judges) if one.judge_id is None else votes.judges.index(one.judge_id))
    return tuple(found) or None


def _metrics(
    judge: str | None, scale: Scale, outcomes: Indices, chances: Floats, confidence: float
) -> CalibrationMetrics:
    stated = chances[:, 0] if scale == "binary" else chances
    curve = calibration_error(outcomes, stated, confidence=confidence)
    return CalibrationMetrics(
        judge_id=judge,
        scale=scale,
        n_samples=len(outcomes),
        brier=brier(outcomes, stated).value,
        calibration_error=curve.value,
        curve=curve.bins,
    )


def _stated_probabilities(votes: LabelledVotes, column: CriterionColumn) -> _Stated:
    """The cells of one column; an outcome is 1 for MET, or the place among the scored options."""
    truth = column.truth_classes
    rows: list[int] = []
    judges: list[int] = []
    chances: list[tuple[float, ...]] = []
    for number, place in column.sources:
        block = votes.votes.blocks[number]
        position = votes.item_index[block.items]
        inside = np.where(position >= 0, np.searchsorted(column.rows, position), -1).tolist()
        for item, criterion, judge, stated in block.probabilities:
            if criterion == place and inside[item] >= 0:
                rows.append(inside[item])
                judges.append(judge)
                chances.append(stated)
    if not rows:
        return _Stated(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros((0, 1)))
    # Sorted by item, so that the order of the file cannot change the last digit of a sum.
    order = np.lexsort((judges, rows))
    at, who = np.array(rows, dtype=np.intp)[order], np.array(judges, dtype=np.intp)[order]
    outcomes = _outcomes(column)[truth[at]]
    used = (truth[at] >= 0) & (column.vote_classes[at, who] >= 0) & (outcomes >= 0)
    return _Stated(who[used], outcomes[used], np.array(chances, dtype=np.float64)[order][used])


def _outcomes(column: CriterionColumn) -> Indices:
    """What each class means as an outcome; -1 for an abstention, which has no probability."""
    if column.classes.kind == "binary":
        return np.array([1] + [0] * (column.classes.size - 1), dtype=np.intp)
    scored = column.criterion.scored
    return np.array([scored.index(code) if code in scored else -1 for code in column.classes.codes], dtype=np.intp)


def _join(parts: list[_Stated]) -> _Stated | None:
    if not parts:
        return None
    # An option that a criterion lacks gets the probability 0, which changes no score.
    width = max(part.chances.shape[1] for part in parts)
    padded = [np.pad(part.chances, ((0, 0), (0, width - part.chances.shape[1]))) for part in parts]
    return _Stated(
        np.concatenate([part.judges for part in parts]),
        np.concatenate([part.outcomes for part in parts]),
        np.concatenate(padded),
    )
