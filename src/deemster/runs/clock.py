"""Time, injected, so that a run can be repeated to the byte."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol

from deemster.errors import ConfigurationError

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"


class Clock(Protocol):
    """Tells the time of day, and measures spans."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def elapsed_s(self) -> float | None:
        """Seconds since some fixed moment; only differences mean anything. None where no time is measured."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Seconds of the monotonic clock."""
        return time.perf_counter()


class FrozenClock:
    """A clock that stands still."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """The moment it stands at."""
        return self._at

    def elapsed_s(self) -> None:
        """Nothing: a latency of 0 would be a made-up number."""
        return


def clock_of_environment() -> Clock:
    """The system's clock, or one that stands at SOURCE_DATE_EPOCH where that is set.

    Raises:
        ConfigurationError: The variable is not a whole number of seconds.
    """
    epoch = os.environ.get(EPOCH_VARIABLE)
    if not epoch:
        return SystemClock()
    try:
        return FrozenClock(datetime.fromtimestamp(int(epoch), UTC))
    except (ValueError, OverflowError, OSError):
        raise ConfigurationError(f"{EPOCH_VARIABLE} is a number of seconds since 1970, not {epoch!r}.") from None
