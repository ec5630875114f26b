"""Writes JSON: canonical, where equal values are equal bytes, and as text."""

from __future__ import annotations

import json
from typing import Any

import msgspec

encode_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(value: Any, *, exponents: bool = True) -> bytes:
    """Canonical JSON: UTF-8, keys by code point, no spaces, non-ASCII kept, floats in shortest form.

    Args:
        value: A JSON value.
        exponents: Whether it may hold floats that are written with an exponent; False is faster.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> canonical({"b": 1.0, "a": [None, "é"]}).decode()
    '{"a":[null,"é"],"b":1.0}'
    """
    if exponents:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    return encode_sorted(value)


def json_text(value: Any) -> str:
    """A value as JSON, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False)
