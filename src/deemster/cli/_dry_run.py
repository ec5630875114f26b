"""What `--dry-run` prints: how many requests models would get, and about what they cost."""

from __future__ import annotations

from collections.abc import Mapping

import click

from deemster.errors import plural
from deemster.models.call_context import PlannedCalls
from deemster.runs.evaluation_job import Job
from deemster.runs.model_access import open_gateway, rehearse
from deemster.runs.run_sync import run_sync


def print_job_requests(job: Job) -> None:
    """Print the requests of a run, and about what they cost; send none."""
    print_planned_calls(run_sync(_plan_calls(job)) if job.plan.scorers else {})


def print_planned_calls(planned: Mapping[str, PlannedCalls]) -> None:
    """Print the requests to each role, and about what they cost."""
    called = {role: plan for role, plan in planned.items() if plan.calls}
    if not called:
        click.echo("No model would be asked.")
        return
    for role, plan in called.items():
        click.echo(f"{role}: {_describe(plan)}")
    if len(called) > 1:
        costs = [plan.cost_usd for plan in called.values() if plan.cost_usd is not None]
        total = f"about ${sum(costs):.4f}" if len(costs) == len(called) else "price unknown"
        click.echo(f"all: {plural(sum(plan.calls for plan in called.values()), 'request')}, {total}")
    click.echo("The tokens sent are estimated; each answer is counted as long as it may be.")
    click.echo("Requests after the first round of a script are not counted.")


async def _plan_calls(job: Job) -> Mapping[str, PlannedCalls]:
    async with open_gateway(job.access, clock=None, seed=job.seed, dry_run=True) as gateway:
        await rehearse(job.plan, gateway)
        return gateway.planned


def _describe(plan: PlannedCalls) -> str:
    price = "price unknown" if plan.cost_usd is None else f"about ${plan.cost_usd:.4f}"
    tokens = f"about {plan.prompt_tokens:,} tokens sent, at most {plan.completion_tokens:,} received"
    return f"{plural(plan.calls, 'request')}, {tokens}, {price}"
