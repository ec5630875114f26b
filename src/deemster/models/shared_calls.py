"""The roles of what processes of one run share, or runs side by side: limits, budget and answers hold for all."""

from __future__ import annotations

from collections.abc import Awaitable
from decimal import Decimal
from typing import NamedTuple, Protocol

from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget, UsageBound
from deemster.models.call_log import LoggedCall
from deemster.models.rate_limiter import LimiterState
from deemster.records import Answer


class CallLimiter(Protocol):
    """Grants requests of one role; `RateLimiter` says what each method does."""

    @property
    def state(self) -> LimiterState: ...  # noqa: D102 - as in RateLimiter

    @property
    def counts_tokens(self) -> bool: ...  # noqa: D102

    @property
    def reductions(self) -> int: ...  # noqa: D102

    def try_enter(self, tokens: float = 0.0) -> bool: ...  # noqa: D102

    async def enter(self, tokens: float = 0.0, *, first: bool = True) -> int: ...  # noqa: D102

    def leave(self, unused: float = 0.0) -> None: ...  # noqa: D102

    def record_answer(self) -> None: ...  # noqa: D102

    def record_limit(self, entered: int, *, wait_s: float) -> None: ...  # noqa: D102

    def record_exhaustion(self, entered: int) -> None: ...  # noqa: D102

    def let_all_pass(self) -> None: ...  # noqa: D102

    def close(self) -> None: ...  # noqa: D102


class CallBudget(Protocol):
    """Sets money and tokens aside for calls; `Budget` says what each method does."""

    @property
    def usd(self) -> Decimal | None: ...  # noqa: D102

    @property
    def exhausted(self) -> str | None: ...  # noqa: D102

    def reserve(self, bound: UsageBound) -> Awaitable[bool]: ...  # noqa: D102

    def settle(self, bound: UsageBound, used: UsageBound) -> None: ...  # noqa: D102

    def charge(self, used: UsageBound) -> None: ...  # noqa: D102


class Claim(NamedTuple):
    """What a process learns that wants to ask a question.

    Attributes:
        answer: The answer that another process got, or a cache has; None where the process is to ask.
        is_paid: Whether the budget and the log of the run have the call behind the answer.
        lost: An earlier call of this question that was paid for and brought no answer.
    """

    answer: Answer | None = None
    is_paid: bool = False
    lost: LoggedCall | None = None


class SharedCalls(Protocol):
    """What the gateways of one run share across processes, or those of several runs in one process."""

    @property
    def keeps_clients(self) -> bool:
        """Whether the clients of models are shared, so that no gateway closes them."""
        ...

    @property
    def cache(self) -> Cache | None:
        """Answers kept on disk; None for none here."""
        ...

    @property
    def answers(self) -> Cache | None:
        """Answers that no file keeps; None where each gateway has its own."""
        ...

    def join(self, run: str) -> None:
        """Note that the calls of a run are among those that are shared.

        Args:
            run: What identifies them.
        """
        ...

    def is_beside(self, run: str | None) -> bool:
        """Whether calls are those of a run that goes on beside this one.

        Args:
            run: What identifies them.
        """
        ...

    def share_budget(self, spending: Budget | None) -> CallBudget | None:
        """What may be spent by all; None for no limit.

        Args:
            spending: Counts what this gateway spends; None where nobody does.
        """
        ...

    def limiter(self, role: str) -> CallLimiter:
        """The rate limiter of a role."""
        ...

    async def claim(self, key: bytes) -> Claim:
        """Learn the answer to a question, or that this process is to ask it: then all others wait.

        Args:
            key: The hash of the request.
        """
        ...

    def keep(self, key: bytes, answer: Answer) -> None:
        """Give the answer to a question to all processes.

        Args:
            key: The hash of the request.
            answer: The answer as a cache keeps it.
        """
        ...

    def release(self, key: bytes) -> None:
        """Let another process ask a question that brought no answer.

        Args:
            key: The hash of the request.
        """
        ...
