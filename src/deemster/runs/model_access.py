"""The models a run may ask: roles, cache, budget, and the gateway that answers its scripts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from deemster.errors import ConfigurationError, Issue
from deemster.models import Budget, Cache, Gateway, Role, as_role, missing_role_message, read_models
from deemster.models.budget import UsageBound
from deemster.models.clock import Clock
from deemster.records import Output, Sample
from deemster.records.model_requests import EMBEDDING
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending
from deemster.runs.play_scripts import Ask, ask_in_repetition, play_batch_script, play_script
from deemster.runs.run_plan import Plan
from deemster.runs.stop_request import Stop

BATCH = 256


class ModelAccess(NamedTuple):
    """How a run may ask models.

    Attributes:
        roles: The models by role.
        cache: The file of remembered answers; None for none.
        budget_usd: US dollars that must not be passed.
        budget_tokens: Tokens that must not be passed.
        offline: Whether only recordings, the cache and models that reach no network may answer.
    """

    roles: Mapping[str, Role] = {}
    cache: Path | None = None
    budget_usd: Decimal | None = None
    budget_tokens: int | None = None
    offline: bool = False


def build_model_access(
    models: Mapping[str, Any] | None,
    *,
    cache: str | Path | None = None,
    budget_usd: Decimal | float | None = None,
    budget_tokens: int | None = None,
    offline: bool = False,
) -> ModelAccess:
    """Build the model access of a run from the arguments of a program.

    Args:
        models: By role: a client, a ``Role``, or a map as in a suite's `models` section.
        cache: The file of remembered answers.
        budget_usd: US dollars that must not be passed.
        budget_tokens: Tokens that must not be passed.
        offline: Whether nothing may be asked over the network.

    Raises:
        ConfigurationError: Something cannot be used; all issues are listed.
    """
    given = dict(models or {})
    issues = list(budget_issues(budget_usd, budget_tokens))
    roles: dict[str, Role] = {}
    plain = {name: entry for name, entry in given.items() if isinstance(entry, Mapping)}
    for name, entry in given.items():
        if name not in plain:
            try:
                roles[name] = as_role(name, entry)
            except TypeError as error:
                issues.append(Issue(str(error)))
    try:
        if plain:
            read = read_models(
                plain, place=lambda path: ".".join(map(str, path)), environ=os.environ, calls=not offline
            )
            roles = {**{name: read[name] for name in plain}, **roles}
    except ConfigurationError as error:
        issues += error.issues
    if issues:
        raise ConfigurationError(issues)
    path = None if cache is None else Path(cache)
    money = None if budget_usd is None else Decimal(str(budget_usd))
    return ModelAccess(roles, path, money, budget_tokens, offline)


def budget_issues(usd: Any, tokens: Any) -> list[Issue]:
    """The issues of a budget."""
    issues = []
    if usd is not None and not _is_amount(usd):
        issues.append(Issue(f"A budget in USD is a number of at least 0, not {usd!r}."))
    if tokens is not None and (type(tokens) is not int or tokens < 0):
        issues.append(Issue(f"A budget in tokens is a whole number of at least 0, not {tokens!r}."))
    return issues


def _is_amount(usd: Any) -> bool:
    if isinstance(usd, bool) or not isinstance(usd, (int, float, Decimal)):
        return False
    return Decimal(usd).is_finite() and 0 <= usd < 1e12


def complete_model_access(access: ModelAccess, metrics: Sequence[Any]) -> ModelAccess:
    """Add the built-in embedding model where a metric asks for one and none is given, and check all other roles.

    Raises:
        ConfigurationError: A metric asks a model role that is not given.
    """
    roles = dict(access.roles)
    issues = []
    for metric in metrics:
        for role in getattr(metric, "roles", ()):
            embeds = role.partition(":")[0] == EMBEDDING
            if role == EMBEDDING and role not in roles:
                roles[role] = read_models(None, place=lambda _: None, environ={})[EMBEDDING]
            elif role not in roles or (roles[role].kind == "embedding") != embeds:
                message = f"{metric.name}: {missing_role_message(role, roles, embeds=embeds)}"
                issues.append(Issue(message))
    if issues:
        raise ConfigurationError(dict.fromkeys(issues))
    return access._replace(roles=roles)


@asynccontextmanager
async def open_gateway(
    access: ModelAccess,
    *,
    clock: Clock | None,
    seed: int,
    stop: Stop | None = None,
    warn: Callable[[str], None] | None = None,
    dry_run: bool = False,
    run: str | None = None,
    spent: Spending = NOTHING_SPENT,
) -> AsyncIterator[Gateway]:
    """A gateway to the models, open while the block runs.

    Args:
        access: How the run may ask.
        clock: The time.
        seed: For everything that draws.
        stop: Asks the run to stop: the gateway then asks nothing more, and says so itself where its budget is spent.
        warn: Told at the end what a person should know about the models.
        dry_run: Whether requests are only counted.
        run: The run that asks, where it can be resumed.
        spent: What that run has used already.

    Raises:
        ConfigurationError: A request could not be made because of how the run is set up.
    """
    budget = None
    if access.budget_usd is not None or access.budget_tokens is not None:
        budget = Budget(usd=access.budget_usd, tokens=access.budget_tokens, spent=UsageBound(spent.tokens, spent.usd))
    # A dry run leaves no file behind.
    keeps = access.cache is not None and (not dry_run or access.cache.exists())
    cache = Cache(access.cache) if keeps and access.cache is not None else None
    try:
        gateway = Gateway(
            access.roles,
            cache=cache,
            budget=budget,
            clock=clock,
            seed=seed,
            offline=access.offline,
            dry_run=dry_run,
            on_stop=None if stop is None else stop.request,
            run=run,
            paid=spent.call_ids,
        )
        async with gateway:
            if stop is not None:
                stop.call_in(asyncio.get_running_loop(), lambda: gateway.halt(stop.reason or "stopped"))
            yield gateway
            if warn is not None:
                for note in gateway.notes:
                    warn(note)
        if gateway.configuration_error is not None:
            raise gateway.configuration_error
    finally:
        if cache is not None:
            cache.close()


async def rehearse(plan: Plan, gateway: Gateway) -> None:
    """Send every script of a run to a gateway that only counts, without calling the target.

    Where there are no saved outputs, the expected output is used in place of the target's answer.
    """
    for repetition in range(plan.repetitions):
        ask = ask_in_repetition(gateway.answers, repetition)
        batch: list[tuple[Sample, Output]] = []
        for sample in plan.dataset:
            batch.append((sample, _stand_in(plan, sample, repetition)))
            if len(batch) == BATCH:
                await _rehearse(plan, ask, batch)
                batch = []
        if batch:
            await _rehearse(plan, ask, batch)


async def _rehearse(plan: Plan, ask: Ask, batch: Sequence[tuple[Sample, Output]]) -> None:
    samples, outputs = [sample for sample, _ in batch], [output for _, output in batch]
    for scorer in plan.scorers:
        if hasattr(scorer, "script_many"):
            await play_batch_script(scorer, samples, outputs, ask=ask)
        else:
            for sample, output in batch:
                await play_script(scorer, sample, output, ask=ask)


def _stand_in(plan: Plan, sample: Sample, repetition: int) -> Output:
    answers = getattr(plan.target, "answers", None)
    if answers is not None:
        (answer,) = answers([sample.id], 0 if plan.varied == "scoring" else repetition)
        if isinstance(answer, Output):
            return answer
    expected = sample.expected_output
    return Output(expected if isinstance(expected, str) else "")
