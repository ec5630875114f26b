"""Cuts the long texts of a report: 64 KiB of each is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from deemster.formats.json_values import json_bytes

LONGEST = 64 * 1024
# A store leaves out what is larger; a report that was never stored shows the same.
LARGEST = 1 << 20
# A character takes at most four bytes.
_SURELY = LONGEST // 4
_T = TypeVar("_T")


def cut_text(text: str) -> str:
    """Text of at most 64 KiB of UTF-8, cut between characters."""
    if len(text) <= _SURELY:
        return text
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= LONGEST else data[:LONGEST].decode("utf-8", "ignore")


def shorten_texts(value: Any) -> Any:
    """A JSON value in which every text has at most 64 KiB; the very same one where none has more.

    >>> shorten_texts({"a": ["b"]})
    {'a': ['b']}
    """
    if _is_short(value):
        return value
    if isinstance(value, str):
        return cut_text(value)
    if isinstance(value, Mapping):
        return {key: shorten_texts(entry) for key, entry in value.items()}
    return [shorten_texts(entry) for entry in value]


def _is_short(value: Any) -> bool:
    """Whether no text in a JSON value has more than 64 KiB."""
    if isinstance(value, str):
        return cut_text(value) is value
    entries: Iterable[Any] = ()
    if isinstance(value, Mapping):
        entries = value.values()
    elif isinstance(value, (list, tuple)):
        entries = value
    # Most entries are short texts. A list comprehension is faster here than a generator.
    return all([(type(entry) is str and len(entry) <= _SURELY) or _is_short(entry) for entry in entries])  # noqa: C419


def shorten_attachment(value: _T) -> _T | None:
    """What came with an output: its texts cut, or nothing where it is above 1 MiB as a whole.

    Args:
        value: The passages or the trajectory; None where there are none.
    """
    if value is None:
        return None
    try:
        size = len(json_bytes(value))
    except (UnicodeEncodeError, OverflowError, ValueError):
        return value
    if size <= LONGEST:
        return value
    if size > LARGEST:
        return None

    if isinstance(value, msgspec.Struct):
        plain = msgspec.to_builtins(value)
        shortened = shorten_texts(plain)
        return value if shortened is plain else msgspec.convert(shortened, type(value))
    short_texts: _T = shorten_texts(value)
    return short_texts
