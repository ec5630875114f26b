"""Item difficulty: which items the judges dispute, and which they get wrong."""

from __future__ import annotations

import numpy as np

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
    missed, covered, unequal, criteria = (np.zeros(len(votes.ids)) for _ in range(4))
    n_cast = 0
    for column in votes.columns:
        if column.numbers is not None:
            continue
        rows = slice(None) if len(column.rows) == len(votes.ids) else column.rows
        # Judge by judge, since sums over a short last axis are slow.
        cast = np.ascontiguousarray(column.vote_classes.T)
        truth = column.truth_classes
        several = (cast >= 0).sum(axis=0, dtype=np.int32)
        n_cast += int(several.sum())
        known = truth >= 0
        counted = np.where(known, several, 0)
        covered[rows] += counted
        missed[rows] += counted - np.where(known, (cast == truth).sum(axis=0, dtype=np.int32), 0)
        equal = np.zeros(len(truth), dtype=np.int32)
        for place in range(column.classes.size):
            count = (cast == place).sum(axis=0, dtype=np.int32)
            equal += count * (count - 1)
        pairs = several * (several - 1)
        unequal[rows] += (pairs - equal) / np.maximum(pairs, 1)
        criteria[rows] += pairs > 0
    if not n_cast:
        return None
    difficulty, dispute = quotient(missed, covered), quotient(unequal, criteria)
    # Rounded for sorting only: rounding errors must not decide between equal items.
    hard, split = (-np.nan_to_num(values, nan=-1.0).round(12) for values in (difficulty, dispute))
    last = min(_SHOWN, len(split)) - 1
    near = np.flatnonzero(split <= np.partition(split, last)[last])
    chosen = near[np.lexsort((hard[near], split[near]))][:_SHOWN]
    return tuple(
        ItemMetrics(
            id=votes.ids[place],
            difficulty=float_or_none(difficulty[place]),
            n_votes=int(covered[place]),
            dispute=float_or_none(dispute[place]),
            n_criteria=int(criteria[place]),
        )
        for place in chosen.tolist()
    )
