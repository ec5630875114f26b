"""Writes the canonical JSON of a report, an entry of a long list on a line: the same report gives the same bytes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from json.encoder import encode_basestring
from typing import Any

import msgspec
import re2

_COMMON = {0.0: "0.0", 1.0: "1.0", 0.5: "0.5"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(order="deterministic")
# Numbers that msgspec may write otherwise: more than nine decimals, an exponent, a fraction behind so many digits that
# its shortest form is not its rounded one, a negative zero, money. Every byte of a report passes here: re2 takes an
# eighth of the time of re.
_ODD = re2.compile(
    rb'(?m)(?:^|[:,\[])(?:-?[0-9]+(?:\.[0-9]{10}|(?:\.[0-9]+)?[eE])|-?[0-9]{7,}\.|-0\.0[^0-9])|"cost_usd":[^n]'
)
_PLACES = 9
# The shortest text of a fraction between 0 and 1 with more than nine decimals.
_SHORT = len("0.1234567890")
_BATCH = 64
# Between the entries of a long list, each of which is one line.
_BETWEEN = b",\n    "
_quoted: Callable[[str], str] = encode_basestring


def json_number(value: float | Decimal, *, places: int = _PLACES) -> str:
    """A number with at most so many decimals, half to even, and at least one; no exponent, no negative zero.

    >>> json_number(2 / 3), json_number(1.0), json_number(0.00001), json_number(-0.0)
    ('0.666666667', '1.0', '0.00001', '0.0')
    """
    text = f"{value:.{places}f}".rstrip("0")
    if text.endswith("."):
        text += "0"
    return "0.0" if text == "-0.0" else text


def _rounded(text: str) -> float:
    # A zero that is negative becomes a plain one.
    return float(text) if len(text) < _SHORT else round(float(text), _PLACES) + 0.0


_ROUNDED = msgspec.json.Decoder(float_hook=_rounded)
_AS_DECODED = msgspec.json.Encoder()


def indented_json(value: Any, *, level: int = 0) -> str:
    """A value as indented JSON: records in the order of their fields, maps by code point.

    Args:
        value: Plain data, or structs of it.
        level: How deep the value stands already.

    Raises:
        TypeError: The value is neither.
    """
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is float:
        return _COMMON.get(value) or json_number(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        every = ((name, getattr(value, field)) for name, field in names)
        entries = ((name, entry) for name, entry in every if entry is not msgspec.UNSET)
        if value.__struct_config__.omit_defaults:
            entries = ((name, entry) for name, entry in entries if entry is not None or name in _required(type(value)))
        return _braced(entries, level)
    if isinstance(value, Mapping):
        return _braced(((key, value[key]) for key in sorted(value)), level)
    if isinstance(value, (list, tuple)):
        return _bracketed(value, level)
    if isinstance(value, Decimal):
        return json_number(value, places=8)
    raise TypeError(f"{kind.__name__} has no canonical form.")


@functools.cache
def _required(kind: Any) -> frozenset[str]:
    """The names that are always written; others, which earlier versions did not know, only where they say something."""
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if field.required)


def _braced(entries: Iterator[tuple[str, Any]], level: int) -> str:
    gap = "\n" + "  " * (level + 1)
    inner = f",{gap}".join(f"{_quoted(key)}: {indented_json(value, level=level + 1)}" for key, value in entries)
    return f"{{{gap}{inner}\n{'  ' * level}}}" if inner else "{}"


def _bracketed(values: list[Any] | tuple[Any, ...], level: int) -> str:
    if not values:
        return "[]"
    gap = "\n" + "  " * (level + 1)
    inner = f",{gap}".join([indented_json(value, level=level + 1) for value in values])
    return f"[{gap}{inner}\n{'  ' * level}]"


def json_pieces(fields: Iterator[tuple[str, Any]]) -> Iterator[bytes]:
    """A whole document in pieces, so that long lists never stand in memory.

    Args:
        fields: The top-level names and values; a value that is an iterator is written as a list, an entry a line.
    """
    opening = "{\n"
    for name, value in fields:
        yield _utf8(f"{opening}  {_quoted(name)}: ")
        opening = ",\n"
        if isinstance(value, Iterator):
            yield from _streamed(value)
        else:
            yield _utf8(indented_json(value, level=1))
    yield b"\n}\n"


def _streamed(values: Iterator[Any]) -> Iterator[bytes]:
    opening = b"[\n    "
    while batch := list(islice(values, _BATCH)):
        yield opening + _entries(batch)
        opening = _BETWEEN
    yield b"[]" if opening.startswith(b"[") else b"\n  ]"


def _entries(batch: list[Any]) -> bytes:
    """Entries of a long list, each on a line, by msgspec where that gives the canonical bytes."""
    try:
        quick = _ENCODER.encode_lines(batch)
    except (OverflowError, UnicodeEncodeError):
        quick = None
    if quick is not None and _ODD.search(quick):
        # Mostly it is a fraction such as two thirds, and what is left of it after nine decimals is written as wanted.
        quick = _AS_DECODED.encode_lines(_ROUNDED.decode_lines(quick))
        quick = None if _ODD.search(quick) else quick
    if quick is not None:
        return quick.removesuffix(b"\n").replace(b"\n", _BETWEEN)
    if len(batch) == 1:
        return msgspec.json.format(_utf8(indented_json(batch[0])), indent=-1)
    return _BETWEEN.join([_entries([entry]) for entry in batch])


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text).encode()
