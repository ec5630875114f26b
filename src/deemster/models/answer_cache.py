"""The cache of answers on disk, keyed by the hash of the request."""

from __future__ import annotations

import binascii
import os
import re
import tempfile
from array import array
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from deemster.errors import ConfigurationError, Issue, counted
from deemster.models._stored_answers import StoredVector
from deemster.records import Answer

_SMALLEST = 1024
_EIGHT_BYTES = (1 << 64) - 1


class Place(NamedTuple):
    """A stretch of a file."""

    start: int
    length: int


class Places:
    """Places by the eight bytes of a key's hash; whoever reads a line compares the key itself.

    Two of a billion keys have one hash about once in forty such tables. Open addressing with linear probing, at most
    two thirds full.
    """

    def __init__(self) -> None:
        self._count = 0
        self._clear(_SMALLEST)

    def _clear(self, size: int) -> None:
        self._mask = size - 1
        self._names = array("Q", bytes(8 * size))
        self._starts = array("Q", bytes(8 * size))
        # A length of 0 is a place that was taken back.
        self._lengths = array("I", bytes(4 * size))
        self._used, self._most = 0, 2 * size // 3

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: bytes) -> bool:
        return self._lengths[self._slot(_name(key))] > 0

    def get(self, key: bytes) -> Place | None:
        """The place of a key, or None."""
        at = self._slot(_name(key))
        length = self._lengths[at]
        return Place(self._starts[at], length) if length else None

    def put(self, key: bytes, place: Place) -> None:
        """Note the place of a key, in place of the one it had."""
        if self._used >= self._most:
            self._grow()
        self._put(_name(key), place)

    def drop(self, key: bytes) -> None:
        """Forget the place of a key."""
        at = self._slot(_name(key))
        if self._lengths[at]:
            self._lengths[at] = 0
            self._count -= 1

    def _put(self, name: int, place: Place) -> None:
        at = self._slot(name)
        self._used += not self._names[at]
        self._count += not self._lengths[at]
        self._names[at], self._starts[at], self._lengths[at] = name, *place

    def _slot(self, name: int) -> int:
        """Where a name stands, or would stand."""
        names, mask = self._names, self._mask
        at = name & mask
        while (found := names[at]) and found != name:
            at = (at + 1) & mask
        return at

    def _grow(self) -> None:
        held = zip(self._names, self._starts, self._lengths, strict=True)
        # Where most of what is there was taken back, clearing up makes room enough.
        size = len(self._names) if 3 * self._count < len(self._names) else 2 * len(self._names)
        self._count = 0
        self._clear(size)
        for name, start, length in held:
            if length:
                self._put(name, Place(start, length))


def _name(key: bytes) -> int:
    """The hash of a key as a number that is not 0, which stands for nothing."""
    return hash(key) & _EIGHT_BYTES or 1


_IN_MEMORY = 16 << 20
_HEAD, _MIDDLE, _VALUE = b'{"key":"', b'","check":"', b'","value":'
_KEY = slice(len(_HEAD), len(_HEAD) + 64)
_CHECK = slice(_KEY.stop + len(_MIDDLE), _KEY.stop + len(_MIDDLE) + 8)
_BODY = _CHECK.stop + len(_VALUE)
_NAME = re.compile(rb"[0-9a-f]{64}")
_encode = msgspec.json.Encoder().encode
_answer = msgspec.json.Decoder(Answer).decode
_vector = msgspec.json.Decoder(StoredVector).decode


class Cache:
    """Answers by key, in a file of JSON lines that is only ever appended to.

    Each line carries a check sum. What a killed process left half-written, and what is damaged, is passed over and said
    in `notes`. Several processes may append to one file: a line is written in one piece.

    Args:
        path: The file; made with its folder where there is none, readable by its owner only. None for one that nobody
            else sees and that goes with the object: small in memory, else a temporary file.

    Attributes:
        notes: What a person should know about the file.

    Raises:
        ConfigurationError: The file cannot be opened.
    """

    def __init__(self, path: str | Path | None) -> None:
        self.path = Path("(temporary)" if path is None else path)
        self.notes: list[str] = []
        self._places = Places()
        self._is_writable = True
        self._ends_torn = False
        self._appends = path is not None
        self._file: IO[bytes]
        if path is None:
            self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - `close` closes it
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
            self._file = os.fdopen(os.open(self.path, flags, 0o600), "r+b", buffering=0)
            self._ends_torn = self._index()
        except OSError as error:
            message = f"The cache cannot be opened: {error.strerror or error}."
            raise ConfigurationError(Issue(message, str(path))) from None

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def answer(self, key: bytes) -> Answer | None:
        """The answer kept under a key, or None."""
        found = self._found(key, _answer)
        return found if isinstance(found, Answer) else None

    def vector(self, key: bytes) -> StoredVector | None:
        """The vector kept under a key, or None."""
        found = self._found(key, _vector)
        return found if isinstance(found, StoredVector) else None

    def keep(self, key: bytes, value: Answer | StoredVector) -> None:
        """Append an answer or a vector; where that fails, say so and keep no more.

        It is in the file before anything else is asked, so that a kill loses only what was under way.

        Args:
            key: Its name.
            value: What is kept, with what it used and which call of which run it was.
        """
        if not self._is_writable or key in self._places:
            return
        try:
            body = _encode(value)
        except UnicodeEncodeError:
            return
        name = key.hex().encode()
        line = b"".join((_HEAD, name, _MIDDLE, _sum(name, body), _VALUE, body, b"}\n"))
        torn = b"\n" if self._ends_torn else b""
        try:
            if not self._appends:
                self._file.seek(0, os.SEEK_END)
            written = self._file.write(torn + line)
            end = self._file.tell()
        except OSError as error:
            self._stop(error.strerror or str(error))
            return
        self._ends_torn = False
        if written != len(torn) + len(line):
            self._ends_torn = True
            self._stop("the disk took only a part of a line")
            return
        self._places.put(key, Place(end - len(line), len(line)))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _stop(self, why: str) -> None:
        self._is_writable = False
        self.notes.append(f"{self.path}: nothing more is kept: {why}.")

    def _index(self) -> bool:
        """Note where each line stands; whether the file ends inside a line."""
        at, odd, line = 0, 0, b"\n"
        with self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"}\n") and line.startswith(_HEAD) and _is_whole(line):
                    self._places.put(binascii.unhexlify(line[_KEY]), Place(at, len(line)))
                elif line.strip() and line.endswith(b"\n"):
                    odd += 1
                at += len(line)
        if odd:
            self.notes.append(
                f"{self.path}: {counted(odd, 'line')} cannot be read and {'is' if odd == 1 else 'are'} passed over."
            )
        if not line.endswith(b"\n"):
            self.notes.append(f"{self.path}: the last line is incomplete and is passed over.")
            return True
        return False

    def _found(self, key: bytes, decode: Any) -> Any:
        place = self._places.get(key)
        if place is None:
            return None
        self._file.seek(place.start)
        line = self._file.read(place.length)
        if line[_KEY] == key.hex().encode() and _is_whole(line):
            try:
                return decode(line[_BODY:-2])
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                pass
        self._places.drop(key)
        self.notes.append(f"{self.path}: the answer {key.hex()[:12]} is damaged and is asked for again.")
        return None


def _is_whole(line: bytes) -> bool:
    return line[_CHECK] == _sum(line[_KEY], line[_BODY:-2]) and _NAME.fullmatch(line[_KEY]) is not None


def _sum(name: bytes, body: bytes) -> bytes:
    return b"%08x" % binascii.crc32(body, binascii.crc32(name))
