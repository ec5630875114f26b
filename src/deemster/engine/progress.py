"""The progress of a run: how far it is, and what its models have used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from deemster.models import Budget
from deemster.models.budget import BudgetEntry
from deemster.models.rate_limiter import LimiterState
from deemster.records import Execution, Unscored, Usage

TELL_S = 1.0


class Progress(NamedTuple):
    """How far a run is.

    Attributes:
        done: Executions that are finished.
        total: All of them.
        unscored: Marks that are no score.
        spent: What each model that was asked has used so far, by role.
        limits: What the limits of each allow at the moment.
    """

    done: int
    total: int
    unscored: int
    spent: Mapping[str, Usage | None] = {}
    limits: Mapping[str, LimiterState] = {}


class ModelProgress(Protocol):
    """What is known of the models of a run while it runs: a gateway, or the workers of a cluster."""

    @property
    def spent(self) -> Mapping[str, Usage | None]:
        """What each role that was asked has used so far."""
        ...

    @property
    def budget(self) -> Budget | None:
        """What may be spent, and how much of it is; None for no limit."""
        ...

    @property
    def open_circuit(self) -> str | None:
        """Why a circuit breaker stopped calls to an endpoint; None where it stopped none."""
        ...

    def limiter_states(self) -> Mapping[str, LimiterState]:
        """What the rate limiter of each role allows at the moment."""
        ...


class ProgressCounter:
    """Counts finished executions, or graded items, and reports how far the run is.

    Args:
        total: All executions of the run.
        progress: Gets each report; None for no progress.
        done: Executions that were finished before it was resumed.
        unscored: Their marks that are no score.

    Attributes:
        gateway: What answers the run's scripts, while it does.
    """

    def __init__(
        self, total: int, progress: Callable[[Progress], None] | None, *, done: int = 0, unscored: int = 0
    ) -> None:
        self.total, self.done, self.unscored, self.progress = total, done, unscored, progress
        self.gateway: ModelProgress | None = None
        self.cut_off = 0

    def add(self, executions: Sequence[Execution]) -> None:
        """Count executions as they finish."""
        self.done += len(executions)
        if self.gateway is not None and self.gateway.budget is not None:
            self.cut_off += sum(
                any(isinstance(mark, Unscored) and mark.cause == "not_run" for mark in execution.marks)
                for execution in executions
            )
        if self.progress is not None:
            self.unscored += sum(hasattr(mark, "cause") for execution in executions for mark in execution.marks)
            self.tell()

    def tell(self) -> None:
        """Report the progress."""
        if self.progress is not None:
            models = ({}, {}) if self.gateway is None else (self.gateway.spent, self.gateway.limiter_states())
            self.progress(Progress(self.done, self.total, self.unscored, *models))

    @property
    def budget(self) -> BudgetEntry | None:
        """What the run was allowed to spend, and where that stopped it; None where it had no limit."""
        limits = None if self.gateway is None else self.gateway.budget
        if limits is None:
            return None
        completed = self.done - self.cut_off
        return BudgetEntry(
            limit_usd=limits.usd,
            limit_tokens=limits.tokens,
            spent_usd=limits.spent.usd,
            spent_tokens=limits.spent.tokens,
            estimated_usd=limits.spent.estimated_usd,
            estimated_tokens=limits.spent.estimated_tokens,
            halted=limits.exhausted is not None,
            completed=completed,
            remaining=self.total - completed,
            reason=None if limits.exhausted is None else limits.exhausted.rstrip("."),
        )

    @property
    def open_circuit(self) -> str | None:
        """Why a circuit breaker keeps models from being asked; or None."""
        return None if self.gateway is None else self.gateway.open_circuit

    async def tell_regularly(self) -> None:
        """Report the progress every second, also while nothing finishes."""
        while self.progress is not None:
            await asyncio.sleep(TELL_S)
            self.tell()
