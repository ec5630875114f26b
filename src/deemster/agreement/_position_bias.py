"""Position bias: whether a judge that sees a pair in both orders prefers a place to an answer."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement.result_models import PositionBias
from deemster.datasets import Votes
from deemster.errors import InputError, Issue, did_you_mean, list_names, visible
from deemster.rubrics import Criterion
from deemster.stats.paired_tests import mcnemar
from deemster.stats.proportion_intervals import clopper_pearson

_ORDERS = 2


def find_pairs(votes: Votes, key: str) -> dict[Hashable, list[int]]:
    """The places of the two items of each pair, by the value of a metadata key.

    Args:
        votes: The votes.
        key: The metadata key that names a pair; an item without it belongs to none.

    Raises:
        InputError: No item has the key, or a pair does not have two items; all such pairs are listed.
    """
    pairs: dict[Hashable, list[int]] = {}
    known: dict[str, None] = {}
    for place, own in enumerate(votes.metadata):
        known |= dict.fromkeys(own)
        if own.get(key) is not None:
            pairs.setdefault((isinstance(own[key], bool), own[key]), []).append(place)
    if not pairs:
        hint = did_you_mean(key, known) if known else "The items have no metadata."
        raise InputError(f"No item's metadata has `{visible(key, limit=60)}` to find pairs by. {hint}")
    issues = []
    for name, places in pairs.items():
        if len(places) != _ORDERS:
            ids = list_names([visible(votes.ids[place], limit=60) for place in places], limit=3)
            message = f"A pair is two items, one for each order; `{visible(str(name[1]), limit=60)}` has {len(places)}"  # type: ignore[index]
            issues.append(Issue(f"{message}: {ids}."))
    if issues:
        raise InputError(issues)
    return pairs


def pair_clusters(votes: Votes, key: str) -> dict[str, str]:
    """The cluster of every item by id: its pair, or the item itself where it belongs to none.

    Args:
        votes: The votes.
        key: The metadata key that names a pair.

    Raises:
        InputError: No item has the key, or a pair does not have two items.
    """
    found = {name: name for name in votes.ids}
    for first, second in find_pairs(votes, key).values():
        found[votes.ids[second]] = votes.ids[first]
    return found


def position_bias(votes: LabelledVotes, key: str, *, confidence: float) -> tuple[PositionBias, ...]:
    """Compare the verdicts on the two orders of each pair, for each criterion: of the panel, then of each judge.

    The first option of a criterion (MET on a binary one) prefers the answer that is shown first, the second option
    (UNMET) the one shown second; further options prefer none. On an ordinal criterion the options before the middle
    prefer the first answer, those behind it the second. A judge is consistent on a pair if its two verdicts prefer the
    same answer by as much. Otherwise it favours a place. An exact test asks whether both places are favoured equally
    often.

    Args:
        votes: The labelled votes; items without a label count here too.
        key: The metadata key that names a pair.
        confidence: The level of the intervals.

    Raises:
        InputError: No item has the key, or a pair does not have two items.
    """
    pairs = np.array(list(find_pairs(votes.votes, key).values()), dtype=np.intp)
    several = len(votes.judges) > 1
    found = []
    for column in votes.columns:
        if column.numbers is not None:
            # Which end of a range prefers the first answer, nobody has said.
            continue
        leans = _leans(votes, column)
        sums = leans[pairs[:, 0]] + leans[pairs[:, 1]]
        for side, name in enumerate((None, *votes.judges)):
            if side == 0 or several:
                known = sums[~np.isnan(sums[:, side]), side]
                first, second = int((known > 0).sum()), int((known < 0).sum())
                found.append(
                    compare_orders(column.name, name, n=len(known), first=first, second=second, confidence=confidence)
                )
    return tuple(found)


def compare_orders(
    criterion: str, judge: str | None, *, n: int, first: int, second: int, confidence: float
) -> PositionBias:
    """The bias of a judge that favours the first place on some of so many pairs, and the second on others."""
    share = clopper_pearson(n - first - second, n, confidence=confidence)
    return PositionBias(
        criterion=criterion,
        judge_id=judge,
        n_pairs=n,
        consistency=share.value,
        consistency_ci=share.interval,
        favours_first=first,
        favours_second=second,
        p_value=mcnemar(first, second).p_value,
    )


def _leans(votes: LabelledVotes, column: CriterionColumn) -> Floats:
    """How far each verdict prefers the first place, by item of the votes: of the panel, then of each judge."""
    found = np.full((len(votes.votes.ids), 1 + len(votes.judges)), np.nan)
    for block, place in column.sources:
        own, facts = votes.votes.blocks[block], votes.derived[block]
        table = _lean_of_code(own.rubric.criteria[place])
        items: Indices = own.items
        found[items, 0] = table[np.maximum(facts.final.codes[:, place], -1)]
        found[items, 1:] = table[np.maximum(own.votes.codes[:, place], -1)]
        found[items[own.errored]] = np.nan
    return found


def _lean_of_code(criterion: Criterion) -> Floats:
    """The lean of each code, NaN for an abstention and, at the end, for no verdict."""
    table = np.full(len(criterion.labels) + 1, np.nan)
    middle = (len(criterion.scored) - 1) / 2
    for place, code in enumerate(criterion.scored):
        table[code] = middle - place if criterion.kind == "ordinal" else (1.0, -1.0, 0.0)[min(place, 2)]
    return table
