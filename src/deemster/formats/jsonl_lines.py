"""Reads rows of a JSONL file by byte offset, so that the file is not kept in memory."""

from __future__ import annotations

import copy
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from deemster.errors import Issue
from deemster.formats.document import DEPTH, LONGEST_LINE, Document, Reading
from deemster.formats.strict_json import json_document

MOST_ISSUES = 10_000
BLOCK = 1 << 20
BOM = b"\xef\xbb\xbf"


class Lines:
    """The rows of a JSONL file by byte offset.

    Attributes:
        reading: How the file is called and what its errors are.
        offsets: Where each row begins.
    """

    def __init__(self, path: str | Path, reading: Reading) -> None:
        self.reading = reading
        self.offsets = array("q")
        self._path = Path(path)
        self._state = self._stat()

    def __len__(self) -> int:
        return len(self.offsets)

    def scan(self) -> Iterator[tuple[int, list[bytes]]]:
        """Every line of the file in blocks, each with the offset of its first line.

        Raises:
            InputError: The file cannot be read.
        """
        with self._open() as file:
            offset = 3 if file.read(3) == BOM else 0
            file.seek(offset)
            for block in self._whole_lines(file):
                yield offset, block.split(b"\n")
                offset += len(block) + 1

    def blocks(self) -> Iterator[bytes]:
        """All rows in file order, some at a time; a block may hold blank lines.

        Raises:
            InputError: The file is not the one that was loaded.
        """
        if not self.offsets:
            return
        with self._open() as file:
            self._confirm(file)
            file.seek(self.offsets[0])
            yield from self._whole_lines(file)

    def rows(self, positions: Sequence[int]) -> Iterator[bytes]:
        """Single rows in any order.

        Raises:
            InputError: The file is not the one that was loaded.
        """
        with self._open() as file:
            self._confirm(file)
            for position in positions:
                file.seek(self.offsets[position])
                yield file.readline()

    def excerpt(self, positions: Iterable[int]) -> Lines:
        """Some of the rows, in the order asked for, to be read by another process of the same file system.

        Args:
            positions: Their places among the rows.
        """
        part = copy.copy(self)
        part._path = self._path.absolute()  # noqa: SLF001 - of this class
        part.offsets = array("q", (self.offsets[position] for position in positions))
        return part

    def numbers(self, positions: Iterable[int]) -> dict[int, int]:
        """The line numbers of rows, from 1.

        Raises:
            InputError: The file cannot be read.
        """
        found: dict[int, int] = {}
        offset, number = 0, 1
        with self._open() as file:
            for position in sorted(positions):
                while offset < self.offsets[position]:
                    data = file.read(min(self.offsets[position] - offset, BLOCK))
                    if not data:
                        self.lost()
                    offset += len(data)
                    number += data.count(b"\n")
                found[position] = number
        return found

    def lost(self) -> Any:
        """Refuse a file that is not the one that was loaded.

        Raises:
            InputError: Always.
        """
        self.reading.refuse("The file has changed since it was loaded. Load it again.")

    def _confirm(self, file: Any) -> None:
        if self._stat(file.fileno()) != self._state:
            self.lost()

    def _open(self) -> BinaryIO:
        return self.reading.open(self._path)

    def _whole_lines(self, file: BinaryIO) -> Iterator[bytes]:
        """The rest of a file in blocks that end where a line ends, without the last line break."""
        rest = bytearray()
        while data := file.read(BLOCK):
            head, newline, tail = data.rpartition(b"\n")
            if newline:
                yield bytes(rest + head)
                rest = bytearray()
            rest += tail
            if len(rest) > LONGEST_LINE:
                self.reading.refuse(f"A line is longer than {LONGEST_LINE >> 20} MiB.")
        if rest:
            yield bytes(rest)

    def _stat(self, handle: int | None = None) -> tuple[int, int]:
        try:
            found = self._path.stat() if handle is None else os.fstat(handle)
        except FileNotFoundError:
            self.reading.refuse_missing(self._path)
        except (OSError, ValueError) as error:
            self.reading.refuse(f"The file cannot be read: {getattr(error, 'strerror', None) or error}.")
        return found.st_size, found.st_mtime_ns


def parse_line(line: bytes, number: int, reading: Reading, *, depth: int = DEPTH) -> Document:
    """Read one line of JSONL with the place of every value.

    Args:
        line: The line.
        number: Its number, from 1.
        reading: How the file is called and what its errors are.
        depth: Deepest nesting.

    Raises:
        InputError: The line is not UTF-8 or not JSON, or holds what is refused.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        reading.refuse(f"The line is not UTF-8: byte 0x{line[error.start]:02x} cannot be read.", line=number)
    return json_document(text, reading, depth=depth, line=number)


def stop_at_many(issues: list[Issue], file: str) -> bool:
    """Whether there are so many issues that reading should stop; then the last one says so."""
    if len(issues) < MOST_ISSUES:
        return False
    issues.append(Issue(f"Reading stopped here after {MOST_ISSUES:,} problems.", file))
    return True
