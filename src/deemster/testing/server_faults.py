"""Every fault that the model server can show on demand, by name."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from aiohttp import web

from deemster.errors import ConfigurationError, did_you_mean, visible

Payload: TypeAlias = dict[str, Any]

JSON = "application/json"
NO_FAULT = "ok"
_STATUSES = (300, 307, 308, 400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 529)
_REASONS = {
    400: "The request cannot be used.",
    403: "This project may not use the model.",
    404: "There is no such model.",
    408: "The request took too long.",
    409: "The resource is locked.",
    413: "The request is too large.",
    422: "The request cannot be processed.",
    425: "Too early.",
    429: "Rate limit reached.",
    500: "The server had an error.",
    503: "The server is overloaded.",
}

FAULTS: Mapping[str, str] = {
    NO_FAULT: "no fault: a healthy reply between others",
    **{str(status): f"status {status}; `{status}=VALUE` adds `Retry-After: VALUE`" for status in _STATUSES},
    "retry-ms": "429 with `retry-after-ms: VALUE`",
    "retry-reset": "429 with `x-ratelimit-reset-requests: VALUE`",
    "quota": "429 with the code of a hard quota",
    "reset": "the connection is reset before any header",
    "reset-body": "the connection is reset in the middle of the body",
    "short": "the body ends before the length it promised",
    "half": "half a JSON document, with a length that fits",
    "not-json": "a page of HTML with status 200",
    "empty": "status 200 and no body",
    "huge": "a valid reply of 10 MB, or of VALUE MB",
    "deep": "JSON nested 100,000 levels deep",
    "endless": "a reply that never ends: one byte a second, or every VALUE seconds",
    "silent": "no reply at all; the connection stays open",
    "slow": "a healthy reply after 1 s, or after VALUE seconds",
    "list": "a JSON list instead of an object",
    "wrong-shape": "an object without anything that belongs there",
    "error-200": "status 200 with an error object in place of an answer",
    "no-choices": "an empty list of choices",
    "null-content": "a message whose content is null",
    "refusal": "a message without content but with a refusal",
    "bad-usage": "usage that is negative or no number",
    "no-usage": "no usage",
    "no-logprobs": "no log-probabilities, though they were asked for",
    "merge": "the reply, with the fields of VALUE (a JSON object) in place of its own",
    "message": "the message of the reply, with the fields of VALUE (a JSON object) in place of its own",
    "text": "the answer is VALUE",
    "score": 'the answer is a verdict whose score is VALUE, as written: 7, NaN, true, "0.9"',
    "duplicate": "the answer is a verdict with two scores",
    "shuffled": "embeddings in another order, each with its right index",
    "missing": "one embedding too few",
    "surplus": "one embedding too many",
    "partial-index": "the first embedding has no index",
    "same-index": "two embeddings with one index",
    "no-index": "no embedding has an index",
    "nan": "an embedding that holds NaN, which is no JSON",
    "infinite": "an embedding that holds 1e999",
    "overflow": "an embedding that holds 1e300, which is infinite as float32",
    "null-value": "an embedding that holds null",
    "zero": "an embedding of nothing but zeros",
    "dimensions": "embeddings of different dimensions",
    "empty-vector": "embeddings of dimension 0",
}


def _fields(text: str) -> Payload:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)  # noqa: TRY004 - the value is wrong, not its type: it is always text
    return found


_VALUES: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(("huge", "endless", "slow"), float),
    **dict.fromkeys(("merge", "message"), _fields),
}


class ServerFault(NamedTuple):
    """One fault: its name in `FAULTS`, and the value after the equals sign."""

    name: str
    value: str | None = None


def parse_fault(text: str) -> ServerFault:
    """Read `NAME` or `NAME=VALUE`.

    Raises:
        ConfigurationError: No fault has this name, or its value is none it can take.

    >>> parse_fault("429=1m30s")
    ServerFault(name='429', value='1m30s')
    """
    name, equals, value = text.partition("=")
    if name not in FAULTS:
        raise ConfigurationError(f"No fault is called `{name}`. {did_you_mean(name, FAULTS)}")
    try:
        if equals:
            _VALUES.get(name, str)(value)
    except ValueError:
        raise ConfigurationError(f"The fault `{name}` cannot take `{visible(value, limit=80)}`.") from None
    return ServerFault(name, value if equals else None)


def refusal(fault: ServerFault, *, key: str) -> tuple[int, dict[str, str], Payload] | None:
    """Status, headers and body of a fault that refuses the request; None where it does not.

    Args:
        fault: The fault.
        key: What the request carried as its key: a 401 repeats it, as careless providers do.
    """
    if fault.name in ("quota", "retry-ms", "retry-reset"):
        headers = {
            "retry-ms": {"retry-after-ms": fault.value or "1500"},
            "retry-reset": {"x-ratelimit-reset-requests": fault.value or "1s"},
        }.get(fault.name, {})
        if fault.name == "quota":
            return 429, headers, error_payload("You exceeded your current quota.", code="insufficient_quota")
        return 429, headers, error_payload(_REASONS[429], code="rate_limit_exceeded")
    if not fault.name.isdigit():
        return None
    status = int(fault.name)
    headers = {} if fault.value is None else {"Retry-After": fault.value}
    if status < 400:
        return status, headers | {"Location": "/v1/elsewhere"}, {}
    if status == 401:
        return status, headers, error_payload(f"Incorrect API key provided: {key}.", code="invalid_api_key")
    return status, headers, error_payload(_REASONS.get(status, f"Status {status}."))


def error_payload(message: str, *, code: str | None = None, param: str | None = None) -> Payload:
    """An error in the form of the OpenAI API."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def faulty_body(fault: ServerFault, payload: Payload) -> bytes | None:
    """The complete body of a fault that answers with status 200; None where the fault leaves the body alone.

    A fault of embeddings leaves a chat reply alone, and the other way round.
    """
    if fault.name in _EMBEDDING_FAULTS and not payload.get("data"):
        return None
    if (change := _CHANGES.get(fault.name)) is not None:
        return json.dumps(change(payload, fault.value)).encode()
    if (make := _BODIES.get(fault.name)) is not None:
        return make(payload, fault.value)
    return None


def _half(payload: Payload, _: str | None) -> bytes:
    body = json.dumps(payload).encode()
    return body[: len(body) // 2]


def _huge(payload: Payload, value: str | None) -> bytes:
    return json.dumps(payload | {"padding": "x" * int(float(value or "10") * 1_000_000)}).encode()


_BODIES: Mapping[str, Callable[[Payload, str | None], bytes]] = {
    "half": _half,
    "not-json": lambda _, __: b"<!doctype html><title>Bad gateway</title>",
    "empty": lambda _, __: b"",
    "huge": _huge,
    "deep": lambda _, __: b'{"padding":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "infinite": lambda payload, _: json.dumps(_first(payload, [float("inf")])).replace("Infinity", "1e999").encode(),
}


def _with_message(payload: Payload, fields: Payload) -> Payload:
    if not payload.get("choices"):
        return payload
    choice = payload["choices"][0]
    return payload | {"choices": [choice | {"message": choice["message"] | fields}]}


def _verdict(payload: Payload, score: str) -> Payload:
    return _with_message(payload, {"content": f'{{"reason": "As told.", "score": {score}}}'})


def _without_logprobs(payload: Payload, _: str | None) -> Payload:
    return payload | {"choices": [choice | {"logprobs": None} for choice in payload.get("choices", [])]}


def _entries(payload: Payload) -> list[Payload]:
    return list(payload.get("data", []))


def _first(payload: Payload, start: list[Any]) -> Payload:
    """The reply with the first numbers of the first vector replaced."""
    entries = _entries(payload)
    vector = entries[0]["embedding"]
    return payload | {"data": [entries[0] | {"embedding": start + vector[len(start) :]}, *entries[1:]]}


def _with_index(payload: Payload, index: Callable[[int], int | None]) -> Payload:
    entries = []
    for place, entry in enumerate(_entries(payload)):
        bare = {name: value for name, value in entry.items() if name != "index"}
        entries.append(bare if (number := index(place)) is None else bare | {"index": number})
    return payload | {"data": entries}


def _vectors(payload: Payload, vector: Callable[[int, list[float]], list[float]]) -> Payload:
    entries = [
        entry | {"embedding": vector(place, entry["embedding"])} for place, entry in enumerate(_entries(payload))
    ]
    return payload | {"data": entries}


_CHANGES: Mapping[str, Callable[[Payload, str | None], Any]] = {
    "list": lambda payload, _: [payload],
    "wrong-shape": lambda _, __: {"object": "something else"},
    "error-200": lambda _, __: error_payload("The model crashed."),
    "no-choices": lambda payload, _: payload | {"choices": []},
    "null-content": lambda payload, _: _with_message(payload, {"content": None}),
    "refusal": lambda payload, _: _with_message(payload, {"content": None, "refusal": "I cannot judge this."}),
    "bad-usage": lambda payload, _: payload | {"usage": {"prompt_tokens": -5, "completion_tokens": "many"}},
    "no-usage": lambda payload, _: {name: value for name, value in payload.items() if name != "usage"},
    "no-logprobs": _without_logprobs,
    "merge": lambda payload, value: payload | _fields(value or "{}"),
    "message": lambda payload, value: _with_message(payload, _fields(value or "{}")),
    "text": lambda payload, value: _with_message(payload, {"content": value or ""}),
    "score": lambda payload, value: _verdict(payload, value or "7"),
    "duplicate": lambda payload, _: _verdict(payload, '0.9, "score": 0.1'),
    "shuffled": lambda payload, _: payload | {"data": _entries(payload)[::-1]},
    "missing": lambda payload, _: payload | {"data": _entries(payload)[:-1]},
    "surplus": lambda payload, _: (
        payload | {"data": [*_entries(payload), _entries(payload)[0] | {"index": len(_entries(payload))}]}
    ),
    "partial-index": lambda payload, _: _with_index(payload, lambda place: place or None),
    "same-index": lambda payload, _: _with_index(payload, lambda _: 0),
    "no-index": lambda payload, _: _with_index(payload, lambda _: None),
    "nan": lambda payload, _: _first(payload, [float("nan")]),
    "overflow": lambda payload, _: _first(payload, [1e300]),
    "null-value": lambda payload, _: _first(payload, [None]),
    "zero": lambda payload, _: _vectors(payload, lambda _, vector: [0.0] * len(vector)),
    "dimensions": lambda payload, _: _vectors(payload, lambda place, vector: vector[place:]),
    "empty-vector": lambda payload, _: _vectors(payload, lambda _, __: []),
}
_EMBEDDING_FAULTS = frozenset(tuple(FAULTS)[tuple(FAULTS).index("shuffled") :])


async def send_with_fault(fault: ServerFault, request: web.Request, body: bytes) -> web.StreamResponse:
    """Send a healthy body in the manner of a fault.

    Args:
        fault: The fault; one that is no fault of the connection sends the body as it is.
        request: The request to answer.
        body: The reply.
    """
    if fault.name == "reset":
        _reset(request)
    elif fault.name in ("reset-body", "short"):
        return await _broken(request, body, reset=fault.name == "reset-body")
    elif fault.name == "endless":
        return await _endless(request, body, pace_s=float(fault.value or "1"))
    elif fault.name == "silent":
        await asyncio.Event().wait()
    elif fault.name == "slow":
        await asyncio.sleep(float(fault.value or "1"))
    return web.Response(body=body, content_type=JSON)


def _reset(request: web.Request) -> None:
    if request.transport is None:
        return
    connection: socket.socket = request.transport.get_extra_info("socket")
    # Lingering for no time makes closing a reset.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()


async def _broken(request: web.Request, body: bytes, *, reset: bool) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if reset:
        # The client must have the first half before the reset, which throws away what waits to be sent.
        await asyncio.sleep(0.02)
        _reset(request)
    elif request.transport is not None:
        request.transport.close()
    return response


async def _endless(request: web.Request, body: bytes, *, pace_s: float) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    await response.write(body[:-1])
    try:
        while True:
            await asyncio.sleep(pace_s)
            await response.write(b" ")
    except ConnectionError:
        return response
