"""One way to write a value as JSON, so that equal values have equal hashes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from deemster.records import FrozenDict

_BLOCK = 1024
SCALARS = frozenset({str, int, bool, type(None)})
_encode = msgspec.json.Encoder(order="sorted").encode


class Pair(msgspec.Struct, gc=False):
    """What a row hash is about, in the order of its canonical form."""

    expected_output: Any
    input: Any


def is_odd(number: float) -> bool:
    """Whether a float is written with an exponent, where the fast encoder and the canonical form differ."""
    return not (number == 0 or 1e-4 <= abs(number) < 1e16)


def is_plain(value: Any, room: int, floats: list[float]) -> bool:
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
            if type(entry) not in SCALARS and not is_plain(entry, room - 1, floats):
                return False
        return True
    if kind is list:
        if not room:
            return False
        return all(type(entry) in SCALARS or is_plain(entry, room - 1, floats) for entry in value)
    if kind is float and math.isfinite(value):
        floats.append(value)
        return True
    return False


def canonical(value: Any, *, odd: bool = True) -> bytes:
    """Canonical JSON: UTF-8, keys by code point, no spaces, non-ASCII kept, floats in shortest form.

    Args:
        value: A JSON value.
        odd: Whether it may hold floats that are written with an exponent; False is faster.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> canonical({"b": 1.0, "a": [None, "é"]}).decode()
    '{"a":[null,"é"],"b":1.0}'
    """
    if odd:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
    return _encode(value)


def row_digest(sample_input: Any, expected_output: Any, *, odd: bool = True) -> bytes:
    """The 32 bytes of a row hash.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.
    """
    if odd:
        data = canonical({"expected_output": expected_output, "input": sample_input})
    else:
        data = _encode(Pair(expected_output, sample_input))
    return hashlib.sha256(data).digest()


def row_hash(sample_input: Any, expected_output: Any) -> str:
    """The SHA-256 of canonical JSON of expected output and input, in lower-case hex.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> row_hash({"lang": "en", "question": "How long do I have to return it?"}, "30 days")
    '57ffec28cbc4e19794990d8b0777b882467503fccd2e27e184d4574d1582955b'
    """
    return row_digest(sample_input, expected_output).hex()


def list_hash(rows: Iterable[Sequence[Any]]) -> str:
    """The SHA-256 of canonical JSON of a list, read once and not kept."""
    digest = hashlib.sha256(b"[")
    separator = b""
    for row in rows:
        floats: list[float] = []
        # Most rows end in an empty map and begin with texts.
        *texts, last = row
        is_fast = not last or (is_plain(last, 99, floats) and not any(map(is_odd, floats)))
        is_fast = is_fast and all(type(text) is str for text in texts)
        digest.update(separator + canonical(row, odd=not is_fast))
        separator = b","
    digest.update(b"]")
    return digest.hexdigest()


class RowHashes(Sequence[str]):
    """Row hashes by position, kept as bytes and shown as hex."""

    def __init__(self, digests: bytes | bytearray) -> None:
        self._digests = digests

    def __len__(self) -> int:
        return len(self._digests) // 32

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self._digests), 32 * _BLOCK):
            text = self._digests[start : start + 32 * _BLOCK].hex()
            for at in range(0, len(text), 64):
                yield text[at : at + 64]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        return self._digests[position * 32 : position * 32 + 32].hex()
