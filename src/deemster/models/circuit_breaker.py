"""Not asking an endpoint that does not answer."""

from __future__ import annotations

from deemster.errors import counted

OPENS_AFTER = 20
PROBES_EVERY_S = 30.0


class CircuitBreaker:
    """Opens after so many calls in a row have failed, and then lets one probe through from time to time.

    A call fails once, after its last attempt. A 429 says that the endpoint is alive, and a request that is refused for
    what it holds says nothing about the endpoint: neither counts, and neither closes it.

    Args:
        endpoint: How messages call it.

    Attributes:
        failures: How many calls in a row have failed.
        opened: Why it opened, the last time it did; None where it never has.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.failures = 0
        self.opened: str | None = None
        self._next_probe: float | None = None
        self._is_probing = False
        self._last = ""

    @property
    def is_open(self) -> bool:
        """Whether calls are held back."""
        return self._next_probe is not None

    @property
    def message(self) -> str:
        """Why calls are held back."""
        failed = f"{counted(self.failures, 'call')} in a row failed"
        return f"{self.endpoint} is not asked: {failed}, the last with: {self._last}"

    def admits(self, now: float) -> bool:
        """Whether a call may go through; where it is open, this call is the probe."""
        if self._next_probe is None:
            return True
        if self._is_probing or now < self._next_probe:
            return False
        self._is_probing = True
        return True

    def succeeded(self) -> None:
        """A call was answered."""
        self.failures = 0
        self._next_probe = None
        self._is_probing = False

    def failed(self, message: str, now: float) -> None:
        """A call failed for good."""
        self.failures += 1
        self._last = message
        self._is_probing = False
        if self.failures >= OPENS_AFTER:
            self.opened = self.message
            self._next_probe = now + PROBES_EVERY_S

    def undecided(self, now: float) -> None:
        """A call ended in a way that says nothing about the endpoint."""
        self._is_probing = False
        if self._next_probe is not None:
            self._next_probe = now + PROBES_EVERY_S
