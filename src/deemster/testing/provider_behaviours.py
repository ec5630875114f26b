"""How the servers of providers differ from one that takes and gives everything, for the model server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from deemster.testing.server_faults import Payload, error_payload

# What a model that reasons thinks before it answers.
REASONING_TOKENS = 1500
_MESSAGE_FIELDS = frozenset(
    {
        "model",
        "max_tokens",
        "messages",
        "system",
        "temperature",
        "output_config",
        "stop_sequences",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
_UNKNOWN_KEYWORDS = ("minimum", "maximum", "minLength", "maxLength", "maxItems", "multipleOf")


def _openai_refusal(name: str) -> tuple[int, Any]:
    instead = " Use 'max_completion_tokens' instead." if name == "max_tokens" else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{instead}"
    return 400, error_payload(message, param=name)


def _google_refusal(name: str) -> tuple[int, Any]:
    message = f"{name.capitalize()} is not enabled for models/gemini-test"
    return 400, [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]


def _mistral_refusal(name: str) -> tuple[int, Any]:
    fault = {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted", "input": 42}
    return 422, {"object": "error", "message": {"detail": [fault]}, "type": "invalid_request_error", "code": None}


def _deepseek_refusal(_: str) -> tuple[int, Any]:
    return 400, error_payload("This response_format type is unavailable now", code="invalid_request_error")


def _anthropic_refusal(name: str) -> tuple[int, Any]:
    message = f"`{name}` is deprecated for this model." if name == "temperature" else name
    return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


class ProviderBehaviour(NamedTuple):
    """How the server of a provider differs from one that speaks the whole OpenAI API.

    Attributes:
        prefix: The path of its API.
        key_headers: The headers one of which carries the key; none for a server that wants no key.
        refuses: What it refuses by name, in the words of `ModelServer`.
        refusal: From the name of what is refused to status and body.
        ignores: Parameters that change nothing.
        reasons: Where its model's reasoning comes: `hidden`, in the field `reasoning_content`, or as a tag in the text.
        is_anthropic: Whether it speaks the Messages API.
    """

    prefix: str = "/v1"
    key_headers: tuple[str, ...] = ("authorization",)
    refuses: frozenset[str] = frozenset()
    refusal: Callable[[str], tuple[int, Any]] = _openai_refusal
    ignores: frozenset[str] = frozenset()
    reasons: str | None = None
    is_anthropic: bool = False


_OPENAI = ProviderBehaviour(refuses=frozenset({"temperature", "max_tokens", "logprobs"}), reasons="hidden")
_OWN_SERVER = ProviderBehaviour(key_headers=())

BEHAVIOURS: Mapping[str, ProviderBehaviour] = {
    "openai": _OPENAI,
    "anthropic": ProviderBehaviour(
        key_headers=("x-api-key",),
        refuses=frozenset({"temperature"}),
        refusal=_anthropic_refusal,
        reasons="hidden",
        is_anthropic=True,
    ),
    "google": ProviderBehaviour(
        prefix="/v1beta/openai", refuses=frozenset({"logprobs"}), refusal=_google_refusal, reasons="hidden"
    ),
    "azure": _OPENAI._replace(prefix="/openai/v1", key_headers=("api-key", "authorization")),
    "bedrock": ProviderBehaviour(reasons="<reasoning>"),
    "mistral": ProviderBehaviour(refuses=frozenset({"seed", "logprobs"}), refusal=_mistral_refusal),
    "openrouter": ProviderBehaviour(
        prefix="/api/v1", ignores=frozenset({"response_format", "logprobs", "seed", "temperature"})
    ),
    "groq": ProviderBehaviour(prefix="/openai/v1", refuses=frozenset({"logprobs", "json_schema"})),
    "together": ProviderBehaviour(ignores=frozenset({"response_format"})),
    "fireworks": ProviderBehaviour(prefix="/inference/v1"),
    "deepseek": ProviderBehaviour(
        prefix="", refuses=frozenset({"json_schema"}), refusal=_deepseek_refusal, reasons="reasoning_content"
    ),
    "xai": ProviderBehaviour(ignores=frozenset({"logprobs"}), reasons="reasoning_content"),
    "ollama": _OWN_SERVER._replace(ignores=frozenset({"logprobs"})),
    "vllm": _OWN_SERVER._replace(reasons="<think>"),
    "lmstudio": _OWN_SERVER._replace(refuses=frozenset({"json_object"}), ignores=frozenset({"logprobs", "seed"})),
    "llamacpp": _OWN_SERVER,
}


def refused_by_provider(behaviour: ProviderBehaviour, asked: Payload, headers: Mapping[str, str]) -> Any:
    """Status and body of a provider's refusal of a key or of a request in another form than its own, or None."""
    if behaviour.key_headers and not any(headers.get(name) for name in behaviour.key_headers):
        return 401, error_payload("No API key was provided.", code="invalid_api_key")
    if not behaviour.is_anthropic:
        return None
    if headers.get("anthropic-version") is None:
        return behaviour.refusal("anthropic-version: header is required")
    if "max_tokens" not in asked:
        return behaviour.refusal("max_tokens: Field required")
    if any(message.get("role") == "system" for message in asked["messages"]):
        return behaviour.refusal("messages: Unexpected role 'system'.")
    for name in asked:
        if name not in _MESSAGE_FIELDS:
            return behaviour.refusal(f"{name}: Extra inputs are not permitted")
    schema = ((asked.get("output_config") or {}).get("format") or {}).get("schema")
    for fault in _schema_faults(schema):
        return behaviour.refusal(f"output_config.format.schema: {fault}")
    return None


def _schema_faults(schema: Any) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for keyword in _UNKNOWN_KEYWORDS:
        if keyword in schema:
            yield f"For '{schema.get('type')}' type, property '{keyword}' is not supported"
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield "For 'object' type, 'additionalProperties' must be explicitly set to false"
    for part in [*(schema.get("properties") or {}).values(), schema.get("items")]:
        yield from _schema_faults(part)


def as_understood(behaviour: ProviderBehaviour, asked: Payload) -> Payload:
    """A request in the form of the OpenAI API, without what the provider ignores."""
    if behaviour.is_anthropic:
        system = [{"role": "system", "content": asked["system"]}] if "system" in asked else []
        form = (asked.get("output_config") or {}).get("format") or {}
        asked = asked | {"messages": system + asked["messages"]}
        asked["response_format"] = {"type": form.get("type"), "json_schema": {"schema": form.get("schema")}}
    return {name: value for name, value in asked.items() if name not in behaviour.ignores}


def as_provider_says(behaviour: ProviderBehaviour, asked: Payload, completion: Payload) -> Payload:
    """A completion as the provider's model gives it: with its reasoning, in its form."""
    completion = _with_reasoning(behaviour, asked, completion)
    if "response_format" in behaviour.ignores:
        message = completion["choices"][0]["message"]
        message["content"] = f"```json\n{message['content']}\n```"
    return _as_message(completion) if behaviour.is_anthropic else completion


def _with_reasoning(behaviour: ProviderBehaviour, asked: Payload, completion: Payload) -> Payload:
    if behaviour.reasons is None:
        return completion
    choice, usage = completion["choices"][0], completion["usage"]
    message = choice["message"]
    longest = asked.get("max_completion_tokens") or asked.get("max_tokens") or 10 * REASONING_TOKENS
    needed = REASONING_TOKENS + usage["completion_tokens"]
    usage["completion_tokens"] = min(needed, longest)
    usage["completion_tokens_details"]["reasoning_tokens"] = min(REASONING_TOKENS, longest)
    usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    is_cut = needed > longest
    if is_cut:
        choice["finish_reason"], message["content"] = "length", ""
    if behaviour.reasons.startswith("<"):
        closing = "" if is_cut else behaviour.reasons.replace("<", "</")
        message["content"] = f"{behaviour.reasons}I compare both.{closing}\n{message['content']}"
    elif behaviour.reasons != "hidden":
        message[behaviour.reasons] = "I compare both."
    return completion


def _as_message(completion: Payload) -> Payload:
    choice, usage = completion["choices"][0], completion["usage"]
    is_cut = choice["finish_reason"] == "length"
    blocks = [{"type": "thinking", "thinking": "I compare both.", "signature": "made up"}]
    if not is_cut:
        blocks.append({"type": "text", "text": choice["message"]["content"]})
    return {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": blocks,
        "stop_reason": "max_tokens" if is_cut else "end_turn",
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage["completion_tokens"],
        },
    }
