"""What identifies a row: hashes over canonical JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from deemster.documents.canonical import canonical, encode, is_odd, is_plain

_BLOCK = 1024


class Pair(msgspec.Struct, gc=False):
    """What a row hash is about, in the order of its canonical form."""

    expected_output: Any
    input: Any


def row_digest(sample_input: Any, expected_output: Any, *, odd: bool = True) -> bytes:
    """The 32 bytes of a row hash.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.
    """
    if odd:
        data = canonical({"expected_output": expected_output, "input": sample_input})
    else:
        data = encode(Pair(expected_output, sample_input))
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
