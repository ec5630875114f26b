"""Derives final verdicts and scores from votes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import numpy as np

from deemster.datasets.vote_block import Block, Codes, Floats
from deemster.datasets.votes import Votes
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_scoring import rubric_scores
from deemster.rubrics.vote_aggregation import aggregate, aggregate_numbers


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
        final_numbers: The numbers of the final verdicts on numeric criteria, by the place of the criterion.
        derived_numbers: The numbers that the votes come to.
    """

    final: Codes
    score: Floats
    raw_score: Floats
    true_score: Floats
    judge_scores: Floats
    derived_final: Codes
    derived_score: Floats
    final_numbers: Mapping[int, Floats]
    derived_numbers: Mapping[int, Floats]


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
    derived_numbers: dict[int, Floats] = {}
    for position, criterion in enumerate(block.rubric.criteria):
        rule, open_cells = votes.rules.rule_for(criterion), derived[:, position] == MISSING
        if column := block.numbers.get(position):
            found = aggregate_numbers(criterion, block.votes[:, position], column.votes, rule=rule, weights=weights)
            derived_numbers[position] = np.where(open_cells, found.values, column.checks)
        else:
            found = aggregate(criterion, block.votes[:, position], rule=rule, weights=weights)
        derived[:, position] = np.where(open_cells, found.codes, derived[:, position])
    final = np.where(block.recorded_final == MISSING, derived, block.recorded_final)
    final[block.errored] = MISSING
    final_numbers = {
        position: np.where(
            block.recorded_final[:, position] == MISSING, numbers, block.numbers[position].recorded_final
        )
        for position, numbers in derived_numbers.items()
    }
    scores_of = functools.partial(rubric_scores, block.rubric, scoring=votes.scoring)
    derived_scores = scores_of(derived, penalties=block.penalties, numbers=derived_numbers)
    final_scores = derived_scores
    if (final != derived).any() or (block.numbers and (block.recorded_final != MISSING).any()):
        final_scores = scores_of(final, penalties=block.penalties, numbers=final_numbers)
    score = np.where(np.isnan(block.recorded_score), final_scores.score, block.recorded_score)
    own = np.ascontiguousarray(block.votes.transpose(0, 2, 1)).reshape(size * judges, width)
    own_numbers = {position: column.votes.reshape(-1) for position, column in block.numbers.items()}
    judge_scores = scores_of(own, penalties=np.repeat(block.penalties, judges), numbers=own_numbers).score
    true_numbers = {position: column.truth for position, column in block.numbers.items()}
    true_score = scores_of(block.truth, penalties=block.penalties, numbers=true_numbers).score
    true_score[(block.truth == MISSING).any(axis=1)] = np.nan
    return Derived(
        final=final,
        score=score,
        raw_score=final_scores.raw_score,
        true_score=true_score,
        judge_scores=judge_scores.reshape(size, judges),
        derived_final=derived,
        derived_score=derived_scores.score,
        final_numbers=final_numbers,
        derived_numbers=derived_numbers,
    )
