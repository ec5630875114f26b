"""Statistics of item scores from sums that are linear in the items, for the data and for every replicate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._labelled_votes import Floats, Indices, LabelledVotes
from deemster.alignment._verdict_statistics import Key, Values
from deemster.stats.confidence_interval import normal_quantile
from deemster.stats.correlation import Correlation, kendall, pearson, spearman
from deemster.stats.nan_arithmetic import DUST, quotient
from deemster.stats.rank_correlation import (
    Dominance,
    dominance,
    kendall_influence,
    spearman_influence,
    weighted_kendall,
    weighted_spearman,
)
from deemster.stats.variance_components import (
    icc_features,
    icc_forms,
    interval_alpha,
    mean_squares,
    spread_features,
)

# Above this many items the rank correlations of replicates are first-order expansions.
LARGEST_RANKED = 500
ICC_FORMS = ("icc_1_1", "icc_2_1", "icc_3_1", "icc_1_k", "icc_2_k", "icc_3_k")
CORRELATIONS = ("spearman", "kendall", "pearson")
# How many replicates, units and features one matrix product takes.
STRIP, _DEEP, _TALL = 32, 128, 64


@dataclass(frozen=True, slots=True, eq=False)
class ScoreComparison:
    """One set of item scores against the true ones.

    Attributes:
        scope: Whose scores: ``("all",)`` or ``("judge", number)``.
        scored: Which items have both scores.
        predicted: The scores of these items.
        true: Their true scores.
        features: The numbers of its features.
        linear: Whether the rank correlations of replicates are first-order expansions.
        correlations: Spearman's, Kendall's and Pearson's, by name.
    """

    scope: Key
    scored: NDArray[np.bool_]
    predicted: Floats
    true: Floats
    features: tuple[int, ...]
    linear: bool
    correlations: Mapping[str, Correlation]

    @property
    def largest(self) -> float:
        """The largest absolute score, at least 1: rounding errors are relative to it."""
        return float(max(1.0, np.abs(self.predicted).max(initial=0.0), np.abs(self.true).max(initial=0.0)))

    def differences(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        """How many pairs, and the sums of predicted - true and of its square, in each replicate."""
        n, t, _, x, _, _, squares = sums[list(self.features[:7])]
        return n, (_mean(self.predicted) - _mean(self.true)) * n + (x - t), squares


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSums:
    """Features of the units whose sums give every score-level statistic.

    Attributes:
        features: Features × units.
        comparisons: The panel, then the judges, against the truth.
        n_judges: How many judges there are; below two there is no agreement among them.
        first_icc: First feature of the intraclass correlations: a count, then their features.
        first_alpha: First feature of interval alpha.
        first_slice: First feature of the slices: count, difference, squared difference of each.
        n_slices: How many slices there are.
        unit_of_item: The unit of each item.
        z: Normal quantile of the limits of agreement.
    """

    features: Floats
    comparisons: tuple[ScoreComparison, ...]
    n_judges: int
    first_icc: int
    first_alpha: int
    first_slice: int
    n_slices: int
    unit_of_item: Indices
    z: float

    def sum_draws(self, draws: NDArray[Any]) -> Floats:
        """Sums of the features in each replicate, features × replicates.

        The product is cut into pieces of one size, too small to be split among threads. So its sums run in one order
        on every machine and for every block, and no thread waits for another.

        Args:
            draws: How often each unit is drawn, units × replicates.
        """
        units, replicates = draws.shape
        many = -(-units // _DEEP)
        padded = np.zeros((len(self.features), many * _DEEP))
        padded[:, :units] = self.features
        strip = np.zeros((many * _DEEP, STRIP))
        found = np.empty((len(self.features), replicates))
        for top in range(0, len(self.features), _TALL):
            rows = padded[top : top + _TALL].reshape(-1, many, _DEEP).transpose(1, 0, 2).copy()
            for start in range(0, replicates, STRIP):
                stop = min(start + STRIP, replicates)
                strip[:units, : stop - start] = draws[:, start:stop]
                product = np.matmul(rows, strip.reshape(many, _DEEP, STRIP)).sum(axis=0)
                found[top : top + _TALL, start:stop] = product[:, : stop - start]
        return found

    def totals(self) -> Floats:
        """Sums of the features in the data themselves, features × 1."""
        found: Floats = self.features.sum(axis=1, keepdims=True)
        return found

    def statistics(self, sums: Floats, draws: NDArray[Any] | None) -> Values:
        """Every score-level statistic.

        Args:
            sums: Features × replicates.
            draws: Units × replicates; None leaves out what cannot be computed from sums.
        """
        values: Values = {}
        for comparison in self.comparisons:
            _add_comparison(values, comparison, sums, self.z)
            if comparison.linear:
                _add_expanded(values, comparison, sums)
            elif draws is not None:
                weights = draws[self.unit_of_item[comparison.scored]]
                x, t = comparison.predicted, comparison.true
                values[*comparison.scope, "score_spearman"] = weighted_spearman(x, t, weights)
                values[*comparison.scope, "score_kendall"] = weighted_kendall(x, t, weights)
        if self.n_judges >= 2:
            units = sums[self.first_icc]
            squares = mean_squares(np.moveaxis(sums[self.first_icc + 1 : self.first_alpha], 0, -1), units)
            forms = icc_forms(squares, units, self.n_judges)
            for place, name in enumerate(ICC_FORMS):
                values["all", f"score_icc.{name}"] = forms[..., place]
            alpha_sums = sums[self.first_alpha : self.first_slice]
            values["all", "score_alpha"] = interval_alpha(np.moveaxis(alpha_sums, 0, -1))
        return values

    def slice_sums(self, sums: Floats) -> Floats:
        """Count, difference and squared difference of each slice, ``[3, slices, replicates]``."""
        first, last = self.first_slice, self.first_slice + 3 * self.n_slices
        return sums[first:last].reshape(self.n_slices, 3, -1).swapaxes(0, 1)

    def exact_correlations(self) -> Iterator[tuple[Key, float]]:
        """The correlations of the data themselves by key, which sums of squares give less exactly; NaN is undefined."""
        for comparison in self.comparisons:
            for name in CORRELATIONS:
                value = comparison.correlations[name].value
                yield (*comparison.scope, f"score_{name}"), math.nan if value is None else value

    def expanded_keys(self) -> frozenset[Key]:
        """The statistics whose replicates are first-order expansions."""
        names = ("score_spearman", "score_kendall")
        return frozenset((*each.scope, name) for each in self.comparisons if each.linear for name in names)


def sum_scores(
    votes: LabelledVotes,
    *,
    per_judge: bool,
    replicates: bool,
    slices: NDArray[np.bool_] | None = None,
    confidence: float = 0.95,
) -> ScoreSums:
    """Lay out the features of the item scores.

    Args:
        votes: The labelled votes.
        per_judge: Compare each judge with the truth too.
        replicates: Whether replicates of rank correlations are wanted.
        slices: Which items are in which slice, items × slices.
        confidence: The level of intervals and of the limits of agreement.
    """
    rows: list[Floats] = []
    comparisons = _compare_scores(votes, rows, per_judge=per_judge, replicates=replicates, confidence=confidence)
    first_icc = first_alpha = len(rows)
    if len(votes.judges) >= 2:
        centred = votes.judge_scores - _mean(votes.judge_scores)
        complete: NDArray[np.bool_] = np.asarray(~np.isnan(centred).any(axis=1))
        rows.append(complete.astype(np.float64))
        rows += _spread_rows(icc_features(centred[complete]).T, complete)
        first_alpha = len(rows)
        rows += list(spread_features(centred).T)
    first_slice = len(rows)
    if slices is not None:
        scored = comparisons[0].scored
        difference = np.where(scored, votes.predicted - votes.true, 0.0)
        for members in slices.T:
            inside = (members & scored).astype(np.float64)
            rows += [inside, inside * difference, inside * difference * difference]
    features = np.array(rows)
    if votes.clusters is not None:
        features = np.array([np.bincount(votes.clusters, weights=row, minlength=votes.n_units) for row in features])
    return ScoreSums(
        features=features,
        comparisons=comparisons,
        n_judges=len(votes.judges),
        first_icc=first_icc,
        first_alpha=first_alpha,
        first_slice=first_slice,
        n_slices=0 if slices is None else slices.shape[1],
        unit_of_item=votes.unit_of_item,
        z=normal_quantile(confidence),
    )


def _compare_scores(
    votes: LabelledVotes, rows: list[Floats], *, per_judge: bool, replicates: bool, confidence: float
) -> tuple[ScoreComparison, ...]:
    """The panel's and the judges' scores against the true ones; adds their features to the rows."""
    sides: list[tuple[Key, Floats]] = [(("all",), votes.predicted)]
    if per_judge:
        sides += [(("judge", place), scores) for place, scores in enumerate(votes.judge_scores.T)]
    found: list[ScoreComparison] = []
    for scope, scores in sides:
        scored = ~(np.isnan(scores) | np.isnan(votes.true))
        linear = replicates and int(scored.sum()) > LARGEST_RANKED
        x, t = scores[scored], votes.true[scored]
        counts = dominance(x, t)
        correlations = {
            "spearman": spearman(x, t, confidence=confidence),
            "kendall": kendall(x, t, confidence=confidence, counts=counts),
            "pearson": pearson(x, t, confidence=confidence),
        }
        # Comparisons on the same items share the features of the truth.
        shared = next((each.features[:3] for each in found if np.array_equal(each.scored, scored)), None)
        if shared is None:
            shared = tuple(range(len(rows), len(rows) + 3))
            rows += _spread_rows(_true_features(t), scored)
        own = _own_features(x, t, counts if linear else None)
        features = (*shared, *range(len(rows), len(rows) + len(own)))
        rows += _spread_rows(own, scored)
        found.append(ScoreComparison(scope, scored, x, t, features, linear, correlations))
    return tuple(found)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else 0.0


def _spread_rows(rows: Floats, chosen: NDArray[np.bool_]) -> list[Floats]:
    """Rows over some items as rows over all, zero elsewhere."""
    every = np.zeros((len(rows), len(chosen)))
    every[:, chosen] = rows
    return list(every)


def _true_features(t: Floats) -> Floats:
    """A count and sums about the mean of the data, so that differences of sums keep their digits."""
    centred = t - _mean(t)
    return np.array([np.ones(len(t)), centred, centred * centred])


def _own_features(x: Floats, t: Floats, counts: Dominance | None) -> Floats:
    """Sums of the scores and of their distance to the truth; influences on rank correlations where counts are given."""
    centred, difference = x - _mean(x), x - t
    rows = [centred, centred * centred, np.abs(difference), difference * difference]
    if counts is not None:
        rows += [spearman_influence(x, t), kendall_influence(x, t, counts=counts)]
    return np.array(rows)


def _variances(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """n² times the variance; what rounding leaves of a constant is 0."""
    found = n * squares - sums * sums
    return np.where(found > DUST * n * squares, found, 0.0)


def _add_comparison(values: Values, comparison: ScoreComparison, sums: Floats, z: float) -> None:
    n, t, tt, x, xx, distance, squares = sums[list(comparison.features[:7])]
    shift = _mean(comparison.predicted) - _mean(comparison.true)
    _, d, _ = comparison.differences(sums)
    # The sum of products follows from the squares of both sides and of their difference.
    xt = (xx + tt + shift * (2 * (x - t) + n * shift) - squares) / 2
    variance_x, variance_t, variance_d = _variances(n, x, xx), _variances(n, t, tt), _variances(n, d, squares)
    covariance = np.where((variance_x > 0) & (variance_t > 0), n * xt - x * t, 0.0)
    scope = comparison.scope
    values[*scope, "score_rmse"] = np.sqrt(quotient(squares, n))
    values[*scope, "score_mae"] = quotient(distance, n)
    scale = np.where(n >= 3, np.sqrt(variance_x) * np.sqrt(variance_t), 0.0)
    values[*scope, "score_pearson"] = np.clip(quotient(covariance, scale), -1, 1)
    mean = quotient(d, n)
    # The divisor is n - 1; below two items there is no standard deviation.
    deviation = np.sqrt(quotient(variance_d, np.where(n >= 2, n * (n - 1), 0.0)))
    deviation = np.where(deviation <= 1e-12 * comparison.largest, 0.0, deviation)
    values[*scope, "bias"] = mean
    values[*scope, "bias.std_bias"] = deviation
    values[*scope, "bias.effect_size"] = quotient(mean, deviation)
    if scope == ("all",):
        values[*scope, "score_concordance"] = quotient(2 * covariance, variance_x + variance_t + d * d)
        values[*scope, "score_limits.mean"] = mean
        values[*scope, "score_limits.lower"] = mean - z * deviation
        values[*scope, "score_limits.upper"] = mean + z * deviation


def _add_expanded(values: Values, comparison: ScoreComparison, sums: Floats) -> None:
    n = sums[comparison.features[0]]
    for step, name in enumerate(("spearman", "kendall")):
        value = comparison.correlations[name].value
        influence = quotient(sums[comparison.features[7 + step]], n)
        values[*comparison.scope, f"score_{name}"] = np.clip((np.nan if value is None else value) + influence, -1, 1)
