"""Pass rates over time: periods with their control limits, and whether the rate has drifted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from deemster.errors import ConfigurationError, did_you_mean
from deemster.results.metric_summary import Interval, interval_ends
from deemster.stats import wilson
from deemster.stats.drift_test import Drift, rate_drift

PERIODS = ("hour", "day", "week", "month")
BASELINE = 500
# Control charts flag a rate that lies three standard errors away.
_SIGMAS = 3.0


class MonitoredRecord(NamedTuple):
    """One record: when it was made, whether it passed (None if it could not be scored), whether a metric applies."""

    at: datetime
    passed: bool | None
    applies: bool = True


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """The records of one period.

    Attributes:
        start: When it begins: by the calendar, or the time of its first record if a period is a number of records.
        n: Records.
        unscored: Of them, those without a score; no rate counts them.
        passed: Of the scored ones, those that passed.
        pass_rate: passed / scored; None if none is scored.
        interval: Wilson's, 95 %.
        limits: The control limits: where the rate of so many records is expected; None before there is a baseline.
        outside: Whether the rate lies outside the limits.
    """

    start: str
    n: int
    unscored: int
    passed: int
    pass_rate: float | None
    interval: Interval | None
    limits: Interval | None
    outside: bool


class PassRateHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A pass rate over time.

    Attributes:
        every: How records are grouped.
        n: Records.
        unscored: Of them, those without a score.
        baseline: Scored records that make the baseline: the first ones.
        baseline_rate: The share of them that passed; None before there are enough.
        drift: The test of all later records; None before the baseline is complete.
        periods: The periods in order; those without a record are not listed.
        not_applicable: Further records, which no metric applies to; nothing else counts them.
    """

    every: str
    n: int
    unscored: int
    baseline: int
    baseline_rate: float | None
    drift: Drift | None
    periods: tuple[Period, ...]
    not_applicable: int = 0


def track_pass_rate(
    records: Iterable[MonitoredRecord], *, every: str = "day", baseline: int = BASELINE, alpha: float = 0.05
) -> PassRateHistory:
    """Follow a pass rate over time.

    The first scored records are the baseline. Choose how many before you look at the data: a test with a baseline that
    was chosen afterwards is not valid.

    Args:
        records: In any order; of equal times, in the order given.
        every: `hour`, `day`, `week`, `month` (UTC), or a number of records.
        baseline: How many scored records make the baseline.
        alpha: The probability of a false alarm that is accepted, over all times that anyone looks.

    Raises:
        ConfigurationError: `every`, `baseline` or `alpha` is none.
    """
    start_of = _grouping(every)
    if type(baseline) is not int or baseline < 1:
        raise ConfigurationError(f"A baseline is a number of records of at least 1, not {baseline!r}.")
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies strictly between 0 and 1, not {alpha!r}.")
    known = list(records)
    ordered = sorted((record for record in known if record.applies), key=lambda record: record.at)
    first = [record.passed for record in ordered if record.passed is not None][:baseline]
    rate = sum(first) / baseline if len(first) == baseline else None
    later: list[tuple[int, int]] = []
    periods = []
    left = baseline
    for number, group in itertools.groupby(enumerate(ordered), key=lambda each: start_of(*each)):
        members = [record for _, record in group]
        scored = [record.passed for record in members if record.passed is not None]
        tested = scored[left:] if left < len(scored) else []
        left = max(0, left - len(scored))
        if tested:
            later.append((sum(tested), len(tested)))
        began = number if isinstance(number, datetime) else members[0].at
        periods.append(_period(began, members, scored, None if rate is None else (sum(first), baseline)))
    return PassRateHistory(
        every=every,
        n=len(ordered),
        unscored=sum(record.passed is None for record in ordered),
        baseline=baseline,
        baseline_rate=rate,
        drift=None if rate is None else rate_drift((sum(first), baseline), later, alpha=alpha),
        periods=tuple(periods),
        not_applicable=len(known) - len(ordered),
    )


def _period(
    began: datetime, members: Sequence[MonitoredRecord], scored: Sequence[bool], baseline: tuple[int, int] | None
) -> Period:
    passed = sum(scored)
    share = wilson(passed, len(scored))
    limits = None if baseline is None or not scored else _limits(*baseline, len(scored))
    return Period(
        start=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        n=len(members),
        unscored=len(members) - len(scored),
        passed=passed,
        pass_rate=share.value,
        interval=interval_ends(share.interval),
        limits=limits,
        outside=limits is not None and share.value is not None and not limits[0] <= share.value <= limits[1],
    )


def _limits(passed: int, trials: int, n: int) -> Interval:
    """Where a rate of ``n`` records is expected; two added successes and failures keep the limits apart."""
    rate = (passed + 2) / (trials + 4)
    reach = _SIGMAS * math.sqrt(rate * (1 - rate) / n)
    return Interval(max(0.0, rate - reach), min(1.0, rate + reach))


def _grouping(every: str) -> Callable[[int, MonitoredRecord], Hashable]:
    """The function that gives the period of a record by its place and time."""
    if every.isascii() and every.isdecimal() and int(every) > 0:
        size = int(every)
        return lambda place, _: place // size
    if every not in PERIODS:
        raise ConfigurationError(
            f"A period is {', '.join(PERIODS)} or a number of records, not `{every}`. {did_you_mean(every, PERIODS)}"
        )
    return lambda _, record: _period_start(record.at.astimezone(UTC), every)


def _period_start(at: datetime, every: str) -> datetime:
    at = at.replace(minute=0, second=0, microsecond=0)
    if every == "hour":
        return at
    at = at.replace(hour=0)
    if every == "week":
        return at - timedelta(days=at.weekday())
    return at.replace(day=1) if every == "month" else at
