"""What a worker holds of the coordinator: rate limiters, budget and answers that ask it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from deemster.models.budget import Budget, UsageBound
from deemster.models.rate_limiter import LimiterState
from deemster.models.shared_calls import Claim
from deemster.records import Answer
from deemster.remote.call_coordinator import RoleLimits


class CoordinatorClient:
    """Asks the coordinator on behalf of one worker. It belongs to the running event loop.

    Args:
        actor: The coordinator.
        worker: The name of the worker for the part that it runs.
        limits: The limits of each role.
        budget: US dollars and tokens that must not be passed; None for no limit.

    Attributes:
        keeps_clients: False: each worker has its own.
        cache: None: the coordinator holds it.
        answers: None: likewise.
    """

    keeps_clients = False
    cache: None = None
    answers: None = None

    def __init__(
        self,
        actor: Any,
        worker: str,
        *,
        limits: Mapping[str, RoleLimits],
        budget: tuple[Decimal | None, int | None] | None,
    ) -> None:
        self._actor, self._worker, self._limits = actor, worker, limits
        self._budget = None if budget is None else RemoteBudget(self, budget[0])
        self._messages: list[tuple[Any, ...]] = []
        self._posts: set[asyncio.Task[None]] = set()

    def join(self, run: str) -> None:
        """Note nothing: all workers make the calls of one run."""

    def is_beside(self, run: str | None) -> bool:  # noqa: ARG002 - as above
        """Whether calls are those of another run: never."""
        return False

    def share_budget(self, spending: Budget | None) -> RemoteBudget | None:  # noqa: ARG002 - the coordinator counts
        """Sets money and tokens aside for all workers; None for no limit."""
        return self._budget

    def limiter(self, role: str) -> RemoteLimiter:
        """The rate limiter of a role."""
        return RemoteLimiter(self, role, self._limits[role])

    async def claim(self, key: bytes) -> Claim:
        """Learn the answer to a question, or that this worker is to ask it."""
        claim: Claim = await self.ask("claim", key)
        return claim

    def keep(self, key: bytes, answer: Answer) -> None:
        """Give the answer to a question to all workers."""
        self.post("keep", key, answer)

    def release(self, key: bytes) -> None:
        """Let another worker ask a question that brought no answer."""
        self.post("release", key)

    async def ask(self, method: str, *given: Any) -> Any:
        """Call a method of the coordinator for this worker, and wait for its result."""
        return await getattr(self._actor, method).remote(self._worker, *given)

    def post(self, *message: Any) -> None:
        """Send a message that has no reply; those of one turn of the loop go together."""
        if not self._messages:
            task = asyncio.get_running_loop().create_task(self._flush())
            self._posts.add(task)
            task.add_done_callback(self._posts.discard)
        self._messages.append(message)

    async def stop_reason(self) -> str:
        """Wait until the run is asked to stop; why."""
        reason: str = await self._actor.wait_for_stop.remote()
        return reason

    def stop(self, reason: str) -> None:
        """Ask all workers of the run to stop."""
        self._actor.stop.remote(reason)

    async def close(self) -> None:
        """Wait until the coordinator has every message."""
        while self._posts:
            await asyncio.wait(self._posts)

    async def _flush(self) -> None:
        messages, self._messages = self._messages, []
        await self._actor.post.remote(self._worker, messages)


class RemoteLimiter:
    """The rate limiter of one role, which the coordinator holds for all workers.

    Args:
        client: Asks the coordinator.
        role: The role.
        limits: Its limits.
    """

    # The coordinator counts them; `enter` gives its count.
    reductions = 0

    def __init__(self, client: CoordinatorClient, role: str, limits: RoleLimits) -> None:
        self._client, self._role, self._limits = client, role, limits
        self._under_way = 0
        # Requests that passed without leave, because nothing is sent any more.
        self._unsent: set[asyncio.Task[Any] | None] = set()
        self._lets_all_pass = asyncio.Event()

    @property
    def state(self) -> LimiterState:
        """What this worker has under way; the coordinator knows what the others have."""
        return LimiterState(self._limits.high, self._under_way, 0)

    @property
    def counts_tokens(self) -> bool:
        """Whether the number of tokens matters."""
        return self._limits.tpm is not None

    def try_enter(self, tokens: float = 0.0) -> bool:  # noqa: ARG002 - as every limiter
        """Enter a request at once: never, since the coordinator must be asked."""
        return False

    async def enter(self, tokens: float = 0.0, *, first: bool = True) -> int:
        """Wait for leave to send a request."""
        granted = asyncio.ensure_future(self._client.ask("enter", self._role, tokens, first))
        passing = asyncio.ensure_future(self._lets_all_pass.wait())
        try:
            await asyncio.wait([granted, passing], return_when=asyncio.FIRST_COMPLETED)
            if not granted.done():
                self._unsent.add(asyncio.current_task())
                return self.reductions
            entered: int = granted.result()
            self._under_way += 1
            return entered
        finally:
            # What the coordinator still grants then goes back to it when the part ends.
            granted.cancel()
            passing.cancel()

    def leave(self, unused: float = 0.0) -> None:
        """End a request that had entered."""
        task = asyncio.current_task()
        if task in self._unsent:
            self._unsent.discard(task)
        else:
            self._under_way -= 1
            self._client.post("leave", self._role, unused)

    def record_answer(self) -> None:
        """Allow more, because a request was answered."""
        self._client.post("record_answer", self._role)

    def record_limit(self, entered: int, *, wait_s: float) -> None:
        """Allow fewer after a 429, on all workers."""
        self._client.post("record_limit", self._role, entered, wait_s)

    def record_exhaustion(self, entered: int) -> None:
        """Allow fewer, because this machine has no room for the connections."""
        self.record_limit(entered, wait_s=0.0)

    def let_all_pass(self) -> None:
        """Let all requests pass; each finds that nothing is sent any more."""
        self._lets_all_pass.set()

    def close(self) -> None:
        """Let go of nothing: the coordinator wakes the requests that wait."""


class RemoteBudget:
    """The budget of the run, which the coordinator holds for all workers.

    Args:
        client: Asks the coordinator.
        usd: US dollars that must not be passed; None for no limit.

    Attributes:
        exhausted: Why no call is made any more, as far as this worker knows; or None.
    """

    def __init__(self, client: CoordinatorClient, usd: Decimal | None) -> None:
        self._client, self.usd = client, usd
        self.exhausted: str | None = None

    async def reserve(self, bound: UsageBound) -> bool:
        """Set aside the most a call may use; False where the budget is exhausted."""
        self.exhausted = await self._client.ask("reserve", bound)
        return self.exhausted is None

    def settle(self, bound: UsageBound, used: UsageBound) -> None:
        """Replace what a call reserved by what it used."""
        self._client.post("settle", bound, used)

    def charge(self, used: UsageBound) -> None:
        """Count what was used without being set aside first."""
        self._client.post("charge", used)
