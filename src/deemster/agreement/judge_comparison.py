"""Compares two judges against the same truth: McNemar's test, bootstrap of the differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deemster.agreement._bootstrap_replicates import SMOOTHED, BootstrapSettings, smoothed_results
from deemster.agreement._contingency_counts import count_by_unit
from deemster.agreement._criterion_columns import CriterionColumn, Floats
from deemster.agreement._imagined_units import AGREEMENT, DISAGREEMENT, unit_size
from deemster.agreement._item_clusters import Cluster
from deemster.agreement._labelled_votes import HasVotes, LabelledVotes, read_labelled_votes
from deemster.agreement._score_statistics import imagine_items, weighted_sums
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.agreement.result_models import (
    AbstentionMode,
    BootstrapResult,
    CriterionComparison,
    CriterionType,
    JudgeComparison,
    JudgeDifference,
)
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError, visible
from deemster.errors.parameter_checks import checks_parameters
from deemster.stats import confusion_tables as tables
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.multiple_testing import holm
from deemster.stats.nan_arithmetic import float_or_none, quotient
from deemster.stats.paired_tests import mcnemar


@checks_parameters
def compare_judges(
    result: Votes | HasVotes | str | Path,
    dataset: RubricDataset | str | Path | None,
    a: str,
    b: str,
    *,
    bootstrap: BootstrapSettings = SMOOTHED,
    cannot_assess: AbstentionMode = "exclude",
    na_mode: AbstentionMode = "exclude",
    cluster: Cluster | None = None,
) -> JudgeComparison:
    """Compare two judges of a panel on the cells that are covered for both.

    Per criterion, McNemar's exact test over the cells where only one of them is right, with Holm's correction over
    criteria. Accuracy (pooled), mean kappa (over criteria where both are defined) and score RMSE (over items that both
    scored) are given as a minus b, resampled on shared draws: an interval without 0 is a difference.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it.
        a: The one judge.
        b: The other judge.
        bootstrap: How differences get their intervals; the method is "smoothed".
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.
        cluster: A metadata key, or the cluster of each item by id; whole clusters are resampled.

    Raises:
        InputError: There is no such judge, they are one and the same, an argument is out of range, or the votes cannot
            be used. It is a ValueError too.

    References: Q. McNemar, Psychometrika 12 (1947); S. Holm, Scandinavian Journal of Statistics 6 (1979); B. Efron,
    R. J. Tibshirani, An introduction to the bootstrap (1993).
    """
    options = bootstrap.checked()
    if options.method != "smoothed":
        raise InputError(f"Judges are compared by the smoothed bootstrap alone, not by {options.method!r}.")
    modes = AbstentionModes(cannot_assess, na_mode)
    votes = read_labelled_votes(result, dataset, modes=modes, cluster=cluster)
    judges = votes.judge_index(a), votes.judge_index(b)
    if a == b:
        raise InputError(f"A judge is compared with another one, not {visible(a, limit=60)!r} with itself.")
    pair = _pair_judges(votes, judges)
    results = smoothed_results(pair.values, units=votes.n_units, drawing=options)
    criteria = pair.criteria()
    cells = sum(criterion.n_samples for criterion in criteria)
    one = ("one-item: a single unit is resampled, which gives no interval.",) if votes.n_units == 1 else ()
    return JudgeComparison(
        judge_a=a, judge_b=b, n_items=len(votes.ids), n_samples=cells,
        accuracy=_difference(results[0:3], cells),
        mean_kappa=_difference(results[3:6], cells),
        score_rmse=_difference(results[6:9], pair.n_scores),
        per_criterion=criteria,
        n_bootstrap=options.replicates, confidence_level=options.confidence, seed=options.seed, unit=votes.unit,
        warnings=(*votes.warnings, *one),
    )  # fmt: skip


def _difference(results: tuple[BootstrapResult, ...], count: int) -> JudgeDifference:
    a, b, apart = results
    return JudgeDifference(a=a.estimate, b=b.estimate, difference=apart, n_samples=count)


class _JudgePair:
    """The cells that are covered for two judges, ready for any draw of items."""

    def __init__(
        self, votes: LabelledVotes, columns: list[tuple[CriterionColumn, Any]], errors: Floats, n_scores: int
    ) -> None:
        self._columns = columns
        self._unit_sizes, self._items = [unit_size(votes, column) for column, _ in columns], imagine_items(votes)
        self._errors = errors
        self.n_scores = n_scores

    def _tables(
        self, draws: Floats, rng: np.random.Generator | None
    ) -> list[tuple[CriterionType, tuple[Floats, Floats]]]:
        """For each column its kind, and the tables ``[b, K, K]`` of both judges."""
        found: list[tuple[CriterionType, tuple[Floats, Floats]]] = []
        for (column, matrix), size in zip(self._columns, self._unit_sizes, strict=True):
            cells, classes = matrix @ draws, column.classes.size
            if rng is not None:
                cells = cells + size * imagined_weights(_cube_shapes(classes), draws.shape[1], rng)
            cube = np.moveaxis(cells.reshape((classes, classes, classes, draws.shape[1])), -1, 0)
            found.append((column.classes.kind, (cube.sum(axis=3), cube.sum(axis=2))))
        return found

    def values(self, draws: Floats, rng: np.random.Generator | None = None) -> Floats:
        """Accuracy, mean kappa and RMSE: each of a, of b, and a minus b.

        Args:
            draws: Units × replicates.
            rng: Draws the weights of imagined units; None for real units alone.
        """
        by_column = self._tables(draws, rng)
        by_column = [(kind, pair) for kind, pair in by_column if kind != "numeric"]
        nothing = np.zeros(draws.shape[1])
        total = sum((pair[0].sum(axis=(-1, -2)) for _, pair in by_column), start=nothing)
        hits = [sum((np.einsum("bii->b", pair[side]) for _, pair in by_column), start=nothing) for side in (0, 1)]
        accuracies = [quotient(right, total) for right in hits]
        kappas = np.array(
            [[nothing * np.nan, *(tables.kappa(pair[side], kind) for kind, pair in by_column)] for side in (0, 1)]
        )
        known = ~np.isnan(kappas).any(axis=0)
        means = quotient(np.where(known, kappas, 0.0).sum(axis=1), known.sum(axis=0))
        sums = weighted_sums(self._errors, draws)
        if rng is not None:
            weights = self._items.size * imagined_weights(self._items.shapes, draws.shape[1], rng)
            apart = np.square(self._items.predicted - self._items.true)
            half = len(apart) // 2
            # On the first half of the imagined items judge a errs, on the second half judge b.
            missed = apart[:, None] * weights
            sums = sums + np.stack([missed[:half].sum(axis=0), missed[half:].sum(axis=0), weights.sum(axis=0)])
        *squares, count = sums
        errors = [np.sqrt(quotient(square, count)) for square in squares]
        return np.stack([row for a, b in (accuracies, means, errors) for row in (a, b, a - b)])

    def criteria(self) -> tuple[CriterionComparison, ...]:
        """McNemar's test of every column."""
        found = []
        for column, matrix in self._columns:
            if column.numbers is not None:
                continue
            cube = matrix.row_sums().reshape((column.classes.size,) * 3)
            right = np.arange(column.classes.size)
            by_a, by_b = cube[right, right].sum(), cube[right, :, right].sum()
            both = cube[right, right, right].sum()
            found.append((column, cube.sum(), by_a, by_b, both))
        p_values = [mcnemar(int(a - both), int(b - both)).p_value for _, _, a, b, both in found]
        adjusted = holm(p_values).adjusted
        return tuple(
            CriterionComparison(
                name=column.name,
                index=column.index,
                n_samples=int(n),
                accuracy_a=float_or_none(quotient(a, n)),
                accuracy_b=float_or_none(quotient(b, n)),
                only_a_right=int(a - both),
                only_b_right=int(b - both),
                p_value=p_values[place],
                adjusted_p_value=adjusted[place],
            )
            for place, (column, n, a, b, both) in enumerate(found)
        )


def _cube_shapes(size: int) -> Floats:
    """The parameters of imagined units by truth, vote of a and vote of b; those of each judge's table are as ever.

    >>> _cube_shapes(2)
    array([0.5  , 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.5  ])
    """
    truth, a, b = np.indices((size,) * 3)
    wrong = (truth != a).astype(int) + (truth != b)
    return np.where(wrong == 0, AGREEMENT, DISAGREEMENT / 2 / max(1, size - 1) ** np.maximum(wrong, 1)).ravel()


def _pair_judges(votes: LabelledVotes, judges: tuple[int, int]) -> _JudgePair:
    units, n_units = votes.unit_of_item, votes.n_units
    columns = []
    for column in votes.columns:
        truth, size = column.truth_classes.astype(np.intp), column.classes.size
        one, other = column.vote_classes[:, list(judges)].astype(np.intp).T
        covered = (truth >= 0) & (one >= 0) & (other >= 0)
        cells = np.where(covered, (truth * size + one) * size + other, -1)
        columns.append((column, count_by_unit(cells, units[column.rows], n_cells=size**3, n_units=n_units)))
    errors_of_both = votes.judge_scores[:, list(judges)] - votes.true[:, None]
    scored = ~np.isnan(errors_of_both).any(axis=1)
    squares = [np.where(scored, np.square(side), 0.0) for side in errors_of_both.T]
    errors: Floats = np.stack(
        [np.bincount(units, weights=row, minlength=n_units) for row in (*squares, scored.astype(np.float64))]
    )
    return _JudgePair(votes, columns, errors, int(scored.sum()))
