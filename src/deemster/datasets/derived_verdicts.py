"""Derives final verdicts and scores from votes."""

from __future__ import annotations

import dataclasses

import numpy as np

from deemster.datasets.vote_block import Block, Codes, Floats
from deemster.datasets.votes import Votes
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_scoring import Scoring, rubric_scores
from deemster.rubrics.vote_aggregation import aggregate


@dataclasses.dataclass(frozen=True, eq=False)
class Derived:
    """What the votes of a block come to; every array has a row for each of its items.

    Attributes:
        final: The verdict on each criterion: the recorded one, else the derived one.
        score: The recorded score, else that of the final verdicts; NaN where there is none.
        raw_score: The weighted sum of the final verdicts; NaN where there is none.
        true_score: The score of the ground truth; NaN where a criterion has none.
        judge_scores: The score of each judge's own votes; NaN where it has none that did not fail.
        derived_final: The verdicts that the votes come to, whatever was recorded.
        derived_score: The score of these.
    """

    final: Codes
    score: Floats
    raw_score: Floats
    true_score: Floats
    judge_scores: Floats
    derived_final: Codes
    derived_score: Floats


def derive(votes: Votes) -> tuple[Derived, ...]:
    """Final verdicts and scores of every block of votes.

    Each criterion is aggregated by its rule; a check answers its criterion alone. A criterion without any vote is left
    out of the score. One whose every vote failed counts with its stand-in, unless nothing else was judged: then there
    is no score.
    """
    return tuple(_derived(votes, block) for block in votes.blocks)


def _derived(votes: Votes, block: Block) -> Derived:
    size, width, judges = block.votes.shape
    weights = np.array([judge.weight for judge in votes.judges])
    derived = block.checks.copy()
    for position, criterion in enumerate(block.rubric.criteria):
        rule = votes.rules.rule_for(criterion)
        panel = aggregate(criterion, block.votes[:, position], rule=rule, weights=weights).codes
        derived[:, position] = np.where(derived[:, position] == MISSING, panel, derived[:, position])
    final = np.where(block.recorded_final == MISSING, derived, block.recorded_final)
    final[block.errored] = MISSING
    derived_score, derived_raw = _scores(block.rubric, derived, votes.scoring, block.penalties)
    score, raw_score = derived_score.copy(), derived_raw
    if (final != derived).any():
        score, raw_score = _scores(block.rubric, final, votes.scoring, block.penalties)
    score = np.where(np.isnan(block.recorded_score), score, block.recorded_score)
    own = np.ascontiguousarray(block.votes.transpose(0, 2, 1)).reshape(size * judges, width)
    judge_scores, _ = _scores(block.rubric, own, votes.scoring, np.repeat(block.penalties, judges))
    true_score, _ = _scores(block.rubric, block.truth, votes.scoring, block.penalties)
    true_score[(block.truth == MISSING).any(axis=1)] = np.nan
    return Derived(
        final=final,
        score=score,
        raw_score=raw_score,
        true_score=true_score,
        judge_scores=judge_scores.reshape(size, judges),
        derived_final=derived,
        derived_score=derived_score,
    )


def _scores(rubric: Rubric, codes: Codes, scoring: Scoring, penalties: Floats) -> tuple[Floats, Floats]:
    found = rubric_scores(rubric, codes, scoring=scoring, penalties=penalties)
    return found.score, found.raw_score
