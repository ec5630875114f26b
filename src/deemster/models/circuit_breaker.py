"""The circuit breaker: stops calls to an endpoint that no longer answers, and probes it from time to time."""

from __future__ import annotations

from deemster.errors import plural

OPENS_AFTER = 20
PROBES_EVERY_S = 30.0


class CircuitBreaker:
    """Opens after 20 calls in a row have failed. While it is open, it lets one probe through every 30 seconds.

    A call fails once, after its last attempt. A 429 shows that the endpoint is alive. A request that the endpoint
    refuses for what the request holds says nothing about the endpoint. Neither counts, and neither closes the breaker.

    Args:
        endpoint: Its name in messages.

    Attributes:
        failures: How many calls in a row have failed.
        open_reason: Why it opened the last time; None where it never has.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.failures = 0
        self.open_reason: str | None = None
        self._next_probe: float | None = None
        self._is_probing = False
        self._last_failure = ""

    @property
    def is_open(self) -> bool:
        """Whether calls are stopped."""
        return self._next_probe is not None

    @property
    def message(self) -> str:
        """Why calls are stopped."""
        failed = f"{plural(self.failures, 'call')} in a row failed"
        return f"{self.endpoint} is not asked: {failed}, the last with: {self._last_failure}"

    def allows(self, now: float) -> bool:
        """Whether a call may go through. Where the breaker is open, this call is the probe."""
        if self._next_probe is None:
            return True
        if self._is_probing or now < self._next_probe:
            return False
        self._is_probing = True
        return True

    def record_success(self) -> None:
        """Close the breaker: a call was answered."""
        self.failures = 0
        self._next_probe = None
        self._is_probing = False

    def record_failure(self, message: str, now: float) -> None:
        """Count a call whose last attempt failed."""
        self.failures += 1
        self._last_failure = message
        self._is_probing = False
        if self.failures >= OPENS_AFTER:
            self.open_reason = self.message
            self._next_probe = now + PROBES_EVERY_S

    def end_probe(self, now: float) -> None:
        """End a probe that says nothing about the endpoint, and wait for the next one."""
        self._is_probing = False
        if self._next_probe is not None:
            self._next_probe = now + PROBES_EVERY_S
