"""Cache keys: the hash of everything in a request that can change its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.formats import canonical
from deemster.records import Ask

_VERSION = b"deemster.cache.v1\x00"
_encode = msgspec.json.Encoder().encode


def identity_prefix(identity: Mapping[str, Any]) -> bytes:
    """The hash of a client, which goes into the key of each of its requests.

    Args:
        identity: Everything that can change an answer beside the request: URL, model, extra parameters.

    Raises:
        TypeError: It holds a value that is not JSON.
    """
    return _VERSION + hashlib.sha256(canonical(dict(identity))).digest()


def ask_key(prefix: bytes, ask: Ask) -> bytes:
    """The key of a question to one client. Its `role` and `once` do not count, because neither is sent.

    The order of the keys of a schema does count: models write them in that order.

    Args:
        prefix: From `prefix_of`.
        ask: The question.

    Raises:
        UnicodeEncodeError: A message holds a lone surrogate.
    """
    parts = (
        ask.messages,
        ask.schema,
        ask.temperature,
        ask.seed,
        ask.max_tokens,
        ask.logprobs,
        ask.sample,
        ask.again,
    )
    return hashlib.sha256(prefix + b"ask\x00" + _encode(parts)).digest()


def text_key(prefix: bytes, text: str) -> bytes:
    """The key of a text that one client embeds.

    Args:
        prefix: From `prefix_of`.
        text: The text.

    Raises:
        UnicodeEncodeError: It holds a lone surrogate.
    """
    return hashlib.sha256(prefix + b"text\x00" + text.encode()).digest()
