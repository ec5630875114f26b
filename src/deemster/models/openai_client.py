"""Clients for chat and embeddings of any server that speaks the OpenAI API."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import msgspec
import numpy as np

from deemster.models._endpoint_capabilities import EndpointCapabilities
from deemster.models.http_endpoint import LONGEST_REPLY, Endpoint, error_message
from deemster.models.model_client import ModelFailure
from deemster.models.provider_usage import ReportedUsage, parse_usage
from deemster.models.secret_redaction import hash_named_secrets, named_secrets, redact_answer
from deemster.records import Answer, Ask, Token, Usage, Vectors

# A vector of 4,096 numbers of 20 characters, and as much again for spaces.
_LONGEST_VECTOR = 160 * 1024
# Every mark names the model that answered; a server must not swell the report by that.
_LONGEST_NAME = 256

_NOTHING = msgspec.Raw(b"null")
_LIMITS = ("max_tokens", "max_completion_tokens")


class _Alternative(msgspec.Struct, gc=False):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Alternative] | None = None


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Part(msgspec.Struct):
    type: str = "text"
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: msgspec.Raw = _NOTHING


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: msgspec.Raw = _NOTHING


class _Entry(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Embeddings(msgspec.Struct):
    data: list[_Entry]
    model: str | None = None
    usage: msgspec.Raw = _NOTHING


class _Spent(msgspec.Struct):
    usage: msgspec.Raw = _NOTHING


_R = TypeVar("_R", _Completion, _Embeddings)
_COMPLETION = msgspec.json.Decoder(_Completion)
_EMBEDDINGS = msgspec.json.Decoder(_Embeddings)
_USED = msgspec.json.Decoder(ReportedUsage | None)
_LOGPROBS = msgspec.json.Decoder(_Logprobs | None)
_SPENT = msgspec.json.Decoder(_Spent)
_ENCODER = msgspec.json.Encoder()


class _OpenAIClient:
    """What chat and embedding clients share: the address, the key, extra parameters, and how a reply is decoded."""

    _kind: ClassVar[str]
    _path: ClassVar[str]

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
            base_url, self._path, key=api_key, timeout_s=timeout_s, hidden=named_secrets(self._extra)
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


class OpenAIChat(_OpenAIClient):
    """A chat model behind `/chat/completions`, one attempt a call; retries and limits are the gateway's.

    It asks for an answer with a schema as `json_schema`. Where the endpoint refuses that, it asks as `json_object`,
    then in plain words. It does not send again what an endpoint has refused.

    Args:
        base_url: Where the API lives, such as `https://api.openai.com/v1`.
        model: The model's name.
        api_key: The key; it appears in no message, name or identity.
        extra: Further parameters, sent as given; None takes a field out.
        timeout_s: The longest attempt, body included; None where the caller sets a time limit, as the gateway does.

    Attributes:
        identity: What can change an answer beside the question.
        secrets: What must be shown nowhere.

    Raises:
        ConfigurationError: The URL is none of HTTP, or the key holds what no header can carry.
    """

    _kind, _path = "openai-chat", "chat/completions"
    # It removes secrets from its answers itself.
    is_clean = True

    @cached_property
    def capabilities(self) -> EndpointCapabilities:
        """Which optional parameters its endpoint understands."""
        return EndpointCapabilities()

    async def complete(self, ask: Ask) -> Answer:
        """Answer one question.

        Raises:
            ModelFailure: The attempt failed.
        """
        while True:
            sent = self.capabilities.fields(ask, model=self.model, extra=self._extra)
            response = await self._endpoint.send(_ENCODER.encode(sent))
            if response.status < 300:
                return self._answer(response.body)
            if not self.capabilities.learn(response.status, response.body, sent=sent, extra=self._extra):
                raise self._endpoint.refusal(response)

    def most_tokens(self, ask: Ask) -> int | None:
        """The most tokens that the answer to a question can have, `extra` considered; None for no limit."""
        named = [self._extra[name] for name in _LIMITS if name in self._extra]
        known = [limit for limit in named if type(limit) is int]
        longest = (max(known) if known else None) if named else ask.max_tokens
        count = self._extra.get("n")
        return longest * count if longest is not None and type(count) is int and count > 1 else longest

    def _answer(self, body: bytes) -> Answer:
        reply, usage = self._decode(_COMPLETION, body)
        choice = reply.choices[0] if reply.choices else None
        text = None if choice is None else _text(choice.message)
        if choice is None or text is None:
            missing = "no choices" if choice is None else f"no content (finish_reason: {choice.finish_reason})"
            # Mostly a reasoning model that had no tokens left for its answer.
            hint = " It was cut off: raise `max_tokens`." if choice and choice.finish_reason == "length" else ""
            raise self._shape_failure(f"The reply has {missing}.{hint}", usage)
        message = choice.message
        thinking = message.reasoning_content or message.reasoning
        answer = Answer(
            text=text,
            usage=usage,
            model=usage.model,
            tokens=None if choice.logprobs is _NOTHING else _tokens(choice.logprobs),
            thinking=thinking if isinstance(thinking, str) else None,
            finish=choice.finish_reason,
        )
        return redact_answer(answer, self.secrets)


class OpenAIEmbedding(_OpenAIClient):
    """An embedding model behind `/embeddings`, one attempt a call; retries, batches and limits are the gateway's.

    Args:
        base_url: Where the API lives, such as `https://api.openai.com/v1`.
        model: The model's name.
        api_key: The key; it appears in no message, name or identity.
        extra: Further parameters, sent as given, such as `dimensions`.
        timeout_s: The longest attempt, body included; None where the caller sets a time limit, as the gateway does.

    Attributes:
        identity: What can change a vector beside its text.
        secrets: What must be shown nowhere.

    Raises:
        ConfigurationError: The URL is none of HTTP, or the key holds what no header can carry.
    """

    _kind, _path = "openai-embedding", "embeddings"

    async def embed_many(self, texts: Sequence[str]) -> Vectors:
        """One vector a text, in order; no text makes no call.

        Raises:
            ModelFailure: The attempt failed, or the vectors are not one a text, finite, and of one dimension.
        """
        if not texts:
            return Vectors(values=np.empty((0, 0), np.float32))
        body = {"model": self.model, "input": list(texts), **self._extra}
        longest = LONGEST_REPLY + len(texts) * _LONGEST_VECTOR
        response = await self._endpoint.send(_ENCODER.encode(body), longest=longest)
        if response.status >= 300:
            raise self._endpoint.refusal(response)
        reply, usage = self._decode(_EMBEDDINGS, response.body)
        values, issue = _matrix(reply.data, len(texts))
        if issue is not None:
            raise self._shape_failure(issue, usage)
        return Vectors(values=values, usage=usage, model=usage.model)


def _spent(body: bytes) -> Usage | None:
    """What an unreadable reply says it used."""
    try:
        reply = _SPENT.decode(body)
    except (ValueError, RecursionError):
        return None
    return None if reply.usage is _NOTHING else _usage(reply.usage, None)


def _usage(raw: msgspec.Raw, model: str | None) -> Usage:
    """What was used, without counts where they make no sense."""
    try:
        used = _USED.decode(raw)
        return Usage(model=model) if used is None else parse_usage(used, model)
    except ValueError:
        return Usage(model=model)


def _text(message: _Message) -> str | None:
    content = message.content
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    # A refusal is what the model said, and the judge quotes it.
    return message.refusal if content is None else content


def _tokens(raw: msgspec.Raw) -> tuple[Token, ...] | None:
    try:
        logprobs = _LOGPROBS.decode(raw)
    except ValueError:
        return None
    if logprobs is None or not logprobs.content:
        return None
    return tuple(
        Token(
            token.token,
            token.logprob,
            tuple((other.token, other.logprob) for other in token.top_logprobs or ()),
        )
        for token in logprobs.content
    )


def _matrix(entries: Sequence[_Entry], count: int) -> tuple[Any, str | None]:
    """The vectors in the order of the texts, or what is wrong with them."""
    if len(entries) != count:
        return None, f"The reply has {len(entries)} vectors for {count} texts."
    indexed = [entry for entry in entries if entry.index is not None]
    if indexed:
        if len(indexed) != count:
            return None, f"Only {len(indexed)} of {count} vectors have an index."
        entries = sorted(indexed, key=_index)
        if [entry.index for entry in entries] != list(range(count)):
            return None, f"The vectors are not numbered from 0 to {count - 1}."
    try:
        rows = [_row(entry.embedding) for entry in entries]
    except (binascii.Error, ValueError):
        return None, "A vector is text, but not base64 of 32-bit floats."
    dimensions = {len(row) for row in rows}
    if len(dimensions) != 1 or 0 in dimensions:
        return None, f"The vectors have the dimensions {', '.join(map(str, sorted(dimensions)))}; one above 0 is right."
    with np.errstate(over="ignore"):
        values = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(values).all():
        return None, "A vector holds a number that is not finite."
    return values, None


def _index(entry: _Entry) -> int:
    return -1 if entry.index is None else entry.index


def _row(embedding: list[float] | str) -> Any:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    return embedding
