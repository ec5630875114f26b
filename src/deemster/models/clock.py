"""The clock of a run: the time of day, spans and waits, injected so that runs repeat to the byte."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Protocol

from deemster.errors import ConfigurationError

EPOCH_VARIABLE = "SOURCE_DATE_EPOCH"


class Clock(Protocol):
    """Tells the time of day, measures spans, and waits."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def elapsed_s(self) -> float | None:
        """Seconds since some fixed moment; only differences have a meaning. None where no time is measured."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait in the running event loop."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    def elapsed_s(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait in the running event loop."""
        return asyncio.sleep(seconds)


class FrozenClock(SystemClock):
    """A clock whose time of day stands still, and that measures no spans. Its waits are real."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """The moment at which it stands."""
        return self._at

    def elapsed_s(self) -> None:  # type: ignore[override]
        """None: a latency of 0 would be a made-up number."""
        return


def span_clock(clock: Clock) -> Callable[[], float]:
    """What measures spans where something must: the clock, or the event loop's where it measures none."""
    if clock.elapsed_s() is None:
        return asyncio.get_running_loop().time
    measured: Callable[[], Any] = clock.elapsed_s
    return measured


def clock_from_environment() -> Clock:
    """The machine's clock, or one that stands at SOURCE_DATE_EPOCH where that variable is set.

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
