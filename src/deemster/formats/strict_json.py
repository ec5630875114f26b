"""Reads JSON strictly: no NaN, no duplicate keys, bounded depth, no lone surrogates.

`json_value` is fast and knows no places. `json_document` is precise, and decides whatever the first refuses.
"""

from __future__ import annotations

import math
import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

import msgspec

from deemster.formats.document import DEPTH, Document, Reading

DIGITS = 4_000
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_NOT_FINITE = re.compile(r"-?(?:NaN|Infinity|inf|nan)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = msgspec.json.Encoder().encode


def quotes(data: bytes) -> int:
    r"""How many quotation marks delimit strings in valid JSON: two for each key and each string value.

    >>> quotes(rb'{"a":"\"\\","b":1}')
    6
    """
    if b"\\" not in data:
        return data.count(b'"')
    if b"\\\\" in data:
        data = data.replace(b"\\\\", b"")
    return data.count(b'"') - data.count(b'\\"')


def json_value(data: bytes) -> Any:
    """Decode JSON fast, or say that the precise reader must decide.

    A duplicate key is seen by counting: each key and string has two quotation marks, and a key that was dropped is
    missing when the value is encoded again.

    Raises:
        ValueError: The data is not JSON, or not certainly free of what is refused; depth is not looked at.
    """
    try:
        value = msgspec.json.decode(data)
        same = quotes(_encode(value)) == quotes(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not same:
        raise ValueError("a key is given twice")
    return value


def json_document(text: str, reading: Reading, *, depth: int = DEPTH, line: int = 1) -> Document:
    """Read JSON with the place of every value.

    Args:
        text: The whole file, or one line of it.
        reading: How the file is called and what its errors are.
        depth: Deepest nesting.
        line: The number of the first line.

    Raises:
        InputError: The text is not JSON, or holds what is refused; line and column are given.
    """
    parser = _Parser(text, reading, depth=depth, line=line)
    value = parser.document()
    return Document(value, file=reading.file, places=parser.places, text=text, first=line)


class _Parser:
    """A recursive reader that keeps the offset of every entry."""

    def __init__(self, text: str, reading: Reading, *, depth: int, line: int) -> None:
        self.places: dict[int, Any] = {}
        self._text = text
        self._reading = reading
        self._depth = depth
        self._line = line

    def document(self) -> Any:
        value, end = self._value(self._skip(0), 1)
        end = self._skip(end)
        if end != len(self._text):
            self._refuse("This is not JSON: something follows the end of the value.", end)
        return value

    def _refuse(self, message: str, at: int) -> Any:
        line = self._text.count("\n", 0, at)
        column = at - self._text.rfind("\n", 0, at)
        self._reading.refuse(message, line=line + self._line, column=column)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self._text, at)
        return found.end() if found else at

    def _value(self, at: int, depth: int) -> tuple[Any, int]:
        first = self._text[at : at + 1]
        if first == '"':
            return self._string(at)
        if first in ("{", "[") and first:
            if depth > self._depth:
                self._refuse(f"Nesting goes deeper than {DEPTH}.", at)
            return self._map(at, depth) if first == "{" else self._list(at, depth)
        for word, value in _WORDS.items():
            if self._text.startswith(word, at):
                return value, at + len(word)
        return self._number(at)

    def _number(self, at: int) -> tuple[Any, int]:
        found = _NUMBER.match(self._text, at)
        if found is None:
            if word := _NOT_FINITE.match(self._text, at):
                if not self._reading.keeps_not_finite:
                    self._refuse(f"`{word[0]}` is not a finite number. Use null, or quote it if it is text.", at)
                self._reading.has_not_finite = True
                return float(word[0]), word.end()
            what = "the end of the text" if at == len(self._text) else f"`{self._text[at]}`"
            self._refuse(f"This is not JSON: a value was expected, not {what}.", at)
            raise AssertionError
        if found[1] is None and found[2] is None:
            if len(found[0]) > DIGITS:
                self._refuse(f"The number has more than {DIGITS} digits. Quote it if it is text.", at)
            return int(found[0]), found.end()
        number = float(found[0])
        if not math.isfinite(number):
            self._refuse(f"`{found[0][:40]}` is too large for a number. Quote it if it is text.", at)
        return number, found.end()

    def _string(self, at: int) -> tuple[str, int]:
        try:
            value, end = scanstring(self._text, at + 1, True)
        except JSONDecodeError as error:
            return self._refuse(f"This is not JSON: {error.msg[:1].lower()}{error.msg[1:]}.", error.pos)  # type: ignore[no-any-return]
        if not self._reading.surrogates and not value.isascii() and _SURROGATE.search(value):
            self._refuse("The string holds a lone surrogate, which is no character.", at)
        return value, end

    def _map(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        value: dict[str, Any] = {}
        places: dict[str, int] = {}
        self.places[id(value)] = places
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "}":
            return value, at + 1
        while True:
            if self._text[at : at + 1] != '"':
                self._refuse("This is not JSON: a key in double quotes was expected.", at)
            key, end = self._string(at)
            if key in value:
                self._refuse(f"The key `{key[:80]}` is given twice.", at)
            places[key] = at
            at = self._skip(end)
            if self._text[at : at + 1] != ":":
                self._refuse("This is not JSON: a colon was expected after the key.", at)
            value[key], at = self._value(self._skip(at + 1), depth + 1)
            at = self._skip(at)
            mark = self._text[at : at + 1]
            if mark == "}":
                return value, at + 1
            if mark != ",":
                self._refuse("This is not JSON: a comma or `}` was expected.", at)
            at = self._skip(at + 1)

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        value: list[Any] = []
        places: list[int] = []
        self.places[id(value)] = places
        at = self._skip(at + 1)
        if self._text[at : at + 1] == "]":
            return value, at + 1
        while True:
            places.append(at)
            entry, at = self._value(at, depth + 1)
            value.append(entry)
            at = self._skip(at)
            mark = self._text[at : at + 1]
            if mark == "]":
                return value, at + 1
            if mark != ",":
                self._refuse("This is not JSON: a comma or `]` was expected.", at)
            at = self._skip(at + 1)
