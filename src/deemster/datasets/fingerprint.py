"""Computes fingerprints: SHA-256 over canonical JSON (RFC 8785) of a row and of a list of rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from deemster.formats.canonical_json import canonical, encode_sorted
from deemster.formats.plain_floats import has_exponent, plain_floats

# Numbers apart, this encoder writes strings and words as the RFC does; keys are sorted before.
_text = json.JSONEncoder(ensure_ascii=False).encode


class Canonical(str):
    """A part of a value that is canonical text already, so that what many values share is written once."""

    __slots__ = ()


def rfc8785(value: Any) -> bytes:
    r"""Canonical JSON by RFC 8785: keys by UTF-16 code unit, numbers as ECMAScript writes them.

    A whole number that no double holds exactly is outside of the RFC; its digits are written out, so that two of them
    differ.

    Args:
        value: A JSON value.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> rfc8785({"b": 1.0, "a": [1e21, 1e-7, "\n"]}).decode()
    '{"a":[1e+21,1e-7,"\\n"],"b":1}'
    """
    return _written(value).encode()


def digest(value: Any) -> str:
    """The SHA-256 of canonical JSON, in lower-case hex.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.

    >>> digest({})
    '44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return hashlib.sha256(rfc8785(value)).hexdigest()


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value if isinstance(value, Canonical) else _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, dict):
        keys = sorted(value, key=_units)
        return "{" + ",".join(f"{_text(key)}:{_written(value[key])}" for key in keys) + "}"
    return "[" + ",".join(map(_written, value)) + "]"


def _units(key: str) -> bytes:
    return key.encode("utf-16-be")


def number_text(number: float) -> str:
    """A double as ECMAScript writes it.

    >>> number_text(333333333.33333329), number_text(1e30), number_text(4.50), number_text(-0.0)
    ('333333333.3333333', '1e+30', '4.5', '0')
    """
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, power = f"{abs(number)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    # The value is 0.<digits> times ten to the place.
    place = len(whole) + int(power or 0)
    digits = whole + fraction
    place -= len(digits) - len(digits.lstrip("0"))
    digits = digits.strip("0")
    if len(digits) <= place <= 21:
        return sign + digits.ljust(place, "0")
    if 0 < place <= 21:
        return f"{sign}{digits[:place]}.{digits[place:]}"
    if -6 < place <= 0:
        return f"{sign}0.{digits.rjust(len(digits) - place, '0')}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{place - 1:+d}"


_BLOCK = 1024


class Pair(msgspec.Struct, gc=False):
    """What a row hash is about, in the order of its canonical form."""

    expected_output: Any
    input: Any


def row_digest(sample_input: Any, expected_output: Any, *, exponents: bool = True) -> bytes:
    """The 32 bytes of a row hash.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.
    """
    return hashlib.sha256(row_body(sample_input, expected_output, exponents=exponents)).digest()


def row_body(sample_input: Any, expected_output: Any, *, exponents: bool = True) -> bytes:
    """What a row hash is the hash of: canonical JSON of expected output and input.

    Raises:
        UnicodeEncodeError: A string holds a lone surrogate.
    """
    if exponents:
        return canonical({"expected_output": expected_output, "input": sample_input})
    return encode_sorted(Pair(expected_output, sample_input))


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
        # Most rows end in an empty map and begin with texts.
        *texts, last = row
        floats = plain_floats(last, 99) if last else []
        may_have_exponents = floats is None or any(map(has_exponent, floats))
        is_fast = not may_have_exponents and all(type(text) is str for text in texts)
        hashes.add(canonical(row, exponents=not is_fast))
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
