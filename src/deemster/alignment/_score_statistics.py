"""Score-level statistics of replicates, from sums that are linear in the items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deemster.alignment._labelled_votes import Floats, Panel, Places
from deemster.alignment._table_measures import Key, Sheet
from deemster.stats.agreement_from_sums import quotient
from deemster.stats.correlation import Correlation, kendall, pearson, spearman
from deemster.stats.proportion_intervals import normal_quantile
from deemster.stats.rank_correlation import (
    Dominance,
    dominance,
    kendall_influence,
    spearman_influence,
    weighted_kendall,
    weighted_spearman,
)
from deemster.stats.variance_components import icc_features, icc_forms, interval_alpha, mean_squares, spread_features

# Above this many items rank correlations of replicates are expanded to first order.
LARGEST_RANKED = 500
FORMS = ("icc_1_1", "icc_2_1", "icc_3_1", "icc_1_k", "icc_2_k", "icc_3_k")
CORRELATIONS = ("spearman", "kendall", "pearson")
# Replicates, units and features that are multiplied together.
STRIP, _DEEP, _TALL = 32, 128, 64
# What a difference of sums leaves of nothing, relative to the sums.
_DUST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Duel:
    """One set of scores against the true ones.

    Attributes:
        scope: Whose scores: ``("all",)`` or ``("judge", number)``.
        held: Items with both.
        x: Its scores there.
        t: The true scores there.
        places: Of its features.
        linear: Whether rank correlations are expanded by influence.
        correlations: Spearman's, Kendall's and Pearson's, by name.
    """

    scope: Key
    held: NDArray[np.bool_]
    x: Floats
    t: Floats
    places: tuple[int, ...]
    linear: bool
    correlations: Mapping[str, Correlation]

    @property
    def largest(self) -> float:
        """The largest absolute score, at least 1: what rounding is measured by."""
        return float(max(1.0, np.abs(self.x).max(initial=0.0), np.abs(self.t).max(initial=0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Features whose sums over units give every score-level statistic.

    Attributes:
        features: Features × units.
        duels: Who is compared with the truth.
        judges: How many judges there are; below two there is no agreement among them.
        icc: First feature of the intraclass correlations: a count, then their features.
        alpha: First feature of interval alpha.
        slices: First feature of the slices: count, difference, squared difference of each.
        n_slices: How many slices there are.
        unit: The unit of each item.
        z: Normal quantile of the limits of agreement.
    """

    features: Floats
    duels: tuple[Duel, ...]
    judges: int
    icc: int
    alpha: int
    slices: int
    n_slices: int
    unit: Places
    z: float

    def summed(self, drawn: NDArray[Any]) -> Floats:
        """Sums of the features in each replicate, features × replicates.

        The product is cut into pieces of one size, too small to be shared out among threads: so its sums run in one
        order whatever the machine and the block, and no thread waits for another.

        Args:
            drawn: How often each unit is drawn, units × replicates.
        """
        units, replicates = drawn.shape
        many = -(-units // _DEEP)
        padded = np.zeros((len(self.features), many * _DEEP))
        padded[:, :units] = self.features
        strip = np.zeros((many * _DEEP, STRIP))
        found = np.empty((len(self.features), replicates))
        for top in range(0, len(self.features), _TALL):
            rows = padded[top : top + _TALL].reshape(-1, many, _DEEP).transpose(1, 0, 2).copy()
            for start in range(0, replicates, STRIP):
                stop = min(start + STRIP, replicates)
                strip[:units, : stop - start] = drawn[:, start:stop]
                product = np.matmul(rows, strip.reshape(many, _DEEP, STRIP)).sum(axis=0)
                found[top : top + _TALL, start:stop] = product[:, : stop - start]
        return found

    def totals(self) -> Floats:
        """Sums of the features in the data as they are, features × 1."""
        found: Floats = self.features.sum(axis=1, keepdims=True)
        return found

    def measures(self, sums: Floats, drawn: NDArray[Any] | None) -> Sheet:
        """Score-level statistics.

        Args:
            sums: Features × replicates.
            drawn: Units × replicates; None leaves out what cannot be had from sums.
        """
        sheet: Sheet = {}
        for duel in self.duels:
            _duel(sheet, duel, sums, self.z)
            if duel.linear:
                _expanded(sheet, duel, sums)
            elif drawn is not None:
                weights = drawn[self.unit[duel.held]]
                sheet[*duel.scope, "score_spearman"] = weighted_spearman(duel.x, duel.t, weights)
                sheet[*duel.scope, "score_kendall"] = weighted_kendall(duel.x, duel.t, weights)
        if self.judges >= 2:
            units = sums[self.icc]
            squares = mean_squares(np.moveaxis(sums[self.icc + 1 : self.alpha], 0, -1), units)
            forms = icc_forms(squares, units, self.judges)
            for place, name in enumerate(FORMS):
                sheet["all", f"score_icc.{name}"] = forms[..., place]
            sheet["all", "score_alpha"] = interval_alpha(np.moveaxis(sums[self.alpha : self.slices], 0, -1))
        return sheet


def moments_of(
    whole: Panel, *, per_judge: bool, ranked: bool, slices: NDArray[np.bool_] | None = None, confidence: float = 0.95
) -> Moments:
    """Lay out the features of a panel's scores.

    Args:
        whole: The panel.
        per_judge: Compare each judge with the truth too.
        ranked: Whether replicates of rank correlations are wanted.
        slices: Which items are in which slice, items × slices.
        confidence: The level of intervals and of the limits of agreement.
    """
    columns: list[Floats] = []
    duels = _duels(whole, columns, per_judge=per_judge, ranked=ranked, confidence=confidence)
    icc = alpha = len(columns)
    judges = len(whole.judges)
    if judges >= 2:
        centred = whole.judge_scores - _middle(whole.judge_scores)
        complete: NDArray[np.bool_] = np.asarray(~np.isnan(centred).any(axis=1))
        columns.append(complete.astype(np.float64))
        columns += _spread(icc_features(centred[complete]).T, complete)
        alpha = len(columns)
        columns += list(spread_features(centred).T)
    first = len(columns)
    if slices is not None:
        held = duels[0].held
        apart = np.where(held, whole.predicted - whole.true, 0.0)
        for members in slices.T:
            inside = (members & held).astype(np.float64)
            columns += [inside, inside * apart, inside * apart * apart]
    features = np.array(columns)
    unit = np.arange(len(whole.ids)) if whole.clusters is None else whole.clusters
    if whole.clusters is not None:
        features = np.array([np.bincount(unit, weights=row, minlength=whole.n_units) for row in features])
    return Moments(
        features=features,
        duels=duels,
        judges=judges,
        icc=icc,
        alpha=alpha,
        slices=first,
        n_slices=0 if slices is None else slices.shape[1],
        unit=unit,
        z=normal_quantile(confidence),
    )


def _duels(
    whole: Panel, columns: list[Floats], *, per_judge: bool, ranked: bool, confidence: float
) -> tuple[Duel, ...]:
    """The panel's and the judges' scores against the true ones; adds their features to the columns."""
    rivals: list[tuple[Key, Floats]] = [(("all",), whole.predicted)]
    if per_judge:
        rivals += [(("judge", place), scores) for place, scores in enumerate(whole.judge_scores.T)]
    duels: list[Duel] = []
    for scope, scores in rivals:
        held = ~(np.isnan(scores) | np.isnan(whole.true))
        linear = ranked and int(held.sum()) > LARGEST_RANKED
        x, t = scores[held], whole.true[held]
        counts = dominance(x, t)
        found = {
            "spearman": spearman(x, t, confidence=confidence),
            "kendall": kendall(x, t, confidence=confidence, counts=counts),
            "pearson": pearson(x, t, confidence=confidence),
        }
        # Rivals that are scored on the same items share what is the truth's.
        shared = next((duel.places[:3] for duel in duels if np.array_equal(duel.held, held)), None)
        if shared is None:
            shared = tuple(range(len(columns), len(columns) + 3))
            columns += _spread(_true_features(t), held)
        own = _own_features(x, t, counts if linear else None)
        places = (*shared, *range(len(columns), len(columns) + len(own)))
        columns += _spread(own, held)
        duels.append(Duel(scope, held, x, t, places, linear, found))
    return tuple(duels)


def _middle(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else 0.0


def _spread(rows: Floats, held: NDArray[np.bool_]) -> list[Floats]:
    """Rows over some items as rows over all, zero elsewhere."""
    every = np.zeros((len(rows), len(held)))
    every[:, held] = rows
    return list(every)


def _true_features(t: Floats) -> Floats:
    """A count and sums about the mean of the data, so that differences of sums keep their digits."""
    centred = t - _middle(t)
    return np.array([np.ones(len(t)), centred, centred * centred])


def _own_features(x: Floats, t: Floats, counts: Dominance | None) -> Floats:
    """Sums of the scores and of their distance to the truth; influences on rank correlations where counts are given."""
    centred, apart = x - _middle(x), x - t
    rows = [centred, centred * centred, np.abs(apart), apart * apart]
    if counts is not None:
        rows += [spearman_influence(x, t), kendall_influence(x, t, counts=counts)]
    return np.array(rows)


def _spreads(n: Floats, sums: Floats, squares: Floats) -> Floats:
    """n² times the variance; what rounding leaves of a constant is 0."""
    found = n * squares - sums * sums
    return np.where(found > _DUST * n * squares, found, 0.0)


def differences(duel: Duel, sums: Floats) -> tuple[Floats, Floats, Floats]:
    """How many pairs, and the sums of predicted - true and of its square, in each replicate."""
    n, t, _, x, _, _, squares = sums[list(duel.places[:7])]
    return n, (_middle(duel.x) - _middle(duel.t)) * n + (x - t), squares


def _duel(sheet: Sheet, duel: Duel, sums: Floats, z: float) -> None:
    n, t, tt, x, xx, distance, squares = sums[list(duel.places[:7])]
    shift = _middle(duel.x) - _middle(duel.t)
    _, d, _ = differences(duel, sums)
    # The product of both sides from the squares of both and of their difference.
    xt = (xx + tt + shift * (2 * (x - t) + n * shift) - squares) / 2
    spread_x, spread_t, spread_d = _spreads(n, x, xx), _spreads(n, t, tt), _spreads(n, d, squares)
    joint = np.where((spread_x > 0) & (spread_t > 0), n * xt - x * t, 0.0)
    scope = duel.scope
    sheet[*scope, "score_rmse"] = np.sqrt(quotient(squares, n))
    sheet[*scope, "score_mae"] = quotient(distance, n)
    scale = np.where(n >= 3, np.sqrt(spread_x) * np.sqrt(spread_t), 0.0)
    sheet[*scope, "score_pearson"] = np.clip(quotient(joint, scale), -1, 1)
    mean = quotient(d, n)
    # An sd of n - 1, none below two items.
    deviation = np.sqrt(quotient(spread_d, np.where(n >= 2, n * (n - 1), 0.0)))
    deviation = np.where(deviation <= 1e-12 * duel.largest, 0.0, deviation)
    sheet[*scope, "bias"] = mean
    sheet[*scope, "bias.std_bias"] = deviation
    sheet[*scope, "bias.effect_size"] = quotient(mean, deviation)
    if scope == ("all",):
        sheet[*scope, "score_concordance"] = quotient(2 * joint, spread_x + spread_t + d * d)
        sheet[*scope, "score_limits.mean"] = mean
        sheet[*scope, "score_limits.lower"] = mean - z * deviation
        sheet[*scope, "score_limits.upper"] = mean + z * deviation


def _expanded(sheet: Sheet, duel: Duel, sums: Floats) -> None:
    n = sums[duel.places[0]]
    for step, name in enumerate(("spearman", "kendall")):
        value = duel.correlations[name].value
        influence = quotient(sums[duel.places[7 + step]], n)
        sheet[*duel.scope, f"score_{name}"] = np.clip((np.nan if value is None else value) + influence, -1, 1)
