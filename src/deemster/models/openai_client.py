"""Clients for chat and embeddings of any server that speaks the OpenAI API."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from deemster.models._endpoint_capabilities import FORMS
from deemster.models.http_chat import ENCODER, NOTHING, ChatReply, HttpChat, HttpClient
from deemster.models.http_endpoint import LONGEST_REPLY
from deemster.records import Ask, Token, Usage, Vectors

# A vector of 4,096 numbers of 20 characters, and as much again for spaces.
_LONGEST_VECTOR = 160 * 1024
_TAGGED = re.compile(r"<(think|reasoning)>(.*?)(?:</\1>\s*|\Z)", re.DOTALL)


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
    logprobs: msgspec.Raw = NOTHING


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: msgspec.Raw = NOTHING


class _Entry(msgspec.Struct):
    embedding: list[float] | str
    index: int | None = None


class _Embeddings(msgspec.Struct):
    data: list[_Entry]
    model: str | None = None
    usage: msgspec.Raw = NOTHING


_COMPLETION = msgspec.json.Decoder(_Completion)
_EMBEDDINGS = msgspec.json.Decoder(_Embeddings)
_LOGPROBS = msgspec.json.Decoder(_Logprobs | None)


class OpenAIChat(HttpChat):
    """A chat model behind `/chat/completions`, one attempt a call; retries and limits are the gateway's.

    It asks for an answer with a schema as `json_schema`. Where the endpoint refuses that, it asks as `json_object`,
    then in plain words. It does not send again what an endpoint has refused.

    Args:
        base_url: Where the API lives, such as `https://api.openai.com/v1`.
        model: The model's name.
        api_key: The key; it appears in no message, name or identity.
        extra: Further parameters, sent as given; None takes a field out.
        timeout_s: The longest attempt, body included; None where the caller sets a time limit, as the gateway does.
        names: What the endpoint calls parameters that others call otherwise, such as `{"seed": "random_seed"}`.

    Attributes:
        identity: What can change an answer beside the question.
        secrets: What must be shown nowhere.

    Raises:
        ConfigurationError: The URL is none of HTTP, or the key holds what no header can carry.
    """

    _kind, _path = "openai-chat", "chat/completions"

    def _body(self, ask: Ask) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": role, "content": content} for role, content in ask.messages],
        }
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        if ask.seed is not None:
            # Several answers to one question must be able to differ.
            body["seed"] = ask.seed + ask.sample
        if ask.max_tokens is not None and not self._extra_sets_limit(ask):
            body["max_tokens"] = self._longest(ask)
        if ask.schema is not None:
            form = FORMS[self.capabilities.form]
            if form == "json_schema":
                schema = {"name": "answer", "strict": True, "schema": ask.schema}
                body["response_format"] = {"type": "json_schema", "json_schema": schema}
            elif form == "json_object":
                body["response_format"] = {"type": "json_object"}
        if ask.logprobs:
            body["logprobs"] = True
            body["top_logprobs"] = ask.logprobs
        return body

    def _read(self, body: bytes) -> tuple[ChatReply, Usage]:
        completion, usage = self._decode(_COMPLETION, body)
        if not completion.choices:
            raise self._shape_failure("The reply has no choices.", usage)
        choice = completion.choices[0]
        message = choice.message
        text = _text(message)
        thinking = message.reasoning_content or message.reasoning
        if text is not None and text.startswith("<") and (tagged := _TAGGED.match(text)):
            # Servers that do not tell reasoning apart send it in front of the answer.
            thinking, text = tagged[2], text[tagged.end() :]
        reply = ChatReply(
            text=text,
            finish=choice.finish_reason,
            thinking=thinking if isinstance(thinking, str) else None,
            tokens=None if choice.logprobs is NOTHING else _tokens(choice.logprobs),
        )
        return reply, usage


class OpenAIEmbedding(HttpClient):
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
        response = await self._endpoint.send(ENCODER.encode(body), longest=longest)
        if response.status >= 300:
            raise self._endpoint.refusal(response)
        reply, usage = self._decode(_EMBEDDINGS, response.body)
        values, issue = _matrix(reply.data, len(texts))
        if issue is not None:
            raise self._shape_failure(issue, usage)
        return Vectors(values=values, usage=usage, model=usage.model)


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
