"""Hashes over canonical JSON as RFC 8785 has it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

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
