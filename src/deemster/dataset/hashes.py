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
    return hashlib.sha256(row_body(sample_input, expected_output, odd=odd)).digest()


def row_body(sample_input: Any, expected_output: Any, *, odd: bool = True) -> bytes:
    """What a row hash is the hash of: canonical JSON of expected output and input.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.
    """
    if odd:
        return canonical({"expected_output": expected_output, "input": sample_input})
    return encode(Pair(expected_output, sample_input))


def row_hash(sample_input: Any, expected_output: Any) -> str:
    """The SHA-256 of canonical JSON of expected output and input, in lower-case hex.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> row_hash({"lang": "en", "question": "How long do I have to return it?"}, "30 days")
    '57ffec28cbc4e19794990d8b0777b882467503fccd2e27e184d4574d1582955b'
    """
    return row_digest(sample_input, expected_output).hex()


class ListHash:
    """The SHA-256 of canonical JSON of a list that comes entry by entry.

    >>> hashes = ListHash()
    >>> hashes.add(b"[]")
    >>> hashes.hexdigest() == hashlib.sha256(b"[[]]").hexdigest()
    True
    """

    def __init__(self) -> None:
        self._digest = hashlib.sha256(b"[")
        self._separator = b""

    def add(self, entry: bytes) -> None:
        """Take the next entry, as canonical JSON."""
        self._digest.update(self._separator + entry)
        self._separator = b","

    def hexdigest(self) -> str:
        """The hash of the list as it stands, in lower-case hex."""
        whole = self._digest.copy()
        whole.update(b"]")
        return whole.hexdigest()


def list_hash(rows: Iterable[Sequence[Any]]) -> str:
    """The SHA-256 of canonical JSON of a list, read once and not kept."""
    hashes = ListHash()
    for row in rows:
        floats: list[float] = []
        # Most rows end in an empty map and begin with texts.
        *texts, last = row
        is_fast = not last or (is_plain(last, 99, floats) and not any(map(is_odd, floats)))
        is_fast = is_fast and all(type(text) is str for text in texts)
        hashes.add(canonical(row, odd=not is_fast))
    return hashes.hexdigest()


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
