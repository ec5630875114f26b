"""Item difficulty: which items the judges dispute, and which they get wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement.result_models import ItemMetrics
from deemster.stats.nan_arithmetic import float_or_none, quotient

_SHOWN = 20


def disputed_items(votes: LabelledVotes) -> tuple[ItemMetrics, ...] | None:
    """Find the most disputed items; among equally disputed ones the hardest first, then by id.

    Difficulty is the share of covered votes that miss the truth. Dispute is the mean, over criteria with m ≥ 2 votes,
    of 1 - Σn_k(n_k - 1)/(m(m - 1)): the chance that two judges drawn at random differ. Numeric criteria do not count.

    Returns:
        None where no judge cast a usable vote.

    References: F. M. Lord, M. R. Novick, Statistical theories of mental test scores (1968); J. L. Fleiss, Measuring
    nominal scale agreement among many raters, Psychological Bulletin 76 (1971).
    """
    n_items = len(votes.ids)
    tally = _ItemTally(*(np.zeros(n_items) for _ in _ItemTally._fields))
    n_cast = sum(tally.add(column, n_items) for column in votes.columns if column.numbers is None)
    if not n_cast:
        return None

    difficulty = quotient(tally.missed, tally.covered)
    dispute = quotient(tally.unequal, tally.criteria)
    return tuple(
        ItemMetrics(
            id=votes.ids[item],
            difficulty=float_or_none(difficulty[item]),
            n_votes=int(tally.covered[item]),
            dispute=float_or_none(dispute[item]),
            n_criteria=int(tally.criteria[item]),
        )
        for item in _most_disputed(difficulty, dispute)
    )


class _ItemTally(NamedTuple):
    """What is counted of each item, over all criteria.

    Attributes:
        missed: Votes that miss a known truth.
        covered: Votes where the truth is known.
        unequal: The chance that two judges drawn at random differ, added up.
        criteria: Criteria with two votes or more.
    """

    missed: Floats
    covered: Floats
    unequal: Floats
    criteria: Floats

    def add(self, column: CriterionColumn, n_items: int) -> int:
        """Add a criterion; how many votes were cast on it."""
        rows = slice(None) if len(column.rows) == n_items else column.rows
        truth = column.truth_classes
        # Judge by judge, since sums over a short last axis are slow.
        votes = np.ascontiguousarray(column.vote_classes.T)
        n_votes = (votes >= 0).sum(axis=0, dtype=np.int32)

        is_known = truth >= 0
        n_covered = np.where(is_known, n_votes, 0)
        self.covered[rows] += n_covered
        self.missed[rows] += n_covered - np.where(is_known, (votes == truth).sum(axis=0, dtype=np.int32), 0)

        equal_pairs = np.zeros(len(truth), dtype=np.int32)
        for number in range(column.classes.size):
            count = (votes == number).sum(axis=0, dtype=np.int32)
            equal_pairs += count * (count - 1)
        pairs = n_votes * (n_votes - 1)
        self.unequal[rows] += (pairs - equal_pairs) / np.maximum(pairs, 1)
        self.criteria[rows] += pairs > 0
        return int(n_votes.sum())


def _most_disputed(difficulty: Floats, dispute: Floats) -> list[int]:
    """The items with the greatest dispute; of equally disputed ones the hardest first, then in order."""
    # Rounded for sorting only: rounding errors must not decide between equal items.
    by_difficulty, by_dispute = (-np.nan_to_num(values, nan=-1.0).round(12) for values in (difficulty, dispute))
    last = min(_SHOWN, len(by_dispute)) - 1
    near = np.flatnonzero(by_dispute <= np.partition(by_dispute, last)[last])
    order = np.lexsort((by_difficulty[near], by_dispute[near]))
    chosen: list[int] = near[order][:_SHOWN].tolist()
    return chosen
