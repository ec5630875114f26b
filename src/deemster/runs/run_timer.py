"""When a run began, and how long it takes."""

from __future__ import annotations

from deemster.models.clock import Clock, clock_from_environment
from deemster.runs.run_identity import format_time


class RunTimer:
    """Says when a run began, and how long it has taken so far.

    Args:
        clock: The time; the machine's own unless given.

    Attributes:
        clock: The time.
        started: When the run began.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or clock_from_environment()
        self.started = self.clock.now()
        self._began = self.clock.elapsed_s()

    @property
    def started_at(self) -> str:
        """When the run began, as stores and reports write it."""
        return format_time(self.started)

    def now(self) -> str:
        """The time, as stores and reports write it."""
        return format_time(self.clock.now())

    def seconds(self) -> float:
        """How long the run has taken, to the millisecond; 0 where the clock measures no time."""
        now = self.clock.elapsed_s()
        return 0.0 if self._began is None or now is None else round(now - self._began, 3)
