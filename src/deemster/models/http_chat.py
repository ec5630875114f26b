"""What the HTTP clients of models share: the address, the key, and the loop that learns what an endpoint refuses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import msgspec

from deemster.models._endpoint_capabilities import EndpointCapabilities
from deemster.models.http_endpoint import Endpoint, HttpResponse, error_message
from deemster.models.model_client import ModelFailure
from deemster.models.provider_usage import ReportedUsage, parse_usage
from deemster.models.secret_redaction import hash_named_secrets, named_secrets, redact_answer
from deemster.records import Answer, Ask, Token, Usage

# Every mark names the model that answered; a server must not swell the report by that.
_LONGEST_NAME = 256
NOTHING = msgspec.Raw(b"null")
_LIMITS = ("max_tokens", "max_completion_tokens")
_FILTERED = "content_filter"


class ChatReply(NamedTuple):
    """What a reply says, whatever its form.

    Attributes:
        text: The answer; None where there is none.
        finish: Why the model stopped: `stop`, `length`, or the provider's word.
        thinking: The model's reasoning, where it is told apart from the answer.
        tokens: The answer token by token, with log-probabilities.
    """

    text: str | None
    finish: str | None = None
    thinking: str | None = None
    tokens: tuple[Token, ...] | None = None


class _Reply(Protocol):
    """What the replies of all providers have."""

    model: str | None
    usage: msgspec.Raw


class _Spent(msgspec.Struct):
    usage: msgspec.Raw = NOTHING


_R = TypeVar("_R", bound=_Reply)
_USED = msgspec.json.Decoder(ReportedUsage | None)
_SPENT = msgspec.json.Decoder(_Spent)
ENCODER = msgspec.json.Encoder()


class HttpClient:
    """What chat and embedding clients share: the address, the key, extra parameters, and how a reply is decoded."""

    _kind: ClassVar[str]
    _path: ClassVar[str]
    # The header that carries the key, where it is not `Authorization`.
    _key_header: ClassVar[str | None] = None
    _headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.model = model
        self._extra = dict(extra or {})
        self._endpoint = endpoint = Endpoint(
            base_url,
            self._path,
            key=api_key,
            key_header=self._key_header,
            timeout_s=timeout_s,
            headers=self._headers,
            hidden=named_secrets(self._extra),
        )
        self.secrets = endpoint.secrets
        extra = hash_named_secrets(self._extra)
        self.identity: Mapping[str, Any] = {
            "client": self._kind,
            "base_url": endpoint.url,
            "model": model,
            "extra": extra,
            # Two addresses that differ only in hidden parts must not share answers.
            **({} if endpoint.query is None else {"query": endpoint.query}),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._endpoint.url!r}, {self.model!r})"

    async def close(self) -> None:
        """Give back the connections of this event loop."""
        await self._endpoint.close()

    def _decode(self, decoder: msgspec.json.Decoder[_R], body: bytes) -> tuple[_R, Usage]:
        """A reply as its type, and what it used.

        Raises:
            ModelFailure: The body is no JSON, or JSON of another shape.
        """
        try:
            reply = decoder.decode(body)
            model = self.secrets.redact(reply.model or self.model)[:_LONGEST_NAME]
            return reply, _usage(reply.usage, model)
        except msgspec.ValidationError as error:
            said = error_message(body) if b'"error"' in body[:200] else ""
            failure = self._shape_failure(f"The reply has the wrong shape: {said or error}", _spent(body))
        except RecursionError:
            failure = self._endpoint.failure("shape", "The reply is nested too deep.", may_cost=True)
        except ValueError as error:
            failure = self._endpoint.failure("transport", f"The reply is no JSON: {error}.", may_cost=True)
        # Raised outside the handlers, so that no traceback holds the reply.
        raise failure

    def _shape_failure(self, message: str, usage: Usage | None) -> ModelFailure:
        return self._endpoint.failure("shape", message, usage=usage, may_cost=True)


class HttpChat(HttpClient):
    """A chat model behind an HTTP address, one attempt a call; retries and limits are the gateway's.

    It does not send again what the endpoint has refused. A subclass knows a provider's form of requests and replies;
    `lacks` are the parameters that its protocol does not have.
    """

    lacks: ClassVar[frozenset[str]] = frozenset()
    # What its protocol calls parameters of a target.
    _spellings: ClassVar[Mapping[str, str]] = {}
    # It removes secrets from its answers itself.
    is_clean = True

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        extra: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(base_url, model, api_key=api_key, extra=extra, timeout_s=timeout_s)
        self.capabilities = EndpointCapabilities(names)

    async def complete(self, ask: Ask) -> Answer:
        """Answer one question.

        Raises:
            ModelFailure: The attempt failed.
        """
        while True:
            sent = self.request(ask)
            room = self.capabilities.reasoning_room
            response = await self._endpoint.send(ENCODER.encode(sent))
            if response.status < 300:
                return self._answer(
                    response.body,
                    may_grow=not room and self._may_grow(ask),
                    may_be_empty=ask.parameters is not None,
                )
            if ask.parameters is not None and _is_filtered(response):
                return Answer(text="", model=self.model, finish=_FILTERED)
            if not self.capabilities.learn(response.status, response.body, sent=sent, extra=self._fixed(ask)):
                raise self._endpoint.refusal(response)

    def request(self, ask: Ask) -> dict[str, Any]:
        """The body of the request that asks a question, without what the endpoint has refused."""
        body = self._body(ask)
        if ask.parameters is not None and "top_p" in ask.parameters:
            body["top_p"] = ask.parameters["top_p"]
        return self.capabilities.adapt(body, self._fixed(ask))

    def most_tokens(self, ask: Ask) -> int | None:
        """The most tokens that the answer to a question can have, `extra` considered; None for no limit."""
        extra = self._fixed(ask)
        named = [extra[name] for name in _LIMITS if name in extra]
        known = [limit for limit in named if type(limit) is int]
        longest = (max(known) if known else None) if named else self._longest(ask)
        count = extra.get("n")
        return longest * count if longest is not None and type(count) is int and count > 1 else longest

    @property
    def notes(self) -> list[str]:
        """What a person should know of its endpoint, because the answers depend on it."""
        note = self.capabilities.note(self.model)
        return [] if note is None else [note]

    @abstractmethod
    def _body(self, ask: Ask) -> dict[str, Any]:
        """The fields of a request, `extra` and refusals aside."""

    @abstractmethod
    def _read(self, body: bytes) -> tuple[ChatReply, Usage]:
        """What a reply says, and what it used.

        Raises:
            ModelFailure: The body has another shape.
        """

    def _fixed(self, ask: Ask) -> Mapping[str, Any]:
        """What is sent as a user wrote it: `extra` of the model, and what a target says of its own question."""
        if ask.parameters is None:
            return self._extra

        extra = dict(self._extra)
        if ask.temperature is not None:
            extra.pop("temperature", None)
        if ask.max_tokens is not None:
            for name in _LIMITS:
                extra.pop(name, None)
        said = {self._spellings.get(name, name): value for name, value in ask.parameters.items()}
        # As a temperature, it is left out where the model takes none.
        said.pop("top_p", None)
        return {name: value for name, value in extra.items() if name not in ask.parameters} | said

    def _extra_sets_limit(self, ask: Ask) -> bool:
        """Whether `extra` says how long an answer may be."""
        return any(name in self._fixed(ask) for name in _LIMITS)

    def _longest(self, ask: Ask) -> int | None:
        """The longest answer that is asked for; None for no limit."""
        if ask.max_tokens is None or ask.schema is None:
            return ask.max_tokens
        return ask.max_tokens + self.capabilities.reasoning_room

    def _may_grow(self, ask: Ask) -> bool:
        """Whether the answer may be given more tokens: its form says how long it gets, and nobody set a limit."""
        return ask.schema is not None and not self._extra_sets_limit(ask)

    def _answer(self, body: bytes, *, may_grow: bool, may_be_empty: bool = False) -> Answer:
        """The answer in a reply.

        Raises:
            ModelFailure: There is no answer, or reasoning left too few tokens for it. The next attempt then has more.
        """
        reply, usage = self._read(body)
        is_cut = reply.finish == "length" and (not reply.text or reply.thinking or usage.reasoning_tokens)
        if is_cut and may_grow:
            self.capabilities.learn_from_cut()
            raise self._shape_failure("It was cut off: its reasoning left too few tokens for the answer.", usage)
        if reply.text is None and may_be_empty and reply.finish not in (None, "stop"):
            # Of a target it is a finding that the model got no further.
            reply = reply._replace(text="")
        if reply.text is None:
            hint = " It was cut off: raise `max_tokens`." if is_cut else ""
            raise self._shape_failure(f"The reply has no content (finish_reason: {reply.finish}).{hint}", usage)
        answer = Answer(
            text=reply.text,
            usage=usage,
            model=usage.model,
            tokens=reply.tokens,
            thinking=reply.thinking,
            finish=reply.finish,
        )
        return redact_answer(answer, self.secrets)


def _is_filtered(response: HttpResponse) -> bool:
    """Whether a filter refused a prompt, which Azure says with an error in place of an answer."""
    return response.status == 400 and f'"{_FILTERED}"'.encode() in response.body


def _spent(body: bytes) -> Usage | None:
    """What an unreadable reply says it used."""
    try:
        reply = _SPENT.decode(body)
    except (ValueError, RecursionError):
        return None
    return None if reply.usage is NOTHING else _usage(reply.usage, None)


def _usage(raw: msgspec.Raw, model: str | None) -> Usage:
    """What was used, without counts where they make no sense."""
    try:
        used = _USED.decode(raw)
        return Usage(model=model) if used is None else parse_usage(used, model)
    except ValueError:
        return Usage(model=model)
