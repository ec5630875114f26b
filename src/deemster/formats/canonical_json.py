"""Writes canonical JSON, where equal values are equal bytes, and YAML flow text."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from deemster.records import FrozenDict

SCALARS = frozenset({str, int, bool, type(None)})
encode = msgspec.json.Encoder(order="sorted").encode


def has_exponent(number: float) -> bool:
    """Whether a float is written with an exponent, where the fast encoder and the canonical form differ."""
    return not (number == 0 or 1e-4 <= abs(number) < 1e16)


def plain_floats(value: Any, depth: int) -> list[float] | None:
    """The floats in a value; None where it is not JSON of at most so much depth."""
    floats: list[float] = []
    return floats if _is_plain(value, depth, floats) else None


def _is_plain(value: Any, room: int, floats: list[float]) -> bool:
    """Whether a value is JSON of at most so much depth; the floats it holds are added to a list."""
    kind = type(value)
    if kind in SCALARS:
        return True
    if kind is dict or kind is FrozenDict:
        if not room:
            return False
        for key, entry in value.items():
            if type(key) is not str:
                return False
            if type(entry) not in SCALARS and not _is_plain(entry, room - 1, floats):
                return False
        return True
    if kind is list:
        if not room:
            return False
        for entry in value:  # noqa: SIM110 - half the time of `all`
            if type(entry) not in SCALARS and not _is_plain(entry, room - 1, floats):
                return False
        return True
    if kind is float and math.isfinite(value):
        floats.append(value)
        return True
    return False


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
    return encode(value)


# What libyaml refuses as it stands, or takes for a line end; inside JSON text such a character is always in a string.
_UNWRITABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_LONGEST_KEY = 1000


def json_text(value: Any) -> str:
    """A value as JSON, non-ASCII characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def flow(value: Any) -> str:
    """A value in the flow style of YAML: JSON, but for what libyaml cannot read in it."""
    return _UNWRITABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", _flow_text(value))


def _flow_text(value: Any) -> str:
    if isinstance(value, dict):
        entries = (
            f"{'? ' * (len(key) > _LONGEST_KEY)}{json_text(key)}: {_flow_text(entry)}" for key, entry in value.items()
        )
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow_text, value)) + "]"
    return json_text(value)
