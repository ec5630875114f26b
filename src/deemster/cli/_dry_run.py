"""What `--dry-run` prints."""

from __future__ import annotations

from collections.abc import Mapping

import click

from deemster.errors import counted
from deemster.models.call_context import PlannedCalls
from deemster.runs.evaluation_job import Job
from deemster.runs.model_access import open_gateway, rehearse
from deemster.runs.run_sync import run_sync


def show_rehearsal(job: Job) -> None:
    """Print what a run would ask of models, and about what that costs; ask nothing."""
    show_planned(run_sync(_planned(job)) if job.plan.scorers else {})


def show_planned(planned: Mapping[str, PlannedCalls]) -> None:
    """Print what models would be asked, by role, and about what that costs."""
    asked = {role: plan for role, plan in planned.items() if plan.calls}
    if not asked:
        click.echo("No model would be asked.")
        return
    for role, plan in asked.items():
        click.echo(f"{role}: {_told(plan)}")
    if len(asked) > 1:
        costs = [plan.cost_usd for plan in asked.values() if plan.cost_usd is not None]
        whole = f"about ${sum(costs):.4f}" if len(costs) == len(asked) else "price unknown"
        click.echo(f"all: {counted(sum(plan.calls for plan in asked.values()), 'request')}, {whole}")
    click.echo("Tokens sent are estimated, and answers taken as long as they may be.")
    click.echo("What a script asks after its first round is not in it.")


async def _planned(job: Job) -> Mapping[str, PlannedCalls]:
    async with open_gateway(job.access, clock=None, seed=job.seed, dry_run=True) as gateway:
        await rehearse(job.plan, gateway)
        return gateway.planned


def _told(plan: PlannedCalls) -> str:
    price = "price unknown" if plan.cost_usd is None else f"about ${plan.cost_usd:.4f}"
    tokens = f"about {plan.prompt_tokens:,} tokens sent, at most {plan.completion_tokens:,} received"
    return f"{counted(plan.calls, 'request')}, {tokens}, {price}"
