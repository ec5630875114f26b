"""Pass rates over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from deemster.errors import ConfigurationError
from deemster.monitoring.pass_rate_over_time import MonitoredRecord, track_pass_rate
from deemster.stats import rate_drift

START = datetime(2026, 3, 2, 10, 30, tzinfo=UTC)


def records(outcomes, *, step=timedelta(hours=1), start=START):
    return [MonitoredRecord(start + place * step, outcome) for place, outcome in enumerate(outcomes)]


def test_records_are_grouped_by_the_calendar_in_utc():
    found = track_pass_rate(records([True, False, None, True], step=timedelta(hours=8)), every="day", baseline=10)
    assert [(period.start, period.n, period.passed, period.unscored) for period in found.periods] == [
        ("2026-03-02T00:00:00Z", 2, 1, 0),
        ("2026-03-03T00:00:00Z", 2, 1, 1),
    ]
    assert [period.pass_rate for period in found.periods] == [0.5, 1.0]


@pytest.mark.parametrize(
    ("every", "starts"),
    [
        ("hour", ["2026-03-02T10:00:00Z", "2026-04-01T10:00:00Z"]),
        ("week", ["2026-03-02T00:00:00Z", "2026-03-30T00:00:00Z"]),
        ("month", ["2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z"]),
        ("1", ["2026-03-02T10:30:00Z", "2026-04-01T10:30:00Z"]),
    ],
)
def test_every_sets_start_of_periods(every, starts):
    found = track_pass_rate(records([True, True], step=timedelta(days=30)), every=every)
    assert [period.start for period in found.periods] == starts


def test_before_the_baseline_is_complete_there_are_no_limits_and_no_test():
    found = track_pass_rate(records([True] * 9), baseline=10)
    assert found.baseline_rate is None
    assert found.drift is None
    assert all(period.limits is None and not period.outside for period in found.periods)


def test_baseline_is_the_first_periods_with_enough_scored_records_and_the_test_sees_only_later_ones():
    found = track_pass_rate(records([None, True, False, True, True, False, False]), every="3", baseline=4)
    assert found.baseline_rate == 0.6
    assert found.drift.baseline_n == 5
    assert found.drift.n == 1


def test_order_in_which_records_come_changes_nothing():
    some = records([True, False, True, None, True, False] * 5)
    assert track_pass_rate(some, baseline=5) == track_pass_rate(some[::-1], baseline=5)


def test_control_limits_are_three_standard_errors_of_adjusted_baseline_rate():
    found = track_pass_rate(records([True] * 96 + [False] * 20), every="96", baseline=96)
    rate = 98 / 100
    reach = 3 * (rate * (1 - rate) / 20) ** 0.5
    assert found.periods[1].limits == pytest.approx((rate - reach, 1.0))
    assert found.periods[1].outside
    assert not found.periods[0].outside


def test_fall_of_pass_rate_is_flagged():
    found = track_pass_rate(records([True, True, True, True, False] * 40 + [False] * 100), every="20", baseline=100)
    assert found.drift.direction == "down"


def test_limits_are_as_wide_as_periods_differ_in_the_baseline():
    days = [[True] * 10 + [False] * 10, [True] * 20] * 6
    found = track_pass_rate(records([outcome for day in days for outcome in day]), every="20", baseline=200)
    assert found.drift.between > 0.2
    assert not any(period.outside for period in found.periods)


@pytest.mark.parametrize(("sd", "volume"), [(0.0, 100), (0.04, 100)])
def test_what_it_could_see_is_seen_so_often(sd, volume):
    """Its sentence, simulated anew: after a baseline of 12 days the rate falls by five points."""
    rng, noticed, told = np.random.default_rng(8), [], []

    def days(rate, count):
        rates = np.clip(rate + sd * rng.standard_normal(count), 0, 1)
        return [(int(passed), volume) for passed in rng.binomial(volume, rates)]

    for process in range(50):
        before = days(0.9, 12)
        noticed.append(rate_drift(before, days(0.85, 50)).direction == "down")
        if process < 5:
            outcomes = [place < passed for passed, n in before for place in range(n)]
            told.append(track_pass_rate(records(outcomes), every=str(volume), baseline=1200).noticed[0].share)
    assert np.mean(told) == pytest.approx(np.mean(noticed), abs=0.25)


def test_without_records_there_is_no_period_and_no_rate():
    found = track_pass_rate([])
    assert (found.n, found.periods, found.drift) == (0, (), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": "daily"}, "not `daily`. Did you mean `day`"),
        ({"every": "0"}, "or a number of records, not `0`"),
        ({"baseline": 0}, "A baseline is a number of records of at least 1, not 0"),
        ({"alpha": 0}, "alpha lies strictly between 0 and 1, not 0"),
    ],
)
def test_invalid_options_are_error(options, message):
    with pytest.raises(ConfigurationError, match=message):
        track_pass_rate([], **options)
