"""Waits that providers ask for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.models._retry_after import LONGEST_S, parse_span_s, retry_after_s

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"RETRY-AFTER": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1m30s"}, 90.0),
        ({"retry-after": "20ms"}, 0.02),
        ({"retry-after": "1h2m3.5s"}, 3723.5),
        ({"retry-after": "1d"}, 86400.0),
        ({"retry-after": "99999999999999999999"}, LONGEST_S),
        ({"retry-after": "9" * 500}, None),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thursday, 01-Jan-26 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 13:00:30 GMT", "date": "Thu, 01 Jan 2026 13:00:00 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 14:00:30 +0200"}, 30.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"x-ratelimit-reset-requests": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "3s"}, 3.0),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "3s",
                "x-ratelimit-remaining-tokens": "812",
            },
            1.0,
        ),
        ({"x-ratelimit-reset": str(int(NOON.timestamp()) + 5)}, 5.0),
        ({"x-ratelimit-reset": str((int(NOON.timestamp()) + 5) * 1000)}, 5.0),
        ({"x-ratelimit-reset": "5"}, 5.0),
        ({"retry-after": "5", "x-ratelimit-reset-requests": "60s"}, 5.0),
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "1m30"}, None),
        ({"retry-after": "Thu, 99 Foo 2026 99:99:99 GMT"}, None),
    ],
)
def test_every_form_of_retry_after_is_parsed(headers, wait_s):
    assert retry_after_s(headers, now=NOON) == (None if wait_s is None else pytest.approx(wait_s))


@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "date"]), st.text()))
def test_any_retry_after_is_finite_or_none(headers):
    wait_s = retry_after_s(headers, now=NOON)
    assert wait_s is None or 0 <= wait_s <= LONGEST_S


@given(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_duration_parts_are_summed(hours, minutes, seconds):
    assert parse_span_s(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds
