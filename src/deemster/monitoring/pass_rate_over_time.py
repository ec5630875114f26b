"""Pass rates over time: periods with their control limits, and whether the rate has drifted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from deemster.errors import ConfigurationError, did_you_mean
from deemster.monitoring.monitoring_page import monitoring_page
from deemster.monitoring.monitoring_report import monitoring_sections
from deemster.monitoring.noticed_falls import NoticedFall, noticed_falls
from deemster.stats import wilson
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.drift_test import Drift, rate_drift
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

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


class PassRateHistory(Rendered, msgspec.Struct, frozen=True, kw_only=True):
    """A pass rate over time.

    Attributes:
        every: How records are grouped.
        n: Records.
        unscored: Of them, those without a score.
        baseline: Scored records that make the baseline: those of the first periods that have so many.
        baseline_rate: The share that passed of all records of these periods; None before there are enough.
        drift: The test of all later records; None before the baseline is complete.
        periods: The periods in order; those without a record are not listed.
        not_applicable: Further records, which no metric applies to; nothing else counts them.
        noticed: What falls the test would notice, and how often.
        dataset: What was recorded, by the name that the recorder was given.
    """

    every: str
    n: int
    unscored: int
    baseline: int
    baseline_rate: float | None
    drift: Drift | None
    periods: tuple[Period, ...]
    not_applicable: int = 0
    noticed: tuple[NoticedFall, ...] = ()
    dataset: str = ""

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return monitoring_sections(self)

    def to_html(self) -> str:
        """The history as one HTML page that loads nothing."""
        return monitoring_page(self)


def track_pass_rate(
    records: Iterable[MonitoredRecord],
    *,
    every: str = "day",
    baseline: int = BASELINE,
    alpha: float = 0.05,
    dataset: str = "",
) -> PassRateHistory:
    """Follow a pass rate over time.

    The first scored records are the baseline, with the rest of the period in which they are complete. Choose how many
    before you look at the data: a test with a baseline that was chosen afterwards is not valid.

    Args:
        records: In any order; of equal times, in the order given.
        every: `hour`, `day`, `week`, `month` (UTC), or a number of records.
        baseline: How many scored records make the baseline.
        alpha: The probability of a false alarm that is accepted, over all times that anyone looks.
        dataset: What was recorded, by the name that the recorder was given.

    Raises:
        ConfigurationError: `every`, `baseline` or `alpha` is none.
    """
    period_of = _grouping(every)
    if type(baseline) is not int or baseline < 1:
        raise ConfigurationError(f"A baseline is a number of records of at least 1, not {baseline!r}.")
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies strictly between 0 and 1, not {alpha!r}.")

    all_records = list(records)
    ordered = sorted((record for record in all_records if record.applies), key=lambda record: record.at)
    periods = _group_by_period(ordered, period_of)

    counts = [(period.passed, period.scored) for period in periods]
    n_baseline_periods = _count_baseline_periods(periods, baseline)
    before = counts[:n_baseline_periods]
    drift = rate_drift(before, counts[n_baseline_periods:], alpha=alpha) if n_baseline_periods else None
    rate = None if drift is None else _BaselineRate.of(before, drift)

    return PassRateHistory(
        every=every,
        n=len(ordered),
        unscored=sum(record.passed is None for record in ordered),
        baseline=baseline,
        baseline_rate=None if rate is None else rate.passed / rate.scored,
        drift=drift,
        periods=tuple(_summarize(period, rate) for period in periods),
        not_applicable=len(all_records) - len(ordered),
        noticed=() if drift is None else tuple(noticed_falls(before, drift)),
        dataset=dataset,
    )


class _PeriodRecords(NamedTuple):
    """The records of one period."""

    start: datetime
    records: list[MonitoredRecord]

    @property
    def scored(self) -> int:
        return sum(record.passed is not None for record in self.records)

    @property
    def passed(self) -> int:
        return sum(bool(record.passed) for record in self.records)


class _BaselineRate(NamedTuple):
    """The rate of the baseline: its counts, and how much the rates of periods vary beyond chance."""

    passed: int
    scored: int
    between: float

    @classmethod
    def of(cls, counts: Sequence[tuple[int, int]], drift: Drift) -> _BaselineRate:
        passed, scored = (sum(column) for column in zip(*counts, strict=True))
        return cls(passed, scored, drift.between or 0.0)

    def limits(self, n: int) -> Interval:
        """Where a rate of ``n`` records is expected; two added successes and failures keep the limits apart."""
        rate = (self.passed + 2) / (self.scored + 4)
        reach = _SIGMAS * math.sqrt(rate * (1 - rate) / n + self.between**2)
        return Interval(max(0.0, rate - reach), min(1.0, rate + reach))


def _group_by_period(
    ordered: Sequence[MonitoredRecord], period_of: Callable[[int, MonitoredRecord], Hashable]
) -> list[_PeriodRecords]:
    """The records of each period; one that is a number of records begins with the first of them."""
    periods = []
    for period, group in itertools.groupby(enumerate(ordered), key=lambda numbered: period_of(*numbered)):
        records = [record for _, record in group]
        start = period if isinstance(period, datetime) else records[0].at
        periods.append(_PeriodRecords(start, records))
    return periods


def _count_baseline_periods(periods: Sequence[_PeriodRecords], baseline: int) -> int:
    """How many of the first periods make the baseline; 0 where there are too few scored records."""
    scored_so_far = itertools.accumulate(period.scored for period in periods)
    return next((number for number, scored in enumerate(scored_so_far, 1) if scored >= baseline), 0)


def _summarize(period: _PeriodRecords, baseline: _BaselineRate | None) -> Period:
    passed = period.passed
    scored = period.scored
    rate = wilson(passed, scored)
    limits = None if baseline is None or not scored else baseline.limits(scored)

    return Period(
        start=f"{period.start:%Y-%m-%dT%H:%M:%SZ}",
        n=len(period.records),
        unscored=len(period.records) - scored,
        passed=passed,
        pass_rate=rate.value,
        interval=interval_ends(rate.interval),
        limits=limits,
        outside=limits is not None and rate.value is not None and not limits[0] <= rate.value <= limits[1],
    )


def _grouping(every: str) -> Callable[[int, MonitoredRecord], Hashable]:
    """The function that gives the period of a record by its index and time."""
    if every.isascii() and every.isdecimal() and int(every) > 0:
        size = int(every)
        return lambda index, _: index // size
    if every not in PERIODS:
        raise ConfigurationError(
            f"A period is {', '.join(PERIODS)} or a number of records, not `{every}`. {did_you_mean(every, PERIODS)}"
        )
    return lambda _, record: _period_start(record.at.astimezone(UTC), every)


def _period_start(at: datetime, every: str) -> datetime:
    """When the period begins that a time lies in."""
    at = at.replace(minute=0, second=0, microsecond=0)
    if every == "hour":
        return at
    at = at.replace(hour=0)
    if every == "week":
        return at - timedelta(days=at.weekday())
    return at.replace(day=1) if every == "month" else at
