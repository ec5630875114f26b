"""A parsed file that knows the line of each of its values."""

from __future__ import annotations

import bisect
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn

from deemster.errors import InputError, Issue
from deemster.formats.mistyped_path import nearest_file

DEPTH = 100
# The longest file that is read as a whole, and the longest line of a file that is read line by line.
MOST_BYTES = 4 << 30
LONGEST_LINE = 64 << 20
# What a packed file may unpack to, for a few kilobytes can hold gigabytes: always 16 MiB, and beyond that 100 times its
# own size; an archive or a workbook never more than 1 GiB.
MOST_UNPACKED = 1 << 30
_ALWAYS_UNPACKED = 16 << 20
_MOST_TIMES = 100
_UNPACKED_VARIABLE = "DEEMSTER_MAX_UNPACKED_MB"
_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
_BREAK = re.compile("\n")
_LINE = re.compile(r":([0-9]+)(?::[0-9]+)?\Z")


class Document:
    """A value read from a file, and the line of every part of it.

    Places are lines where there is no text, else offsets into the text, which begins at the line `first`.

    Attributes:
        value: Maps, lists, strings, numbers, booleans and None.
        file: The file's name as the user gave it.
    """

    def __init__(
        self, value: Any, *, file: str, places: dict[int, Any], text: str | None = None, first: int = 1
    ) -> None:
        self.value = value
        self.file = file
        self._places = places
        self._text = text
        self._first = first
        self._breaks: list[int] | None = None

    def line(self, path: Sequence[str | int] = ()) -> int:
        """The line of a value, by its keys and positions from the root; of the nearest parent where it is absent."""
        place, value = None, self.value
        for step in path:
            known = self._places.get(id(value))
            try:
                place, value = known[step], value[step]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                break
        return self._first if place is None else self._line_at(place)

    def where(self, path: Sequence[str | int] = ()) -> str:
        """The place of a value as ``file:line``."""
        return f"{self.file}:{self.line(path)}"

    def _line_at(self, place: int) -> int:
        if self._text is None:
            return place
        if self._breaks is None:
            self._breaks = [match.start() for match in _BREAK.finditer(self._text)]
        return bisect.bisect_left(self._breaks, place) + self._first


class NoDocument:
    """Stands for the document of what a program gives: it says nothing, and no part of it has a place.

    Attributes:
        value: An empty map.
        file: None.
    """

    value: Mapping[str, Any] = MappingProxyType({})
    file = None

    def where(self, _path: Sequence[str | int] = ()) -> None:
        """No place."""


NO_DOCUMENT = NoDocument()


class Reading:
    """What every reader is told: how the file is called, and which error its issues make.

    Attributes:
        file: The file's name as the user gave it.
        error: The class of error that is raised.
        surrogates: Whether a lone surrogate in a string is kept.
        keeps_not_finite: Whether reading goes on after NaN and its like, so that a later check names all issues.
        has_not_finite: Whether one was met.
    """

    def __init__(
        self, file: str, *, error: type[InputError], surrogates: bool = False, keeps_not_finite: bool = False
    ) -> None:
        self.file = file
        self.error = error
        self.surrogates = surrogates
        self.keeps_not_finite = keeps_not_finite
        self.has_not_finite = False

    def refuse(self, message: str, *, line: int | None = None, column: int | None = None) -> NoReturn:
        """Raise the reader's error about one place.

        Raises:
            InputError: Always.
        """
        where = (
            self.file if line is None else f"{self.file}:{line}" if column is None else f"{self.file}:{line}:{column}"
        )
        raise self.error(Issue(message, where))

    def refuse_missing(self, path: str | Path) -> NoReturn:
        """Raise the reader's error about a file that is not there, with the nearest name.

        Raises:
            InputError: Always.
        """
        near = nearest_file(path)
        self.refuse("There is no such file." if near is None else f"There is no such file. Did you mean `{near}`?")

    def open(self, path: str | Path) -> BinaryIO:
        """Open a file to read its bytes. Only a regular file has an end: a device or a pipe may never come to one.

        Raises:
            InputError: There is no such file, it is no regular file, or it cannot be read.
        """
        try:
            endless = _KINDS.get(stat.S_IFMT(Path(path).stat().st_mode))
            file = Path(path).open("rb") if endless is None else None  # noqa: SIM115 - the caller closes it
        except FileNotFoundError:
            self.refuse_missing(path)
        except (OSError, ValueError) as error:
            self.refuse(f"The file cannot be read: {getattr(error, 'strerror', None) or error}.")
        if file is None:
            self.refuse(f"This is {endless}, not a file. Write what it gives to a file first.")
        return file

    def content(self, path: str | Path) -> bytes:
        """The bytes of a file.

        Raises:
            InputError: There is no such file, it cannot be read, it is too large, or it is empty.
        """
        with self.open(path) as file:
            try:
                data = _read_bounded(file)
            except OSError as error:
                self.refuse(f"The file cannot be read: {error.strerror or error}.")
            except MemoryError:
                self.refuse("The file cannot be read: there is not enough memory for it.")
        if data is None:
            advice = "A file of JSON lines may be longer, for it is read line by line."
            self.refuse(f"The file is longer than {MOST_BYTES >> 30} GiB. {advice}")
        if not data.strip(b" \t\r\n\xef\xbb\xbf"):
            self.refuse("The file is empty.")
        return data

    def check_unpacked(self, unpacked: int, *, packed: int, most: int = MOST_BYTES) -> None:
        """Refuse a file that takes far more memory than its size promises.

        Args:
            unpacked: The bytes that it takes, or took so far.
            packed: Its size.
            most: What no file of its kind may take, unless the user allows more.

        Raises:
            InputError: It takes more.
        """
        allowed = most_unpacked(packed, most=most)
        if unpacked > allowed:
            advice = f"If you trust it, say in the environment variable `{_UNPACKED_VARIABLE}` how many MB it may take."
            self.refuse(f"The file has {packed:,} bytes and unpacks to more than {allowed >> 20:,} MB. {advice}")

    def text(self, data: bytes) -> str:
        """The text of a file, without a byte order mark.

        Raises:
            InputError: The bytes are not UTF-8.
        """
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
            line = data.count(b"\n", 0, start) + 1
            self.refuse(f"The file is not UTF-8: byte 0x{data[start]:02x} cannot be read.", line=line)


def most_unpacked(packed: int, *, most: int = MOST_BYTES) -> int:
    """The memory that a file may take when it is unpacked.

    Args:
        packed: Its size.
        most: What no file of its kind may take, unless the environment variable `DEEMSTER_MAX_UNPACKED_MB` allows more.
    """
    given = os.environ.get(_UNPACKED_VARIABLE, "")
    return int(given) << 20 if given.isdecimal() else min(most, max(_ALWAYS_UNPACKED, _MOST_TIMES * packed))


def _read_bounded(file: BinaryIO) -> bytes | None:
    """All of a file; None where it is longer than `MOST_BYTES`. Some files of the system are longer than they say."""
    size = os.fstat(file.fileno()).st_size
    data = file.read(size + 1) if size <= MOST_BYTES else b""
    while size < len(data) <= MOST_BYTES:
        size = min(2 * len(data), MOST_BYTES)
        data += file.read(size + 1 - len(data))
    return data if max(size, len(data)) <= MOST_BYTES else None


def sort_issues(issues: Iterable[Issue]) -> list[Issue]:
    """Issues by line; those without a line first."""

    def line(issue: Issue) -> int:
        found = _LINE.search(issue.where or "")
        return int(found[1]) if found else 0

    return sorted(issues, key=line)
