"""The one door to models: every request of every script goes through it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import add
from types import TracebackType
from typing import Any, Self

from deemster.errors import ConfigurationError, Issue
from deemster.models._cache_keys import identity_prefix
from deemster.models._chat_role import ChatRole, read_answer
from deemster.models._embedding_role import EmbeddingRole, read_vectors
from deemster.models._record_replay import Recording
from deemster.models.answer_cache import Cache
from deemster.models.budget import Budget
from deemster.models.call_context import CallContext, PlannedCalls
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.clock import Clock, SystemClock
from deemster.models.model_call import ModelCaller
from deemster.models.model_roles import Role, missing_role_message
from deemster.models.rate_limiter import LimiterState
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Ask, NoAnswer, Reply, Request, Usage


class Gateway:
    """Answers rounds of requests: finds, deduplicates, batches, limits, retries, counts.

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
            this run. None for one that nobody resumes.
        paid: The calls of that run that the budget counts already.

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
    ) -> None:
        self._roles = dict(roles)
        self._cache, self._budget = cache, budget
        self._clock: Clock = clock or SystemClock()
        self._seed, self._offline, self._dry_run, self._on_stop = seed, offline, dry_run, on_stop
        self._run, self._paid = run, paid
        self._desks: dict[str, ChatRole | EmbeddingRole] = {}
        self._recordings: dict[str, Recording] = {}
        self._circuits: dict[str, CircuitBreaker] = {}
        self._rules: CallContext | None = None
        if budget is not None and budget.usd is not None and not dry_run:
            self._require_prices()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        elapsed_s: Callable[[], Any] = self._clock.elapsed_s
        measures = elapsed_s() is not None
        self._rules = CallContext(
            cache=self._cache,
            budget=self._budget,
            elapsed_s=elapsed_s if measures else loop.time,
            sleep=self._clock.sleep,
            measures=measures,
            seed=self._seed,
            offline=self._offline,
            dry_run=self._dry_run,
            on_stop=self._on_stop,
            run=self._run,
            paid=self._paid,
        )
        for role in self._roles.values():
            if role.recording is not None and role.recording not in self._recordings:
                self._recordings[role.recording] = Recording(role.recording, secrets=self._secrets())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for desk in self._desks.values():
            if isinstance(desk, EmbeddingRole):
                await desk.close()
            desk.caller.close()
        for recording in self._recordings.values():
            try:
                recording.close()
            except ConfigurationError as failure:
                if self._rules is not None:
                    self._rules.refuse(str(failure))
        if self._rules is not None:
            self._rules.scratch.close()
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
        if self._rules is not None and self._rules.halted is None:
            self._rules.halted = reason
            for desk in self._desks.values():
                desk.caller.limiter.open()

    def pools(self, scorer: Any) -> bool:
        """Whether a scorer that can mark a batch with one script may do so.

        One that asks for vectors which somebody pays for may not: each mark should carry what its own texts used, and
        texts of all scripts go together in any case.

        Args:
            scorer: A scorer.
        """
        roles = [self._roles.get(name) for name in getattr(scorer, "roles", ())]
        return not any(role is not None and role.kind == "embedding" and not role.is_local for role in roles)

    @property
    def spent(self) -> dict[str, Usage | None]:
        """What each role that was asked has used so far; None where no call brought anything. Safe in any thread."""
        return {name: desk.caller.account.total for name, desk in tuple(self._desks.items())}

    @property
    def planned(self) -> dict[str, PlannedCalls]:
        """What a dry run would have sent, by the roles it asked.

        A script goes no further than its first round without an answer, so what later rounds would ask is not in it.
        """
        return {name: desk.planned for name, desk in self._desks.items()}

    @property
    def budget(self) -> Budget | None:
        """What may be spent, and how much of it is; None for no limit."""
        return self._budget

    @property
    def exhausted(self) -> str | None:
        """Why the budget allows no more calls, or None."""
        return None if self._budget is None else self._budget.exhausted

    @property
    def held_back(self) -> str | None:
        """Why calls were not made although the budget allowed them: an endpoint that did not answer; or None."""
        return next((circuit.opened for circuit in self._circuits.values() if circuit.opened is not None), None)

    @property
    def configuration_error(self) -> ConfigurationError | None:
        """The requests that could not be made because of how the run is set up, such as those not recorded; or None.

        Whoever runs the scripts raises it when the run is over: a script would take it for a failure of its own.
        """
        issues = [] if self._rules is None else self._rules.issues
        return ConfigurationError(issues) if issues else None

    @property
    def notes(self) -> list[str]:
        """What a person should know about the cache and the recordings."""
        every = [] if self._cache is None else list(self._cache.notes)
        return every + [note for recording in self._recordings.values() for note in recording.notes]

    def limits(self) -> Mapping[str, LimiterState]:
        """The limits of the moment, of the roles that were asked. Safe in any thread."""
        return {name: desk.caller.limiter.live for name, desk in tuple(self._desks.items())}

    def _reply(self, request: Request) -> Awaitable[Reply]:
        desk = self._desks.get(request.role) or self._desk(request.role)
        if isinstance(request, Ask):
            if isinstance(desk, ChatRole):
                return desk.reply(request)
        elif isinstance(desk, EmbeddingRole):
            return desk.reply(request)
        return self._misdirected(request)

    async def _misdirected(self, request: Request) -> NoAnswer:
        if self._rules is None:
            raise RuntimeError("The gateway is not open: use `async with Gateway(...) as gateway`.")
        message = missing_role_message(request.role, self._roles, embeds=not isinstance(request, Ask))
        self._rules.refuse(message)
        return NoAnswer(cause="not_run", message=message)

    def _desk(self, name: str) -> ChatRole | EmbeddingRole | None:
        """The desk of a role, made when it is first asked: a model may read its weights to say what it is."""
        if name not in self._desks and name in self._roles and self._rules is not None:
            self._desks[name] = self._made(name, self._roles[name], self._rules)
        return self._desks.get(name)

    def _made(self, name: str, role: Role, rules: CallContext) -> ChatRole | EmbeddingRole:
        recording = None if role.recording is None else self._recordings[role.recording]
        identity = role.identity
        endpoint = str((identity or {}).get("base_url") or f"`{name}`")
        circuit = self._circuits.setdefault(endpoint, CircuitBreaker(endpoint))
        try:
            # Without an identity, nobody knows what else changes the answer.
            prefix = identity_prefix({"role": name} if identity is None else identity)
        except (TypeError, ValueError):
            rules.refuse(f"The `identity` of the client of `models.{name}` holds what is not JSON.")
            identity, prefix = None, identity_prefix({"role": name})
        may_call = role.client is not None and (role.is_local or not rules.offline)
        if role.kind == "chat":
            method = getattr(role.client, "complete", None) or _nothing
            return ChatRole(
                name,
                ModelCaller(role, method, read_answer, circuit=circuit, rules=rules),
                prefix=prefix,
                is_cached=identity is not None,
                may_call=may_call,
                recording=recording,
                rules=rules,
            )
        method = getattr(role.client, "embed_many", None) or _nothing
        return EmbeddingRole(
            name,
            ModelCaller(role, method, read_vectors, circuit=circuit, rules=rules),
            prefix=prefix,
            is_cached=identity is not None and not role.is_local,
            may_call=may_call,
            recording=recording,
            rules=rules,
        )

    def _secrets(self) -> Secrets:
        """Those of every role: an answer of one may quote another's."""
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


async def _nothing(_: Any) -> None:
    """Stands in for the method of a client that is not there; it is never called."""
