"""The desk of a role that chats."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from deemster.errors import ConfigurationError
from deemster.formats.json_values import SURROGATE
from deemster.models._cache_keys import ask_key
from deemster.models._record_replay import Recording, describe_request
from deemster.models.call_context import CallContext, PlannedCalls
from deemster.models.model_call import NO_SIZE, CallAnswer, ClientResult, ModelCaller, RequestSize, check_usage
from deemster.models.model_client import ModelFailure
from deemster.models.secret_redaction import NO_SECRETS, redact_answer
from deemster.records import Answer, Ask, Call, NoAnswer
from deemster.records.usage import cached

# What an answer whose length nobody limits is counted at, where the most it may use is asked for.
UNLIMITED_TOKENS = 32_768
# Markers of roles and turns that a provider adds to each message.
_PER_MESSAGE = 16
_encode = msgspec.json.Encoder().encode


def read_answer(raw: Any, ask: Ask) -> ClientResult[Answer]:  # noqa: ARG001 - every reader is given the request
    """What a chat client gave, read.

    Raises:
        ModelFailure: It is no answer.
    """
    if not isinstance(raw, Answer) or not isinstance(text := raw.text, str):
        raise ModelFailure("shape", f"`complete` gives an Answer, not a {type(raw).__name__}.", may_cost=True)
    check_usage(raw)
    if not text.isascii() and SURROGATE.search(text):
        raw = msgspec.structs.replace(raw, text=SURROGATE.sub("\ufffd", text))
    return ClientResult(raw, raw.usage, raw.model)


def _is_clean(client: Any) -> bool:
    """Whether a client says that its answers hold no secret; a subclass that answers otherwise must say so itself."""
    own: Mapping[str, Any] = next((vars(kind) for kind in type(client).__mro__ if "complete" in vars(kind)), {})
    return own.get("is_clean") is True


class ChatRole:
    """Answers the questions to one role: from its recording, the cache, or the model; the same question once at a time.

    Args:
        name: The role's name.
        caller: Makes its calls; None where there is only a recording.
        prefix: Stands before its questions in what is hashed.
        is_cached: Whether its answers are kept in the cache.
        may_call: Whether its model may be asked.
        recording: Its recording.
        rules: What the gateway's desks share.
    """

    def __init__(
        self,
        name: str,
        caller: ModelCaller[Answer],
        *,
        prefix: bytes,
        is_cached: bool,
        may_call: bool,
        recording: Recording | None,
        rules: CallContext,
    ) -> None:
        self.caller = caller
        self.planned = PlannedCalls()
        self._rehearsed: set[bytes] = set()
        self._name, self._prefix, self._recording, self._rules = name, prefix, recording, rules
        # What many scripts ask alike, such as the steps of a metric, is asked once a run.
        self._cache = rules.cache if is_cached and rules.cache is not None else rules.scratch
        self._may_call = may_call
        self._secrets = NO_SECRETS if _is_clean(caller.role.client) else caller.role.secrets
        self._most_tokens: Callable[[Ask], int | None] = getattr(caller.role.client, "most_tokens", _asked_for)
        self._weighs = caller.weighs
        self._flying: dict[bytes, list[asyncio.Future[Answer | NoAnswer | None]]] = {}

    async def reply(self, ask: Ask) -> Answer | NoAnswer:
        """The answer to a question, or why there is none.

        Args:
            ask: The question.
        """
        if ask.again > 1 and not self._may_call:
            # Nobody can be asked anew: what was kept or recorded of the first two askings is all there is.
            ask = msgspec.structs.replace(ask, again=ask.again % 2)
        try:
            key = ask_key(self._prefix, ask)
        except UnicodeEncodeError:
            return NoAnswer(cause="model_failed", message="The question holds a lone surrogate, which is no character.")
        while (waiting := self._flying.get(key)) is not None:
            waiter: asyncio.Future[Answer | NoAnswer | None] = asyncio.get_running_loop().create_future()
            waiting.append(waiter)
            # None comes where whoever asked was cancelled: then another must ask.
            if (found := await waiter) is not None:
                return self._shared(found)
        if (held := self._held(ask, key)) is not None:
            return held
        waiters = self._flying[key] = []
        reply: Answer | NoAnswer | None = None
        try:
            weight = self._weight(ask) if self._weighs else NO_SIZE
            done = await self.caller.call(ask, key=key, weight=weight)
            reply = self._kept(ask, key, done) if isinstance(done, CallAnswer) else done.no_answer
            return reply
        finally:
            del self._flying[key]
            for each in waiters:
                if not each.done():
                    each.set_result(reply)

    def _held(self, ask: Ask, key: bytes) -> Answer | NoAnswer | None:
        """The reply to a question that no model need or may be asked; None where it must be."""
        recorded = None if self._recording is None else self._recording.answer(ask)
        if (kept := self._cache.answer(key)) is not None:
            call = self._rules.found(kept.call, kept.usage)
            # What this run has paid for counts before a recording of it: whoever stands on it shares the call.
            if call is not None or recorded is None:
                return self._hit(kept if recorded is not None else self._recorded(ask, kept), call)
        if recorded is not None:
            return self._hit(recorded)
        if self._rules.dry_run:
            if key not in self._rehearsed:
                self._rehearsed.add(key)
                self._plan(self._weight(ask))
            return NoAnswer(cause="not_run", message="This is a dry run: no model is asked.")
        return None if self._may_call else self._missing(ask)

    def _kept(self, ask: Ask, key: bytes, done: CallAnswer[Answer]) -> Answer:
        """The answer with its usage, and without a key that the server may have echoed; the files keep it too."""
        usage = done.usage
        clean = redact_answer(done.value, self._secrets) if self._secrets else done.value
        answer = msgspec.structs.replace(clean, usage=usage, call=self._rules.called(usage))
        if self._recording is not None:
            answer = self._recorded(ask, answer)
        self._cache.keep(key, _with_run(answer, self._rules.run))
        return answer

    def _weight(self, ask: Ask) -> RequestSize:
        return request_size(ask, self._most_tokens(ask))

    def _recorded(self, ask: Ask, answer: Answer) -> Answer:
        if self._recording is not None and not self._rules.dry_run:
            try:
                return self._recording.keep(ask, answer)
            except ConfigurationError as error:
                self._rules.refuse(str(error))
        return answer

    def _missing(self, ask: Ask) -> NoAnswer:
        if self.caller.role.client is None or self._recording is not None:
            message = f"There is no recording of the request {describe_request(ask)}. Record it first."
        else:
            message = f"`{self._name}` needs the network, and this run is offline: the request {describe_request(ask)}."
        self._rules.refuse(message)
        return NoAnswer(cause="not_run", message=message)

    def _hit(self, kept: Answer, call: Call | None = None) -> Answer:
        answer = _cache_hit(kept, call)
        self.caller.account.add(answer.usage)
        return answer

    def _shared(self, reply: Answer | NoAnswer) -> Answer | NoAnswer:
        """The reply for one more that asked the same: what it used is counted once."""
        if isinstance(reply, Answer):
            return self._hit(reply, reply.call)
        return reply if reply.usage is None else msgspec.structs.replace(reply, usage=None)

    def _plan(self, weight: RequestSize) -> None:
        self.planned.calls += 1
        self.planned.prompt_tokens += weight.prompt
        self.planned.completion_tokens += weight.completion
        price = self.caller.role.price_table.find(self.caller.role.model)
        if price is None or self.planned.cost_usd is None:
            self.planned.cost_usd = None
        else:
            self.planned.cost_usd += price.of(weight.prompt, weight.completion)


def _asked_for(ask: Ask) -> int | None:
    return ask.max_tokens


def request_size(ask: Ask, longest: int | None) -> RequestSize:
    """How heavy a question is: 4 bytes a token by estimate, for letters of other scripts take more, and 1 at most.

    Args:
        ask: The question.
        longest: The most tokens its answer can have; None where nobody limits it.

    >>> from deemster.records import Message
    >>> weight_of(Ask(messages=(Message("user", "How many?"),)), 10)
    Weight(prompt=3, completion=10, most=25)
    """
    schema = 0 if ask.schema is None else len(_encode(ask.schema))
    size = schema + sum(len(message.content.encode()) for message in ask.messages)
    completion = UNLIMITED_TOKENS if longest is None else longest
    return RequestSize(-(-size // 4), completion, size + len(ask.messages) * _PER_MESSAGE)


def _with_run(answer: Answer, run: str) -> Answer:
    """An answer with the run that paid for it, as the cache keeps it."""
    if answer.call is None:
        return answer
    return msgspec.structs.replace(answer, usage=answer.call.usage, call=Call(answer.call.id, run=run))


def _cache_hit(answer: Answer, call: Call | None = None) -> Answer:
    """An answer that needed no call of its own: none, one cached call, no cost.

    Args:
        answer: The answer.
        call: The call of this run that it comes from; None where it comes from an earlier one.
    """
    usage = cached(answer.usage if call is None else call.usage, model=answer.model)
    return msgspec.structs.replace(answer, usage=usage, call=call)
