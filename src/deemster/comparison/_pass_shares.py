"""How often each sample passes in several runs, over the samples and metrics that all of them share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deemster.comparison._paired_marks import Floats, Rows, cluster_codes, column_of
from deemster.comparison.compare_columns import comparable_metrics
from deemster.results.run_columns import RunColumns, join_samples


class PassShares(NamedTuple):
    """The share of repetitions in which every metric passes.

    Attributes:
        shares: By sample and run.
        clusters: The number of each sample's cluster; None where samples stand alone.
    """

    shares: Floats
    clusters: Rows | None


def shared_pass_shares(runs: Sequence[RunColumns]) -> PassShares:
    """How often each sample that all runs have passes in each of them; what is missing does not pass."""
    first = runs[0]
    names = [card.name for card in first.marks.cards]
    positions = np.full((len(runs), first.marks.samples), -1)
    for place, run in enumerate(runs):
        compared, _ = comparable_metrics(first, run)
        names = [name for name in names if name in compared]
        joined = join_samples(first, run)
        positions[place, joined.before] = joined.after
    positions = positions[:, (positions >= 0).all(axis=0)]

    columns = [[column_of(run, name) for name in names] for run in runs]
    applies = np.ones((positions.shape[1], len(names)), dtype=np.bool_)
    for run, rows, used in zip(runs, positions, columns, strict=True):
        applies &= run.marks.applies_to(rows)[:, used]

    is_rated = applies.any(axis=1)
    applies = applies[is_rated]
    positions = positions[:, is_rated]
    shares = np.empty((positions.shape[1], len(runs)))
    for place, (run, rows, used) in enumerate(zip(runs, positions, columns, strict=True)):
        passed = run.marks.passed[rows][:, :, used] | ~applies[:, None, :]
        shares[:, place] = passed.all(axis=2).mean(axis=1)

    clusters = first.clusters
    return PassShares(shares, None if clusters is None else cluster_codes(clusters[row] for row in positions[0]))
