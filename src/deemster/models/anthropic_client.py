"""The client for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from deemster.models.http_chat import NOTHING, ChatReply, HttpChat
from deemster.records import Ask, Usage

# The API wants a limit with every request.
_LONGEST_ANSWER = 16_384
_FINISHES = {"end_turn": "stop", "max_tokens": "length"}
# Its JSON schemas know no limits of numbers and texts; the prompts say them in words, and the parser of replies checks.
_UNKNOWN_KEYWORDS = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "maxItems"}
)


class _Block(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    thinking: str | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    usage: msgspec.Raw = NOTHING


_MESSAGE = msgspec.json.Decoder(_Message)


class AnthropicChat(HttpChat):
    """A chat model behind Anthropic's `/messages`, one attempt a call; retries and limits are the gateway's.

    It asks for an answer with a schema as `output_config`. Where the model refuses that, it asks in plain words. The
    API has neither a seed nor log-probabilities.

    Its arguments and attributes are those of ``OpenAIChat``.
    """

    _kind, _path = "anthropic-chat", "messages"
    _key_header = "x-api-key"
    _headers: ClassVar[Mapping[str, str]] = {"anthropic-version": "2023-06-01"}
    lacks = frozenset({"seed", "logprobs"})
    _spellings: ClassVar[Mapping[str, str]] = {"stop": "stop_sequences"}

    def _body(self, ask: Ask) -> dict[str, Any]:
        instructions = [content for role, content in ask.messages if role == "system"]
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": self._longest(ask),
            "messages": [{"role": role, "content": content} for role, content in ask.messages if role != "system"],
        }
        if ask.temperature is not None:
            body["temperature"] = ask.temperature
        if instructions:
            body["system"] = "\n\n".join(instructions)
        if ask.schema is not None and self.capabilities.form == 0:
            body["output_config"] = {"format": {"type": "json_schema", "schema": _known_schema(ask.schema)}}
        return body

    def _longest(self, ask: Ask) -> int:
        return super()._longest(ask) or _LONGEST_ANSWER

    def _read(self, body: bytes) -> tuple[ChatReply, Usage]:
        message, usage = self._decode(_MESSAGE, body)
        texts = [block.text or "" for block in message.content if block.type == "text"]
        reasoning = [block.thinking or "" for block in message.content if block.type == "thinking"]
        reply = ChatReply(
            text="".join(texts) if texts else None,
            finish=_FINISHES.get(message.stop_reason or "", message.stop_reason),
            thinking="".join(reasoning) if reasoning else None,
        )
        return reply, usage


def _known_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without what the API refuses."""
    known = {name: part for name, part in schema.items() if name not in _UNKNOWN_KEYWORDS}
    if known.get("minItems", 0) > 1:
        del known["minItems"]
    if "properties" in known:
        known["properties"] = {name: _known_schema(part) for name, part in known["properties"].items()}
        known["additionalProperties"] = False
    if "items" in known:
        known["items"] = _known_schema(known["items"])
    for name in ("anyOf", "oneOf"):
        if name in known:
            known[name] = [_known_schema(part) for part in known[name]]
    return known
