"""An event loop with fake time: nothing really waits, and every wait is recorded."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)


class _Selector(selectors.SelectSelector):
    """Moves the loop's time on where a real one would wait."""

    loop: VirtualLoop

    def select(self, timeout=None):
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("Everything waits and nothing will wake it.")
        if not ready and timeout > 0:
            self.loop.moment += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.moment = 0.0
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.moment


class VirtualClock:
    """The clock of the virtual loop that runs."""

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed_s())

    def elapsed_s(self) -> float:
        return asyncio.get_running_loop().time()

    def sleep(self, seconds: float):
        return asyncio.sleep(seconds)


def run(work):
    """Run a coroutine in a new loop without real waiting."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)
