"""Where the work of an evaluation is done: in this process, or on a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, TypeAlias

from deemster.engine.execute_plan import execute_plan
from deemster.engine.execution_handover import NO_PENDING_STORAGE, PendingStorage, Sink
from deemster.engine.kept_calls import KeptCalls
from deemster.engine.kept_prompts import KeptPrompts
from deemster.engine.model_access import ModelAccess, open_gateway
from deemster.engine.progress import ProgressCounter
from deemster.engine.run_plan import Plan
from deemster.engine.stop_request import Stop
from deemster.engine.turnstile import NO_TURNS, Turns
from deemster.engine.work_items import WorkItem
from deemster.models import Gateway
from deemster.models.clock import Clock
from deemster.models.shared_calls import SharedCalls
from deemster.records import Execution
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending


class Runnable(Protocol):
    """What is run: an evaluation, as those see it who do its work."""

    @property
    def plan(self) -> Plan:
        """What to run."""
        ...

    @property
    def access(self) -> ModelAccess:
        """How its metrics may ask models."""
        ...

    @property
    def seed(self) -> int:
        """For everything that draws."""
        ...

    @property
    def origin(self) -> Mapping[str, Any] | None:
        """The suite file and what it says, as plain data; None where there is none."""
        ...


class RemainingWork(NamedTuple):
    """What is left to do of a run, and what was done before.

    Attributes:
        works: What is left to do; None for everything.
        done: Executions that are finished.
        unscored: Their marks that are unscored.
        spent: What the models used.
        calls: Keeps the model calls of the run as they end; None where it cannot be resumed.
        prompts: Keeps what judges were asked; None where that is not kept.
    """

    works: Iterable[WorkItem] | None = None
    done: int = 0
    unscored: int = 0
    spent: Spending = NOTHING_SPENT
    calls: KeptCalls | None = None
    prompts: KeptPrompts | None = None


class RunWork(NamedTuple):
    """What is left to do of an evaluation, and whom its results reach.

    Attributes:
        evaluation: What is run.
        remaining: What is left of it to do.
        sinks: Each takes finished executions, one after the other.
        counter: Counts executions.
        clock: The time.
        stop: Asks it to stop.
        warn: Gets each warning.
        pending: Stores answers that wait for their marks.
    """

    evaluation: Runnable
    remaining: RemainingWork
    sinks: Sequence[Sink]
    counter: ProgressCounter
    clock: Clock
    stop: Stop
    warn: Callable[[str], None]
    pending: PendingStorage = NO_PENDING_STORAGE

    def finish(self, executions: Sequence[Execution]) -> None:
        """Hand on executions that have finished; called in a thread, one call at a time."""
        for sink in self.sinks:
            sink(executions)
        self.counter.add(executions)


# Does work to its end, or until it is asked to stop.
Execute: TypeAlias = Callable[[RunWork], Awaitable[None]]


class Backend(Protocol):
    """Where the work of an evaluation is done."""

    def open(self) -> AbstractContextManager[Execute]:
        """Get ready, before a run begins; what does its work.

        Raises:
            ConfigurationError: It is not there.
        """
        ...


class InThisProcess:
    """Does the work in this process, with the models open where a metric asks one.

    Args:
        shared: What it shares with others that work on the same run, or on one beside it, limits and budget included.
        turns: When it may begin the work of a sample.
    """

    def __init__(self, shared: SharedCalls | None = None, *, turns: Turns = NO_TURNS) -> None:
        self._shared = shared
        self._turns = turns

    def open(self) -> AbstractContextManager[Execute]:
        """What does the work: nothing needs to get ready."""
        return nullcontext(self.execute)

    async def execute(self, work: RunWork) -> None:
        """Do the work to its end, or until it is asked to stop."""
        evaluation, remaining = work.evaluation, work.remaining
        if not evaluation.plan.asking:
            await self._execute(work)
            return

        models = open_gateway(
            evaluation.access,
            clock=work.clock,
            seed=evaluation.seed,
            stop=work.stop,
            warn=work.warn,
            spent=remaining.spent,
            calls=remaining.calls,
            shared=self._shared,
        )
        async with models as gateway:
            work.counter.gateway = gateway
            telling = asyncio.create_task(work.counter.tell_regularly())
            try:
                await self._execute(work, gateway)
            finally:
                telling.cancel()

    async def _execute(self, work: RunWork, gateway: Gateway | None = None) -> None:
        await execute_plan(
            work.evaluation.plan,
            sink=work.finish,
            clock=work.clock,
            stop=work.stop,
            ask=None if gateway is None else gateway.answers,
            may_batch=None if gateway is None else gateway.may_batch,
            works=work.remaining.works,
            pending=work.pending,
            prompts=work.remaining.prompts,
            turns=self._turns,
        )
