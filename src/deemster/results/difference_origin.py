"""Where the difference between two runs comes from: outputs, judge, unscored marks, dataset, metrics."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.records import Usage
from deemster.stats import exact_mean, sign_flip

# A judge counts as drifted where chance would move equal outputs so far only once in a hundred comparisons.
DRIFT_LEVEL = 0.01
# Reports round scores to nine decimals: numbers that differ by less are equal.
_ROUNDING = 2e-9
_Floats: TypeAlias = NDArray[np.float64]
_Bools: TypeAlias = NDArray[np.bool_]


class DifferenceOrigin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of a rate over two whole runs, split into parts that add up to it.

    Attributes:
        total: The rate of the candidate minus that of the baseline, each over its whole dataset.
        outputs: From samples whose output changed.
        judge: From samples whose output is the same to the byte, and whose mark changed.
        unscored: From marks that have a score on one side only.
        dataset: From samples that were added, removed or edited.
        metrics: From metrics that cannot be compared.
    """

    total: float
    outputs: float
    judge: float
    unscored: float
    dataset: float
    metrics: float = 0.0


class JudgeDrift(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The marks of outputs that are the same to the byte in both runs, anchors among them.

    Attributes:
        n: Samples with such an output that both runs scored, and anchors that both judged.
        changed: Those whose score moved.
        difference: The mean of candidate minus baseline.
        p_value: Of the sign-flip test that scores move up as often as down.
        drifted: Whether they moved by more than chance: p is below 0.01.
    """

    n: int
    changed: int
    difference: float
    p_value: float
    drifted: bool


class AnchorScores(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the anchors of a run were judged. It is stored with the run.

    Attributes:
        scores: By metric, the score of each anchor.
        usage: What judging them used, by model.
    """

    scores: dict[str, dict[str, float]] = {}
    usage: tuple[Usage, ...] = ()

    def moved_since(self, before: AnchorScores, metric: str) -> _Floats:
        """How far the score of each anchor moved that both runs judged by a metric."""
        old = before.scores.get(metric, {})
        scores = self.scores.get(metric, {})
        return np.array([scores[key] - old[key] for key in sorted(scores) if key in old], dtype=np.float64)


class MatchedOutputs(NamedTuple):
    """Which repetition of the baseline stands beside which of the candidate, for each joined sample.

    Attributes:
        before: The repetition of the baseline, by sample and place.
        after: The repetition of the candidate.
        equal: Whether the two outputs are the same to the byte.
        weight: What a place counts: 1 divided by the greater number of repetitions.
    """

    before: NDArray[np.int64]
    after: NDArray[np.int64]
    equal: _Bools
    weight: float

    def at(self, places: NDArray[np.int64]) -> MatchedOutputs:
        """The same of some samples."""
        if len(places) == len(self.equal):
            return self
        return MatchedOutputs(self.before[places], self.after[places], self.equal[places], self.weight)

    def pairs(self, before: NDArray[np.generic], after: NDArray[np.generic]) -> tuple[NDArray, NDArray]:  # type: ignore[type-arg]
        """Two arrays of sample x repetition, as arrays of sample x place."""
        if before.shape[1] == after.shape[1] == 1:
            return before, after
        return np.take_along_axis(before, self.before, 1), np.take_along_axis(after, self.after, 1)


def match_outputs(before: NDArray[np.int64], after: NDArray[np.int64]) -> MatchedOutputs:
    """Put equal outputs of a sample beside each other, and the other repetitions in their order.

    Args:
        before: A hash of each output of the baseline, by sample and repetition; 0 where there is none.
        after: The same of the candidate.
    """
    samples, first, second = len(before), before.shape[1], after.shape[1]
    places = min(first, second)
    weight = 1 / max(first, second)
    if first == second == 1:
        zeros = np.broadcast_to(np.int64(0), (samples, 1))
        return MatchedOutputs(zeros, zeros, (before == after) & (before != 0), weight)
    partner = np.full((samples, first), -1)
    taken = np.zeros((samples, second), dtype=np.bool_)
    for old in range(first):
        for new in range(second):
            hit = (before[:, old] == after[:, new]) & (before[:, old] != 0) & (partner[:, old] < 0) & ~taken[:, new]
            partner[hit, old] = new
            taken[hit, new] = True
    # Matched repetitions first, the others behind them in their order.
    equal = partner >= 0
    order = np.argsort(~equal, axis=1, kind="stable")
    rest = np.argsort(taken, axis=1, kind="stable")
    matched = np.take_along_axis(equal, order, 1)
    count = matched.sum(axis=1, keepdims=True)
    later = np.maximum(np.arange(first) - count, 0)
    others = np.take_along_axis(rest, np.minimum(later, second - 1), 1)
    after_order = np.where(matched, np.take_along_axis(partner, order, 1), others)
    return MatchedOutputs(order[:, :places], after_order[:, :places], matched[:, :places], weight)


def split_difference(
    before: tuple[_Bools, _Bools], after: tuple[_Bools, _Bools], matched: MatchedOutputs
) -> tuple[float, float, float]:
    """Split the difference of two pass-rates into what outputs, judge and unscored marks did.

    Args:
        before: Whether the baseline passed, and whether it was scored, by sample and repetition.
        after: The same of the candidate.
        matched: Which repetitions stand beside each other.

    Returns:
        The three parts. They add up to the difference.
    """
    if not len(before[0]):
        return 0.0, 0.0, 0.0
    passed, scored = matched.pairs(before[0], after[0]), matched.pairs(before[1], after[1])
    moved = passed[1].astype(np.int8) - passed[0]
    came_or_went = scored[0] != scored[1]
    unit = matched.weight / len(moved)
    unscored = int(moved[came_or_went].sum()) * unit
    judge = int(moved[~came_or_went & matched.equal].sum()) * unit
    rates = [int(np.count_nonzero(side)) / side.size for side in (after[0], before[0])]
    whole = rates[0] - rates[1]
    return whole - unscored - judge, judge, unscored


def find_drift(
    before: tuple[_Floats, _Bools],
    after: tuple[_Floats, _Bools],
    matched: MatchedOutputs,
    *,
    anchors: _Floats,
    seed: int,
) -> JudgeDrift | None:
    """Look whether the scores of equal outputs moved; None where no equal output was scored in both runs.

    Args:
        before: The scores of the baseline, and where there is one, by sample and repetition.
        after: The same of the candidate.
        matched: Which repetitions stand beside each other.
        anchors: How far the scores of anchors moved, which are equal outputs beside those of the samples.
        seed: The seed of the test, where it draws.
    """
    scores, scored = matched.pairs(before[0], after[0]), matched.pairs(before[1], after[1])
    known = matched.equal & scored[0] & scored[1]
    rows = np.flatnonzero(known.any(axis=1))
    known = known[rows]
    moved = np.where(known, scores[1][rows] - scores[0][rows], 0.0).sum(axis=1) / known.sum(axis=1)
    moved = np.concatenate([moved, anchors])
    moved[np.abs(moved) <= _ROUNDING] = 0.0
    mean = exact_mean(moved)
    if mean is None:
        return None
    p_value = sign_flip(moved, seed=seed).p_value or 0.0
    return JudgeDrift(
        n=len(moved),
        changed=int(np.count_nonzero(moved)),
        difference=mean,
        p_value=p_value,
        drifted=p_value < DRIFT_LEVEL,
    )
