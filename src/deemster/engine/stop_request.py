"""Asks a run to stop: on a signal, when a budget is spent, or when its time is over."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Stop:
    """A request to stop; any thread or signal handler can make it, and it wakes all that wait for it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._wake: list[Callable[[], object]] = []
        self._signals: socket.socket | None = None
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
        """Whether a stop is requested."""
        return self._event.is_set()

    def on_request(self, wake: Callable[[], object]) -> None:
        """Call back when a stop is requested; at once where it was."""
        self._wake.append(wake)
        if self.requested:
            wake()

    async def wait(self) -> None:
        """Return once a stop is requested."""
        requested = asyncio.Event()
        self.call_in(asyncio.get_running_loop(), requested.set)
        await requested.wait()

    def call_in(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], object]) -> None:
        """Call back in an event loop when a stop is requested; a loop that has ended is left alone."""

        def wake_in_loop() -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(wake)

        self.on_request(wake_in_loop)
        if (signals := self._signals) is not None:

            def read_signals() -> None:
                with contextlib.suppress(BlockingIOError):
                    signals.recv(4096)

            # A loop without readers, as on Windows, raises this, and wakes on signals by itself.
            with contextlib.suppress(RuntimeError):
                loop.add_reader(signals, read_signals)

    @contextlib.contextmanager
    def wake_on_signals(self) -> Iterator[None]:
        """Wake the event loops at each signal.

        Python runs a handler when the main thread is awake. A signal that another thread receives, or that comes just
        before the loop goes to sleep, would wait for the loop's next event.
        """
        self._signals, noted = socket.socketpair()
        with self._signals, noted:
            self._signals.setblocking(False)
            noted.setblocking(False)
            before = signal.set_wakeup_fd(noted.fileno(), warn_on_full_buffer=False)
            try:
                yield
            finally:
                signal.set_wakeup_fd(before)
                self._signals = None


@contextlib.contextmanager
def deadline(stop: Stop, timeout_s: float | None) -> Iterator[None]:
    """Ask a run to stop once its time is over; leaving the block before that cancels this.

    Args:
        stop: Asks it.
        timeout_s: How long it may take; None for as long as it takes.
    """
    if timeout_s is None:
        yield
        return
    reason = f"The run's time of {timeout_s:g} s was over."
    alarm = asyncio.get_running_loop().call_later(timeout_s, stop.request, reason)
    try:
        yield
    finally:
        alarm.cancel()


@contextlib.contextmanager
def interruptible(stop: Stop, *, tell: Callable[[str], object], leave: Callable[[], object]) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM request a stop; the second one ends the process at once.

    Args:
        stop: What is requested.
        tell: Takes a line for the user at the first signal.
        leave: Ends the process at a Ctrl-C after that. An exception would not do: it strikes anywhere, also where
            Python or a library drops it or waits for a thread that never ends.
    """

    def request_stop(number: int, _: FrameType | None) -> None:
        # First of all, and for both signals: the second one may come at once.
        signal.signal(signal.SIGINT, lambda *_: leave())
        signal.signal(signal.SIGTERM, before[signal.SIGTERM])
        known = signal.Signals(number)
        # Requested before the line is printed: the second signal may come as soon as the line is read, and ends this.
        stop.request(f"interrupted by {known.name}")
        tell(f"{known.name}: finishing what is under way; once more to leave at once")

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with stop.wake_on_signals():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
