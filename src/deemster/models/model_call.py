"""One call of a role to its model: rate limit, circuit breaker, budget, attempts, timeouts, usage and cost."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec.structs import force_setattr

from deemster.errors.user_code_guard import UserCodeGuard
from deemster.models.budget import UsageBound
from deemster.models.call_context import CallContext, PlannedCalls, UsageTotal
from deemster.models.call_log import LoggedCall
from deemster.models.call_usage import NOTHING, budget_use, plausible_usage
from deemster.models.circuit_breaker import CircuitBreaker
from deemster.models.model_client import FailureKind, ModelFailure
from deemster.models.model_roles import Role
from deemster.models.rate_limiter import RateLimiter
from deemster.models.retry_policy import Attempts, GiveUp, Retry
from deemster.models.secret_redaction import Secrets
from deemster.models.shared_calls import CallLimiter
from deemster.models.worker_threads import WorkerThreads
from deemster.records import NoAnswer, Usage
from deemster.records.usage import count_tokens, sum_usage

_V = TypeVar("_V")
# Keeps an answer and gives it as it is kept.
Keep: TypeAlias = "Callable[[CallAnswer[_V]], Awaitable[CallAnswer[_V]]]"
# These statuses complain about what the request holds; they say nothing about the endpoint.
REQUEST_FAULTS = frozenset({400, 413, 422})


class ClientResult(msgspec.Struct, Generic[_V], frozen=True, gc=False):
    """What a client returned, checked."""

    value: _V
    usage: Usage | None
    model: str | None


class CallAnswer(msgspec.Struct, Generic[_V], frozen=True, gc=False):
    """A call that was answered, what it used, and what that takes from a budget."""

    value: _V
    usage: Usage
    counted: UsageBound
    call_id: int


class CallFailure(NamedTuple):
    """A call that was not answered, and how its last attempt failed, where there was one."""

    no_answer: NoAnswer
    failure: ModelFailure | None = None


class RequestSize(NamedTuple):
    """How many tokens a request may take.

    Attributes:
        prompt: Tokens sent, by estimate.
        completion: Tokens received, at most.
        most: Tokens sent, at most.
    """

    prompt: int = 0
    completion: int = 0
    most: int = 0


NO_SIZE = RequestSize()
DRY_RUN = NoAnswer(cause="not_run", message="This is a dry run: no model is asked.")
_ONE_CALL = Usage()


class ModelCaller(Generic[_V]):
    """Makes the calls of one role.

    Args:
        role: The model and its settings.
        method: The client's method.
        read: Checks what the method returned for a request, or raises a failure of the kind `shape`.
        measure: How many tokens a request may take; none where it takes no model's tokens.
        circuit: The circuit breaker of its endpoint.
        context: What the calls of the gateway share.
        limiter: A rate limiter that it shares with other processes; one of its own unless given.

    Attributes:
        usage: What its calls have used.
        planned: What a dry run would have sent.
        limiter: Its rate limiter.
        measure: How many tokens a request may take.
        needs_size: Whether limits, a budget or the log of the run count the tokens of requests.
        logs_calls: Whether its calls are kept in the log of the run.
    """

    def __init__(
        self,
        role: Role,
        method: Callable[[Any], Any],
        read: Callable[[Any, Any], ClientResult[_V]],
        *,
        measure: Callable[[Any], RequestSize] = lambda _: NO_SIZE,
        circuit: CircuitBreaker,
        context: CallContext,
        limiter: CallLimiter | None = None,
    ) -> None:
        self.role = role
        self.usage = UsageTotal()
        self.planned = PlannedCalls()
        low, high = role.bounds
        self.limiter: CallLimiter = limiter or RateLimiter(
            low, high, rpm=role.rpm, tpm=role.tpm, elapsed_s=context.elapsed_s, sleep=context.sleep
        )

        self._read = read
        self.measure = measure
        self._circuit = circuit
        self._context = context

        self._policy = role.policy
        self._secrets = role.secrets
        self._prices = role.price_table
        self._highest_price = self._prices.highest()
        self._embeds = role.kind == "embedding"

        # Vectors of a model of this process are made again faster than they are read.
        self.logs_calls = context.log is not None and not (self._embeds and role.is_local)
        self.needs_size = self.limiter.counts_tokens or context.budget is not None or self.logs_calls

        self._threads: WorkerThreads | None = None
        self._send = method if inspect.iscoroutinefunction(method) else self._in_thread(method, high)

    async def call(self, payload: Any, *, key: bytes, keep: Keep[_V] | None = None) -> CallAnswer[_V] | CallFailure:
        """Make one call, with as many attempts as the role's settings allow.

        Args:
            payload: What the client's method is given.
            key: The hash of the request.
            keep: Keeps the answer; until it returns, the request counts as under way.
        """
        context = self._context
        call = _Call(Attempts(self._policy, seed=context.seed, key=key), context.new_call_id())
        if (lost := context.lost_calls.pop(key, None)) is not None:
            call.continue_from(lost)
        bound = NOTHING

        try:
            while True:
                if self.needs_size:
                    # Measured for each attempt: a client may have learned that its model needs more tokens.
                    call.size = self.measure(payload)
                    bound = self._usage_bound(call.size)
                step = await self._attempt_within_budget(payload, call, bound, keep)
                if not isinstance(step, Retry):
                    return step
                if context.halted is not None:
                    return self._end_unsent(call)
                await context.sleep(step.wait_s)
        finally:
            # What was paid for no answer is kept too, also where the run stops before the reply comes.
            if not call.is_answered and call.has_used and self.logs_calls:
                usage = None if self._embeds else sum_usage(call.failed_usage)
                context.keep_call(LoggedCall(id=call.id, key=key, counted=call.counted, usage=usage))

    def plan(self, payload: Any) -> None:
        """Count a call that a dry run does not make."""
        size = self.measure(payload)
        self.planned.add(size.prompt, size.completion, self._prices.find(self.role.model))

    def close(self) -> None:
        """Let go of threads and timers."""
        self.limiter.close()
        if self._threads is not None:
            self._threads.close()

    async def _attempt_within_budget(
        self, payload: Any, call: _Call, bound: UsageBound, keep: Keep[_V] | None
    ) -> CallAnswer[_V] | CallFailure | Retry:
        budget = self._context.budget
        if budget is not None and not await budget.reserve(bound):
            reason = budget.exhausted or ""
            self._context.stop(reason)
            return self._end(call, "not_run", reason)

        call.used = NOTHING
        try:
            return await self._attempt(payload, call, bound, keep)
        finally:
            call.count()
            if budget is not None:
                budget.settle(bound, call.used)

    async def _attempt(
        self, payload: Any, call: _Call, bound: UsageBound, keep: Keep[_V] | None
    ) -> CallAnswer[_V] | CallFailure | Retry:
        attempt = await self._enter(call, bound)
        try:
            if not self._may_send(attempt):
                return self._end_unsent(call)

            # Until the reply says otherwise, a request that is on its way may use the most.
            call.used = bound
            attempt.unused_tokens = 0
            result = await self._send_in_time(payload, attempt)

            if isinstance(result, ModelFailure):
                return self._after_failure(result, call, attempt)
            answer = self._after_success(result, call, attempt)
            return answer if keep is None else await keep(answer)
        finally:
            self.limiter.leave(attempt.unused_tokens)

    async def _enter(self, call: _Call, bound: UsageBound) -> _Attempt:
        """Wait for room in the limiter, and see how much time is left then."""
        limiter = self.limiter
        tokens = call.size.prompt + call.size.completion
        # Mostly the limiter has room, and `try_enter` takes a fraction of the time of `enter`.
        if limiter.try_enter(tokens):
            reductions = limiter.reductions
        else:
            reductions = await limiter.enter(tokens, first=call.started is None)

        now = self._context.elapsed_s()
        if call.started is None:
            call.started = now
        timeout_s = call.attempts.attempt_timeout_s(now - call.started)
        return _Attempt(
            bound=bound,
            tokens=tokens,
            reductions=reductions,
            started=now,
            timeout_s=timeout_s,
            is_probe=self._circuit.is_open,
            unused_tokens=tokens,
        )

    def _may_send(self, attempt: _Attempt) -> bool:
        if self._context.halted is not None or attempt.timeout_s <= 0:
            return False
        return not attempt.is_probe or self._circuit.allows(attempt.started)

    async def _send_in_time(self, payload: Any, attempt: _Attempt) -> ClientResult[_V] | ModelFailure:
        guard = UserCodeGuard()
        limit = asyncio.timeout(attempt.timeout_s)
        result: ClientResult[_V] | None = None
        try:
            with guard:
                async with limit:
                    result = self._read(await self._send(payload), payload)
        finally:
            # A call that is cancelled says nothing about the endpoint.
            if attempt.is_probe and result is None and guard.error is None:
                self._circuit.end_probe(attempt.started)

        if result is not None:
            return result
        failure = _as_failure(guard.error, self._secrets)
        if limit.expired():
            return ModelFailure("transport", f"No reply came within {attempt.timeout_s:g} s.", may_cost=True)
        return failure

    def _after_success(self, result: ClientResult[_V], call: _Call, attempt: _Attempt) -> CallAnswer[_V]:
        self._circuit.record_success()
        self.limiter.record_answer()

        latency_ms = None
        if self._context.measures_time:
            latency_ms = max((self._context.elapsed_s() - attempt.started) * 1000, 0.0)
        usage = self._complete_usage(result.usage, result.model or self.role.model, latency_ms)
        if self.needs_size:
            call.used = budget_use(usage, attempt.bound)
            attempt.unused_tokens = attempt.tokens - count_tokens(usage, attempt.tokens)

        total = usage
        if call.failed_usage:
            total = sum_usage([*call.failed_usage, usage]) or usage
        self.usage.add(total)

        call.is_answered = True
        counted = NOTHING if call.used is NOTHING else call.counted.plus(call.used)
        return CallAnswer(result.value, total, counted, call.id)

    def _after_failure(self, failure: ModelFailure, call: _Call, attempt: _Attempt) -> CallFailure | Retry:
        call.failure = failure
        if failure.may_cost:
            usage = self._complete_usage(failure.usage, self.role.model, None)
            call.failed_usage.append(usage)
            call.used = budget_use(usage, attempt.bound)
        else:
            call.used = NOTHING

        now = self._context.elapsed_s()
        step = call.attempts.next_step(failure, elapsed_s=0.0 if call.started is None else now - call.started)
        if failure.kind == "limited":
            self.limiter.record_limit(attempt.reductions, wait_s=step.wait_s if isinstance(step, Retry) else 0.0)
        elif failure.kind == "local":
            self.limiter.record_exhaustion(attempt.reductions)
        if isinstance(step, Retry) and not attempt.is_probe:
            return step

        if failure.kind in ("limited", "local") or failure.status in REQUEST_FAULTS:
            if attempt.is_probe:
                self._circuit.end_probe(now)
        else:
            self._circuit.record_failure(failure.message, now)
        last = step if isinstance(step, GiveUp) else call.attempts.give_up(failure)
        return self._end(call, last.cause, last.message)

    def _end_unsent(self, call: _Call) -> CallFailure:
        """End a call that may not be sent, or not again."""
        if call.failure is not None:
            last = call.attempts.give_up(call.failure)
            return self._end(call, last.cause, last.message)
        return self._end(call, "not_run", self._context.halted or self._circuit.message)

    def _end(self, call: _Call, cause: Any, message: str) -> CallFailure:
        usage = sum_usage(call.failed_usage)
        self.usage.add(usage)
        call_id = 0 if usage is None else call.id
        return CallFailure(NoAnswer(cause=cause, message=message, usage=usage, call_id=call_id), call.failure)

    def _usage_bound(self, size: RequestSize) -> UsageBound:
        """The most a request may use, which is an estimate until the reply comes."""
        price = self._highest_price
        tokens = size.most + size.completion
        usd = NOTHING.usd if price is None else price.cost(size.most, size.completion)
        return UsageBound(tokens, usd, tokens, usd)

    def _complete_usage(self, reported: Usage | None, model: str | None, latency_ms: float | None) -> Usage:
        """What one attempt used: what the client reports, and what it leaves open filled in."""
        usage = copy(_ONE_CALL if reported is None else plausible_usage(reported))

        # The values are ours, so that the record need not check itself again.
        if (name := usage.model or model) is not None:
            force_setattr(usage, "model", self._secrets.redact(name))
        if usage.latency_ms is None:
            force_setattr(usage, "latency_ms", latency_ms)
        if usage.cost_usd is None and (cost := self._prices.cost_of(usage, embeds=self._embeds)) is not None:
            force_setattr(usage, "cost_usd", cost)
            force_setattr(usage, "cost_source", "derived")
        return usage

    def _in_thread(self, method: Callable[[Any], Any], workers: int) -> Callable[[Any], Awaitable[Any]]:
        """A method that is not a coroutine, run in threads of the role's own."""
        self._threads = threads = WorkerThreads("deemster-model", at_once=workers)

        async def send(payload: Any) -> Any:
            result = await threads.call(method, payload)
            return await result if inspect.isawaitable(result) else result

        return send


class _Call:
    """The state of one call between its attempts."""

    __slots__ = (
        "attempts",
        "counted",
        "failed_usage",
        "failure",
        "has_used",
        "id",
        "is_answered",
        "size",
        "started",
        "used",
    )

    def __init__(self, attempts: Attempts, call_id: int) -> None:
        self.attempts = attempts
        self.size = NO_SIZE
        self.id = call_id
        self.started: float | None = None
        self.failure: ModelFailure | None = None
        self.failed_usage: list[Usage] = []
        self.used = NOTHING
        self.counted = NOTHING
        self.has_used = False
        self.is_answered = False

    def continue_from(self, lost: LoggedCall) -> None:
        """Continue a call that an earlier process of the run paid for without an answer."""
        self.id = lost.id
        self.counted = lost.counted
        if lost.usage is not None:
            self.failed_usage.append(lost.usage)

    def count(self) -> None:
        """Count what the last attempt used."""
        if self.used is not NOTHING:
            self.has_used = True
            self.counted = self.counted.plus(self.used)


class _Attempt(msgspec.Struct, gc=False):
    """One attempt of a call, from its place in the limiter on.

    Attributes:
        bound: The most it may use.
        tokens: What it entered the limiter with.
        reductions: How often the limiter had been lowered by then.
        started: When it came to its place.
        timeout_s: How long it may take.
        is_probe: Whether it tries an endpoint whose circuit breaker is open.
        unused_tokens: What the limiter is given back.
    """

    bound: UsageBound
    tokens: int
    reductions: int
    started: float
    timeout_s: float
    is_probe: bool
    unused_tokens: float


def _as_failure(error: BaseException | None, secrets: Secrets) -> ModelFailure:
    """Any error that a client raised, as a failure."""
    if isinstance(error, ModelFailure):
        error.message = secrets.redact(error.message)
        return error
    if isinstance(error, asyncio.CancelledError):
        return ModelFailure("transport", "The client cancelled the request itself.", may_cost=True)
    if isinstance(error, TimeoutError):
        return ModelFailure("transport", "No reply came in time.", may_cost=True)
    kind: FailureKind = "transport" if isinstance(error, OSError) else "refused"
    return ModelFailure(kind, f"{type(error).__name__}: {_error_text(error)}", secrets=secrets)


def _error_text(error: BaseException | None) -> str:
    if error is None:
        return "(no message)"
    parts = [part for part in error.args[:3] if isinstance(part, (str, int, float))]
    return ", ".join(part if isinstance(part, str) else repr(part) for part in parts) or "(no message)"
