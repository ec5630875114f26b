"""Checks every row of a JSONL file once, of any size: fast where a row is certainly good, else strictly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from deemster.errors import InputError, Issue
from deemster.formats.document import DEPTH, Document, sort_issues
from deemster.formats.jsonl_lines import MOST_ISSUES, Lines, parse_line, stop_at_many
from deemster.formats.strict_json import quotes


class RowReader(Protocol):
    """What a format does with its rows: it checks each and keeps what it needs of it."""

    def read_fast(self, line: bytes) -> Sequence[bytes] | None:
        """Keep a row that is certainly good, but for a key given twice; what was read of it, as JSON.

        None, and nothing kept, where the precise reader must decide.
        """
        ...

    def read_strictly(self, document: Document, *, is_first: bool) -> bool:
        """Keep a row, or the header that the first line may be; whether it is a row.

        Raises:
            InputError: Something in it is wrong.
        """
        ...


def index_rows(lines: Lines, rows: RowReader, *, noun: str, depth: int = DEPTH) -> list[Issue]:
    """Read every line of a file, and remember where its rows begin; what is wrong in them.

    Args:
        lines: The file, whose offsets are filled.
        rows: Reads a row.
        noun: What the rows are, in the plural.
        depth: Deepest nesting.

    Raises:
        InputError: The file cannot be read, is empty, or has so many issues that reading stopped.
    """
    index = _Index(lines, rows, depth)
    for offset, block in lines.scan():
        index.read_block(offset, block)
        if stop_at_many(index.issues, lines.reading.file):
            raise lines.reading.error(index.issues)

    if not index.line:
        lines.reading.refuse("The file is empty.")
    if not index.issues and not lines.offsets:
        index.issues.append(Issue(f"There are no {noun}.", lines.reading.file))
    return sort_issues(index.issues)


class _Index:
    """What is known so far of a file that is being read.

    Attributes:
        issues: What is wrong in it.
        line: The number of the last line that was read.
    """

    def __init__(self, lines: Lines, rows: RowReader, depth: int) -> None:
        self.issues: list[Issue] = []
        self.line = 0
        self._lines, self._rows, self._depth = lines, rows, depth
        self._is_first = True

    def read_block(self, offset: int, block: list[bytes]) -> None:
        """Read some lines, of which the first begins at an offset."""
        fast: list[bytes] = []
        kept: list[bytes] = []
        for line in block:
            if len(self.issues) >= MOST_ISSUES:
                return
            self.line += 1
            row = None if self._is_first else self._rows.read_fast(line)
            if row is not None:
                fast.append(line)
                kept += row
            if row is not None or self._read_strictly(line):
                self._lines.offsets.append(offset)
            offset += len(line) + 1

        # A key that was given twice was dropped once.
        if _count_quotes(fast) != _count_quotes(kept):
            self._find_repeated_keys(block)

    def _read_strictly(self, line: bytes) -> bool:
        """Whether a line is a row, and nothing in it is wrong."""
        if not line.strip(b" \t\r"):
            return False
        is_first, self._is_first = self._is_first, False
        try:
            document = parse_line(line, self.line, self._lines.reading, depth=self._depth)
            return self._rows.read_strictly(document, is_first=is_first)
        except InputError as error:
            self.issues += error.issues
            return False

    def _find_repeated_keys(self, block: list[bytes]) -> None:
        """Read a block again with the precise reader, which names the keys that are given twice."""
        first = self.line - len(block) + 1
        known = {issue.where for issue in self.issues}
        for number, line in enumerate(block, start=first):
            try:
                parse_line(line, number, self._lines.reading, depth=self._depth)
            except InputError as error:
                self.issues += [issue for issue in error.issues if issue.where not in known]


def _count_quotes(parts: list[bytes]) -> int:
    """How many quotation marks delimit strings in parts of valid JSON."""
    data = b" ".join(parts)
    if b"\\" in data:
        return quotes(data)
    return int(np.count_nonzero(np.frombuffer(data, dtype=np.uint8) == ord('"')))
