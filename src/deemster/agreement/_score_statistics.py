"""Statistics of item scores: RMSE, MAE, correlations, bias, ICC, for the data and for replicates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.agreement._criterion_columns import Floats, Indices
from deemster.agreement._imagined_units import table_shapes
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._verdict_statistics import Key, Values
from deemster.rubrics import Criterion
from deemster.stats.confidence_interval import normal_quantile
from deemster.stats.correlation import Correlation, kendall, pearson, spearman
from deemster.stats.intraclass_correlation import icc_features, icc_forms, mean_squares
from deemster.stats.krippendorff_alpha import interval_alpha, spread_features
from deemster.stats.paired_score_sums import (
    ScoreScale,
    difference_sums,
    expand_correlation,
    known_mean,
    predicted_features,
    score_scale,
    score_statistics,
    true_features,
)
from deemster.stats.rank_correlation import Dominance, dominance, weighted_kendall, weighted_spearman
from deemster.stats.sparse_rows import SparseRows
from deemster.stats.systematic_bias import BiasResult, systematic_bias

# Above this many items the rank correlations of replicates are first-order expansions.
LARGEST_RANKED = 500
ICC_FORMS = ("icc_1_1", "icc_2_1", "icc_3_1", "icc_1_k", "icc_2_k", "icc_3_k")
RANK_CORRELATIONS = ("spearman", "kendall")
CORRELATIONS = (*RANK_CORRELATIONS, "pearson")
# Names in the result, and the statistics of paired scores behind them: for the panel and judges, for the panel alone.
_SCORE_NAMES = {
    "score_rmse": "rmse",
    "score_mae": "mae",
    "score_pearson": "pearson",
    "bias": "mean",
    "bias.std_bias": "deviation",
    "bias.effect_size": "effect_size",
}
_PANEL_NAMES = {
    "score_concordance": "concordance",
    "score_limits.mean": "mean",
    "score_limits.lower": "lower",
    "score_limits.upper": "upper",
}
# How many replicates, units and features one matrix product takes.
STRIP, _DEEP, _TALL = 32, 128, 64
# Rows that are left over beyond a multiple of this many may be summed in another order.
_EVEN = 16


@dataclass(frozen=True, slots=True, eq=False)
class PairedScores:
    """Scores of one side against the true ones, with all that the data themselves say of them.

    Attributes:
        predicted: The scores.
        true: The true scores.
        units: The resampling unit of each pair.
        confidence: The level of intervals.
        order: How each pair stands to all others.
        correlations: Spearman's, Kendall's and Pearson's, by name.
        bias: How far the scores lie above the true ones.
        scale: Where the scores lie.
    """

    predicted: Floats
    true: Floats
    units: Indices
    confidence: float
    order: Dominance
    correlations: Mapping[str, Correlation]
    bias: BiasResult
    scale: ScoreScale

    @property
    def is_linear(self) -> bool:
        """Whether the rank correlations of replicates are first-order expansions."""
        return len(self.true) > LARGEST_RANKED


def pair_scores(
    votes: LabelledVotes, predicted: Floats, true: Floats, items: Indices, confidence: float
) -> PairedScores:
    """Compare scores with the true ones.

    Args:
        votes: The labelled votes.
        predicted: The scores.
        true: The true scores.
        items: The item of each pair.
        confidence: The level of intervals.
    """
    units = votes.unit_of_item[items]
    order = dominance(predicted, true)
    clusters = None if votes.clusters is None else units
    return PairedScores(
        predicted=predicted,
        true=true,
        units=units,
        confidence=confidence,
        order=order,
        correlations={
            "spearman": spearman(predicted, true, confidence=confidence),
            "kendall": kendall(predicted, true, confidence=confidence, counts=order),
            "pearson": pearson(predicted, true, confidence=confidence),
        },
        bias=systematic_bias(predicted, true, clusters=clusters, confidence=confidence),
        scale=score_scale(predicted, true),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ScoreComparison:
    """One set of item scores against the true ones.

    Attributes:
        scope: Whose scores: ``("all",)`` or ``("judge", number)``.
        scored: Which items have both scores.
        pairs: The scores of these items.
        features: The numbers of its features.
    """

    scope: Key
    scored: NDArray[np.bool_]
    pairs: PairedScores
    features: tuple[int, ...]

    def differences(self, sums: Floats) -> tuple[Floats, Floats, Floats]:
        """How many pairs, and the sums of predicted - true and of its square, in each replicate."""
        return difference_sums(sums[list(self.features[:7])], self.pairs.scale.shift)


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
        confidence: The level of intervals and of the limits of agreement.
        imagined: Items that are in no data.
        imagined_features: Features × imagined items.
    """

    features: Floats
    comparisons: tuple[ScoreComparison, ...]
    n_judges: int
    first_icc: int
    first_alpha: int
    first_slice: int
    n_slices: int
    confidence: float
    imagined: ImaginedItems
    imagined_features: Floats

    def sum_draws(self, draws: NDArray[Any], imagined: Floats | None = None) -> Floats:
        """Sums of the features in each replicate, features × replicates; with imagined items once more, with theirs.

        Args:
            draws: How often each unit is drawn, units × replicates.
            imagined: The weights of imagined items, items × replicates.
        """
        found = weighted_sums(self.features, draws)
        if imagined is None:
            return found
        return np.concatenate([found, found + SparseRows.of(self.imagined_features) @ imagined], axis=1)

    @property
    def ranked(self) -> bool:
        """Whether a rank correlation of replicates is computed from the draws themselves."""
        return not all(comparison.pairs.is_linear for comparison in self.comparisons)

    def totals(self) -> Floats:
        """Sums of the features in the data themselves, features × 1."""
        found: Floats = self.features.sum(axis=1, keepdims=True)
        return found

    def statistics(self, sums: Floats, draws: NDArray[Any] | None, imagined: Floats | None = None) -> Values:
        """Every score-level statistic.

        Args:
            sums: Features × replicates.
            draws: Units × replicates; None leaves out what cannot be computed from sums.
            imagined: The weights of imagined items, items × replicates, where the replicates come twice.
        """
        values: Values = {}
        z = normal_quantile(self.confidence)
        for comparison in self.comparisons:
            pairs = comparison.pairs
            own = score_statistics(sums[list(comparison.features[:7])], pairs.scale, z=z)
            names = _SCORE_NAMES | (_PANEL_NAMES if comparison.scope == ("all",) else {})
            for name, source in names.items():
                values[*comparison.scope, name] = own[source]
            if pairs.is_linear:
                n = sums[comparison.features[0]]
                for name, feature in zip(RANK_CORRELATIONS, comparison.features[7:], strict=True):
                    value = pairs.correlations[name].value
                    values[*comparison.scope, f"score_{name}"] = expand_correlation(value, sums[feature], n)
            elif draws is not None:
                sets: list[tuple[NDArray[Any], ...]] = [(pairs.predicted, pairs.true, draws[pairs.units])]
                if imagined is not None:
                    more = (self.imagined.predicted, self.imagined.true, imagined)
                    sets.append(tuple(np.concatenate(both) for both in zip(sets[0], more, strict=True)))
                for name, weighted in zip(RANK_CORRELATIONS, (weighted_spearman, weighted_kendall), strict=True):
                    values[*comparison.scope, f"score_{name}"] = np.concatenate([weighted(*each) for each in sets])
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
                value = comparison.pairs.correlations[name].value
                yield (*comparison.scope, f"score_{name}"), math.nan if value is None else value

    def expanded_keys(self) -> frozenset[Key]:
        """The statistics whose replicates are first-order expansions."""
        names = ("score_spearman", "score_kendall")
        return frozenset((*each.scope, name) for each in self.comparisons if each.pairs.is_linear for name in names)


def weighted_sums(features: Floats, draws: NDArray[Any]) -> Floats:
    """Sums of features over units in each replicate, features × replicates, the same to the last digit everywhere.

    The product is cut into pieces of one size, too small to be split among threads, and filled up with features of
    zeros. So every sum runs in the same order, for every block and feature, and no thread waits for another.

    Args:
        features: Features × units.
        draws: How often each unit is drawn, or its weight, units × replicates.
    """
    units, replicates = draws.shape
    many = -(-units // _DEEP)
    padded = np.zeros((-(-len(features) // _EVEN) * _EVEN, many * _DEEP))
    padded[: len(features), :units] = features
    strip = np.zeros((many * _DEEP, STRIP))
    found = np.empty((len(padded), replicates))
    for top in range(0, len(padded), _TALL):
        tall = padded[top : top + _TALL]
        rows = tall.reshape(len(tall), many, _DEEP).transpose(1, 0, 2).copy()
        for start in range(0, replicates, STRIP):
            stop = min(start + STRIP, replicates)
            strip[:units, : stop - start] = draws[:, start:stop]
            product = np.matmul(rows, strip.reshape(many, _DEEP, STRIP)).sum(axis=0)
            found[top : top + _TALL, start:stop] = product[:, : stop - start]
    return found[: len(features)]


@dataclass(frozen=True, slots=True, eq=False)
class ImaginedItems:
    """Pairs of scores: full agreement at each end of the range, and two scores apart in either order.

    Attributes:
        predicted: Their predicted scores.
        true: Their true scores.
        shapes: The parameter of the weight of each.
        size: How many items an average unit holds.
        span: How wide the range is.
    """

    predicted: Floats
    true: Floats
    shapes: Floats
    size: float
    span: float

    @classmethod
    def between(cls, low: float, high: float, *, apart: tuple[float, float], size: float) -> ImaginedItems:
        """The items of a range, weighted as the cells of a table of two classes.

        Args:
            low: Its lower end.
            high: Its upper end.
            apart: The two scores of a judge that misses.
            size: How many items an average unit holds.
        """
        one, other = apart
        shapes = table_shapes(2)[[0, 1, 3, 2]]
        return cls(np.array([low, one, high, other]), np.array([low, other, high, one]), shapes, size, high - low)


def imagine_items(votes: LabelledVotes) -> ImaginedItems:
    """Imagine items at the ends of the range of the scores."""
    low, high = 0.0, 1.0
    if not votes.votes.scoring.normalize:
        # What rubrics allow, and what penalties make of it.
        known = np.concatenate([votes.true, votes.predicted, votes.judge_scores.ravel()])
        known = known[~np.isnan(known)]
        worths = [_worths(block.rubric.criteria) for block in votes.votes.blocks]
        low = min(known.min(initial=0.0), *(worth.min(axis=1).sum() for worth in worths))
        high = max(known.max(initial=0.0), *(worth.max(axis=1).sum() for worth in worths))
    of_numbers = len(votes.columns) == 1 and votes.columns[0].numbers is not None
    apart = half_apart(votes.true, low, high) if of_numbers else (low, high)
    return ImaginedItems.between(low, high, apart=apart, size=len(votes.ids) / votes.n_units)


def half_apart(true: Floats, low: float, high: float) -> tuple[float, float]:
    """The usual number, and one that is half of the range away from it: how a judge misses a number.

    With less, intervals miss a judge that errs rarely and far; with more, they are wider than they need be.
    """
    known = true[~np.isnan(true)]
    usual, half = float(np.median(known)) if len(known) else low, (high - low) / 2
    return usual, usual + half if usual + half <= high else usual - half


def _worths(criteria: Sequence[Criterion]) -> Floats:
    """The least and the most that each criterion adds to a score that is not normalised, ``[criteria, 2]``."""
    found = []
    for criterion in criteria:
        values = [criterion.values[code] or 0.0 for code in criterion.scored] or [0.0, 1.0]
        worths = [criterion.weight * value for value in values]
        found.append((min(worths), max(worths)))
    return np.array(found)


def sum_scores(
    votes: LabelledVotes,
    *,
    per_judge: bool,
    slices: NDArray[np.bool_] | None = None,
    confidence: float = 0.95,
) -> ScoreSums:
    """Lay out the features of the item scores.

    Args:
        votes: The labelled votes.
        per_judge: Compare each judge with the truth too.
        slices: Which items are in which slice, items × slices.
        confidence: The level of intervals and of the limits of agreement.
    """
    rows: list[Floats] = []
    imagined = imagine_items(votes)
    comparisons = _compare_scores(votes, imagined, rows, per_judge=per_judge, confidence=confidence)
    first_icc = first_alpha = len(rows)
    if len(votes.judges) >= 2:
        centre = known_mean(votes.judge_scores)
        centred = votes.judge_scores - centre
        # Every other judge sees an imagined item as the panel does, the rest as the truth does.
        sides = np.where(np.arange(len(votes.judges)) % 2 == 0, imagined.predicted[:, None], imagined.true[:, None])
        complete: NDArray[np.bool_] = np.asarray(~np.isnan(centred).any(axis=1))
        rows.append(np.concatenate([complete, np.ones(len(sides))]).astype(np.float64))
        rows += _spread_rows(icc_features(centred[complete]).T, icc_features(sides - centre).T, complete)
        first_alpha = len(rows)
        rows += list(np.concatenate([spread_features(centred), spread_features(sides - centre)]).T)
    first_slice = len(rows)
    if slices is not None:
        scored = np.concatenate([comparisons[0].scored, np.ones(len(imagined.true), dtype=bool)])
        apart = np.concatenate([votes.predicted - votes.true, imagined.predicted - imagined.true])
        difference = np.where(scored, apart, 0.0)
        for members in slices.T:
            inside = np.concatenate([members, np.ones(len(imagined.true), dtype=bool)]) & scored
            rows += [inside.astype(np.float64), inside * difference, inside * difference * difference]
    every = np.array(rows)
    features = every[:, : len(votes.ids)]
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
        confidence=confidence,
        imagined=imagined,
        imagined_features=every[:, len(votes.ids) :],
    )


def _compare_scores(
    votes: LabelledVotes, imagined: ImaginedItems, rows: list[Floats], *, per_judge: bool, confidence: float
) -> tuple[ScoreComparison, ...]:
    """The panel's and the judges' scores against the true ones; adds their features to the rows."""
    sides: list[tuple[Key, Floats]] = [(("all",), votes.predicted)]
    if per_judge:
        sides += [(("judge", place), scores) for place, scores in enumerate(votes.judge_scores.T)]
    found: list[ScoreComparison] = []
    for scope, scores in sides:
        scored = ~(np.isnan(scores) | np.isnan(votes.true))
        x, t = scores[scored], votes.true[scored]
        pairs = pair_scores(votes, x, t, np.flatnonzero(scored), confidence)
        of_truth, own = true_features(t), predicted_features(x, t, counts=pairs.order if pairs.is_linear else None)
        more_truth = true_features(imagined.true, mean=known_mean(t))
        more_own = predicted_features(imagined.predicted, imagined.true, mean=known_mean(x))
        # To first order a weight on an imagined item moves no rank correlation.
        more_own = np.concatenate([more_own, np.zeros((len(own) - len(more_own), len(imagined.true)))])
        # Comparisons on the same items share the features of the truth.
        shared = next((each.features[:3] for each in found if np.array_equal(each.scored, scored)), None)
        if shared is None:
            shared = tuple(range(len(rows), len(rows) + 3))
            rows += _spread_rows(of_truth, more_truth, scored)
        features = (*shared, *range(len(rows), len(rows) + len(own)))
        rows += _spread_rows(own, more_own, scored)
        found.append(ScoreComparison(scope, scored, pairs, features))
    return tuple(found)


def _spread_rows(rows: Floats, imagined: Floats, chosen: NDArray[np.bool_]) -> list[Floats]:
    """Rows over some items as rows over all, zero elsewhere, then over the imagined ones."""
    every = np.zeros((len(rows), len(chosen)))
    every[:, chosen] = rows
    return list(np.concatenate([every, imagined], axis=1))
