"""A sequential test of whether a rate has drifted from its baseline (e-values)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.stats.confidence_interval import ConfidenceInterval
from deemster.stats.proportion_intervals import clopper_pearson

Direction: TypeAlias = Literal["down", "up"]
_Counts: TypeAlias = NDArray[np.float64]
# The largest logarithm whose exponential is a float.
_LARGEST = 700.0


class _Look(NamedTuple):
    """The logarithm of an e-value, and the period from which the evidence is strongest."""

    log: float
    began: int


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a rate left its baseline.

    Attributes:
        direction: `down`, `up`, or None where nothing is shown.
        period: The period, from 0, at whose end this was shown first; None where it was not.
        began: The period from which the evidence is strongest; None where nothing is shown.
        evidence_down: The largest e-value for a lower rate at any look so far; 1 and less is no evidence.
        evidence_up: The same for a higher rate.
        needed: The e-value that shows a drift.
        baseline: The interval of the baseline's rate that the later rate is held against; None without a baseline.
        baseline_n: Trials of the baseline.
        n: Trials after it.
        alpha: The share of all processes without any drift in which one would ever be flagged, at most.
    """

    direction: Direction | None
    period: int | None
    began: int | None
    evidence_down: float | None
    evidence_up: float | None
    needed: float
    baseline: ConfidenceInterval | None
    baseline_n: int
    n: int
    alpha: float


def rate_drift(baseline: tuple[int, int], periods: Sequence[tuple[int, int]], *, alpha: float = 0.05) -> Drift:
    """Test whether a success rate has left its baseline, valid however often and whenever somebody looks.

    Half of alpha pays for the baseline: its exact interval [l, u] at confidence 1 - alpha/2. A quarter each pays for
    the two directions. Against a rate of at least l stands the e-process that averages, over all lower rates alike,
    the likelihood ratio of the trials since period k: ∫ (p/l)^s ((1-p)/(1-l))^f dp / l over (0, l); drifts that begin
    in period k = 1, 2, ... have the weights 1/(k(k+1)). By Ville's inequality this average passes 4/alpha with
    probability alpha/4 at most, ever. A higher rate is tested in the same way against u. Trials count as independent.

    Undefined (evidence None) without a baseline.

    Args:
        baseline: Successes and trials of the baseline.
        periods: Successes and trials of each later period, in order.
        alpha: The share of false alarms that is accepted.

    References: J. Ville, Étude critique de la notion de collectif (1939); A. Ramdas et al., Game-theoretic statistics
    and safe anytime-valid inference, Statistical Science 38 (2023); J. Shin, A. Ramdas, A. Rinaldo, E-detectors, The
    New England Journal of Statistics in Data Science 2 (2024).

    Raises:
        ValueError: A count is negative, there are more successes than trials, or alpha is not in (0, 1).

    >>> rate_drift((180, 200), [(44, 50), (45, 50)]).direction is None
    True
    >>> drift = rate_drift((450, 500), [(45, 50), (36, 50), (34, 50)])
    >>> drift.direction, drift.period, drift.began
    ('down', 2, 1)
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha lies strictly between 0 and 1, not {alpha!r}.")
    for count, trials in (baseline, *periods):
        if not 0 <= count <= trials:
            raise ValueError(f"{count} of {trials} is no count of successes among trials.")
    interval = clopper_pearson(*baseline, confidence=1 - alpha / 2).interval
    down: list[_Look] = []
    up: list[_Look] = []
    if interval is not None:
        passed = np.array([count for count, _ in periods], dtype=float)
        failed = np.array([trials - count for count, trials in periods], dtype=float)
        down = _looks(passed, failed, interval.lower)
        up = _looks(failed, passed, 1 - interval.upper)
    needed = 4 / alpha
    found = _first(down, up, needed)
    return Drift(
        direction=None if found is None else found[0],
        period=None if found is None else found[1],
        began=None if found is None else found[2],
        evidence_down=None if interval is None else _largest(down),
        evidence_up=None if interval is None else _largest(up),
        needed=needed,
        baseline=interval,
        baseline_n=baseline[1],
        n=sum(trials for _, trials in periods),
        alpha=alpha,
    )


def _looks(passed: _Counts, failed: _Counts, rate: float) -> list[_Look]:
    """After each period, the e-value against a rate of at least ``rate``, and the strongest start of a drift."""
    if not 0 < rate < 1:
        # Nothing lies below a rate of 0.
        return [_Look(-math.inf, place) for place in range(len(passed))]
    starts = np.arange(1.0, len(passed) + 1)
    weights = -np.log(starts * (starts + 1))
    sums = np.cumsum(passed), np.cumsum(failed)
    found = []
    for place in range(len(passed)):
        since = slice(0, place + 1)
        right, wrong = (
            total[place] - total[since] + own[since] for total, own in zip(sums, (passed, failed), strict=True)
        )
        terms = weights[since] + _log_evidence(right, wrong, rate)
        # Later starts of a drift keep their share of the weight.
        waiting = -math.log(place + 2)
        found.append(_Look(float(np.logaddexp.reduce([*terms, waiting])), int(np.argmax(terms))))
    return found


def _log_evidence(passed: _Counts, failed: _Counts, rate: float) -> _Counts:
    """The logarithm of the likelihood ratio against a rate, averaged over all lower rates."""
    from scipy.special import betainc, betaln  # noqa: PLC0415 - scipy takes a tenth of a second to load

    with np.errstate(divide="ignore"):
        below = np.log(betainc(passed + 1, failed + 1, rate))
    ratio: _Counts = betaln(passed + 1, failed + 1) + below - (passed + 1) * math.log(rate) - failed * math.log1p(-rate)
    return ratio


def _first(down: Sequence[_Look], up: Sequence[_Look], needed: float) -> tuple[Direction, int, int] | None:
    """The first look that shows a drift: which way, in which period, and where that began."""
    for period, (lower, higher) in enumerate(zip(down, up, strict=True)):
        if lower.log >= math.log(needed):
            return "down", period, lower.began
        if higher.log >= math.log(needed):
            return "up", period, higher.began
    return None


def _largest(looks: Sequence[_Look]) -> float:
    return math.exp(min(max((look.log for look in looks), default=0.0), _LARGEST))
