"""Ending what takes too long, with one timer of the event loop for all that is under way."""

from __future__ import annotations

import asyncio
import math
from types import TracebackType
from typing import Any, Self


class Deadlines:
    """Cancels the tasks whose time is up.

    Hardly any ever is, so the loop is given one timer, for the first of them, and not one for each.

    Attributes:
        watched: The blocks under way, and when their time is up.
        rings_at: When the timer rings.
    """

    def __init__(self) -> None:
        self.watched: dict[Limit, float] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self.rings_at = math.inf

    def close(self) -> None:
        """Let go of the timer."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self.rings_at = None, math.inf

    def ring(self, at: float) -> None:
        """Set the timer to an earlier time."""
        self.close()
        self._alarm = asyncio.get_running_loop().call_at(at, self._ring)
        self.rings_at = at

    def _ring(self) -> None:
        # A loop rings its timers up to one tick of its clock early.
        now = max(asyncio.get_running_loop().time(), self.rings_at)
        for limit in [limit for limit, at in self.watched.items() if at <= now]:
            del self.watched[limit]
            limit.expire()
        self.close()
        if self.watched:
            self.ring(min(self.watched.values()))


class Limit:
    """A block that may take so long, as ``asyncio.timeout`` has it.

    Args:
        deadlines: Watches it.
        seconds: How long it may take.

    Attributes:
        expired: Whether its time was up before it ended.
    """

    __slots__ = ("_cancelling", "_deadlines", "_seconds", "_task", "expired")

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self.expired = False

    def __enter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._task = task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("Only a task can be given a time.")
        self._cancelling = task.cancelling()
        at = loop.time() + self._seconds
        deadlines = self._deadlines
        deadlines.watched[self] = at
        if at < deadlines.rings_at:
            deadlines.ring(at)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.expired:
            del self._deadlines.watched[self]
        elif self._task is not None:
            # Only where nobody else has asked the task to end, its end is this one's.
            is_ours = self._task.uncancel() <= self._cancelling
            if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    def expire(self) -> None:
        """End the block: its time is up."""
        self.expired = True
        if self._task is not None:
            self._task.cancel()
