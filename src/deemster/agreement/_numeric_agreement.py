"""Agreement on numeric criteria: concordance, ICC, limits, bias, and correlations by sample, dataset and system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from deemster.agreement._bootstrap_replicates import BootstrapSettings, smoothed_results
from deemster.agreement._criterion_columns import CriterionColumn, Floats, Indices
from deemster.agreement._error_intervals import bias_with_interval, with_exact_ends
from deemster.agreement._imagined_units import unit_size
from deemster.agreement._item_clusters import require_key
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._score_statistics import (
    CORRELATIONS,
    ICC_FORMS,
    RANK_CORRELATIONS,
    ImaginedItems,
    half_apart,
    pair_scores,
    weighted_sums,
)
from deemster.agreement.result_models import (
    BootstrapResult,
    CorrelationResult,
    CoverageStats,
    Intervals,
    LevelCorrelations,
    NumericCriterionMetrics,
    ScoreICC,
    ScoreLimits,
    interval_of,
)
from deemster.stats.bootstrap_resampling import imagined_weights
from deemster.stats.confidence_interval import normal_quantile
from deemster.stats.correlation import Correlation
from deemster.stats.interpretation import interpret_correlation
from deemster.stats.intraclass_correlation import icc_features, icc_forms, mean_squares
from deemster.stats.krippendorff_alpha import interval_alpha, spread_features
from deemster.stats.nan_arithmetic import mean_defined, merge_rounded, quotient
from deemster.stats.paired_score_sums import (
    expand_correlation,
    known_mean,
    predicted_features,
    score_scale,
    score_statistics,
    true_features,
)
from deemster.stats.rank_correlation import weighted_kendall, weighted_spearman

_OF_PAIRS = ("rmse", "mae", "bias", "concordance", "limits.lower", "limits.upper", "pearson")
_SOURCES = ("rmse", "mae", "mean", "concordance", "lower", "upper", "pearson")
# How many replicates are correlated at once: the signs of all pairs of systems stay small.
_CHUNK = 64
_LEVELS = ("sample_level", "system_level")


@dataclass(frozen=True, slots=True)
class Levels:
    """The metadata keys that group items: by what was answered, and by who answered; None for none."""

    group: str | None = None
    system: str | None = None


def numeric_metrics(
    votes: LabelledVotes,
    levels: Levels,
    coverage: Mapping[int, CoverageStats | None],
    drawing: BootstrapSettings,
) -> tuple[dict[int, NumericCriterionMetrics], BootstrapResult | None]:
    """The metrics of every numeric criterion by its index, and the mean of their concordances.

    Args:
        votes: The labelled votes.
        levels: How items are grouped for correlations by sample and by system.
        coverage: The coverage of each column.
        drawing: How units are resampled, and the level of all intervals.

    Raises:
        InputError: No item has a key of the levels.
    """
    columns = [
        _NumericColumn(votes, column, column.numbers, levels, drawing.confidence)
        for column in votes.columns
        if column.numbers is not None
    ]
    if not columns:
        return {}, None

    def values(weights: Floats, rng: np.random.Generator | None = None) -> Floats:
        found = [each.values(weights, rng) for each in columns]
        means = mean_defined(np.stack([rows[_OF_PAIRS.index("concordance")] for rows in found]))
        return np.concatenate([*found, means[None]])

    *results, mean = smoothed_results(values, units=votes.n_units, drawing=drawing)
    metrics, rest = {}, iter(results)
    for each in columns:
        own = dict(zip(each.names, rest, strict=False))
        intervals = own if drawing.replicates else None
        metrics[each.column.index] = each.metrics(own, intervals, coverage[each.column.index])
    return metrics, mean


class _NumericColumn:
    """One numeric criterion, ready for any weights of the resampling units.

    Attributes:
        column: The column.
        names: The names of its statistics, in order.
    """

    def __init__(
        self, votes: LabelledVotes, column: CriterionColumn, numbers: Floats, levels: Levels, confidence: float
    ) -> None:
        self.column = column
        self._n_judges = len(votes.judges)
        # Equal where they differ in the last bits only, so that ties are ties.
        truth, final, *cast = merge_rounded(numbers).T
        self._cast = np.column_stack(cast)
        both = ~(np.isnan(truth) | np.isnan(final))
        self._pairs = pair_scores(votes, final[both], truth[both], column.rows[both], confidence)
        self._vote_units = votes.unit_of_item[column.rows]
        self._imagined = imagine_numbers(column, unit_size(votes, column))
        self._z = normal_quantile(confidence)
        self._level_of: dict[str, tuple[str, Indices, int]] = {}
        for level, key in zip(_LEVELS, (levels.group, levels.system), strict=True):
            if key is not None:
                codes = _group_codes(votes, column, key)[both]
                self._level_of[level] = (key, codes, int(codes.max(initial=-1)) + 1)
        self.names = [*_OF_PAIRS, "spearman", "kendall", *(f"icc.{form}" for form in ICC_FORMS)]
        self.names += [f"{level}.{name}" for level in self._level_of for name in CORRELATIONS]
        if self._n_judges > 1:
            self.names += ["krippendorff_alpha", *(f"judge_icc.{form}" for form in ICC_FORMS)]

    def values(self, weights: Floats, rng: np.random.Generator | None) -> Floats:
        """Every statistic, ``[statistics, b]``.

        Args:
            weights: The weights of the units, units × replicates.
            rng: Draws the weights of imagined items; None for real items alone.
        """
        pairs = self._pairs
        own = weights[pairs.units].astype(np.float64)
        x, t = pairs.predicted, pairs.true
        if rng is not None:
            more = self._imagined
            own = np.concatenate([own, more.size * imagined_weights(more.shapes, weights.shape[1], rng)])
            x, t = np.concatenate([x, more.predicted]), np.concatenate([t, more.true])
        means = known_mean(pairs.predicted), known_mean(pairs.true)
        features = np.concatenate([true_features(t, mean=means[1]), predicted_features(x, t, mean=means[0])])
        found = score_statistics(weighted_sums(features, own), pairs.scale, z=self._z)
        rows = [found[name] for name in _SOURCES]
        rows += self._ranks(x, t, own)
        rows += list(_icc(np.column_stack([t, x]) - means[1], own))
        # Imagined items belong to no group.
        inside = own[: len(pairs.true)]
        for level, (_, codes, n) in self._level_of.items():
            by_level = _sample_level if level == "sample_level" else _system_level
            rows += list(by_level(pairs.predicted, pairs.true, codes, n, inside))
        if self._n_judges > 1:
            rows += self._among_judges(weights[self._vote_units].astype(np.float64), rng)
        return np.stack(rows)

    def _ranks(self, x: Floats, t: Floats, weights: Floats) -> list[Floats]:
        pairs = self._pairs
        if not pairs.is_linear:
            return [weighted_spearman(x, t, weights), weighted_kendall(x, t, weights)]
        influences = predicted_features(pairs.predicted, pairs.true, counts=pairs.order)[4:]
        # To first order a weight on an imagined item moves no rank correlation.
        real = weights[: len(pairs.true)]
        points = [pairs.correlations[name].value for name in RANK_CORRELATIONS]
        sums = weighted_sums(influences, real)
        return [expand_correlation(point, row, real.sum(axis=0)) for point, row in zip(points, sums, strict=True)]

    def _among_judges(self, weights: Floats, rng: np.random.Generator | None) -> list[Floats]:
        cast = self._cast
        if rng is not None:
            # Every other judge sees an imagined item as the panel does, the rest as the truth does.
            more, odd = self._imagined, np.arange(self._n_judges) % 2 == 1
            cast = np.concatenate([cast, np.where(odd, more.true[:, None], more.predicted[:, None])])
            added = more.size * imagined_weights(more.shapes, weights.shape[1], rng)
            weights = np.concatenate([weights, added])
        centred = cast - known_mean(self._cast)
        complete = ~np.isnan(centred).any(axis=1)
        alpha = interval_alpha(np.moveaxis(weighted_sums(spread_features(centred).T, weights), 0, -1))
        return [alpha, *_icc(centred[complete], weights[complete])]

    def metrics(
        self, own: Mapping[str, BootstrapResult], intervals: Intervals, coverage: CoverageStats | None
    ) -> NumericCriterionMetrics:
        """The model of the result."""
        pairs, n = self._pairs, len(self._pairs.true)
        every = {name: one.estimate for name, one in own.items()}
        bias = pairs.bias
        if intervals is not None:
            intervals = intervals | with_exact_ends(intervals, pairs, span=self._imagined.span, ranks=True)
            bias = bias_with_interval(bias, intervals["bias"].ci)
            # A bias has one interval, that of its test.
            intervals["bias"] = replace(intervals["bias"], ci=bias.ci or intervals["bias"].ci)
        limits = None
        if n:
            limits = ScoreLimits(
                mean=every["bias"],
                lower=every["limits.lower"],
                upper=every["limits.upper"],
                lower_ci=interval_of(intervals, "limits.lower"),
                upper_ci=interval_of(intervals, "limits.upper"),
                n_samples=n,
            )
        complete = int((~np.isnan(self._cast).any(axis=1)).sum())
        judge_icc = None
        if self._n_judges > 1:
            forms = {form: every[f"judge_icc.{form}"] for form in ICC_FORMS}
            judge_icc = ScoreICC(n_items=complete, n_judges=self._n_judges, **forms)
        return NumericCriterionMetrics(
            name=self.column.name,
            index=self.column.index,
            n_samples=n,
            minimum=self.column.criterion.minimum or 0.0,
            maximum=self.column.criterion.maximum or 0.0,
            concordance=every["concordance"],
            icc=ScoreICC(n_items=n, n_judges=2, **{form: every[f"icc.{form}"] for form in ICC_FORMS}),
            limits=limits,
            pearson=correlation_result(pairs.correlations["pearson"]),
            spearman=correlation_result(pairs.correlations["spearman"]),
            kendall=correlation_result(pairs.correlations["kendall"]),
            sample_level=self._level(every, "sample_level"),
            system_level=self._level(every, "system_level"),
            rmse=every["rmse"],
            mae=every["mae"],
            bias=bias,
            krippendorff_alpha=every.get("krippendorff_alpha"),
            judge_icc=judge_icc,
            is_degenerate=n > 0 and every["concordance"] is None,
            coverage_stats=coverage,
            intervals=intervals,
        )

    def _level(self, every: Mapping[str, float | None], level: str) -> LevelCorrelations | None:
        if level not in self._level_of:
            return None
        key, codes, n = self._level_of[level]
        used = n
        if level == "sample_level":
            x, t = self._pairs.predicted, self._pairs.true
            used = int((~np.isnan(_by_group(x, t, codes, n, np.ones((len(x), 1)))[0])).sum())
        return LevelCorrelations(key=key, n_groups=used, **{name: every[f"{level}.{name}"] for name in CORRELATIONS})


def imagine_numbers(column: CriterionColumn, size: float) -> ImaginedItems:
    """Imagine items of a numeric criterion; an average unit holds so many."""
    low, high = column.criterion.minimum or 0.0, column.criterion.maximum or 0.0
    truth = np.zeros(0) if column.numbers is None else column.numbers[:, 0]
    return ImaginedItems.between(low, high, apart=half_apart(truth, low, high), size=size)


def _group_codes(votes: LabelledVotes, column: CriterionColumn, key: str) -> Indices:
    """The number of each row's group, -1 where its item has none."""
    sources = np.argsort(votes.item_index, kind="stable")[-len(votes.ids) :]
    metadata = [votes.votes.metadata[source] for source in sources.tolist()]
    require_key(key, metadata, "to group by")
    numbers: dict[Any, int] = {}
    found = []
    for row in column.rows.tolist():
        value = metadata[row].get(key)
        # A dict takes 1 and True for one key; they are two groups.
        own = (isinstance(value, bool), value)
        found.append(-1 if value is None else numbers.setdefault(own, len(numbers)))
    return np.array(found, dtype=np.intp)


def _icc(ratings: Floats, weights: Floats) -> Floats:
    """The six intraclass correlations of weighted complete items, ``[6, b]``."""
    sums, units = weighted_sums(icc_features(ratings).T, weights), weights.sum(axis=0)
    forms = icc_forms(mean_squares(np.moveaxis(sums, 0, -1), units), units, ratings.shape[1])
    return np.moveaxis(forms, -1, 0)


def _by_group(x: Floats, t: Floats, codes: Indices, n: int, weights: Floats) -> Floats:
    """Spearman's, Kendall's and Pearson's correlation inside each group, ``[3, groups, b]``."""
    found = np.full((3, n, weights.shape[1]), np.nan)
    for group in range(n):
        inside = codes == group
        if inside.sum() < 3:
            continue
        own, one, other = weights[inside], x[inside], t[inside]
        features = np.concatenate([true_features(other), predicted_features(one, other)])
        # Weights of a group may all be small: what counts is how they compare.
        size = quotient(np.full(own.shape[1], float(inside.sum())), own.sum(axis=0))
        even = own * np.nan_to_num(size)
        statistics = score_statistics(weighted_sums(features, even), score_scale(one, other), z=1.0)
        found[:, group] = weighted_spearman(one, other, even), weighted_kendall(one, other, even), statistics["pearson"]
    return found


def _sample_level(x: Floats, t: Floats, codes: Indices, n: int, weights: Floats) -> Floats:
    """The mean over groups of the correlations inside each, ``[3, b]``; groups without one are left out."""
    inside = _by_group(x, t, codes, n, weights)
    sizes = np.maximum(np.bincount(codes[codes >= 0], minlength=n), 1)
    shares = _sum_groups(weights, codes, n) / sizes[:, None]
    known = ~np.isnan(inside)
    return quotient(np.where(known, inside * shares, 0.0).sum(axis=1), (known * shares).sum(axis=1))


def _system_level(x: Floats, t: Floats, codes: Indices, n: int, weights: Floats) -> Floats:
    """The correlations of the systems' means, ``[3, b]``."""
    totals = _sum_groups(weights, codes, n)
    one, other = (quotient(_sum_groups(weights * side[:, None], codes, n), totals) for side in (x, t))
    return np.concatenate(
        [_correlate(one[:, start : start + _CHUNK], other[:, start : start + _CHUNK]) for start in _chunks(weights)],
        axis=1,
    )


def _chunks(weights: Floats) -> range:
    return range(0, weights.shape[1], _CHUNK)


def _correlate(x: Floats, t: Floats) -> Floats:
    """Spearman's, Kendall's (tau-b) and Pearson's correlation of each column of numbers, ``[3, b]``."""
    known = ~(np.isnan(x) | np.isnan(t))
    sides = [np.where(known, side, np.nan) for side in (x, t)]
    signs = []
    for side in sides:
        apart = side[:, None] - side[None]
        # Two ways to sum the same numbers differ in the last bits: such numbers are equal.
        dust = 1e-12 * np.nan_to_num(np.abs(side)).max(axis=0, initial=1.0)
        signs.append(np.nan_to_num(np.where(np.abs(apart) <= dust, 0.0, np.sign(apart))))
    ties = [np.square(sign).sum(axis=(0, 1)) for sign in signs]
    tau = quotient((signs[0] * signs[1]).sum(axis=(0, 1)), np.sqrt(ties[0] * ties[1]))
    # The sum of an item's signs is twice its centred rank.
    ranks = [sign.sum(axis=1) for sign in signs]
    flat = (ties[0] == 0) | (ties[1] == 0) | (known.sum(axis=0) < 3)
    centred = [np.nan_to_num(side - mean_defined(side)) for side in sides]
    found = np.stack([_cosine(*ranks), tau, _cosine(*centred)])
    return np.where(flat, np.nan, found)


def _cosine(x: Floats, t: Floats) -> Floats:
    root = np.sqrt(np.square(x).sum(axis=0) * np.square(t).sum(axis=0))
    return np.clip(quotient((x * t).sum(axis=0), root), -1, 1)


def _sum_groups(weights: Floats, codes: Indices, n: int) -> Floats:
    """Sums over the items of each group, groups × replicates; items without a group are left out."""
    member: NDArray[np.float64] = (codes == np.arange(n)[:, None]).astype(np.float64)
    return weighted_sums(member, weights)


def correlation_result(found: Correlation) -> CorrelationResult:
    """A correlation with its words."""
    return CorrelationResult(
        coefficient=found.value,
        p_value=found.p_value,
        ci=found.interval,
        interpretation=interpret_correlation(found.value) if found.n >= 3 else "insufficient data",
        n_samples=found.n,
        method=found.method,
    )
