"""The models a run may ask: roles, cache, budget, and the gateway that answers its scripts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deemster.engine.kept_calls import KeptCalls
from deemster.engine.kept_prompts import WhichPrompts
from deemster.engine.stop_request import Stop
from deemster.errors import ConfigurationError, Issue
from deemster.formats import read_document
from deemster.formats.json_values import name_kind
from deemster.metrics.import_user_code import import_object
from deemster.models import Budget, Cache, CallContext, Gateway, Role
from deemster.models.budget import UsageBound
from deemster.models.call_log import RestoredCalls
from deemster.models.clock import Clock
from deemster.models.model_roles import as_role, missing_role_message
from deemster.models.models_section import default_embedding, read_models
from deemster.models.shared_calls import SharedCalls
from deemster.records.model_requests import EMBEDDING
from deemster.records.shared_call_cost import NOTHING_SPENT, Spending


class ModelCalls(NamedTuple):
    """How a run may call its models.

    Attributes:
        cache: A file that keeps the models' answers; they are looked up there first. None for none.
        budget_usd: The most that the models may cost, in US dollars; what is not asked then is `not_run`.
        budget_tokens: The most tokens that the models may use.
        offline: Whether nothing may be asked over the network.
        keep_prompts: Whose prompts and replies a stored evaluation keeps, for `deemster show --prompts`: of judges
            that did not pass (`failed`), of `all`, or of `none`.
    """

    cache: str | Path | None = None
    budget_usd: Decimal | float | None = None
    budget_tokens: int | None = None
    offline: bool = False
    keep_prompts: WhichPrompts = "failed"

    def issues(self) -> list[Issue]:
        """What is wrong with the budget."""
        usd, tokens = self.budget_usd, self.budget_tokens
        issues = []
        if usd is not None and not _is_amount(usd):
            issues.append(Issue(f"A budget in USD is a number of at least 0, not {usd!r}."))
        if tokens is not None and (type(tokens) is not int or tokens < 0):
            issues.append(Issue(f"A budget in tokens is a whole number of at least 0, not {tokens!r}."))
        return issues

    @property
    def cost_limit(self) -> Decimal | None:
        """The most that the models may cost, exactly."""
        return None if self.budget_usd is None else Decimal(str(self.budget_usd))

    def budget(self, *, spent: UsageBound | None = None) -> Budget | None:
        """The budget of a run; None for no limit.

        Args:
            spent: What the run has used before.
        """
        if self.budget_usd is None and self.budget_tokens is None:
            return None
        return Budget(usd=self.cost_limit, tokens=self.budget_tokens, spent=spent)


NO_LIMITS = ModelCalls()


class ModelAccess(NamedTuple):
    """How a run may ask models.

    Attributes:
        roles: The models by role.
        calls: Cache, budget and network.
    """

    roles: Mapping[str, Role] = {}
    calls: ModelCalls = NO_LIMITS

    def without_anchors(self) -> ModelAccess:
        """The same, for a run beside another one, which has judged the anchors of its models."""
        roles = {name: msgspec.structs.replace(role, anchors=None) for name, role in self.roles.items()}
        return self._replace(roles=roles)


# Imports a client, or finds the one that a plug-in offers.
_load_client = partial(import_object, called="The client", group="deemster.models")


def build_model_access(models: Mapping[str, Any] | None, limits: ModelCalls = NO_LIMITS) -> ModelAccess:
    """Build the model access of a run from the arguments of a program.

    Args:
        models: By role: a client, a ``Role``, or a map as in a suite's `models` section.
        limits: Cache, budget and network.

    Raises:
        ConfigurationError: Something cannot be used; all issues are listed.
    """
    given = dict(models or {})
    issues = limits.issues()
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
                plain,
                place=lambda path: ".".join(map(str, path)),
                environ=os.environ,
                load=_load_client,
                calls=not limits.offline,
            )
            roles = {**{name: read[name] for name in plain}, **roles}
    except ConfigurationError as error:
        issues += error.issues
    if issues:
        raise ConfigurationError(issues)
    return ModelAccess(roles, limits)


def read_model_access(
    section: Any,
    limits: ModelCalls = NO_LIMITS,
    *,
    place: Callable[[Any], str | None],
    folder: Path | None = None,
    calls: bool = True,
) -> ModelAccess:
    """Read the model access of a run from a `models` section.

    Args:
        section: The section as plain data; None where there is none.
        limits: Cache, budget and network.
        place: Gives the place of a value by its path, `models` first.
        folder: What the paths of the section are relative to; None where it names no file.
        calls: Whether models are going to be called; otherwise keys and variables need not be set.

    Raises:
        ConfigurationError: Something in the section or the budget cannot be used.
    """
    if issues := limits.issues():
        raise ConfigurationError(issues)
    load = partial(_load_client, search=folder)
    calls = calls and not limits.offline
    roles = read_models(section, place=place, environ=os.environ, folder=folder, load=load, calls=calls)
    return ModelAccess(roles, limits)


def load_model_access(file: str, limits: ModelCalls, *, calls: bool = True) -> ModelAccess:
    """Read the model access of a run from a file with a `models` section.

    Args:
        file: Its path.
        limits: Cache, budget and network.
        calls: Whether models are going to be called.

    Raises:
        ConfigurationError: It cannot be read, or something in it cannot be used.
    """
    document = read_document(file, error=ConfigurationError)
    if not isinstance(document.value, dict) or "models" not in document.value:
        found = "no `models`" if isinstance(document.value, dict) else name_kind(document.value)
        message = f"A file of models is a map with a section `models`, as a suite has it; here is {found}."
        raise ConfigurationError(Issue(message, document.where()))
    section, folder = document.value["models"], Path(file).parent
    return read_model_access(section, limits, place=document.where, folder=folder, calls=calls)


def _is_amount(usd: Any) -> bool:
    if isinstance(usd, bool) or not isinstance(usd, (int, float, Decimal)):
        return False
    return Decimal(usd).is_finite() and 0 <= usd < 1e12


def complete_model_access(access: ModelAccess, asking: Sequence[Any]) -> ModelAccess:
    """Add the built-in embedding model where a metric asks for one and none is given, and check all other roles.

    Args:
        access: How models may be asked.
        asking: The metrics that ask models, and the target where it does.

    Raises:
        ConfigurationError: A model role is asked that is not given.
    """
    roles = dict(access.roles)
    issues = []
    for asker in asking:
        for role in getattr(asker, "roles", ()):
            embeds = role.partition(":")[0] == EMBEDDING
            if role == EMBEDDING and role not in roles:
                roles[role] = default_embedding()
            elif role not in roles or (roles[role].kind == "embedding") != embeds:
                message = f"{asker.name}: {missing_role_message(role, roles, embeds=embeds)}"
                issues.append(Issue(message))
    if issues:
        raise ConfigurationError(dict.fromkeys(issues))
    return access._replace(roles=roles)


def _open_cache(file: str | Path | None, *, dry_run: bool) -> Cache | None:
    # A dry run leaves no file behind.
    return None if file is None or (dry_run and not Path(file).exists()) else Cache(Path(file))


def _restore(calls: KeptCalls | None, spent: Spending, answers: Cache | None) -> RestoredCalls:
    """The calls of a run's earlier processes, their answers among those that it shares with others."""
    if calls is None:
        return RestoredCalls(answers)
    if answers is None:
        return calls.restore(spent)
    return calls.restore(spent, keep=answers.keep)._replace(answers=answers)


@asynccontextmanager
async def open_gateway(
    access: ModelAccess,
    *,
    clock: Clock | None,
    seed: int,
    stop: Stop | None = None,
    warn: Callable[[str], None] | None = None,
    dry_run: bool = False,
    spent: Spending = NOTHING_SPENT,
    calls: KeptCalls | None = None,
    shared: SharedCalls | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway to the models, open while the block runs.

    Args:
        access: How the run may ask.
        clock: The time.
        seed: For everything that draws.
        stop: Asks the run to stop: the gateway then asks nothing more, and says so itself where its budget is spent.
        warn: Gets warnings about the models at the end.
        dry_run: Whether requests are only counted.
        spent: What the run has used already, as its stored marks or votes say.
        calls: Keeps the calls of the run as they end, where it can be resumed.
        shared: What it shares with other processes of the run, or other runs, its limits and budget included.

    Raises:
        ConfigurationError: A request could not be made because of how the run is set up.
        StoreError: The calls that were kept cannot be read.
    """
    restored = _restore(calls, spent, None if shared is None else shared.answers)
    own_cache = _open_cache(access.calls.cache, dry_run=dry_run) if shared is None else None
    try:
        context = CallContext(
            clock,
            cache=own_cache if shared is None else shared.cache,
            budget=access.calls.budget(spent=restored.spent),
            seed=seed,
            offline=access.calls.offline,
            dry_run=dry_run,
            on_stop=None if stop is None else stop.request,
            run=None if calls is None else calls.token,
            log=calls,
            restored=restored,
            shared=shared,
        )
        async with Gateway(access.roles, context) as gateway:
            if stop is not None:
                stop.call_in(asyncio.get_running_loop(), lambda: gateway.halt(stop.reason or "stopped"))
            yield gateway
            if warn is not None:
                for note in gateway.notes:
                    warn(note)
        if gateway.configuration_error is not None:
            raise gateway.configuration_error
    finally:
        if own_cache is not None:
            own_cache.close()
