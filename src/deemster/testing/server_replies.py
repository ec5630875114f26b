"""The healthy replies of the model server: completions, verdicts and embeddings."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

_TOKEN = re.compile(r"[0-9]|\s?(?:[A-Za-z]+|[^\sA-Za-z0-9])|\s")
_WORD = re.compile(r"\w+")
_LIKELY = math.log(0.9)
_DEEPEST = 20


class ChatMessages(list[dict[str, Any]]):
    """The messages of one request, as `answer` functions get them.

    Attributes:
        body: The complete request.
    """

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(body.get("messages") or [])
        self.body = body

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the answer shall have; None where none is asked for."""
        wanted = self.body.get("response_format") or {}
        found: Mapping[str, Any] | None = (wanted.get("json_schema") or {}).get("schema")
        return found


AnswerFunction: TypeAlias = Callable[[ChatMessages], str]


def fraction(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but the parts.

    >>> fraction(0, "a") == fraction(0, "a"), fraction(0, "a") == fraction(1, "a")
    (True, False)
    """
    digest = hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def verdict(chat: ChatMessages, *, seed: int) -> str:
    """An answer of the shape that is asked for, chosen by the seed and the messages.

    Where no schema says otherwise, it is an object with a `reason` and a `score` from 0 to 1.
    """
    schema = chat.schema
    if schema is None:
        return json.dumps({"reason": "Chosen by the seed.", "score": round(fraction(seed, list(chat)), 2)})
    return json.dumps(schema_instance(schema, seed=(seed, list(chat))))


def schema_instance(schema: Mapping[str, Any], *, seed: object, depth: int = 0) -> Any:
    """A value that fits a JSON schema of objects, arrays, strings, numbers, booleans, `enum`, `const` and `anyOf`.

    >>> score = {"type": "integer", "minimum": 3, "maximum": 3}
    >>> schema_instance({"type": "object", "properties": {"score": score}}, seed=0)
    {'score': 3}
    """
    if "const" in schema:
        return schema["const"]
    if choices := schema.get("enum"):
        return choices[int(fraction(seed) * len(choices))]
    for word in ("anyOf", "oneOf"):
        if schema.get(word):
            return schema_instance(schema[word][0], seed=seed, depth=depth)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        fields = schema.get("properties") or {}
        return {name: schema_instance(part, seed=(seed, name), depth=depth + 1) for name, part in fields.items()}
    if kind == "array":
        count = max(1, schema.get("minItems", 1)) if depth < _DEEPEST else 0
        part = schema.get("items") or {"type": "string"}
        return [schema_instance(part, seed=(seed, index), depth=depth + 1) for index in range(count)]
    return _scalar(kind, schema, seed=seed)


def _scalar(kind: str, schema: Mapping[str, Any], *, seed: object) -> Any:
    low = schema.get("minimum", 0)
    if kind == "integer":
        return low + int(fraction(seed) * (schema.get("maximum", low + 1) - low + 1))
    if kind == "number":
        return round(low + fraction(seed) * (schema.get("maximum", low + 1) - low), 2)
    if kind == "boolean":
        return fraction(seed) < 0.5
    return None if kind == "null" else "Chosen by the seed."


def completion_reply(body: Mapping[str, Any], text: str, *, logprobs: bool) -> dict[str, Any]:
    """A chat completion that holds a text.

    Args:
        body: The request.
        text: The answer.
        logprobs: Whether log-probabilities are offered to those who ask.
    """
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "logprobs": None,
    }
    if logprobs and body.get("logprobs"):
        choice["logprobs"] = {"content": _tokens(text, alternatives=body.get("top_logprobs") or 0)}
    sent = sum(_length(message.get("content")) for message in body.get("messages") or [])
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [choice],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": _length(text),
            "total_tokens": sent + _length(text),
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def embedding_reply(body: Mapping[str, Any], *, dimension: int) -> dict[str, Any]:
    """Embeddings of the texts of a request: texts that share words are near each other."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list(given or [])
    sent = sum(map(_length, texts))
    return {
        "object": "list",
        "model": body.get("model"),
        "data": [
            {"object": "embedding", "index": index, "embedding": _vector(text, dimension=dimension)}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": sent, "total_tokens": sent},
    }


def _length(text: object) -> int:
    return -(-len(text) // 4) if isinstance(text, str) else 0


def _vector(text: str, *, dimension: int) -> list[float]:
    values = [0.0] * dimension
    for word in _WORD.findall(text.casefold()) or [text]:
        for place in range(dimension):
            values[place] += fraction(word, place) - 0.5
    norm = math.sqrt(sum(value * value for value in values)) or 1.0
    return [value / norm for value in values]


def _tokens(text: str, *, alternatives: int) -> list[dict[str, Any]]:
    return [_token(token, alternatives=alternatives) for token in _TOKEN.findall(text)]


def _token(token: str, *, alternatives: int) -> dict[str, Any]:
    others: Sequence[str] = [digit for digit in "0123456789" if digit != token] if token.isdigit() else [" a", " the"]
    ranked = [(token, _LIKELY), *((other, math.log(0.1 / 2 ** (rank + 1))) for rank, other in enumerate(others))]
    top = [{"token": name, "logprob": value, "bytes": list(name.encode())} for name, value in ranked[:alternatives]]
    return {"token": token, "logprob": _LIKELY, "bytes": list(token.encode()), "top_logprobs": top}
