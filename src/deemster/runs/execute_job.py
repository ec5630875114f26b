"""Executes what is left of a job, with its models open where a metric asks one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from deemster.cluster.ray_cluster import RayCluster
from deemster.models.clock import Clock
from deemster.records import Execution
from deemster.runs._cluster_driver import ClusterRun
from deemster.runs._engine import PendingStorage, Sink, execute_plan
from deemster.runs.model_access import open_gateway
from deemster.runs.progress import ProgressCounter
from deemster.runs.resume_backlog import RemainingWork
from deemster.runs.run_plan import Evaluation
from deemster.runs.stop_request import Stop


async def execute_job(
    job: Evaluation,
    sinks: Sequence[Sink],
    remaining: RemainingWork,
    *,
    counter: ProgressCounter,
    clock: Clock,
    stop: Stop,
    warn: Callable[[str], None],
    pending: PendingStorage | None = None,
    cluster: RayCluster | None = None,
) -> None:
    """Execute what is left of a job, with its models open where a metric asks one.

    Args:
        job: What is run.
        sinks: Each takes finished executions, one after the other.
        remaining: What is left to do.
        counter: Counts executions.
        clock: The time.
        stop: Asks it to stop.
        warn: Gets each warning.
        pending: Stores answers that wait for their marks.
        cluster: Where it is executed; in this process unless given.
    """

    def count(executions: Sequence[Execution]) -> None:
        for sink in sinks:
            sink(executions)
        counter.add(executions)

    if cluster is not None:
        run = ClusterRun(cluster, job, count, remaining, counter=counter, clock=clock, stop=stop, warn=warn)
        await run.execute(pending)
        return
    execute = partial(
        execute_plan,
        job.plan,
        sink=count,
        clock=clock,
        stop=stop,
        works=remaining.works,
        pending=pending,
        prompts=remaining.prompts,
    )
    if not job.plan.scorers:
        await execute()
        return
    given: dict[str, Any] = {"clock": clock, "seed": job.seed, "stop": stop, "warn": warn}
    async with open_gateway(job.access, spent=remaining.spent, calls=remaining.calls, **given) as gateway:
        counter.gateway = gateway
        telling = asyncio.create_task(counter.tell_regularly())
        try:
            await execute(ask=gateway.answers, may_batch=gateway.may_batch)
        finally:
            telling.cancel()
