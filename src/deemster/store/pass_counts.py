"""Counts how often each metric of a stored run passed, failed or gave no score."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from deemster.records import CAUSES, MetricScore
from deemster.store.run_store import Store


class PassCounts(msgspec.Struct, frozen=True):
    """The marks of one metric, counted.

    Attributes:
        metric: Its name.
        passed: Scores that reach the threshold.
        failed: Scores that do not.
        unscored: Marks without a score, by cause.
    """

    metric: str
    passed: int
    failed: int
    unscored: Mapping[str, int]


def count_passes(store: Store, run_id: str) -> tuple[PassCounts, ...]:
    """The marks of a run as a report would show them, counted for each metric.

    Raises:
        StoreError: The store cannot be read.
    """
    cards = store.cards(run_id)
    if not cards:
        return ()
    passed, failed = [0] * len(cards), [0] * len(cards)
    unscored: list[dict[str, int]] = [{} for _ in cards]
    for execution in store.executions(run_id):
        for place, mark in enumerate(execution.marks):
            if isinstance(mark, MetricScore):
                (passed if mark.success else failed)[place] += 1
            else:
                unscored[place][mark.cause] = unscored[place].get(mark.cause, 0) + 1
    return tuple(
        PassCounts(
            metric=card.name,
            passed=passed[place],
            failed=failed[place],
            unscored={cause: unscored[place][cause] for cause in CAUSES if cause in unscored[place]},
        )
        for place, card in enumerate(cards)
    )
