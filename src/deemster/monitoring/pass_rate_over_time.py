"""Pass rates over time: periods with their control limits, and whether the rate has drifted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
import numpy as np

from deemster.errors import ConfigurationError, did_you_mean
from deemster.monitoring.monitoring_page import monitoring_page
from deemster.monitoring.monitoring_report import monitoring_sections
from deemster.stats import wilson
from deemster.stats.confidence_interval import Interval, interval_ends
from deemster.stats.drift_test import Drift, rate_drift
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

PERIODS = ("hour", "day", "week", "month")
BASELINE = 500
# Control charts flag a rate that lies three standard errors away.
_SIGMAS = 3.0
# What the test could see: falls by so much, within so many periods, in so many simulated processes.
_FALLS = (0.05, 0.1)
_AHEAD = 50
_PROCESSES = 50


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
    start_of = _grouping(every)
    if type(baseline) is not int or baseline < 1:
        raise ConfigurationError(f"A baseline is a number of records of at least 1, not {baseline!r}.")
    if not 0 < alpha < 1:
        raise ConfigurationError(f"alpha lies strictly between 0 and 1, not {alpha!r}.")
    known = list(records)
    ordered = sorted((record for record in known if record.applies), key=lambda record: record.at)
    groups = []
    for number, group in itertools.groupby(enumerate(ordered), key=lambda each: start_of(*each)):
        members = [record for _, record in group]
        groups.append((number if isinstance(number, datetime) else members[0].at, members))
    counts = [_count(members) for _, members in groups]
    reached = itertools.accumulate(scored for _, scored in counts)
    last = next((period for period, scored in enumerate(reached, 1) if scored >= baseline), None)
    drift = None if last is None else rate_drift(counts[:last], counts[last:], alpha=alpha)
    passed, trials = (sum(column) for column in zip(*counts[:last], strict=True)) if last else (0, 0)
    expected = None if drift is None else (passed, trials, drift.between or 0.0)
    return PassRateHistory(
        every=every,
        n=len(ordered),
        unscored=sum(record.passed is None for record in ordered),
        baseline=baseline,
        baseline_rate=passed / trials if trials else None,
        drift=drift,
        periods=tuple(_period(*group, *count, expected) for group, count in zip(groups, counts, strict=True)),
        not_applicable=len(known) - len(ordered),
        noticed=() if drift is None else tuple(_noticed(counts[:last], drift)),
        dataset=dataset,
    )


def _count(members: Sequence[MonitoredRecord]) -> tuple[int, int]:
    """Of the records of a period, those that passed and those that are scored."""
    scored = [record.passed for record in members if record.passed is not None]
    return sum(scored), len(scored)


def _noticed(baseline: Sequence[tuple[int, int]], drift: Drift) -> Iterator[NoticedFall]:
    """How often falls after this baseline would be noticed: periods like these are drawn, whose rates vary as here."""
    passed, trials = (sum(column) for column in zip(*baseline, strict=True))
    rate, records = passed / trials, max(1, round(trials / len(baseline)))
    spread = (drift.between or 0.0) / (2 * math.sqrt((passed + 1) * (trials - passed + 1)) / (trials + 2))
    for fall in _FALLS:
        if rate <= fall:
            continue
        draw = np.random.default_rng(0)
        found = 0
        for _ in range(_PROCESSES):
            means = np.repeat([rate, rate - fall], [len(baseline), _AHEAD])
            angles = np.arcsin(np.sqrt(means)) + spread * draw.standard_normal(len(means))
            counts = draw.binomial(records, np.square(np.sin(np.clip(angles, 0, math.pi / 2)))).tolist()
            drawn = [(count, records) for count in counts]
            shown = rate_drift(drawn[: len(baseline)], drawn[len(baseline) :], alpha=drift.alpha)
            found += shown.direction == "down"
        yield NoticedFall(records=records, before=rate, after=rate - fall, periods=_AHEAD, share=found / _PROCESSES)


def _period(
    began: datetime,
    members: Sequence[MonitoredRecord],
    passed: int,
    scored: int,
    baseline: tuple[int, int, float] | None,
) -> Period:
    share = wilson(passed, scored)
    limits = None if baseline is None or not scored else _limits(*baseline, scored)
    return Period(
        start=f"{began:%Y-%m-%dT%H:%M:%SZ}",
        n=len(members),
        unscored=len(members) - scored,
        passed=passed,
        pass_rate=share.value,
        interval=interval_ends(share.interval),
        limits=limits,
        outside=limits is not None and share.value is not None and not limits[0] <= share.value <= limits[1],
    )


def _limits(passed: int, trials: int, between: float, n: int) -> Interval:
    """Where a rate of ``n`` records is expected; two added successes and failures keep the limits apart."""
    rate = (passed + 2) / (trials + 4)
    reach = _SIGMAS * math.sqrt(rate * (1 - rate) / n + between**2)
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
