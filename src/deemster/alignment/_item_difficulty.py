"""Which items judges dispute, and which they miss."""

from __future__ import annotations

import numpy as np

from deemster.alignment._bootstrap_draws import number
from deemster.alignment._labelled_votes import Panel
from deemster.alignment._verdict_classes import Classes
from deemster.alignment.metrics_result import ItemMetrics
from deemster.stats.agreement_from_sums import quotient

SHOWN = 20


def items(whole: Panel, classes: tuple[Classes, ...], *, limit: int = SHOWN) -> tuple[ItemMetrics, ...] | None:
    """The most disputed items; of equally disputed ones the hardest, of equally hard ones by id.

    Difficulty is the share of covered votes that miss the truth. Dispute is the mean, over criteria with m ≥ 2 votes,
    of 1 - Σn_k(n_k - 1)/(m(m - 1)): the chance that two judges drawn at random differ.

    Returns:
        None where no judge cast a vote that counts.

    References: F. M. Lord, M. R. Novick, Statistical theories of mental test scores (1968); J. L. Fleiss, Measuring
    nominal scale agreement among many raters, Psychological Bulletin 76 (1971).
    """
    missed, votes, unequal, criteria = (np.zeros(len(whole.ids)) for _ in range(4))
    cast = 0
    for column, kinds in zip(whole.columns, classes, strict=True):
        rows = slice(None) if len(column.rows) == len(whole.ids) else column.rows
        # Judge by judge, since sums over a short last axis are slow.
        said = np.ascontiguousarray(kinds.of(column.votes, column.worst).T)
        truth = kinds.of(column.truth, column.worst)
        several = (said >= 0).sum(axis=0, dtype=np.int32)
        cast += int(several.sum())
        known = truth >= 0
        covered = np.where(known, several, 0)
        votes[rows] += covered
        missed[rows] += covered - np.where(known, (said == truth).sum(axis=0, dtype=np.int32), 0)
        equal = np.zeros(len(truth), dtype=np.int32)
        for place in range(kinds.size):
            count = (said == place).sum(axis=0, dtype=np.int32)
            equal += count * (count - 1)
        pairs = several * (several - 1)
        unequal[rows] += (pairs - equal) / np.maximum(pairs, 1)
        criteria[rows] += pairs > 0
    if not cast:
        return None
    difficulty, dispute = quotient(missed, votes), quotient(unequal, criteria)
    # Rounded for the order only: sums of thirds in another order must not decide between equal items.
    hard, split = (-np.nan_to_num(values, nan=-1.0).round(12) for values in (difficulty, dispute))
    last = min(limit, len(split)) - 1
    near = np.flatnonzero(split <= np.partition(split, last)[last])
    chosen = near[np.lexsort((hard[near], split[near]))][:limit]
    return tuple(
        ItemMetrics(
            id=whole.ids[place],
            difficulty=number(difficulty[place]),
            n_votes=int(votes[place]),
            dispute=number(dispute[place]),
            n_criteria=int(criteria[place]),
        )
        for place in chosen.tolist()
    )
