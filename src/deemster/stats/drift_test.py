"""A sequential test of whether a rate has drifted from its baseline, with periods as units (e-values)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from deemster.stats.nan_arithmetic import Floats

Direction: TypeAlias = Literal["down", "up"]
_Counts: TypeAlias = Sequence[tuple[int, int]]
# The largest logarithm whose exponential is a float.
_LARGEST = 700.0
# Periods are joined until so many successes, and so many failures, are expected in each unit.
_FEWEST_EXPECTED = 2
# Of the baseline so many units are made at least, as far as there are periods.
_FEWEST_UNITS = 10


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a rate left its baseline.

    Attributes:
        direction: `down`, `up`, or None where nothing is shown.
        period: The period, from 0, at whose end this was shown first; None where it was not.
        began: The period from which the evidence is strongest; None where nothing is shown.
        evidence: The largest e-value at any look so far; 1 and less is no evidence. None without a baseline.
        needed: The e-value that shows a drift.
        between: The standard deviation of the rates of periods in the baseline beyond what chance gives; None without.
        baseline_n: Trials of the baseline.
        n: Trials after it.
        alpha: The share of all processes without any drift in which one would ever be flagged, at most.
    """

    direction: Direction | None
    period: int | None
    began: int | None
    evidence: float | None
    needed: float
    between: float | None
    baseline_n: int
    n: int
    alpha: float


def rate_drift(baseline: _Counts, periods: _Counts, *, alpha: float = 0.05) -> Drift:
    """Test whether a success rate has left its baseline, valid however often and whenever somebody looks.

    Periods such as days are the units: rates differ from day to day by more than chance without any drift, and the
    baseline says by how much. Baseline and later periods are compared as two samples by a Bayes factor of a shift. Its
    right Haar prior of mean and spread makes it valid at every look: by Ville's inequality it passes 1/alpha with
    probability alpha at most, ever. One period alone is no drift yet.

    Periods with few expected successes or failures are joined. Undefined (evidence None) without a baseline.

    Args:
        baseline: Successes and trials of each period of the baseline.
        periods: Successes and trials of each later period, in order.
        alpha: The share of false alarms that is accepted.

    References: J. Ville, Étude critique de la notion de collectif (1939); M. Gönen, W. Johnson, Y. Lu, P. Westfall, The
    Bayesian two-sample t test, The American Statistician 59 (2005); A. Hendriksen, R. de Heide, P. Grünwald, Optional
    stopping with Bayes factors, Bayesian Analysis 16 (2021); J. Shin, A. Ramdas, A. Rinaldo, E-detectors, The New
    England Journal of Statistics in Data Science 2 (2024).

    Raises:
        ValueError: A count is negative, there are more successes than trials, or alpha is not in (0, 1).

    >>> rate_drift([(44, 50)] * 4, [(44, 50), (45, 50)]).direction is None
    True
    >>> drift = rate_drift([(45, 50)] * 10, [(45, 50), (36, 50), (34, 50), (36, 50), (35, 50)])
    >>> drift.direction, drift.period, drift.began
    ('down', 3, 1)
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha lies strictly between 0 and 1, not {alpha!r}.")
    for count, trials in (*baseline, *periods):
        if not 0 <= count <= trials:
            raise ValueError(f"{count} of {trials} is no count of successes among trials.")
    passed, total = (sum(column) for column in zip((0, 0), *baseline, strict=True))
    rate = (passed + 1) / (total + 2)
    enough = min(_FEWEST_EXPECTED / min(rate, 1 - rate), total / _FEWEST_UNITS)
    before, after = (_units(counts, enough) for counts in (baseline, periods))

    found, between = _Shown(None), None
    if len(before):
        values, chance = _values(np.concatenate([before, after]))
        varies = _variance_beyond(values[: len(before)], chance[: len(before)])
        between = 2 * math.sqrt(rate * (1 - rate) * varies)
        found = _shown(values, chance, varies, len(before), alpha)
    # The last period of a unit, and the first one after the unit before.
    ends = [-1, *after[:, 2].astype(int).tolist()]
    return Drift(
        direction=found.direction,
        period=None if found.look is None else ends[found.look + 1],
        began=None if found.start is None else ends[found.start] + 1,
        evidence=found.evidence,
        needed=1 / alpha,
        between=between,
        baseline_n=total,
        n=sum(trials for _, trials in periods),
        alpha=alpha,
    )


class _Shown(msgspec.Struct, frozen=True):
    """The largest e-value; the unit after the baseline at which a drift was shown, where it began, and which way."""

    evidence: float | None
    look: int | None = None
    start: int | None = None
    direction: Direction | None = None


def _units(counts: _Counts, enough: float) -> Floats:
    """Periods joined until there are enough trials: successes, trials, and the last period of each unit."""
    units = []
    passed = trials = 0
    for period, (count, n) in enumerate(counts):
        passed, trials = passed + count, trials + n
        if trials and trials >= enough:
            units.append((passed, trials, period))
            passed = trials = 0
    return np.array(units, dtype=np.float64).reshape(-1, 3)


def _values(units: Floats) -> tuple[Floats, Floats]:
    """The rates of units on a scale on which chance is the same for all rates, and the variance by chance there."""
    passed, trials, _ = units.T
    return np.arcsin(np.sqrt((passed + 3 / 8) / (trials + 3 / 4))), 1 / (4 * trials + 2)


def _variance_beyond(values: Floats, chance: Floats) -> float:
    """How much values vary beyond chance; 0 where one is too few to tell."""
    return max(0.0, float(np.var(values, ddof=1) - chance.mean())) if len(values) > 1 else 0.0


def _shown(values: Floats, chance: Floats, varies: float, baseline: int, alpha: float) -> _Shown:
    """Look after each unit that follows the baseline, until a drift is shown.

    A unit has y = asin sqrt((s + 3/8)/(n + 3/4)) with the variance σ²/w, w = 1/(τ² + 1/(4n + 2)), where τ² is how much
    the baseline's units vary beyond chance. Against one mean for all units stands a mean that changes at unit k, by a
    normal multiple of a unit's standard deviation. For t² = n_e·(mean since k - mean before)²/s² with ν degrees of
    freedom and g = 1 + n_e, n_e = W₁W₂/(W₁ + W₂) in average units, the Bayes factor is
    g^{-1/2}·((1 + t²/ν)/(1 + t²/(gν)))^{(ν + 1)/2}; s² is never taken for less than binomial chance. Drifts that begin
    in unit k = 1, 2, ... after the baseline have the weights 1/(k(k + 1)).
    """
    weights = 1 / (varies + chance)
    # So much of the variance of a unit is chance alone; residuals are never taken for less.
    least = float((weights * chance).mean())
    average = float(weights[:baseline].mean())
    sums = np.cumsum(weights), np.cumsum(weights * values), np.cumsum(weights * np.square(values))
    largest = 1.0
    for end in range(max(baseline, 2), len(values)):
        weight, total, squares = (column[end] for column in sums)
        starts = np.arange(baseline, end + 1)
        first = sums[0][starts - 1]
        second = weight - first
        change = (total - sums[1][starts - 1]) / second - sums[1][starts - 1] / first
        size = first * second / weight
        freedom = end - 1
        residual = (squares - total**2 / weight - size * np.square(change)) / freedom
        distance = size * np.square(change) / np.maximum(residual, least) / freedom
        grown = 1 + size / average
        factors = (freedom + 1) / 2 * (np.log1p(distance) - np.log1p(distance / grown)) - np.log(grown) / 2
        # One bad period is no drift yet.
        factors[-1] = min(0.0, factors[-1])
        order = starts - baseline + 1.0
        terms = factors - np.log(order * (order + 1))
        # Later starts of a drift keep their share of the weight.
        log = float(np.logaddexp.reduce([*terms, -math.log(len(starts) + 1)]))
        largest = max(largest, math.exp(min(log, _LARGEST)))
        if log >= -math.log(alpha):
            strongest = int(np.argmax(factors))
            return _Shown(largest, end - baseline, strongest, "down" if change[strongest] < 0 else "up")
    return _Shown(largest)
