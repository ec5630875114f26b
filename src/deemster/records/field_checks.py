"""Holds records to the types and constraints that they declare, whether a file or Python code gives the values."""

from __future__ import annotations

import functools
import re
from typing import Any, TypeVar

import msgspec

from deemster.errors import did_you_mean

S = TypeVar("S", bound=msgspec.Struct)
_REFUSAL = re.compile(r"^(?P<message>.*?)(?: - at `(?P<path>.*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


@functools.lru_cache(maxsize=64)
def bare_shape(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """A struct with the same fields and without `__post_init__`."""
    fields = [(field.name, field.type, field.default) for field in msgspec.structs.fields(kind)]
    return msgspec.defstruct(kind.__name__, fields, kw_only=True)


def read_refusal(error: msgspec.ValidationError) -> tuple[tuple[str | int, ...], str]:
    """The path and the text of an error of the typed decoder."""
    found = _REFUSAL.match(str(error))
    steps = _STEP.findall((found["path"] if found else None) or "")
    text = (found["message"] if found else str(error)).rstrip(".")
    return tuple(key or int(index) for key, index in steps if index != "..."), text[:1].lower() + text[1:]


def check_fields(record: msgspec.Struct) -> None:
    """Refuse a record that holds what its declaration does not allow.

    Raises:
        ValueError: It does; the message names the first such field.
    """
    try:
        msgspec.convert(record, bare_shape(type(record)), from_attributes=True)
    except msgspec.ValidationError as error:
        raise _reworded(error) from None


def decode_record(value: Any, kind: type[S], *, noun: str) -> S:
    """A map as the record that it stands for.

    Args:
        value: The map.
        kind: The record.
        noun: What messages call it.

    Raises:
        ValueError: It is no such record; the message says why.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        unknown = _UNKNOWN.match(str(error))
        if unknown:
            hint = did_you_mean(unknown[1], kind.__struct_fields__)
            raise ValueError(f"`{unknown[1]}` is no key of {noun}. {hint}") from None
        raise _reworded(error) from None


def _reworded(error: msgspec.ValidationError) -> ValueError:
    path, text = read_refusal(error)
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
    return ValueError(f"{name}: {text}." if name else f"{text[:1].upper()}{text[1:]}.")
