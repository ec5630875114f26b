"""How long a provider asks to wait, read from the headers of its reply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_S = 1e9
_NUMBER = re.compile(r"[-+]?[0-9]{1,300}(?:\.[0-9]{1,300})?")
_SPAN = re.compile(
    r"(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m(?!s))?(?:([0-9]+(?:\.[0-9]+)?)s)?(?:([0-9]+(?:\.[0-9]+)?)ms)?"
)
_UNITS = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)
_LONGEST_TEXT = 400
_EPOCH_S, _EPOCH_MS = 1e9, 1e12
_KINDS = ("requests", "tokens", "input-tokens", "output-tokens")


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """The seconds a reply asks to wait before the next request; None where it does not say, or says rubbish.

    `retry-after-ms` is read first, then `retry-after`, then the `x-ratelimit-reset-*` of what is used up. A wait
    that is over is 0.

    Args:
        headers: The reply's headers, spelt in any case.
        now: The time of day, for dates; the reply's own `date` goes before it.

    >>> retry_after_s({"Retry-After": "1m30s"})
    90.0
    >>> retry_after_s({"retry-after-ms": "250", "retry-after": "1"})
    0.25
    """
    found = {name.lower(): value.strip() for name, value in headers.items() if len(value) <= _LONGEST_TEXT}
    if (wait := _seconds(found.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    if asked := found.get("retry-after"):
        wait = parse_span_s(asked)
        return _until(asked, found.get("date"), now) if wait is None else wait
    waits = [
        wait
        for kind in _KINDS
        if _is_used_up(found.get(f"x-ratelimit-remaining-{kind}"))
        and (wait := parse_span_s(found.get(f"x-ratelimit-reset-{kind}", ""))) is not None
    ]
    return max(waits) if waits else _reset(found.get("x-ratelimit-reset", ""), now)


def parse_span_s(text: str) -> float | None:
    """A span of time such as `20`, `0.5`, `-1`, `90ms` or `1h2m3.5s`, in seconds; None where it is none.

    >>> parse_span_s("6m0s"), parse_span_s("120ms"), parse_span_s("-3"), parse_span_s("soon")
    (360.0, 0.12, 0.0, None)
    """
    if (seconds := _seconds(text)) is not None:
        return seconds
    found = _SPAN.fullmatch(text)
    if found is None or not text:
        return None
    total = sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part is not None)
    return min(total, LONGEST_S)


def _seconds(text: str) -> float | None:
    return min(max(float(text), 0.0), LONGEST_S) if _NUMBER.fullmatch(text) else None


def _is_used_up(remaining: str | None) -> bool:
    left = None if remaining is None else _seconds(remaining)
    return left is None or left == 0


def _reset(text: str, now: datetime | None) -> float | None:
    """What some providers give as a span, others as a moment in seconds or milliseconds since 1970."""
    moment = float(text) if _NUMBER.fullmatch(text) else 0.0
    if moment < _EPOCH_S:
        return parse_span_s(text)
    moment = moment / 1000 if moment >= _EPOCH_MS else moment
    return min(max(moment - (now or datetime.now(UTC)).timestamp(), 0.0), LONGEST_S)


def _until(text: str, date: str | None, now: datetime | None) -> float | None:
    moment = _moment(text)
    if moment is None:
        return None
    # The reply's own date is of the clock that wrote the other one.
    start = (_moment(date) if date else None) or now or datetime.now(UTC)
    return min(max((moment - start).total_seconds(), 0.0), LONGEST_S)


def _moment(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
