"""A role that chats: answers from its recording, the cache or the model, each question once at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from deemster.formats.json_values import SURROGATE
from deemster.models._record_replay import describe_request
from deemster.models.answer_cache import ask_key
from deemster.models.call_context import RoleAccess
from deemster.models.call_log import LoggedCall
from deemster.models.call_usage import check_usage
from deemster.models.model_call import DRY_RUN, CallAnswer, ClientResult, ModelCaller, RequestSize
from deemster.models.model_client import ModelFailure
from deemster.models.secret_redaction import redact_answer
from deemster.models.shared_calls import SharedCalls
from deemster.records import Answer, Ask, Call, NoAnswer
from deemster.records.usage import cached_usage

# An answer without a length limit counts as this many tokens in budgets and dry runs.
UNLIMITED_TOKENS = 32_768
# Tokens that a provider adds to each message for roles and turns, at most.
_PER_MESSAGE = 16
_encode = msgspec.json.Encoder().encode


def read_answer(raw: Any, ask: Ask) -> ClientResult[Answer]:  # noqa: ARG001 - every reader is given the request
    """Check what a chat client returned.

    Raises:
        ModelFailure: It is not an ``Answer``.
    """
    if not isinstance(raw, Answer) or not isinstance(text := raw.text, str):
        raise ModelFailure("shape", f"`complete` gives an Answer, not a {type(raw).__name__}.", may_cost=True)
    check_usage(raw)
    if not text.isascii() and SURROGATE.search(text):
        raw = msgspec.structs.replace(raw, text=SURROGATE.sub("\ufffd", text))
    return ClientResult(raw, raw.usage, raw.model)


def _is_clean(client: Any) -> bool:
    """Whether a client says that its answers hold no secret. A subclass with its own `complete` must say so itself."""
    own: Mapping[str, Any] = next((vars(kind) for kind in type(client).__mro__ if "complete" in vars(kind)), {})
    return own.get("is_clean") is True


class ChatRole:
    """Answers the questions to one role from its recording, the cache, or the model.

    A question that is under way is not asked again: all who ask it share the reply.

    Args:
        caller: Makes its calls.
        access: Where replies may come from.
    """

    def __init__(self, caller: ModelCaller[Answer], access: RoleAccess) -> None:
        self.caller = caller
        self._access, self._context = access, access.context
        self._planned_keys: set[bytes] = set()
        # What many scripts ask alike, such as the steps of a metric, is asked once a run even without a cache file.
        kept = self._context.cache if access.is_cached else None
        self._cache = self._context.run_cache if kept is None else kept
        self._is_filed = kept is not None
        self._secrets = caller.role.hidden if _is_clean(caller.role.client) else caller.role.secrets
        self._under_way: dict[bytes, list[asyncio.Future[Answer | NoAnswer | None]]] = {}

    async def reply(self, ask: Ask) -> Answer | NoAnswer:
        """The answer to a question, or why there is none.

        Args:
            ask: The question.
        """
        if ask.again > 1 and not self._access.may_call:
            # The model cannot be asked anew, so only answers to the first two requests can be found.
            ask = msgspec.structs.replace(ask, again=ask.again % 2)
        try:
            key = ask_key(self._access.prefix, ask)
        except UnicodeEncodeError:
            return NoAnswer(cause="model_failed", message="The question holds a lone surrogate, which is no character.")
        while (waiting := self._under_way.get(key)) is not None:
            waiter: asyncio.Future[Answer | NoAnswer | None] = asyncio.get_running_loop().create_future()
            waiting.append(waiter)
            # None comes where the first to ask was cancelled: then another must ask.
            if (found := await waiter) is not None:
                return self._share(found)
        if (known := self._known_reply(ask, key)) is not None:
            return known
        waiters = self._under_way[key] = []
        reply: Answer | NoAnswer | None = None
        try:
            shared = self._context.shared
            reply = await self._ask(ask, key) if shared is None else await self._ask_or_share(ask, key, shared)
            return reply
        finally:
            del self._under_way[key]
            for each in waiters:
                if not each.done():
                    each.set_result(reply)

    async def _ask(self, ask: Ask, key: bytes) -> Answer | NoAnswer:
        """Ask the model."""
        done = await self.caller.call(ask, key=key, keep=partial(self._keep, ask, key))
        return done.value if isinstance(done, CallAnswer) else done.no_answer

    async def _ask_or_share(self, ask: Ask, key: bytes, shared: SharedCalls) -> Answer | NoAnswer:
        """Take the answer that another process of the run has, or ask the model for all of them."""
        claim = await shared.claim(key)
        if claim.answer is not None:
            if claim.is_paid:
                self._context.note_paid(claim.answer.call)
            if key not in self._cache:
                self._cache.keep(key, claim.answer)
            return self._hit(claim.answer, self._context.own_call(key, claim.answer.call, claim.answer.usage))
        if claim.lost is not None:
            self._context.lost_calls[key] = claim.lost
        reply: Answer | NoAnswer | None = None
        try:
            reply = await self._ask(ask, key)
            return reply
        finally:
            if not isinstance(reply, Answer):
                shared.release(key)

    def _known_reply(self, ask: Ask, key: bytes) -> Answer | NoAnswer | None:
        """The reply where the model need not or may not be asked; None where it must be asked."""
        recording = self._access.recording
        recorded = None if recording is None else recording.answer(ask)
        kept = self._cache.answer(key)
        if kept is None and self._is_filed:
            # What the run was answered before it had this file is in its log.
            kept = self._context.run_cache.answer(key)
        if kept is not None:
            call = self._context.own_call(key, kept.call, kept.usage)
            # An answer that this run paid for goes before its recording: all marks that use it share the call.
            if call is not None or recorded is None:
                return self._hit(kept if recorded is not None else self._record(ask, kept), call)
        if recorded is not None:
            return self._hit(recorded)
        if self._context.dry_run:
            if key not in self._planned_keys:
                self._planned_keys.add(key)
                self.caller.plan(ask)
            return DRY_RUN
        if self._access.may_call:
            return None
        return self._access.refuse(describe_request(ask), has_client=self.caller.role.client is not None)

    async def _keep(self, ask: Ask, key: bytes, done: CallAnswer[Answer]) -> CallAnswer[Answer]:
        """Keep an answer in cache, recording and log, with its usage and without any secret that the server echoed."""
        usage, context = done.usage, self._context
        clean = redact_answer(done.value, self._secrets) if self._secrets else done.value
        answer = msgspec.structs.replace(clean, usage=usage, call=Call(done.call_id, usage))
        if self._access.recording is not None:
            answer = self._record(ask, answer)
        kept_answer = msgspec.structs.replace(answer, call=Call(done.call_id, run=context.run))
        self._cache.keep(key, kept_answer)
        if context.shared is not None:
            context.shared.keep(key, kept_answer)
        if context.log is not None:
            # The log needs no answer that the cache file has.
            call = LoggedCall(id=done.call_id, key=key, counted=done.counted)
            if not self._is_filed:
                call = msgspec.structs.replace(call, usage=usage, answer=_plain(answer))
            committed = context.keep_call(call)
            if committed is not None:
                await committed
        return CallAnswer(answer, usage, done.counted, done.call_id)

    def _record(self, ask: Ask, answer: Answer) -> Answer:
        return self._access.record(lambda recording: recording.keep(ask, answer)) or answer

    def _hit(self, kept: Answer, call: Call | None = None) -> Answer:
        answer = _cache_hit(kept, call)
        self.caller.usage.add(answer.usage)
        return answer

    def _share(self, reply: Answer | NoAnswer) -> Answer | NoAnswer:
        """The reply for one more script that asked the same. Its usage is counted once."""
        if isinstance(reply, Answer):
            return self._hit(reply, reply.call)
        return reply if reply.usage is None else msgspec.structs.replace(reply, usage=None, call_id=0)


def measure_asks(client: Any) -> Callable[[Ask], RequestSize]:
    """What measures the questions to a client, which may know better than the question how long its answers get."""
    most_tokens: Callable[[Ask], int | None] | None = getattr(client, "most_tokens", None)

    def measure(ask: Ask) -> RequestSize:
        return request_size(ask, ask.max_tokens if most_tokens is None else most_tokens(ask))

    return measure


def request_size(ask: Ask, longest: int | None) -> RequestSize:
    """How many tokens a question may take: 4 bytes a token by estimate, 1 byte a token at most.

    Args:
        ask: The question.
        longest: The most tokens its answer can have; None for no limit.

    >>> from deemster.records import Message
    >>> request_size(Ask(messages=(Message("user", "How many?"),)), 10)
    RequestSize(prompt=3, completion=10, most=25)
    """
    schema = 0 if ask.schema is None else len(_encode(ask.schema))
    size = schema + sum(len(message.content.encode()) for message in ask.messages)
    completion = UNLIMITED_TOKENS if longest is None else longest
    return RequestSize(-(-size // 4), completion, size + len(ask.messages) * _PER_MESSAGE)


def _plain(answer: Answer) -> Answer:
    """An answer without the call that it comes from."""
    return msgspec.structs.replace(answer, usage=None, call=None)


def _cache_hit(answer: Answer, call: Call | None = None) -> Answer:
    """An answer that needed no call of its own: none, one cached call, no cost.

    Args:
        answer: The answer.
        call: The call of this run that it comes from; None where it comes from an earlier one.
    """
    usage = cached_usage(answer.usage if call is None else call.usage, model=answer.model)
    return msgspec.structs.replace(answer, usage=usage, call=call)
