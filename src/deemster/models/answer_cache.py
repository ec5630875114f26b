"""The cache of answers and vectors on disk; its key is the hash of all in a request that can change the answer."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.errors import ConfigurationError, Issue, plural
from deemster.formats import canonical
from deemster.records import Answer, Ask, Call, Usage

_T = TypeVar("_T")
_FLOATS = "<f4"
_IN_MEMORY = 16 << 20
# How many of the newest lines the index keeps in memory: 3 MB, and more than most runs ask.
_RECENT = 16_384
_TABLE = """
PRAGMA journal_mode = OFF;
CREATE TABLE line (key BLOB PRIMARY KEY, start INTEGER, length INTEGER) WITHOUT ROWID;
BEGIN;
"""
# A line is `{"key":"64 hex digits","check":"8 hex digits","value":...}`; the check is the CRC-32 of key and value.
_LINE = re.compile(rb'\{"key":"([0-9a-f]{64})","check":"([0-9a-f]{8})","value":(.*)\}\n', re.DOTALL)
_KEYS_VERSION = b"deemster.cache.v1\x00"
_encode = msgspec.json.Encoder().encode


def identity_prefix(identity: Mapping[str, Any]) -> bytes:
    """The hash of a client, which goes into the key of each of its requests.

    Args:
        identity: Everything that can change an answer beside the request: URL, model, extra parameters.

    Raises:
        TypeError: It holds a value that is not JSON.
    """
    return _KEYS_VERSION + hashlib.sha256(canonical(dict(identity))).digest()


def ask_key(prefix: bytes, ask: Ask) -> bytes:
    """The key of a question to one client. Its `role` and `once` do not count, because neither is sent.

    The order of the keys of a schema does count: models write them in that order.

    Args:
        prefix: From `identity_prefix`.
        ask: The question.

    Raises:
        UnicodeEncodeError: A message holds a lone surrogate.
    """
    parts: tuple[Any, ...] = (
        ask.messages,
        ask.schema,
        ask.temperature,
        ask.seed,
        ask.max_tokens,
        ask.logprobs,
        ask.sample,
        ask.again,
    )
    if ask.subject or ask.parameters is not None:
        parts += (ask.subject, ask.parameters)
    return hashlib.sha256(prefix + b"ask\x00" + _encode(parts)).digest()


def text_key(prefix: bytes, text: str) -> bytes:
    """The key of a text that one client embeds.

    Args:
        prefix: From `identity_prefix`.
        text: The text.

    Raises:
        UnicodeEncodeError: It holds a lone surrogate.
    """
    return hashlib.sha256(prefix + b"text\x00" + text.encode()).digest()


class StoredVector(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One text's vector.

    Attributes:
        vector: Its numbers, 32-bit little-endian floats as base64.
        model: The model that gave it.
        usage: Its part of what the call used.
        call: The call, with the run that made it.
    """

    vector: str
    model: str | None = None
    usage: Usage | None = None
    call: Call | None = None

    def values(self) -> npt.NDArray[np.float32]:
        """The numbers of the vector.

        Raises:
            ValueError: The text is not base64, or not a whole number of floats.
        """
        return np.frombuffer(base64.b64decode(self.vector, validate=True), dtype=_FLOATS).astype(np.float32)


_answer = msgspec.json.Decoder(Answer).decode
_vector = msgspec.json.Decoder(StoredVector).decode


class _LineIndex:
    """Where each line stands, by key: the newest in a dict, the others in a temporary SQLite database.

    A dict of a million keys takes 200 MB. SQLite moves its database to a file as it grows.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, tuple[int, int]] = {}
        self._older: sqlite3.Connection | None = None

    def __len__(self) -> int:
        if self._older is None:
            return len(self._recent)
        self._move(self._older)
        (count,) = self._older.execute("SELECT count(*) FROM line").fetchone()
        return int(count)

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Start and length of the line with a key, or None."""
        found = self._recent.get(key)
        if found is None and self._older is not None:
            found = self._older.execute("SELECT start, length FROM line WHERE key = ?", (key,)).fetchone()
        return found

    def add(self, key: bytes, start: int, length: int) -> None:
        """Note where a line stands."""
        self._recent[key] = (start, length)
        if len(self._recent) >= _RECENT:
            if self._older is None:
                self._older = sqlite3.connect("", isolation_level=None, check_same_thread=False)
                self._older.executescript(_TABLE)
            self._move(self._older)

    def remove(self, key: bytes) -> None:
        """Forget a line."""
        self._recent.pop(key, None)
        if self._older is not None:
            self._older.execute("DELETE FROM line WHERE key = ?", (key,))

    def close(self) -> None:
        """Close the database."""
        if self._older is not None:
            self._older.close()

    def _move(self, older: sqlite3.Connection) -> None:
        # Sorted rows take a fraction of the time.
        rows = [(key, *place) for key, place in sorted(self._recent.items())]
        older.executemany("INSERT OR REPLACE INTO line VALUES (?, ?, ?)", rows)
        self._recent.clear()


class Cache:
    """Answers by key, in a file of JSON lines that is only ever appended to.

    Each line carries a check sum. The cache passes over a line that a killed process left half-written, or that is
    damaged, and says so in `notes`. Several processes may append to one file: a line is written in one piece.

    Args:
        path: The file. It is made with its folder where there is none, readable by its owner only. None for a cache
            that goes with the object: small in memory, otherwise a temporary file.

    Attributes:
        notes: What a person should know about the file.

    Raises:
        ConfigurationError: The file cannot be opened.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = Path("(temporary)" if path is None else path)
        self.notes: list[str] = []
        self._lines = _LineIndex()
        self._is_writable = True
        self._ends_torn = False
        self._appends = path is not None
        self._file: IO[bytes]
        if path is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - `close` closes it
            self._close = weakref.finalize(self, _close_all, self._file, self._lines)
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.fdopen(os.open(self.path, flags, 0o600), "r+b", buffering=0)
            self._close = weakref.finalize(self, _close_all, self._file, self._lines)
            self._ends_torn = self._index()
        except OSError as error:
            message = f"The cache cannot be opened: {error.strerror or error}."
            raise ConfigurationError(Issue(message, str(path))) from None

    def __len__(self) -> int:
        return len(self._lines)

    def __contains__(self, key: bytes) -> bool:
        return self._lines.find(key) is not None

    def answer(self, key: bytes) -> Answer | None:
        """The answer kept under a key, or None."""
        return self._load(key, _answer)

    def vector(self, key: bytes) -> StoredVector | None:
        """The vector kept under a key, or None."""
        return self._load(key, _vector)

    def keep(self, key: bytes, value: Answer | StoredVector) -> None:
        """Append an answer or a vector. Where that fails, note it and keep no more.

        The line is in the file when this returns, so that a kill loses only what was under way.

        Args:
            key: The hash of the request.
            value: The answer or vector, with what it used and which call of which run it was.
        """
        if not self._is_writable:
            return
        try:
            line = _build_line(key, _encode(value))
        except UnicodeEncodeError:
            return
        data = b"\n" + line if self._ends_torn else line
        try:
            if not self._appends:
                self._file.seek(0, os.SEEK_END)
            written = self._file.write(data)
            self._ends_torn = written != len(data)
            if self._ends_torn:
                self._stop("the disk took only a part of a line")
            else:
                self._lines.add(key, self._file.tell() - len(line), len(line))
        except (OSError, sqlite3.Error) as error:
            self._stop(getattr(error, "strerror", None) or str(error))

    def close(self) -> None:
        """Close the file and its index. A cache that is garbage does so itself."""
        self._close()

    def _stop(self, reason: str) -> None:
        self._is_writable = False
        self.notes.append(f"{self.path}: nothing more is kept: {reason}.")

    def _index(self) -> bool:
        """Note where each line stands. True where the file ends inside a line."""
        start, unreadable, line = 0, 0, b"\n"
        with self.path.open("rb") as file:
            for line in file:
                if (parsed := _parse_line(line)) is not None:
                    self._lines.add(parsed[0], start, len(line))
                elif line.strip() and line.endswith(b"\n"):
                    unreadable += 1
                start += len(line)
        if unreadable:
            verb = "is" if unreadable == 1 else "are"
            self.notes.append(f"{self.path}: {plural(unreadable, 'line')} cannot be read and {verb} passed over.")
        if not line.endswith(b"\n"):
            self.notes.append(f"{self.path}: the last line is incomplete and is passed over.")
            return True
        return False

    def _load(self, key: bytes, decode: Callable[[bytes], _T]) -> _T | None:
        if (place := self._lines.find(key)) is None:
            return None
        start, length = place
        self._file.seek(start)
        parsed = _parse_line(self._file.read(length))
        if parsed is not None and parsed[0] == key:
            try:
                return decode(parsed[1])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        self._lines.remove(key)
        self.notes.append(f"{self.path}: the answer {key.hex()[:12]} is damaged and is asked for again.")
        return None


def store_vector(
    values: npt.NDArray[np.float32], model: str | None, *, call: Call | None = None, run: str | None = None
) -> StoredVector:
    """A vector as the cache keeps it.

    Args:
        values: Its numbers.
        model: The model that gave it.
        call: The part of a call that it took.
        run: The run that made the call.
    """
    text = base64.b64encode(values.astype(_FLOATS).tobytes()).decode()
    if call is None:
        return StoredVector(vector=text, model=model)
    return StoredVector(vector=text, model=model, usage=call.usage, call=Call(call.id, run=run))


def _close_all(file: IO[bytes], lines: _LineIndex) -> None:
    file.close()
    lines.close()


def _build_line(key: bytes, value: bytes) -> bytes:
    name = key.hex().encode()
    return b'{"key":"%b","check":"%b","value":%b}\n' % (name, _check_sum(name, value), value)


def _parse_line(line: bytes) -> tuple[bytes, bytes] | None:
    """Key and value of a line; None where the line is damaged."""
    found = _LINE.fullmatch(line)
    if found is None or found[2] != _check_sum(found[1], found[3]):
        return None
    return binascii.unhexlify(found[1]), found[3]


def _check_sum(name: bytes, value: bytes) -> bytes:
    return b"%08x" % binascii.crc32(value, binascii.crc32(name))
