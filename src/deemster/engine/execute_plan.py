"""Executes a plan: samples stream through target and metrics to a sink."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from deemster.engine._judge_outputs import JudgePool
from deemster.engine._played_target import PlayedTarget
from deemster.engine._replay_outputs import OutputReplay
from deemster.engine._target_calls import TargetCaller
from deemster.engine.execution_handover import NO_PENDING_STORAGE, ExecutionHandover, PendingStorage, Sink
from deemster.engine.kept_prompts import KeptPrompts
from deemster.engine.play_scripts import AskModels
from deemster.engine.run_plan import Plan, asks_models
from deemster.engine.score_batch import score_batch
from deemster.engine.stop_request import Stop, deadline
from deemster.engine.turnstile import NO_TURNS, Turns
from deemster.engine.work_items import AnsweredBatch, WorkItem, leave_out, planned_work
from deemster.engine.worker_pool import worker_pool
from deemster.models.clock import Clock
from deemster.models.worker_threads import WorkerThreads
from deemster.records import Execution
from deemster.targets.saved_outputs import SavedOutputs


async def execute_plan(
    plan: Plan,
    *,
    sink: Sink,
    clock: Clock,
    stop: Stop,
    ask: AskModels | None = None,
    works: Iterable[WorkItem] | None = None,
    may_batch: Callable[[Any], bool] | None = None,
    pending: PendingStorage = NO_PENDING_STORAGE,
    prompts: KeptPrompts | None = None,
    turns: Turns = NO_TURNS,
) -> None:
    """Run a plan to its end, or until it is asked to stop.

    Executions reach the sink in batches, in the order in which they finish. Work that was not started when the run was
    asked to stop never reaches it. A slow sink slows the run down: the number of waiting executions is bounded.

    Args:
        plan: What to run.
        sink: Takes finished executions; called in a thread, one call at a time.
        clock: Measures how long the target takes.
        stop: Asks the run to stop.
        ask: Answers what scripts ask; needed where metrics or the target have some.
        works: What is to be done; everything unless given.
        may_batch: Whether a scorer that can mark a batch with one script may do so; all may unless given.
        pending: Stores the answers of a live target that wait for their marks.
        prompts: Keeps what judges were asked; None where that is not kept.
        turns: When the work of a sample may begin.
    """
    answered: asyncio.Queue[AnsweredBatch | None] = asyncio.Queue(maxsize=1)
    threads = WorkerThreads("deemster-run", at_once=4)
    asks = ask is not None and bool(plan.scorers)
    handover = ExecutionHandover(
        sink, pending, metrics=len(plan.metrics), threads=threads, asks=asks, secrets=plan.secrets
    )

    source: OutputReplay | TargetCaller
    if isinstance(plan.target, SavedOutputs):
        source = OutputReplay(plan, plan.target, stop=stop, threads=threads, turns=turns)
    else:
        target: Any = plan.target
        if ask is not None and asks_models(plan.target):
            target = PlayedTarget(plan.target, ask)
        source = TargetCaller(plan, target, clock=clock, stop=stop, note=handover.note, turns=turns)

    marking: JudgePool | _MetricPool
    if ask is not None and asks:
        marking = JudgePool(
            plan, handover.hand_on, ask=ask, stop=stop, threads=threads, may_batch=may_batch, prompts=prompts
        )
    else:
        marking = _MetricPool(plan, handover.hand_on, stop=stop, threads=threads)

    try:
        with deadline(stop, plan.timeout_s):
            async with worker_pool(stop) as pool:
                pool.serve(source.answer_all(_remaining_work(plan, works), answered))
                storing = pool.serve(handover.store_regularly())
                await asyncio.wait([pool.serve(marking.mark(answered))])

                # This includes answers whose scoring was cancelled.
                await handover.store_all()
                storing.cancel()
    finally:
        threads.close()


def _remaining_work(plan: Plan, works: Iterable[WorkItem] | None) -> Iterator[WorkItem]:
    remaining = iter(planned_work(plan) if works is None else works)
    return leave_out(plan, remaining) if any(plan.where) else remaining


class _MetricPool:
    """Marks outputs where no metric asks a model."""

    def __init__(
        self,
        plan: Plan,
        hand_on: Callable[[Sequence[Execution]], Awaitable[None]],
        *,
        stop: Stop,
        threads: WorkerThreads,
    ) -> None:
        self._plan = plan
        self._hand_on = hand_on
        self._stop = stop
        self._threads = threads

    async def mark(self, answered: asyncio.Queue[AnsweredBatch | None]) -> None:
        """Mark batches as they come, until None comes."""
        async with worker_pool(self._stop) as pool:
            while (batch := await answered.get()) is not None:
                # A metric that never returns must not keep a run that was asked to stop.
                if pool.is_drained:
                    continue
                scoring = pool.start(self._threads.call(score_batch, self._plan, batch))
                await asyncio.wait([scoring])
                if not scoring.cancelled():
                    await self._hand_on(scoring.result())
