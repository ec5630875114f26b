"""One role's way to its model: limits, circuit, budget, attempts, time-outs, usage and cost."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from decimal import Decimal
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from deemster.errors.user_code_guard import Caught
from deemster.models.budget import UsageBound
from deemster.models.call_context import CallContext, UsageTotal
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.model_client import FailureKind, ModelFailure
from deemster.models.model_roles import Role
from deemster.models.rate_limiter import RateLimiter
from deemster.models.retry_policy import Attempts, GiveUp, Retry
from deemster.models.secret_redaction import Secrets
from deemster.models.worker_threads import WorkerThreads
from deemster.records import NoAnswer, Usage
from deemster.records.usage import added, tokens_of

_V = TypeVar("_V")
# What these statuses complain about is in the request; they say nothing about the endpoint.
REQUEST_FAULTS = frozenset({400, 413, 422})
# Far above what any one call uses; sums of what is below can be written and divided exactly.
_MOST_COUNT, _MOST_USD = 10**12, Decimal(10**9)
_COUNTED = attrgetter(
    "calls",
    "cached_calls",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_tokens",
)


class ClientResult(msgspec.Struct, Generic[_V], frozen=True, gc=False):
    """What a client gave back, read."""

    value: _V
    usage: Usage | None
    model: str | None


class CallAnswer(msgspec.Struct, Generic[_V], frozen=True, gc=False):
    """A call that was answered, and what it used."""

    value: _V
    usage: Usage


class CallFailure(NamedTuple):
    """A call that was not, and what its last attempt came to, where there was one."""

    no_answer: NoAnswer
    failure: ModelFailure | None = None


class RequestSize(NamedTuple):
    """How heavy a request is.

    Attributes:
        prompt: Tokens sent, by estimate.
        completion: Tokens received, at most.
        most: Tokens sent, at most.
    """

    prompt: int = 0
    completion: int = 0
    most: int = 0


NO_SIZE = RequestSize()
NOTHING = UsageBound()
_ONE_CALL = Usage()


def _is_the_clients_own() -> bool:
    """Whether a cancellation comes from inside the client: nobody asked this task to end."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


def _failure(error: BaseException | None, secrets: Secrets) -> ModelFailure:
    """Whatever a client raised, as failure."""
    if isinstance(error, ModelFailure):
        error.message = secrets.removed(error.message)
        return error
    if isinstance(error, TimeoutError):
        return ModelFailure("transport", "No reply came in time.", may_cost=True)
    kind: FailureKind = "transport" if isinstance(error, OSError) else "refused"
    return ModelFailure(kind, f"{type(error).__name__}: {_text(error)}", secrets=secrets)


def _text(error: BaseException | None) -> str:
    if error is None:
        return "(no message)"
    shown = ", ".join(part if isinstance(part, str) else repr(part) for part in error.args[:3] if _is_plain(part))
    return shown or "(no message)"


def _is_plain(part: object) -> bool:
    return isinstance(part, (str, int, float))


class ModelCaller(Generic[_V]):
    """Makes the calls of one role.

    Args:
        role: The model and its settings.
        method: The client's method.
        read: Reads what the method gave for a request, or raises failure of the kind `shape`.
        circuit: The circuit of its endpoint.
        rules: What the gateway's desks share.

    Attributes:
        account: What its calls have used.
        limiter: Its limits.
        weighs: Whether the weight of requests matters.
    """

    def __init__(
        self,
        role: Role,
        method: Callable[[Any], Any],
        read: Callable[[Any, Any], ClientResult[_V]],
        *,
        circuit: CircuitBreaker,
        rules: CallContext,
    ) -> None:
        self.role = role
        self.account = UsageTotal()
        low, high = role.bounds
        self.limiter = RateLimiter(low, high, rpm=role.rpm, tpm=role.tpm, elapsed_s=rules.elapsed_s, sleep=rules.sleep)
        self._read, self._circuit, self._rules = read, circuit, rules
        self._policy = role.policy
        self._secrets = role.secrets
        self._prices = role.price_table
        self._dearest = self._prices.dearest()
        self._embeds = role.kind == "embedding"
        self.weighs = self.limiter.counts_tokens or rules.budget is not None
        self._threads: WorkerThreads | None = None
        self._send = method if inspect.iscoroutinefunction(method) else self._threaded(method, high)

    def most(self, weight: RequestSize) -> UsageBound:
        """The most a request may use."""
        usd = NOTHING.usd if self._dearest is None else self._dearest.of(weight.most, weight.completion)
        return UsageBound(weight.most + weight.completion, usd)

    async def call(self, payload: Any, *, key: bytes, weight: RequestSize = NO_SIZE) -> CallAnswer[_V] | CallFailure:
        """Make one call, with as many attempts as the role's settings allow.

        Args:
            payload: What the client's method is given.
            key: The request's name.
            weight: How heavy it is.
        """
        budget = self._rules.budget
        most = NOTHING if budget is None else self.most(weight)
        call = _Call(Attempts(self._policy, seed=self._rules.seed, key=key), weight)
        while True:
            if budget is not None and not await budget.reserve(most):
                self._rules.stop(budget.exhausted or "")
                return self._failed(call, "not_run", budget.exhausted or "")
            call.used = NOTHING
            try:
                step = await self._attempted(payload, call, most)
            finally:
                if budget is not None:
                    budget.settle(most, call.used)
            if not isinstance(step, Retry):
                return step
            if self._rules.halted is not None:
                return self._held_back(call)
            await self._rules.sleep(step.wait_s)

    async def _attempted(self, payload: Any, call: _Call, most: UsageBound) -> CallAnswer[_V] | CallFailure | Retry:
        rules = self._rules
        tokens = call.weight.prompt + call.weight.completion
        limiter = self.limiter
        # Mostly there is room, and asking for it takes a fraction of waiting for it.
        entered = limiter.moment if limiter.admits(tokens) else await limiter.enter(tokens, first=call.started is None)
        unused: float = tokens
        try:
            now = rules.elapsed_s()
            if call.started is None:
                call.started = now
            left_s = call.tries.left_s(now - call.started)
            is_probe = self._circuit.is_open
            if rules.halted is not None or left_s <= 0 or (is_probe and not self._circuit.admits(now)):
                return self._held_back(call)
            # Until the reply says otherwise, what is on its way may use the most.
            call.used, unused = most, 0
            is_settled = False
            try:
                reply = await self._sent(payload, left_s)
                is_settled = True
            finally:
                if is_probe and not is_settled:
                    self._circuit.undecided(now)
            if isinstance(reply, ModelFailure):
                return self._on_failure(reply, call, entered, most, is_probe=is_probe)
            self._circuit.succeeded()
            limiter.answered()
            latency_ms = max((rules.elapsed_s() - now) * 1000, 0.0) if rules.measures else None
            usage = self._usage(reply.usage, reply.model or self.role.model, latency_ms)
            if self.weighs:
                call.used = _used(usage, most)
                unused = tokens - tokens_of(usage, tokens)
            total = (added([*call.spent, usage]) or usage) if call.spent else usage
            self.account.add(total)
            return CallAnswer(reply.value, total)
        finally:
            limiter.leave(unused)

    def _held_back(self, call: _Call) -> CallFailure:
        """The end of a call that may not be sent, or not again."""
        if call.failure is not None:
            return self._ended(call, call.tries.given_up(call.failure))
        return self._failed(call, "not_run", self._rules.halted or self._circuit.message)

    async def _sent(self, payload: Any, timeout_s: float) -> ClientResult[_V] | ModelFailure:
        limit = asyncio.timeout(timeout_s)
        with Caught() as caught:
            async with limit:
                try:
                    return self._read(await self._send(payload), payload)
                except asyncio.CancelledError:
                    if not _is_the_clients_own():
                        raise
                    return ModelFailure("transport", "The client cancelled the request itself.", may_cost=True)
        if limit.expired():
            return ModelFailure("transport", f"No reply came within {timeout_s:g} s.", may_cost=True)
        return _failure(caught.error, self._secrets)

    def _on_failure(
        self, failure: ModelFailure, call: _Call, entered: int, most: UsageBound, *, is_probe: bool
    ) -> CallFailure | Retry:
        call.failure = failure
        if failure.may_cost:
            usage = self._usage(failure.usage, self.role.model, None)
            call.spent.append(usage)
            call.used = _used(usage, most)
        else:
            call.used = NOTHING
        now = self._rules.elapsed_s()
        step = call.tries.after(failure, elapsed_s=0.0 if call.started is None else now - call.started)
        if failure.kind == "limited":
            self.limiter.slowed(entered, wait_s=step.wait_s if isinstance(step, Retry) else 0.0)
        if isinstance(step, Retry) and not is_probe:
            return step
        if failure.kind == "limited" or failure.status in REQUEST_FAULTS:
            if is_probe:
                self._circuit.undecided(now)
        else:
            self._circuit.failed(failure.message, now)
        return self._ended(call, step if isinstance(step, GiveUp) else call.tries.given_up(failure))

    def _usage(self, told: Usage | None, model: str | None, latency_ms: float | None) -> Usage:
        """What one attempt used: what the client tells, and what it leaves open filled in."""
        usage = _ONE_CALL if told is None else plausible_usage(told)
        changes: dict[str, Any] = {}
        named = model if usage.model is None else usage.model
        if named is not None and (shown := self._secrets.removed(named)) != usage.model:
            changes["model"] = shown
        if usage.latency_ms is None and latency_ms is not None:
            changes["latency_ms"] = latency_ms
        if usage.cost_usd is None and self._prices:
            cost = self._prices.cost_of(usage, model=model, embeds=self._embeds)
            if cost is not None:
                changes |= {"cost_usd": cost, "cost_source": "derived"}
        return msgspec.structs.replace(usage, **changes) if changes else usage

    def _ended(self, call: _Call, enough: GiveUp) -> CallFailure:
        return self._failed(call, enough.cause, enough.message)

    def _failed(self, call: _Call, cause: Any, message: str) -> CallFailure:
        usage = added(call.spent)
        self.account.add(usage)
        return CallFailure(NoAnswer(cause=cause, message=message, usage=usage), call.failure)

    def _threaded(self, method: Callable[[Any], Any], workers: int) -> Callable[[Any], Awaitable[Any]]:
        """A method that is not a coroutine, run in threads of the role's own."""
        self._threads = threads = WorkerThreads("deemster-model", at_once=workers)

        async def send(payload: Any) -> Any:
            found = await threads.call(method, payload)
            return await found if inspect.isawaitable(found) else found

        return send

    def close(self) -> None:
        """Let go of threads and timers."""
        self.limiter.close()
        if self._threads is not None:
            self._threads.close()


class _Call:
    """What one call has come to so far."""

    __slots__ = ("failure", "spent", "started", "tries", "used", "weight")

    def __init__(self, tries: Attempts, weight: RequestSize) -> None:
        self.tries = tries
        self.weight = weight
        self.started: float | None = None
        self.failure: ModelFailure | None = None
        self.spent: list[Usage] = []
        self.used = NOTHING


def check_usage(told: Any) -> None:
    """Look whether what a client says beside its answer can be counted.

    Args:
        told: Something with a usage and a model.

    Raises:
        ModelFailure: The usage is none, or the model is no text.
    """
    usage, model = told.usage, told.model
    if usage is not None and not isinstance(usage, Usage):
        message = f"`usage` of {type(told).__name__} is a Usage, not a {type(usage).__name__}."
        raise ModelFailure("shape", message, may_cost=True)
    if model is not None and not isinstance(model, str):
        message = f"`model` of {type(told).__name__} is text, not a {type(model).__name__}."
        raise ModelFailure("shape", message, may_cost=True)


def plausible_usage(usage: Usage) -> Usage:
    """A usage as it was told; one that no call can have had is no reported one.

    >>> believed(Usage(prompt_tokens=10**30, model="m")).prompt_tokens is None
    True
    """
    if max(filter(None, _COUNTED(usage)), default=0) <= _MOST_COUNT and (usage.cost_usd or 0) <= _MOST_USD:
        return usage
    return Usage(model=usage.model, latency_ms=usage.latency_ms)


def _used(usage: Usage, most: UsageBound) -> UsageBound:
    """What a usage takes from a budget; what it does not know counts at the most."""
    return UsageBound(tokens_of(usage, most.tokens), most.usd if usage.cost_usd is None else usage.cost_usd)
