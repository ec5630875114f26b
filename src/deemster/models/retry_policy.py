"""The retry policy: whether a failed attempt is repeated, and after which backoff."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from deemster.errors import plural
from deemster.models.model_client import FailureKind, ModelFailure
from deemster.records import Cause

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 30.0
# How long a request waits for other requests to give back what this machine lacks.
LOCAL_WAIT_S = 0.1
CAUSES: Mapping[FailureKind, Cause] = {
    "transport": "model_failed",
    "limited": "rate_limited",
    "shape": "unreadable",
    "refused": "model_failed",
    "local": "model_failed",
}


class Retry(NamedTuple):
    """Try again after a wait."""

    wait_s: float


class GiveUp(NamedTuple):
    """Try no more."""

    cause: Cause
    message: str


class RetryPolicy(NamedTuple):
    """How patient a role is.

    Attributes:
        retries: How often a request is repeated after transport failures and 429; 0 is never, whatever happens.
        timeout_s: The longest attempt, body included.
        total_timeout_s: The longest call, from its first attempt, retries and waits included.
        max_retry_after_s: The longest wait a provider may ask for.
    """

    retries: int = 3
    timeout_s: float = 60.0
    total_timeout_s: float = 300.0
    max_retry_after_s: float = 60.0


class Attempts:
    """The attempts of one call.

    Args:
        policy: How patient the role is.
        seed: Makes the jitter repeatable.
        key: Tells calls apart, so that the jitter does not depend on which call fails first.
    """

    __slots__ = ("_key", "_policy", "_seed", "_wrong_shapes", "count")

    def __init__(self, policy: RetryPolicy, *, seed: int, key: bytes) -> None:
        self._policy, self._seed, self._key = policy, seed, key
        self._wrong_shapes = 0
        self.count = 0

    def next_step(self, failure: ModelFailure, *, elapsed_s: float) -> Retry | GiveUp:
        """What follows a failed attempt.

        A machine without a file descriptor is waited for, and that counts as no attempt. A reply of the wrong shape is
        asked for again once, whatever `retries` above 0 says. Of the other attempts there are at most `retries` + 1.

        Args:
            failure: How the attempt failed.
            elapsed_s: Time since the first attempt began.
        """
        policy = self._policy
        if failure.kind == "local":
            # Nothing was sent, so this was no attempt.
            if elapsed_s + LOCAL_WAIT_S < policy.total_timeout_s:
                return Retry(LOCAL_WAIT_S)
            return self.give_up(failure)
        self.count += 1
        if failure.kind == "shape":
            self._wrong_shapes += 1
            may_retry = self._wrong_shapes == 1 and policy.retries > 0
        else:
            may_retry = failure.kind != "refused" and self.count - self._wrong_shapes <= policy.retries
        retry_after_s = failure.retry_after_s or 0.0
        if failure.kind in ("limited", "transport") and retry_after_s > policy.max_retry_after_s:
            limit = f"the longest wait is {policy.max_retry_after_s:g} s"
            return GiveUp("rate_limited", f"{failure.message} It asks to wait {retry_after_s:g} s; {limit}.")
        if not may_retry:
            return self.give_up(failure)
        wait_s = max(self._backoff_s(), retry_after_s)
        if elapsed_s + wait_s >= policy.total_timeout_s:
            return self.give_up(failure, f"; a further wait of {wait_s:.1f} s passes {policy.total_timeout_s:g} s")
        return Retry(wait_s)

    def attempt_timeout_s(self, elapsed_s: float) -> float:
        """How long the next attempt may take."""
        return min(self._policy.timeout_s, max(self._policy.total_timeout_s - elapsed_s, 0.0))

    def give_up(self, failure: ModelFailure, reason: str = "") -> GiveUp:
        """The end of a call after its last failure."""
        return GiveUp(CAUSES[failure.kind], f"{failure.message} ({plural(self.count, 'attempt')}{reason})")

    def _backoff_s(self) -> float:
        # Full jitter: any time up to the bound, so that calls that failed together do not come back together.
        draw = random.Random(f"{self._seed}:{self._key.hex()}:{self.count}").random()  # noqa: S311 - spreads load, hides nothing
        return draw * min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(self.count - 1, 30))
