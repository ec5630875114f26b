"""Keeping reports readable: no text above 64 KiB stands in one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

LONGEST = 64 * 1024
# A store leaves out what is larger; a report that was never stored shows the same.
LARGEST = 1 << 20
# A character takes at most four bytes.
_SURELY = LONGEST // 4
_T = TypeVar("_T")
_encode = msgspec.json.Encoder(enc_hook=lambda value: dict(value) if isinstance(value, Mapping) else str(value)).encode


def cut(text: str) -> str:
    """Text of at most 64 KiB of UTF-8, cut between characters."""
    if len(text) <= _SURELY:
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")


def shortened(value: Any) -> Any:
    """A JSON value in which every text has at most 64 KiB; the very same one where none has more.

    >>> shortened({"a": ["b"]})
    {'a': ['b']}
    """
    if _is_short(value):
        return value
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, Mapping):
        return {key: shortened(entry) for key, entry in value.items()}
    return [shortened(entry) for entry in value]


def _is_short(value: Any) -> bool:
    """Whether no text in a JSON value has more than 64 KiB."""
    if isinstance(value, str):
        return cut(value) is value
    entries = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    # Most are texts of a few words; a list of answers takes less time than answers one by one.
    return all([(type(entry) is str and len(entry) <= _SURELY) or _is_short(entry) for entry in entries])  # noqa: C419


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
