"""Derives final verdicts and scores from votes."""

from __future__ import annotations

import dataclasses

import numpy as np

from deemster.datasets.vote_block import Block, Floats, Labels
from deemster.datasets.votes import Votes
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_scoring import Scores, rubric_scores
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

    final: Labels
    score: Floats
    raw_score: Floats
    true_score: Floats
    judge_scores: Floats
    derived_final: Labels
    derived_score: Floats


def derive(votes: Votes) -> tuple[Derived, ...]:
    """Final verdicts and scores of every block of votes.

    Each criterion is aggregated by its rule; a check answers its criterion alone. A criterion without any vote is left
    out of the score. One whose every vote failed counts with its stand-in, unless nothing else was judged: then there
    is no score.
    """
    return tuple(_derived(votes, block) for block in votes.blocks)


def _derived(votes: Votes, block: Block) -> Derived:
    weights = np.array([judge.weight for judge in votes.judges])
    derived = block.checks.copy()
    for position, criterion in enumerate(block.rubric.criteria):
        rule, open_cells = votes.rules.rule_for(criterion), block.checks.codes[:, position] == MISSING
        codes, numbers = block.votes.codes[:, position], block.votes.numbers.get(position)
        found = aggregate(criterion, codes, numbers, rule=rule, weights=weights)
        if numbers is not None:
            derived.numbers[position][open_cells] = found.values[open_cells]
        derived.codes[open_cells, position] = found.codes[open_cells]
    is_recorded = block.recorded_final.codes != MISSING
    final = block.recorded_final.where(is_recorded, derived)
    final.codes[block.errored] = MISSING
    derived_scores = final_scores = _scores(block, votes, derived)
    if (final.codes != derived.codes).any() or (final.numbers and is_recorded.any()):
        final_scores = _scores(block, votes, final)
    score = np.where(np.isnan(block.recorded_score), final_scores.score, block.recorded_score)
    judge_scores = rubric_scores(
        block.rubric,
        block.votes.codes.transpose(0, 2, 1),
        scoring=votes.scoring,
        penalties=block.penalties[:, None],
        numbers=block.votes.numbers,
    ).score
    true_score = _scores(block, votes, block.truth).score
    true_score[(block.truth.codes == MISSING).any(axis=1)] = np.nan
    return Derived(
        final=final,
        score=score,
        raw_score=final_scores.raw_score,
        true_score=true_score,
        judge_scores=judge_scores,
        derived_final=derived,
        derived_score=derived_scores.score,
    )


def _scores(block: Block, votes: Votes, labels: Labels) -> Scores:
    return rubric_scores(
        block.rubric, labels.codes, scoring=votes.scoring, penalties=block.penalties, numbers=labels.numbers
    )
