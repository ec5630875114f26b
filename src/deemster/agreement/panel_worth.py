"""What a panel of judges is worth against labels: its independent votes, its best member, what each member adds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._imagined_units import AGREEMENT, DISAGREEMENT
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._score_statistics import weighted_sums
from deemster.agreement._verdict_classes import Codes
from deemster.agreement.result_models import BootstrapResult, ResultModel
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.vote_aggregation import aggregate, weighs_votes
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.bounded_mean import bounded_mean
from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.effective_votes import effective_votes, error_correlations
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
        loss: By how much the mean error of the panel grows without it.
        loss_ci: The interval of that.
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
        gain_ci: The interval of that.
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


class _Errors(NamedTuple):
    """The errors on the cells where every judge gave a verdict.

    Attributes:
        units: The unit of each cell.
        judges: The error of each judge, ``[cells, judges]``.
        centred: The same less its mean on the criterion.
        panel: That of the panel.
        without: That of the panel without each judge, ``[cells, judges]``.
    """

    units: Indices
    judges: Floats
    centred: Floats
    panel: Floats
    without: Floats


def panel_worth(votes: LabelledVotes, drawing: BootstrapSettings) -> PanelWorth | None:
    """Compute what the panel is worth.

    Args:
        votes: The labelled votes.
        drawing: How intervals are drawn; they are the smoothed ones with every method.

    Returns:
        None below two judges, and where no labelled cell has a verdict of each.

    References: L. Kish, Survey Sampling (1965); arXiv:2605.29800 (2026) on panels of language models.
    """
    columns = [column for column in votes.columns if column.criterion.kind != "numeric"]
    if len(votes.judges) < 2 or not columns:
        return None
    errors = _Errors(*map(np.concatenate, zip(*(_errors(votes, column) for column in columns), strict=True)))
    if not len(errors.units):
        return None

    units, unit_of_cell = np.unique(errors.units, return_inverse=True)
    errors = errors._replace(units=unit_of_cell)
    numbers = _correlation_numbers(errors, _vote_weights(votes, columns), len(units), drawing)
    pairs = [
        SharedErrors(judge_a=a, judge_b=b, correlation=number.estimate, ci=number.ci)
        for (a, b), number in zip(combinations(votes.judges, 2), numbers[1:], strict=True)
    ]
    means = errors.judges.mean(axis=0)
    gain = _difference(errors, _chosen_errors(errors, len(units), drawing.seed), drawing.confidence)
    return PanelWorth(
        effective_votes=numbers[0].estimate,
        ci=numbers[0].ci,
        n_samples=len(errors.units),
        error=float(errors.panel.mean()),
        best_judge=votes.judges[int(np.argmin(means))],
        gain=gain.value,
        gain_ci=gain.interval,
        members=tuple(_members(votes, errors, means, drawing.confidence)),
        pairs=tuple(sorted(pairs, key=lambda pair: -2.0 if pair.correlation is None else -pair.correlation)),
    )


def _errors(votes: LabelledVotes, column: CriterionColumn) -> _Errors:
    """The errors on one criterion."""
    complete = (column.truth_classes >= 0) & (column.vote_classes >= 0).all(axis=1)
    truth = column.truth_classes[complete, None]

    def error(classes: Codes) -> Floats:
        if column.criterion.kind != "ordinal":
            return np.asarray(classes != truth, dtype=np.float64)
        distance: Floats = np.abs(classes.astype(np.float64) - truth) / max(1, column.classes.size - 1)
        distance[classes < 0] = 1.0
        return distance

    weights = np.array([judge.weight for judge in votes.votes.judges])
    n = len(weights)
    # The panel, then the panel without each judge.
    panels = np.repeat(column.votes[complete][:, None], 1 + n, axis=1)
    panels[:, np.arange(n) + 1, np.arange(n)] = MISSING
    rule = votes.votes.rules.rule_for(column.criterion)
    verdicts = aggregate(column.criterion, panels.reshape(-1, n), rule=rule, weights=weights).codes.reshape(-1, 1 + n)
    of_panels = error(column.classes.from_codes(verdicts, column.worst_codes[complete]))

    judges = error(column.vote_classes[complete])
    return _Errors(
        units=votes.unit_of_item[column.rows[complete]],
        judges=judges,
        centred=judges - judges.sum(axis=0) / max(1, len(judges)),
        panel=of_panels[:, 0],
        without=of_panels[:, 1:],
    )


def _vote_weights(votes: LabelledVotes, columns: list[CriterionColumn]) -> Floats:
    """What the vote of each judge counts: all alike unless every rule weighs votes."""
    is_weighted = all(weighs_votes(votes.votes.rules.rule_for(column.criterion)) for column in columns)
    return np.array([judge.weight if is_weighted else 1.0 for judge in votes.votes.judges])


def _correlation_numbers(
    errors: _Errors, weights: Floats, n_units: int, drawing: BootstrapSettings
) -> tuple[BootstrapResult, ...]:
    """The effective votes, then the correlation of each pair of judges."""
    n = len(weights)
    centred = errors.centred.T
    products = np.array([np.bincount(errors.units, a * b, minlength=n_units) for a in centred for b in centred])
    # Imagined units of the average size: one on which all judges err, and one for each judge that errs alone.
    patterns = np.vstack([np.ones(n), np.eye(n)]) - errors.judges.mean(axis=0)
    imagined = np.einsum("ui,uj->iju", patterns, patterns).reshape(n * n, n + 1) * len(errors.units) / n_units
    shapes = np.array([AGREEMENT, *[DISAGREEMENT] * n])

    def statistic(draws: Floats, rng: np.random.Generator | None) -> Floats:
        sums = weighted_sums(products, draws)
        if rng is not None:
            sums = sums + weighted_sums(imagined, imagined_weights(shapes, draws.shape[1], rng))
        correlations = error_correlations(sums.reshape(n, n, -1))
        return np.vstack([effective_votes(correlations, weights), correlations[np.triu_indices(n, k=1)]])

    return smoothed_results(statistic, units=n_units, drawing=drawing)


def _difference(errors: _Errors, others: Floats, confidence: float) -> Mean:
    """How much less the panel errs than something else on the same cells."""
    return bounded_mean(*unit_sums(others - errors.panel, errors.units), low=-1.0, strict=True, confidence=confidence)


def _chosen_errors(errors: _Errors, n_units: int, seed: int) -> Floats:
    """The errors of the best member, where each part of the units is judged by the one that is best on the others."""
    folds = (np.random.default_rng(seed).permutation(n_units) % _FOLDS)[errors.units]
    chosen = np.zeros(len(folds))
    totals = errors.judges.sum(axis=0)
    for fold in range(_FOLDS):
        inside = folds == fold
        best = int(np.argmin(totals - errors.judges[inside].sum(axis=0)))
        chosen[inside] = errors.judges[inside, best]
    return chosen


def _members(votes: LabelledVotes, errors: _Errors, means: Floats, confidence: float) -> Iterator[PanelMember]:
    costs = [judge.cost_usd for judge in votes.votes.judges]
    total = sum(cost for cost in costs if cost is not None)
    is_known = None not in costs and total > 0
    for judge, mean, others, cost in zip(votes.judges, means.tolist(), errors.without.T, costs, strict=True):
        loss = _difference(errors, others, confidence)
        share = cost / total if cost is not None and is_known else None
        yield PanelMember(judge_id=judge, error=mean, loss=loss.value, loss_ci=loss.interval, cost_share=share)
