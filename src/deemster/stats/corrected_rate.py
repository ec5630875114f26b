"""The true rate behind the rate that an erring judge counted (Rogan-Gladen), from its shares or from labelled items."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from deemster.stats._number_arrays import finite_vector
from deemster.stats.confidence_interval import ConfidenceInterval, normal_quantile
from deemster.stats.debiased_estimates import item_weights
from deemster.stats.proportion_intervals import newcombe

_ONE_SIDED = "Nothing measures how often the judge errs on both sides: every labelled sample {}."


class CorrectedRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate corrected for the errors of the judge that counted it.

    Attributes:
        value: The corrected rate, cut to [0, 1].
        n: How many items the judge counted.
        unclipped: The corrected rate before cutting.
        out_of_range: Whether it had to be cut: the judge's rate contradicts its measured errors.
        interval: Cut to [0, 1]; None where nothing of it would be left.
        note: Why a part is missing or doubtful.
    """

    value: float | None = None
    n: int
    unclipped: float | None = None
    out_of_range: bool = False
    interval: ConfidenceInterval | None = None
    note: str | None = None


def rogan_gladen(
    rate: float,
    *,
    n: float,
    sensitivity: float,
    positives: float,
    specificity: float,
    negatives: float,
    confidence: float = 0.95,
) -> CorrectedRate:
    """The true rate behind the rate that a judge of known errors counted.

    θ = (p + sp - 1)/(se + sp - 1), cut to [0, 1]. The interval (Lang, Reiczigel) takes p over n + z² after adding z²/2,
    se and sp over m + 2 after adding 1, and is θ + 2z²(θ·se(1-se)/m₁ - (1-θ)sp(1-sp)/m₀) ± z·sqrt(p(1-p)/n +
    (1-θ)²sp(1-sp)/m₀ + θ²se(1-se)/m₁)/(se + sp - 1) in those. A perfect judge leaves the rate as it is. Undefined
    (None): a judge that the labels do not tell from chance, where Newcombe's interval of se - (1 - sp) reaches 0; the
    interval also where the judge's rate contradicts its errors so far that no part of it lies between 0 and 1. Labelled
    items must be drawn at random.

    References: W. J. Rogan, B. Gladen, American Journal of Epidemiology 107 (1978); Z. Lang, J. Reiczigel, Confidence
    limits for prevalence of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary Medicine
    113 (2014).

    Args:
        rate: The share that the judge calls positive.
        n: How many items the rate is of.
        sensitivity: The share of truly positive items that the judge calls positive.
        positives: How many labelled positive items the sensitivity is of.
        specificity: The share of truly negative items that the judge calls negative.
        negatives: How many labelled negative items the specificity is of.
        confidence: The level of the interval.

    Raises:
        ValueError: A share is outside [0, 1], a count below 1, or the level outside (0, 1).

    >>> result = rogan_gladen(0.62, n=1000, sensitivity=0.9, positives=120, specificity=0.8, negatives=80)
    >>> round(result.value, 4), round(result.interval.lower, 4), round(result.interval.upper, 4)
    (0.6, 0.5157, 0.6808)
    """
    _check_rates({"rate": rate, "sensitivity": sensitivity, "specificity": specificity})
    _check_sizes({"n": n, "positives": positives, "negatives": negatives})
    interval = _lang_reiczigel((rate, n), (sensitivity, positives), (specificity, negatives), confidence=confidence)
    gain = sensitivity + specificity - 1
    hits, alarms = sensitivity * positives, (1 - specificity) * negatives
    information = newcombe(hits, positives, alarms, negatives, confidence=confidence).interval
    if information is None or information.lower <= 0:
        why = f"sensitivity + specificity - 1 is {gain:.4f}, and its interval reaches 0"
        return CorrectedRate(n=int(n), note=f"These labels do not tell the judge from chance: {why}.")
    unclipped = (rate + specificity - 1) / gain
    outside = not -1e-12 <= unclipped <= 1 + 1e-12
    note = None
    if outside:
        note = "The judge's rate contradicts its measured errors; the corrected rate was cut to [0, 1]."
    if interval is None:
        note = "There is no interval: the judge's rate contradicts its errors, or too few labels tell it from chance."
    value = min(1.0, max(0.0, unclipped))
    return CorrectedRate(value=value, n=int(n), unclipped=unclipped, out_of_range=outside, interval=interval, note=note)


def weighted_share(hits: ArrayLike, weights: ArrayLike | None = None) -> tuple[float | None, float]:
    """The share of hits among weighted items, and how many items of equal weight would tell it as precisely.

    The share is Σwx/Σw. Its variance Σw²(x - share)²/(Σw)² is taken with one hit and one miss of average weight added,
    so that it is never 0; the number of items is the one whose binomial variance, with the same two added, is as large.
    Equal weights give the number of items. Undefined (None, and 0 items) without items.

    Args:
        hits: 1 for a hit, 0 for a miss.
        weights: What each item counts; all alike where None.

    Raises:
        ValueError: There are more or fewer weights than items, or a weight is not above 0.

    >>> weighted_share([1, 1, 1, 0]), weighted_share([1, 0], [3, 1])[0]
    ((0.75, 4.0), 0.75)
    """
    x = finite_vector(hits, name="hits")
    shares = item_weights(weights, x.size)
    if not x.size:
        return None, 0.0
    value = float(np.average(x, weights=shares))
    if shares.min() == shares.max():
        return value, float(x.size)
    total = x.size + 2
    smooth = (float((shares * x).sum()) + 1) / total
    squares = float(np.square(shares * (x - smooth)).sum()) + (1 - smooth) ** 2 + smooth**2
    return value, max(1.0, smooth * (1 - smooth) * total**2 / squares - 2)


def corrected_rate(
    truth: ArrayLike,
    predicted: ArrayLike,
    rate: float,
    *,
    n: float,
    probabilities: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    units: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CorrectedRate:
    """The true rate behind a judge's rate, from labelled items on which both people and the judge decided.

    Sensitivity and specificity come from the labels, each weighted by 1/probability, and ``rogan_gladen`` corrects the
    rate. Where the labelled items were drawn with known probabilities, the variance is that of the estimate if all had
    been labelled, and that of the draw: Σ(1-π)z², z the influence of a labelled item on θ, measured from the mean of
    its stratum. Items of one unit count together. Labels of the n items themselves are for ``ppi_mean``. Undefined
    (None): as ``rogan_gladen``, and where people pass all labelled items or fail all.

    Args:
        truth: What people say of the labelled items: 1 or 0.
        predicted: What the judge says of them.
        rate: The share that the judge calls positive.
        n: How many items the rate is of.
        probabilities: How probable it was that each labelled item is drawn; all alike where None.
        strata: The stratum in which each was drawn; one for all where None.
        units: What each belongs to that counts once, such as the sample of which it is a repetition; None for itself.
        confidence: The level of the interval.

    Raises:
        ValueError: The numbers of items differ, a probability is not above 0, or ``rogan_gladen`` refuses.

    >>> people, judge = [1] * 120 + [0] * 80, [1] * 108 + [0] * 12 + [1] * 16 + [0] * 64
    >>> result = corrected_rate(people, judge, 0.62, n=1000)
    >>> round(result.value, 4), round(result.interval.lower, 4), round(result.interval.upper, 4)
    (0.6, 0.5157, 0.6808)
    """
    y, q = finite_vector(truth, name="labels") > 0.5, finite_vector(predicted, name="verdicts") > 0.5
    if y.size != q.size:
        raise ValueError(f"Each label has one verdict; there are {y.size} labels and {q.size} verdicts.")
    if not y.any() or y.all():
        known = "passes" if y.any() else "fails" if y.size else "is labelled"
        return CorrectedRate(n=int(n), note=_ONE_SIDED.format(known))
    rate, n = float(rate), float(n)
    chances = None if probabilities is None else finite_vector(probabilities, name="probabilities")
    if chances is not None and strata is None and chances.min() == chances.max():
        # Equal probabilities say no more than the number of labels, which people may not have completed.
        chances = None
    items = _LabelledUnits.of(y, q, None if chances is None else np.minimum(1.0, chances), strata, units)
    found = items.corrected(rate, n, confidence=confidence)
    if found.interval is None or chances is None:
        return found
    interval = items.interval(rate, n, found.value or 0.0, confidence=confidence)
    return msgspec.structs.replace(found, interval=interval or found.interval)


class _Hits(NamedTuple):
    """Of each unit the weight of its items on one side, and of those that the judge gets right."""

    weights: NDArray[np.float64]
    right: NDArray[np.float64]

    def share(self) -> tuple[float | None, float]:
        """The share that the judge gets right, and how many items tell it."""
        has_some = self.weights > 0
        return weighted_share(self.right[has_some] / self.weights[has_some], self.weights[has_some])


class _LabelledUnits(NamedTuple):
    """Labelled items by unit, with the way they were drawn.

    Attributes:
        shares: What each unit counts.
        positives: Its items that people pass.
        negatives: Its items that people fail.
        drawn: How probable it was that it is drawn.
        groups: The number of its stratum.
    """

    shares: NDArray[np.float64]
    positives: _Hits
    negatives: _Hits
    drawn: NDArray[np.float64]
    groups: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        y: NDArray[np.bool_],
        q: NDArray[np.bool_],
        drawn: NDArray[np.float64] | None,
        strata: ArrayLike | None,
        units: ArrayLike | None,
    ) -> _LabelledUnits:
        _, first, unit = np.unique(
            np.arange(y.size) if units is None else np.asarray(units), return_index=True, return_inverse=True
        )
        shares = item_weights(None if drawn is None else 1 / drawn, y.size)

        def totals(inside: NDArray[np.bool_]) -> NDArray[np.float64]:
            return np.bincount(unit, weights=shares * inside).astype(np.float64)

        groups = np.zeros(y.size) if strata is None else np.unique(np.asarray(strata), return_inverse=True)[1]
        return cls(
            totals(np.ones(y.size, dtype=bool)),
            _Hits(totals(y), totals(y & q)),
            _Hits(totals(~y), totals(~y & ~q)),
            np.ones(first.size) if drawn is None else drawn[first],
            groups[first].astype(np.intp),
        )

    def corrected(self, rate: float, n: float, *, confidence: float) -> CorrectedRate:
        """The corrected rate by the shares that the judge gets right on both sides."""
        (sensitivity, passed), (specificity, failed) = self.positives.share(), self.negatives.share()
        return rogan_gladen(
            rate,
            n=n,
            sensitivity=sensitivity or 0.0,
            positives=passed,
            specificity=specificity or 0.0,
            negatives=failed,
            confidence=confidence,
        )

    def interval(self, rate: float, n: float, value: float, *, confidence: float) -> ConfidenceInterval | None:
        """The interval of ``corrected_rate``.

        As in the interval of Lang and Reiczigel, a hit and a miss are added to the positive and the negative items.
        """
        z = normal_quantile(confidence)
        size = n + z * z
        p = (rate * n + z * z / 2) / size
        hits, alarms = self._side(self.positives), self._side(self.negatives)
        gain = hits.share + alarms.share - 1
        if gain <= 0:
            return None
        theta = min(1.0, max(0.0, (p + alarms.share - 1) / gain))
        miss, alarm = theta**2, (1 - theta) ** 2
        first = (p * (1 - p) / size + miss * hits.variance + alarm * alarms.variance) / gain**2
        left = 1 - float(self.drawn.mean())
        second = (miss * hits.added + alarm * alarms.added) * left
        second += self._draw_variance((1 - theta) * alarms.influence - theta * hits.influence)
        centre = value
        if self.shares.min() == self.shares.max():
            # What is added has the average weight, which would pull the centre where weights differ.
            centre = theta + 2 * z * z * left * (theta * hits.spread - (1 - theta) * alarms.spread)
        half = z * math.sqrt(first + second / gain**2)
        lower, upper = max(0.0, float(centre - half)), min(1.0, float(centre + half))
        return ConfidenceInterval(lower, upper, confidence, method="lang-reiczigel") if lower < upper else None

    def _draw_variance(self, influence: NDArray[np.float64]) -> float:
        """The variance of drawing just these items from all."""
        groups = np.unique(self.groups)
        found = 0.0
        for group in groups:
            here = self.groups == group
            own, count = influence[here], int(np.count_nonzero(here))
            # Without strata nothing keeps the number of items of a kind the same from draw to draw.
            is_centred = count > 1 and len(groups) > 1
            away = np.square(own - (own.mean() if is_centred else 0.0)) * (1 - self.drawn[here])
            found += (count / (count - 1) if is_centred else 1.0) * float(away.sum())
        return found

    def _side(self, side: _Hits) -> _SideShare:
        # A unit of which some items are on this side is so much of a unit here.
        parts = side.weights / self.shares
        total = float(side.weights.sum())
        mean = total / float(parts.sum())
        whole = total + 2 * mean
        share = (float(side.right.sum()) + mean) / whole
        influence = (side.right - share * side.weights) / whole
        added = mean**2 * ((1 - share) ** 2 + share**2) / whole**2
        items = float((parts / self.drawn).sum()) + 2
        return _SideShare(share, influence, added, share * (1 - share) / items)


class _SideShare(NamedTuple):
    """Sensitivity or specificity: its value, and what its variance is made of.

    Attributes:
        share: The share, with a hit and a miss added.
        influence: How each labelled item moves it.
        added: What the added two contribute to its variance.
        variance: Its variance if all items had been labelled that the draw was made from.
    """

    share: float
    influence: NDArray[np.float64]
    added: float
    variance: float

    @property
    def spread(self) -> float:
        """Its variance by the labelled items alone."""
        return float(np.square(self.influence).sum()) + self.added


def _check_rates(rates: Mapping[str, float]) -> None:
    for name, share in rates.items():
        if not 0 <= share <= 1:
            raise ValueError(f"The {name} lies in [0, 1], not at {share!r}.")


def _check_sizes(sizes: Mapping[str, float]) -> None:
    for name, count in sizes.items():
        if not 1 <= count < math.inf:
            raise ValueError(f"There is at least one item to count; {name} is {count!r}.")


def _lang_reiczigel(
    rate: tuple[float, float], sensitivity: tuple[float, float], specificity: tuple[float, float], *, confidence: float
) -> ConfidenceInterval | None:
    z = normal_quantile(confidence)
    p, n = (rate[0] * rate[1] + z * z / 2) / (rate[1] + z * z), rate[1] + z * z
    se, positives = (sensitivity[0] * sensitivity[1] + 1) / (sensitivity[1] + 2), sensitivity[1] + 2
    sp, negatives = (specificity[0] * specificity[1] + 1) / (specificity[1] + 2), specificity[1] + 2
    gain = se + sp - 1
    if gain <= 0:
        return None
    theta = (p + sp - 1) / gain
    miss, alarm = se * (1 - se) / positives, sp * (1 - sp) / negatives
    centre = theta + 2 * z * z * (theta * miss - (1 - theta) * alarm)
    half = z * math.sqrt(p * (1 - p) / n + (1 - theta) ** 2 * alarm + theta**2 * miss) / gain
    lower, upper = max(0.0, centre - half), min(1.0, centre + half)
    return ConfidenceInterval(lower, upper, confidence, method="lang-reiczigel") if lower < upper else None
