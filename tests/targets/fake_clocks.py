"""A clock whose waits take no time and can be read off."""

from __future__ import annotations

import asyncio
import time


class Hasty:
    """Measures real time, waits for nothing, and remembers how long it should have waited."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def elapsed_s(self) -> float:
        return time.monotonic() + sum(self.waits)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


class Still(Hasty):
    """Measures nothing."""

    def elapsed_s(self) -> None:
        return None
