"""Asking a run to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stop:
    """A request to stop that any thread or signal handler can make, and that wakes who waits for it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._wake: list[Callable[[], object]] = []
        self.reason: str | None = None

    def request(self, reason: str) -> None:
        """Ask the run to start nothing further and finish what is under way."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()
            for wake in self._wake:
                wake()

    @property
    def requested(self) -> bool:
        """Whether somebody asked."""
        return self._event.is_set()

    def on_request(self, wake: Callable[[], object]) -> None:
        """Call back when somebody asks; at once if somebody has."""
        self._wake.append(wake)
        if self.requested:
            wake()
