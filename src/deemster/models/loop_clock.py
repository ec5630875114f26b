"""Time as the gateway sees it, injected, so that tests never wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time of day, measures spans, waits."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        ...

    def elapsed_s(self) -> float | None:
        """Seconds since some fixed moment. None where no time is measured: then no latency is reported."""
        ...

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait."""
        ...


class LoopClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The time of day, in UTC."""
        return datetime.now(UTC)

    # Seconds of the monotonic clock: the function itself, for it is asked twice a call.
    elapsed_s = staticmethod(time.monotonic)

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait in the running loop."""
        return asyncio.sleep(seconds)
