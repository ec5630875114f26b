"""How often the drift test would notice a fall of a pass rate, by simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from deemster.stats.drift_test import Drift, rate_drift
from deemster.stats.nan_arithmetic import Floats

_SIMULATED_FALLS = (0.05, 0.1)
_PERIODS_AHEAD = 50
_SIMULATIONS = 50


class NoticedFall(msgspec.Struct, frozen=True, kw_only=True):
    """How often the test would notice a fall of the rate after this baseline, by simulation.

    Attributes:
        records: Scored records of a period.
        before: The rate of the baseline.
        after: The rate after the fall.
        periods: Within so many periods.
        share: The share of simulated processes in which it is noticed.
    """

    records: int
    before: float
    after: float
    periods: int
    share: float


def noticed_falls(baseline: Sequence[tuple[int, int]], drift: Drift) -> Iterator[NoticedFall]:
    """How often falls after a baseline would be noticed: periods like its own are drawn, whose rates vary as there.

    Args:
        baseline: The records that passed and the scored ones of each period of the baseline.
        drift: The test of what came later, which says how much rates vary.
    """
    passed = sum(period[0] for period in baseline)
    scored = sum(period[1] for period in baseline)
    rate = passed / scored
    records = max(1, round(scored / len(baseline)))
    # Rates are drawn as angles, arcsin √rate, which rise by 1/(2·√(rate·(1 - rate))).
    spread = (drift.between or 0.0) / (2 * math.sqrt((passed + 1) * (scored - passed + 1)) / (scored + 2))

    for fall in _SIMULATED_FALLS:
        if rate <= fall:
            continue

        rates = np.repeat([rate, rate - fall], [len(baseline), _PERIODS_AHEAD])
        rng = np.random.default_rng(0)
        n_noticed = 0
        for _ in range(_SIMULATIONS):
            periods = [(count, records) for count in _draw_counts(rates, records, spread, rng)]
            simulated = rate_drift(periods[: len(baseline)], periods[len(baseline) :], alpha=drift.alpha)
            n_noticed += simulated.direction == "down"

        yield NoticedFall(
            records=records, before=rate, after=rate - fall, periods=_PERIODS_AHEAD, share=n_noticed / _SIMULATIONS
        )


def _draw_counts(rates: Floats, records: int, spread: float, rng: np.random.Generator) -> list[int]:
    """How many records pass in each period, where rates vary by a spread of their angles."""
    angles = np.arcsin(np.sqrt(rates)) + spread * rng.standard_normal(len(rates))
    varied_rates = np.square(np.sin(np.clip(angles, 0, math.pi / 2)))
    counts: list[int] = rng.binomial(records, varied_rates).tolist()
    return counts
