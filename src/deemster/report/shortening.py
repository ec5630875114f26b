"""Keeping reports readable: no text above 64 KiB stands in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

LONGEST = 64 * 1024
# A store leaves out what is larger; a report that was never stored shows the same.
LARGEST = 1 << 20
_T = TypeVar("_T")
_encode = msgspec.json.Encoder(enc_hook=lambda value: dict(value) if isinstance(value, Mapping) else str(value)).encode


def cut(text: str) -> str:
    """Text of at most 64 KiB of UTF-8, cut between characters."""
    if len(text) * 4 <= LONGEST:
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")


def shortened(value: Any) -> Any:
    """A JSON value in which every text has at most 64 KiB; the very same one where none has more.

    >>> shortened({"a": ["b"]})
    {'a': ['b']}
    """
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        found = {key: shortened(entry) for key, entry in value.items()}
        return value if all(found[key] is value[key] for key in found) else found
    if isinstance(value, (list, tuple)):
        each = [shortened(entry) for entry in value]
        return value if all(now is before for now, before in zip(each, value, strict=True)) else each
    return value


def attached(value: _T) -> _T | None:
    """What came with an output: its texts cut, or nothing where it is above 1 MiB as a whole.

    Args:
        value: The passages or the trajectory; None where there are none.
    """
    if value is None:
        return None
    try:
        size = len(_encode(value))
    except (UnicodeEncodeError, OverflowError, ValueError):
        return value
    if size <= LONGEST:
        return value
    if size > LARGEST:
        return None
    if isinstance(value, msgspec.Struct):
        plain = msgspec.to_builtins(value)
        less = shortened(plain)
        return value if less is plain else msgspec.convert(less, type(value))
    short: _T = shortened(value)
    return short
