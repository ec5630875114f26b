"""The gateway: every request of every script to a model goes through it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Self

from deemster.errors import ConfigurationError, Issue
from deemster.models._chat_role import ChatRole, measure_asks, read_answer
from deemster.models._embedding_role import EmbeddingRole, read_vectors, texts_size
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import identity_prefix
from deemster.models.budget import Budget
from deemster.models.call_context import CallContext, PlannedCalls, RoleAccess
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.model_call import ModelCaller
from deemster.models.model_roles import Role, missing_role_message
from deemster.models.rate_limiter import LimiterState
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Ask, NoAnswer, Reply, Request, Usage


class Gateway:
    """Answers rounds of requests: from cache or model, deduplicated, batched, limited, retried and counted.

    Use it as ``async with Gateway(...) as gateway``.

    Args:
        roles: The models by role.
        context: What its calls share.

    Raises:
        ConfigurationError: A budget in money, and a role without a price. On opening: a recording cannot be read.
    """

    def __init__(self, roles: Mapping[str, Role], context: CallContext | None = None) -> None:
        self._roles = dict(roles)
        self._context = CallContext() if context is None else context
        self._is_open = False
        self._open_roles: dict[str, ChatRole | EmbeddingRole] = {}
        self._recordings: dict[str, Recording] = {}
        self._circuits: dict[str, CircuitBreaker] = {}
        if self.budget is not None and self.budget.usd is not None and not self._context.dry_run:
            self._require_prices()

    async def __aenter__(self) -> Self:
        self._is_open = True
        for role in self._roles.values():
            if role.recording is not None and role.recording not in self._recordings:
                self._recordings[role.recording] = Recording(role.recording, secrets=self._secrets())
        return self

    async def __aexit__(self, *_: object) -> None:
        for opened in self._open_roles.values():
            if isinstance(opened, EmbeddingRole):
                await opened.close()
            opened.caller.close()
        for recording in self._recordings.values():
            try:
                recording.close()
            except ConfigurationError as error_on_close:
                self._context.report_issue(str(error_on_close))
        self._context.run_cache.close()
        if self._context.shared is None or not self._context.shared.keeps_clients:
            await close_clients(self._roles.values())

    async def answers(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer one round of requests.

        A model's failure is a ``NoAnswer``, never raised.

        Args:
            requests: What a script asks at once.

        Returns:
            The replies, in order.
        """
        if len(requests) == 1:
            return [await self._reply(requests[0])]
        return list(await asyncio.gather(*map(self._reply, requests)))

    def halt(self, reason: str) -> None:
        """Send nothing further: what waits gets no answer (`not_run`), what is under way goes on.

        Args:
            reason: Why, for a person.
        """
        if self._context.halted is None:
            self._context.halted = reason
            for role in self._open_roles.values():
                role.caller.limiter.let_all_pass()

    def may_batch(self, scorer: Any) -> bool:
        """Whether a scorer that can mark a batch with one script may do so.

        A scorer whose vectors cost money may not: each mark should carry what its own texts used. The gateway batches
        texts of all scripts in any case.

        Args:
            scorer: A scorer.
        """
        roles = [self._roles.get(name) for name in getattr(scorer, "roles", ())]
        return not any(role is not None and role.kind == "embedding" and not role.is_local for role in roles)

    @property
    def spent(self) -> dict[str, Usage | None]:
        """What each role that was asked has used so far; None where no call brought anything. Safe in any thread."""
        return {name: role.caller.usage.total for name, role in tuple(self._open_roles.items())}

    @property
    def planned(self) -> dict[str, PlannedCalls]:
        """What a dry run would have sent, by the roles it asked.

        A script goes no further than its first round without an answer, so what later rounds would ask is not in it.
        """
        return {name: role.caller.planned for name, role in self._open_roles.items()}

    @property
    def budget(self) -> Budget | None:
        """What may be spent, and how much of it is; None for no limit."""
        return self._context.run_budget

    @property
    def exhausted(self) -> str | None:
        """Why the budget allows no more calls, or None."""
        return None if self.budget is None else self.budget.exhausted

    @property
    def open_circuit(self) -> str | None:
        """Why the circuit breaker stopped calls to an endpoint; None where it stopped none."""
        return next(
            (circuit.open_reason for circuit in self._circuits.values() if circuit.open_reason is not None), None
        )

    @property
    def configuration_error(self) -> ConfigurationError | None:
        """The requests that could not be made because of how the run is set up, such as those not recorded; or None.

        The engine raises it when the run is over: a script would take it for a failure of its own.
        """
        issues = self._context.issues
        return ConfigurationError(issues) if issues else None

    @property
    def notes(self) -> list[str]:
        """What a person should know about the cache, the recordings and the models that were asked."""
        notes = [] if self._context.cache is None else list(self._context.cache.notes)
        notes += [note for recording in self._recordings.values() for note in recording.notes]
        learned = [note for role in self._roles.values() for note in getattr(role.client, "notes", ())]
        return [*notes, *dict.fromkeys(learned)]

    def limiter_states(self) -> Mapping[str, LimiterState]:
        """What the rate limiter of each role that was asked allows at the moment. Safe in any thread."""
        return {name: role.caller.limiter.state for name, role in tuple(self._open_roles.items())}

    def _reply(self, request: Request) -> Awaitable[Reply]:
        role = self._open_roles.get(request.role) or self._open_role(request.role)
        if isinstance(request, Ask):
            if isinstance(role, ChatRole):
                return role.reply(request)
        elif isinstance(role, EmbeddingRole):
            return role.reply(request)
        return self._refuse_role(request)

    async def _refuse_role(self, request: Request) -> NoAnswer:
        if not self._is_open:
            raise RuntimeError("The gateway is not open: use `async with Gateway(...) as gateway`.")
        message = missing_role_message(request.role, self._roles, embeds=not isinstance(request, Ask))
        self._context.report_issue(message)
        return NoAnswer(cause="not_run", message=message)

    def _open_role(self, name: str) -> ChatRole | EmbeddingRole | None:
        """Open a role when it is first asked: a model may have to read its weights to say what it is."""
        if name not in self._open_roles and name in self._roles and self._is_open:
            self._open_roles[name] = self._build_role(name, self._roles[name])
        return self._open_roles.get(name)

    def _build_role(self, name: str, role: Role) -> ChatRole | EmbeddingRole:
        context = self._context
        recording = None if role.recording is None else self._recordings[role.recording]
        identity = role.identity
        endpoint = str((identity or {}).get("base_url") or f"`{name}`")
        circuit = self._circuits.setdefault(endpoint, CircuitBreaker(endpoint))
        try:
            prefix = identity_prefix({"role": name} if identity is None else identity)
        except (TypeError, ValueError):
            context.report_issue(f"The `identity` of the client of `models.{name}` holds what is not JSON.")
            identity, prefix = None, identity_prefix({"role": name})
        embeds = role.kind == "embedding"
        access = RoleAccess(
            name=name,
            prefix=prefix,
            is_cached=identity is not None and not (embeds and role.is_local),
            may_call=role.client is not None and (role.is_local or not context.offline),
            recording=recording,
            context=context,
        )
        method = getattr(role.client, "embed_many" if embeds else "complete", None) or _no_method
        limiter = None if context.shared is None else context.shared.limiter(name)
        if embeds:
            embedding = ModelCaller(
                role, method, read_vectors, measure=texts_size, circuit=circuit, context=context, limiter=limiter
            )
            return EmbeddingRole(embedding, access)
        measure = measure_asks(role.client)
        chat = ModelCaller(
            role, method, read_answer, measure=measure, circuit=circuit, context=context, limiter=limiter
        )
        return ChatRole(chat, access)

    def _secrets(self) -> Secrets:
        """The secrets of every role: an answer of one may quote another's."""
        return reduce(add, (role.secrets for role in self._roles.values()), NO_SECRETS)

    def _require_prices(self) -> None:
        unpriced = [name for name, role in self._roles.items() if role.client is not None and not role.price_table]
        if unpriced:
            raise ConfigurationError(
                Issue(
                    f"A budget in USD needs a price for `models.{name}`: write `price: {{input: 0.15, output: 0.60}}`, "
                    "USD for a million tokens."
                )
                for name in unpriced
            )


async def close_clients(roles: Iterable[Role]) -> None:
    """Close the clients of some roles, each once."""
    for client in {id(role.client): role.client for role in roles}.values():
        close = getattr(client, "close", None)
        if callable(close):
            ending = close()
            if inspect.isawaitable(ending):
                await ending


async def _no_method(_: Any) -> None:
    """Stands in for the method of a missing client; the gateway never calls it."""
