"""Ctrl-C and SIGTERM: the first signal lets a run finish what is under way, the second ends the process."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from deemster.cli._console import note

if TYPE_CHECKING:
    from deemster.runs.stop_request import Stop


@contextlib.contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Let the first signal request a stop; the second one ends the process at once."""

    def request_stop(number: int, _: FrameType | None) -> None:
        # The old handlers are restored first, and for both signals: the second one may come at once.
        for each, handler in before.items():
            signal.signal(each, handler)
        known = signal.Signals(number)
        note(f"{known.name}: finishing what is under way; once more to leave at once")
        stop.request(f"interrupted by {known.name}")

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
