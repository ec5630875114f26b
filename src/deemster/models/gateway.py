"""The gateway: every request of every script to a model goes through it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from types import TracebackType
from typing import Any, Self

from deemster.errors import ConfigurationError, Issue
from deemster.models._chat_role import ChatRole, read_answer
from deemster.models._embedding_role import EmbeddingRole, read_vectors
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import Cache, identity_prefix
from deemster.models.budget import Budget
from deemster.models.call_context import CallContext, PlannedCalls, RoleAccess
from deemster.models.call_log import CallLog, LoggedCall
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.clock import Clock, SystemClock
from deemster.models.model_call import ModelCaller
from deemster.models.model_roles import Role, missing_role_message
from deemster.models.rate_limiter import LimiterState
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.models.shared_calls import SharedCalls
from deemster.records import Ask, NoAnswer, Reply, Request, Usage


class Gateway:
    """Answers rounds of requests: from cache or model, deduplicated, batched, limited, retried and counted.

    Use it as ``async with Gateway(...) as gateway``.

    Args:
        roles: The models by role.
        cache: Answers kept on disk; None for none. The caller closes it.
        budget: What may be spent; None for no limit.
        clock: Tells time and waits; the machine's where not given.
        seed: For the jitter of retries.
        offline: Whether only recordings, the cache and models that reach no network may answer.
        dry_run: Whether requests are only counted; see `planned`.
        on_stop: Called once, with the reason, when the budget is exhausted or a request cannot be made at all.
        run: The run that its calls belong to: what an earlier process of the same run left in the cache was paid for by
            this run. None for one that is never resumed.
        paid: The calls of that run that its budget and its log have already.
        log: Keeps every call of the run when it ends, for a resumed run; None where they are not kept.
        run_cache: Answers of the run's earlier processes; the gateway closes it.
        lost_calls: Calls of earlier processes that were paid for and brought no answer, by the hash of the request.
        shared: What it shares with other processes of the run, rate limits and budget included; None where it is alone.

    Raises:
        ConfigurationError: A budget in money, and a role without a price. On opening: a recording cannot be read.
    """

    def __init__(
        self,
        roles: Mapping[str, Role],
        *,
        cache: Cache | None = None,
        budget: Budget | None = None,
        clock: Clock | None = None,
        seed: int = 42,
        offline: bool = False,
        dry_run: bool = False,
        on_stop: Callable[[str], None] | None = None,
        run: str | None = None,
        paid: Iterable[int] = (),
        log: CallLog | None = None,
        run_cache: Cache | None = None,
        lost_calls: Mapping[bytes, LoggedCall] | None = None,
        shared: SharedCalls | None = None,
    ) -> None:
        self._roles = dict(roles)
        self._cache, self._budget = cache, budget
        self._clock: Clock = clock or SystemClock()
        self._seed, self._offline, self._dry_run, self._on_stop = seed, offline, dry_run, on_stop
        self._run, self._paid = run, paid
        self._log, self._run_cache, self._lost_calls, self._shared = log, run_cache, lost_calls, shared
        self._open_roles: dict[str, ChatRole | EmbeddingRole] = {}
        self._recordings: dict[str, Recording] = {}
        self._circuits: dict[str, CircuitBreaker] = {}
        self._context: CallContext | None = None
        if budget is not None and budget.usd is not None and not dry_run:
            self._require_prices()

    async def __aenter__(self) -> Self:
        self._context = CallContext(
            self._clock,
            cache=self._cache,
            budget=self._budget if self._shared is None else self._shared.budget,
            seed=self._seed,
            offline=self._offline,
            dry_run=self._dry_run,
            on_stop=self._on_stop,
            run=self._run,
            paid=self._paid,
            log=self._log,
            run_cache=self._run_cache,
            lost_calls=self._lost_calls,
            shared=self._shared,
        )
        for role in self._roles.values():
            if role.recording is not None and role.recording not in self._recordings:
                self._recordings[role.recording] = Recording(role.recording, secrets=self._secrets())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for opened in self._open_roles.values():
            if isinstance(opened, EmbeddingRole):
                await opened.close()
            opened.caller.close()
        for recording in self._recordings.values():
            try:
                recording.close()
            except ConfigurationError as error_on_close:
                if self._context is not None:
                    self._context.report_issue(str(error_on_close))
        if self._context is not None:
            self._context.run_cache.close()
        closed: set[int] = set()
        for role in self._roles.values():
            close = getattr(role.client, "close", None)
            if callable(close) and id(role.client) not in closed:
                closed.add(id(role.client))
                ending = close()
                if inspect.isawaitable(ending):
                    await ending

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
        if self._context is not None and self._context.halted is None:
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
        return self._budget

    @property
    def exhausted(self) -> str | None:
        """Why the budget allows no more calls, or None."""
        return None if self._budget is None else self._budget.exhausted

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
        issues = [] if self._context is None else self._context.issues
        return ConfigurationError(issues) if issues else None

    @property
    def notes(self) -> list[str]:
        """What a person should know about the cache and the recordings."""
        notes = [] if self._cache is None else list(self._cache.notes)
        return notes + [note for recording in self._recordings.values() for note in recording.notes]

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
        if self._context is None:
            raise RuntimeError("The gateway is not open: use `async with Gateway(...) as gateway`.")
        message = missing_role_message(request.role, self._roles, embeds=not isinstance(request, Ask))
        self._context.report_issue(message)
        return NoAnswer(cause="not_run", message=message)

    def _open_role(self, name: str) -> ChatRole | EmbeddingRole | None:
        """Open a role when it is first asked: a model may have to read its weights to say what it is."""
        if name not in self._open_roles and name in self._roles and self._context is not None:
            self._open_roles[name] = self._build_role(name, self._roles[name], self._context)
        return self._open_roles.get(name)

    def _build_role(self, name: str, role: Role, context: CallContext) -> ChatRole | EmbeddingRole:
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
        limiter = None if self._shared is None else self._shared.limiter(name)
        calls: dict[str, Any] = {"circuit": circuit, "context": context, "limiter": limiter}
        if embeds:
            return EmbeddingRole(ModelCaller(role, method, read_vectors, **calls), access)
        return ChatRole(ModelCaller(role, method, read_answer, **calls), access)

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


async def _no_method(_: Any) -> None:
    """Stands in for the method of a missing client; the gateway never calls it."""
