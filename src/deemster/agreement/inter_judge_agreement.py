"""How often each two judges give the same verdict, whatever the truth is."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np

from deemster.agreement._item_clusters import Cluster
from deemster.agreement._labelled_votes import HasVotes, LabelledVotes, read_labelled_votes
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement.result_models import AbstentionMode
from deemster.datasets import RubricDataset, Votes
from deemster.stats import weighted_wilson
from deemster.stats.confidence_interval import ConfidenceInterval


class JudgePair(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often two judges give the same verdict.

    Attributes:
        judge_a: The one judge.
        judge_b: The other judge.
        n_samples: Cells of labelled items on which both voted, of criteria that are not numeric.
        agreement: The share of them with equal verdicts. None without such a cell.
        ci: The interval of the share; the cells of one item, or of one cluster, are not independent. None without a
            cell.
    """

    judge_a: str
    judge_b: str
    n_samples: int
    agreement: float | None
    ci: ConfidenceInterval | None


def judge_agreement(
    result: Votes | HasVotes | str | Path,
    dataset: RubricDataset | str | Path | None = None,
    *,
    judges: Collection[str] | None = None,
    cannot_assess: AbstentionMode = "exclude",
    na_mode: AbstentionMode = "exclude",
    confidence: float = 0.95,
    cluster: Cluster | None = None,
) -> tuple[JudgePair, ...]:
    """Compare each two judges of a panel on the items that `compute_metrics` looks at.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it.
        judges: The judges of the panel; None for all.
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.
        confidence: The level of the intervals.
        cluster: A metadata key, or the cluster of each item by id.

    Returns:
        The pairs, in the order of the judges.

    Raises:
        InputError: There is no such judge, or the votes cannot be used. It is a ValueError too.
        ValueError: The level is not strictly between 0 and 1.
    """
    modes = AbstentionModes(cannot_assess, na_mode)
    votes = read_labelled_votes(result, dataset, modes=modes, cluster=cluster, judges=judges)
    places = combinations(range(len(votes.judges)), 2)
    return tuple(_pair(votes, a, b, confidence=confidence) for a, b in places)


def _pair(votes: LabelledVotes, a: int, b: int, *, confidence: float) -> JudgePair:
    cells, equal = np.zeros(votes.n_units), np.zeros(votes.n_units)
    for column in votes.columns:
        if column.numbers is not None:
            continue
        first, second = column.vote_classes[:, a], column.vote_classes[:, b]
        both = (first >= 0) & (second >= 0)
        units = votes.unit_of_item[column.rows]
        np.add.at(cells, units[both], 1.0)
        np.add.at(equal, units[both & (first == second)], 1.0)
    used = cells > 0
    found = weighted_wilson(
        equal[used] / cells[used], cells[used], most=max(1.0, float(cells.sum())), confidence=confidence
    )
    return JudgePair(
        judge_a=votes.judges[a],
        judge_b=votes.judges[b],
        n_samples=int(cells.sum()),
        agreement=found.value,
        ci=found.interval,
    )
