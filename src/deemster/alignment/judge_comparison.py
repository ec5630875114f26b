"""Two judges against the same truth: which is better, and is that more than chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deemster.alignment._bootstrap_draws import number, one_hot, replicated, resampled, units_of
from deemster.alignment._clusters import Cluster, checked_draws
from deemster.alignment._labelled_votes import Column, Floats, Graded, Panel, panel
from deemster.alignment._table_measures import kappa_of
from deemster.alignment._verdict_classes import Classes, Modes, classes_by_column
from deemster.alignment.metrics_result import BootstrapResult, CriterionComparison, Difference, JudgeComparison, Mode
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError, did_you_mean, visible
from deemster.stats.agreement_from_sums import quotient
from deemster.stats.multiple_testing import holm
from deemster.stats.paired_tests import mcnemar


def compare_judges(
    result: Votes | Graded | str | Path,
    dataset: RubricDataset | str | Path | None,
    a: str,
    b: str,
    *,
    n_bootstrap: int = 1000,
    cannot_assess: Mode = "exclude",
    na_mode: Mode = "exclude",
    confidence_level: float = 0.95,
    seed: int | None = None,
    cluster: Cluster | None = None,
) -> JudgeComparison:
    """Compare two judges of a panel on the cells that are covered for both.

    Per criterion, McNemar's exact test over the cells where only one of them is right, with Holm's correction over
    criteria. Accuracy (pooled), mean kappa (over criteria where both are defined) and score RMSE (over items that both
    scored) are told as a minus b, resampled on shared draws: an interval without 0 is a difference.

    Args:
        result: Votes, a grading, or the path of a votes file.
        dataset: Where the truth comes from; None where the votes carry it.
        a: The one judge.
        b: The other judge.
        n_bootstrap: How many replicates are drawn.
        cannot_assess: What an abstention counts as on binary criteria.
        na_mode: What an abstention counts as on multi-choice criteria.
        confidence_level: Of the intervals.
        seed: Of the draws; None draws one, and the result tells it.
        cluster: A metadata key, or the cluster of each item by id; whole clusters are resampled.

    Raises:
        InputError: There is no such judge, they are one and the same, an argument is out of range, or the votes cannot
            be used. It is a ValueError too.

    References: Q. McNemar, Psychometrika 12 (1947); S. Holm, Scandinavian Journal of Statistics 6 (1979); B. Efron,
    R. J. Tibshirani, An introduction to the bootstrap (1993).
    """
    draws = checked_draws(n_bootstrap=n_bootstrap, confidence_level=confidence_level, seed=seed)
    whole = panel(result, dataset, cluster=cluster)
    pair = _both(whole, classes_by_column(whole.columns, Modes(cannot_assess, na_mode)), _places(whole, a, b))
    values = replicated(pair.values, units=whole.n_units, replicates=draws.replicates, seed=draws.seed)
    results = resampled(values, confidence=draws.confidence)
    criteria = pair.criteria()
    cells = sum(criterion.n_samples for criterion in criteria)
    one = ("one-item: the intervals rest on a single unit and say nothing.",) if whole.n_units == 1 else ()
    return JudgeComparison(
        judge_a=a, judge_b=b, n_items=len(whole.ids), n_samples=cells,
        accuracy=_difference(results[0:3], cells),
        mean_kappa=_difference(results[3:6], cells),
        score_rmse=_difference(results[6:9], pair.n_scores),
        per_criterion=criteria,
        n_bootstrap=draws.replicates, confidence_level=draws.confidence, seed=draws.seed, unit=whole.unit,
        warnings=(*whole.warnings, *one),
    )  # fmt: skip


def _places(whole: Panel, a: str, b: str) -> tuple[int, int]:
    for name in (a, b):
        if name not in whole.judges:
            known = did_you_mean(str(name), whole.judges)
            raise InputError(f"There is no judge {visible(str(name), limit=60)!r} among the votes. {known}")
    if a == b:
        raise InputError(f"A judge is compared with another one, not {visible(a, limit=60)!r} with itself.")
    return whole.judges.index(a), whole.judges.index(b)


def _difference(results: tuple[BootstrapResult, ...], count: int) -> Difference:
    a, b, apart = results
    return Difference(a=a.estimate, b=b.estimate, difference=apart, n_samples=count)


class _Pair:
    """The cells that are covered for two judges, ready for any draw of items."""

    def __init__(self, columns: list[tuple[Column, Classes, Any]], errors: Floats, n_scores: int) -> None:
        from scipy.sparse import csr_array  # noqa: PLC0415 - scipy takes a tenth of a second to load

        self._columns = columns
        # A sparse product adds unit after unit, so that neither threads nor blocks change the last digit.
        self._errors = csr_array(errors)
        self.n_scores = n_scores

    def _tables(self, draws: Floats) -> list[tuple[str, tuple[Floats, Floats]]]:
        """For each column its kind, and the tables ``[b, K, K]`` of both judges."""
        found: list[tuple[str, tuple[Floats, Floats]]] = []
        for _, kinds, matrix in self._columns:
            cube = np.moveaxis((matrix @ draws).reshape((*(kinds.size,) * 3, draws.shape[1])), -1, 0)
            found.append((kinds.kind, (cube.sum(axis=3), cube.sum(axis=2))))
        return found

    def values(self, draws: Floats) -> Floats:
        """Accuracy, mean kappa and RMSE: each of a, of b, and a minus b."""
        tables = self._tables(draws)
        total = np.sum([pair[0].sum(axis=(-1, -2)) for _, pair in tables], axis=0)
        hits = [np.sum([np.einsum("bii->b", pair[side]) for _, pair in tables], axis=0) for side in (0, 1)]
        accuracies = [quotient(right, total) for right in hits]
        kappas = np.array([[kappa_of(kind, pair[side]) for kind, pair in tables] for side in (0, 1)])
        known = ~np.isnan(kappas).any(axis=0)
        means = quotient(np.where(known, kappas, 0.0).sum(axis=1), known.sum(axis=0))
        *squares, count = self._errors @ draws
        errors = [np.sqrt(quotient(square, count)) for square in squares]
        return np.stack([row for a, b in (accuracies, means, errors) for row in (a, b, a - b)])

    def criteria(self) -> tuple[CriterionComparison, ...]:
        """McNemar's test of every column."""
        found = []
        for column, kinds, matrix in self._columns:
            cube = matrix.sum(axis=1).reshape((kinds.size,) * 3)
            right = np.arange(kinds.size)
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
                accuracy_a=number(quotient(a, n)),
                accuracy_b=number(quotient(b, n)),
                only_a_right=int(a - both),
                only_b_right=int(b - both),
                p_value=p_values[place],
                adjusted_p_value=adjusted[place],
            )
            for place, (column, n, a, b, both) in enumerate(found)
        )


def _both(whole: Panel, classes: tuple[Classes, ...], judges: tuple[int, int]) -> _Pair:
    units, n_units = units_of(whole), whole.n_units
    columns = []
    for column, kinds in zip(whole.columns, classes, strict=True):
        truth = kinds.of(column.truth, column.worst).astype(np.intp)
        one, other = (kinds.of(column.votes[:, judge], column.worst).astype(np.intp) for judge in judges)
        covered = (truth >= 0) & (one >= 0) & (other >= 0)
        cells = np.where(covered, (truth * kinds.size + one) * kinds.size + other, -1)
        columns.append((column, kinds, one_hot(cells, units[column.rows], size=kinds.size**3, n_units=n_units)))
    apart = whole.judge_scores[:, list(judges)] - whole.true[:, None]
    scored = ~np.isnan(apart).any(axis=1)
    squares = [np.where(scored, np.square(side), 0.0) for side in apart.T]
    errors: Floats = np.stack(
        [np.bincount(units, weights=row, minlength=n_units) for row in (*squares, scored.astype(np.float64))]
    )
    return _Pair(columns, errors, int(scored.sum()))
