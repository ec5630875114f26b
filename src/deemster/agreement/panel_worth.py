"""What a panel of judges is worth against labels: its independent votes, its best member, what each member adds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from deemster.agreement._agreement_statistics import Statistics
from deemster.agreement._criterion_columns import Floats
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._panel_errors import CellErrors
from deemster.agreement.result_models import ResultModel
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.means import Mean, unit_sums

_FOLDS = 10


class SharedErrors(ResultModel, frozen=True, kw_only=True):
    """How far the errors of two judges go together.

    Attributes:
        judge_a: The one judge.
        judge_b: The other judge.
        correlation: The correlation of their errors. None where one of them errs always alike.
        ci: Its interval. None where the correlation is, and without a bootstrap.
    """

    judge_a: str
    judge_b: str
    correlation: float | None
    ci: ConfidenceInterval | None


class PanelMember(ResultModel, frozen=True, kw_only=True):
    """What a judge adds to its panel.

    Attributes:
        judge_id: The judge.
        error: Its mean error.
        loss: By how much the mean error of the panel grows without it. Never None.
        loss_ci: The interval of that. Never None.
        cost_share: Its share of what the panel costs. None where the cost of a judge is not known.
    """

    judge_id: str
    error: float
    loss: float | None
    loss_ci: ConfidenceInterval | None
    cost_share: float | None


class PanelWorth(ResultModel, frozen=True, kw_only=True):
    """What a panel is worth, on labelled cells where every judge gave a verdict; numeric criteria are left out.

    An error is 1 for a verdict that is not people's, 0 for one that is; on ordinal criteria the distance as a share of
    the scale. Errors are correlated inside each criterion.

    Attributes:
        effective_votes: How many independent votes the judges are worth. None where a judge errs always alike.
        ci: Its interval, from the bootstrap of the result. None where the number is, and without a bootstrap.
        n_samples: The cells.
        error: The mean error of the panel, with the votes made one by its rule.
        best_judge: The judge with the smallest mean error.
        gain: By how much the panel errs less than its best member, chosen for each part of the items on the others.
            Never None.
        gain_ci: The interval of that. Never None.
        members: Each judge.
        pairs: Each two judges, those whose errors go together most first.
    """

    effective_votes: float | None
    ci: ConfidenceInterval | None
    n_samples: int
    error: float
    best_judge: str
    gain: float | None
    gain_ci: ConfidenceInterval | None
    members: tuple[PanelMember, ...]
    pairs: tuple[SharedErrors, ...]


def panel_worth(statistics: Statistics) -> PanelWorth | None:
    """Compute what the panel is worth.

    Returns:
        None below two judges, and where no labelled cell has a verdict of each.

    References: L. Kish, Survey Sampling (1965); arXiv:2605.29800 (2026) on panels of language models.
    """
    if statistics.panel is None:
        return None
    votes = statistics.votes
    confidence = statistics.bootstrap.confidence
    units, unit_of_cell = np.unique(statistics.panel.cells.units, return_inverse=True)
    errors = statistics.panel.cells._replace(units=unit_of_cell)

    intervals = statistics.intervals or {}

    def interval(*key: Any) -> ConfidenceInterval | None:
        return intervals[key].ci if key in intervals else None

    pairs = [
        SharedErrors(
            judge_a=votes.judges[a],
            judge_b=votes.judges[b],
            correlation=statistics.value("pair", a, b, "error_correlation"),
            ci=interval("pair", a, b, "error_correlation"),
        )
        for a, b in combinations(range(len(votes.judges)), 2)
    ]
    means = errors.judges.mean(axis=0)
    gain = _difference(errors, _chosen_errors(errors, len(units), statistics.bootstrap.seed), confidence)
    return PanelWorth(
        effective_votes=statistics.value("panel", "effective_votes"),
        ci=interval("panel", "effective_votes"),
        n_samples=len(errors.units),
        error=float(errors.panel.mean()),
        best_judge=votes.judges[int(np.argmin(means))],
        gain=gain.value,
        gain_ci=gain.interval,
        members=tuple(_members(votes, errors, means, confidence)),
        pairs=tuple(sorted(pairs, key=lambda pair: -2.0 if pair.correlation is None else -pair.correlation)),
    )


def _difference(errors: CellErrors, others: Floats, confidence: float) -> Mean:
    """How much less the panel errs than something else on the same cells."""
    return bounded_mean(*unit_sums(others - errors.panel, errors.units), low=-1.0, strict=True, confidence=confidence)


def _chosen_errors(errors: CellErrors, n_units: int, seed: int) -> Floats:
    """The errors of the best member, where each part of the units is judged by the one that is best on the others."""
    folds = (np.random.default_rng(seed).permutation(n_units) % _FOLDS)[errors.units]
    chosen = np.zeros(len(folds))
    totals = errors.judges.sum(axis=0)
    for fold in range(_FOLDS):
        inside = folds == fold
        best = int(np.argmin(totals - errors.judges[inside].sum(axis=0)))
        chosen[inside] = errors.judges[inside, best]
    return chosen


def _members(votes: LabelledVotes, errors: CellErrors, means: Floats, confidence: float) -> Iterator[PanelMember]:
    costs = [judge.cost_usd for judge in votes.votes.judges]
    total = sum(cost for cost in costs if cost is not None)
    is_known = None not in costs and total > 0
    for judge, mean, others, cost in zip(votes.judges, means.tolist(), errors.without.T, costs, strict=True):
        loss = _difference(errors, others, confidence)
        share = cost / total if cost is not None and is_known else None
        yield PanelMember(judge_id=judge, error=mean, loss=loss.value, loss_ci=loss.interval, cost_share=share)
