"""When: a day, a moment or an age, as `--since` and `--until` take it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from deemster.errors import DeemsterError, visible

_AGE = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Moment(click.ParamType[Any]):
    """A date or time, converted to RFC 3339 text in UTC with milliseconds.

    Args:
        end: Whether a day means its end instead of its beginning.
    """

    name = "moment"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert the argument.

        Raises:
            BadParameter: It is no date, time or age.
        """
        try:
            return format_moment(_parse_moment(str(value), end=self._end))
        except (ValueError, OverflowError):
            shown = visible(str(value), limit=40)
            return self.fail(f"`{shown}` is no moment: give 2026-01-31, 2026-01-31T18:30, or an age: 30d.", param, ctx)


def format_moment(moment: datetime) -> str:
    """A moment as the store writes it.

    >>> format_moment(datetime(2026, 1, 31, 18, 30, 5, 250999, tzinfo=UTC))
    '2026-01-31T18:30:05.250Z'
    """
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _parse_moment(text: str, *, end: bool) -> datetime:
    back = _parse_age(text)
    if back is not None:
        return back
    found = datetime.fromisoformat(text)
    found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    return found + timedelta(days=1) if end and _DAY.fullmatch(text) else found


def _parse_age(text: str) -> datetime | None:
    found = _AGE.fullmatch(text)
    if found is None:
        return None
    from deemster.models.clock import clock_from_environment

    try:
        now = clock_from_environment().now()
    except DeemsterError as error:
        raise click.UsageError(str(error)) from None
    return now - timedelta(**{_UNITS[found[2]]: int(found[1])})
