"""Saved outputs in JSONL: checked once, found by offset, decoded when asked for."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from deemster.errors import Issue, OutputsError
from deemster.formats.document import Document, Reading, sort_issues
from deemster.formats.indexed_jsonl import RowReader, index_rows
from deemster.formats.jsonl_lines import MOST_ISSUES, Lines, parse_line
from deemster.formats.schema_validation import check_shape
from deemster.records import Output
from deemster.targets.saved_output_format import (
    MOST_REPETITIONS,
    Answer,
    OutputEntry,
    OutputsFile,
    entry_issues,
    read_entry,
)

_encode = msgspec.json.Encoder().encode


class SimpleEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An entry with one text, as the fast decoder sees it."""

    id: str
    output: str
    repetition: int | msgspec.UnsetType = msgspec.UNSET


_simple = msgspec.json.Decoder(SimpleEntry).decode


class SavedOutputLines:
    """The answers of a JSONL file, found again by the hash of their id.

    Attributes:
        repetitions: How many are recorded for every sample.
    """

    def __init__(self, lines: Lines, hashes: Any, numbers: Any, rows: Any) -> None:
        self._lines = lines
        order = np.lexsort((numbers, hashes))
        self._hashes, self._numbers, self._rows = hashes[order], numbers[order], rows[order]
        self.repetitions = 0
        self._starts = np.flatnonzero(np.r_[True, self._hashes[1:] != self._hashes[:-1]])

    def __len__(self) -> int:
        return len(self._starts)

    def check_repetitions(self) -> None:
        """Make sure that every id has the same repetitions, from 0, each once.

        Raises:
            OutputsError: It is not so; every issue is given.
        """
        sizes = np.diff(np.r_[self._starts, len(self._hashes)])
        expected = np.arange(len(self._hashes)) - np.repeat(self._starts, sizes)
        most = int(sizes.max())
        wrong = np.repeat(sizes != most, sizes) | (self._numbers != expected)
        if wrong.any():
            groups = np.unique(np.repeat(np.arange(len(sizes)), sizes)[wrong])[:MOST_ISSUES].tolist()
            raise OutputsError(sort_issues(self._group_issues(groups, sizes, most)))
        self.repetitions = most

    def _group_issues(self, groups: list[int], sizes: Any, most: int) -> list[Issue]:
        issues = []
        lines = self._lines
        firsts = [int(self._rows[self._starts[group]]) for group in groups]
        places = lines.numbers(firsts)
        for group, first in zip(groups, firsts, strict=True):
            start = self._starts[group]
            held = self._numbers[start : start + sizes[group]].tolist()
            name = _read_line(next(lines.rows([first])), lines)[0]
            where = f"{lines.reading.file}:{places[first]}"
            twice = next((one for one, other in itertools.pairwise(held) if one == other), None)
            gap = next((number for number in range(len(held)) if number not in held), None)
            if twice is not None:
                issues.append(Issue(f"Repetition {twice} is given twice.", where, name))
            elif gap is not None:
                issues.append(Issue(f"Repetition {gap} is missing.", where, name))
            else:
                message = f"{len(held)} of {most} repetitions are recorded; every sample needs the same number."
                issues.append(Issue(message, where, name))
        return issues

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
        known = self._hashes[self._starts]
        absent = ~_is_in(asked, known)
        missing = list(itertools.compress(ids, absent)) if absent.any() else []
        asked.sort()
        unknown = np.sort(self._rows[self._starts[~_is_in(known, asked)]]).tolist()
        return missing, [_read_line(line, self._lines)[0] for line in self._lines.rows(unknown)]

    def answers(self, ids: Sequence[str], repetition: int) -> list[Answer]:
        """Answers in the order asked for.

        Raises:
            OutputsError: Nothing is recorded for an id, or the file has changed.
        """
        if not 0 <= repetition < self.repetitions:
            message = f"Repetition {repetition} is not recorded; there are {self.repetitions}."
            raise OutputsError(Issue(message))
        rows = self._rows[self._find(ids) + repetition].tolist()
        return _read_answers(ids, self._lines, rows, repetition)

    def excerpt(self, ids: list[str]) -> SavedOutputExcerpt:
        """The answers of some samples, as their places in the file.

        Raises:
            OutputsError: Nothing is recorded for an id.
        """
        at = self._find(ids)
        rows = [self._lines.excerpt(self._rows[at + number].tolist()) for number in range(self.repetitions)]
        return SavedOutputExcerpt(ids, rows)

    def _find(self, ids: Sequence[str]) -> Any:
        """Where the first answer to each id stands.

        Raises:
            OutputsError: Nothing is recorded for an id.
        """
        asked = np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
        at = np.searchsorted(self._hashes, asked)
        at[at == len(self._hashes)] = 0
        bad = np.flatnonzero(self._hashes[at] != asked)
        if len(bad):
            raise OutputsError([Issue("No output is saved.", sample=ids[position]) for position in bad.tolist()])
        return at


class SavedOutputExcerpt:
    """The answers of some samples of a JSONL file, which another process reads there.

    Args:
        ids: The samples.
        rows: Where their answers stand, in the order of the ids, for each repetition.
    """

    def __init__(self, ids: list[str], rows: list[Lines]) -> None:
        self._ids, self._rows = ids, rows
        self.repetitions = len(rows)

    def __len__(self) -> int:
        return len(self._ids)

    @functools.cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self._ids)}

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = set(ids)
        return [name for name in ids if name not in self._places], [name for name in self._ids if name not in asked]

    def answers(self, ids: Sequence[str], repetition: int) -> list[Answer]:
        """Answers in the order asked for.

        Raises:
            OutputsError: The file has changed.
        """
        return _read_answers(ids, self._rows[repetition], [self._places[name] for name in ids], repetition)

    def excerpt(self, ids: list[str]) -> SavedOutputExcerpt:
        """The answers of some of the samples."""
        places = [self._places[name] for name in ids]
        return SavedOutputExcerpt(ids, [rows.excerpt(places) for rows in self._rows])


def _read_answers(ids: Sequence[str], lines: Lines, rows: Sequence[int], repetition: int) -> list[Answer]:
    """The answers in rows of a file, each of which must be that to its id.

    Raises:
        OutputsError: A row has another id, or the file has changed.
    """
    found: list[Answer] = []
    for name, line in zip(ids, lines.rows(rows), strict=True):
        answer: Answer
        try:
            entry = _simple(line)
            known, answer = entry.id, Output(entry.output)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            known, several = _read_line(line, lines)
            answer = dict(several)[repetition] if len(several) > 1 else several[0][1]
        if known != name:
            raise OutputsError(Issue("No output is saved.", sample=name))
        found.append(answer)
    return found


def _read_line(line: bytes, lines: Lines) -> tuple[str, list[tuple[int, Answer]]]:
    try:
        found = read_entry(parse_line(line, 1, lines.reading).value, name=None)
    except ValueError:
        found = None
    return found or lines.lost()


def _is_in(values: Any, known: Any) -> Any:
    """Which values stand in a sorted array."""
    if not len(known):
        return np.zeros(len(values), dtype=bool)
    at = np.searchsorted(known, values)
    at[at == len(known)] = 0
    return known[at] == values


def load_lines(path: str | Path, reading: Reading) -> SavedOutputLines:
    """Check saved outputs in JSONL and remember where each stands.

    Raises:
        OutputsError: The file cannot be read, or something in it is wrong; all issues are given.
    """
    lines = Lines(path, reading)
    outputs = _OutputRows(lines)
    if issues := index_rows(lines, outputs, noun="outputs"):
        raise reading.error(issues)

    recorded = SavedOutputLines(
        lines,
        np.frombuffer(outputs.hashes, dtype=np.int64),
        np.frombuffer(outputs.numbers, dtype=np.int32),
        np.frombuffer(outputs.rows, dtype=np.int32),
    )
    recorded.check_repetitions()
    return recorded


class _OutputRows(RowReader):
    """Keeps of every answer the hash of its id, its repetition, and in which row it stands."""

    def __init__(self, lines: Lines) -> None:
        self.hashes = array("q")
        self.numbers = array("i")
        self.rows = array("i")
        self._lines = lines

    def read_fast(self, line: bytes) -> tuple[bytes] | None:
        try:
            entry = _simple(line)
            data = _encode(entry)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return None
        number = 0 if entry.repetition is msgspec.UNSET else entry.repetition
        if not entry.id.strip() or not 0 <= number < MOST_REPETITIONS:
            return None
        self._keep(entry.id, number)
        return (data,)

    def read_strictly(self, document: Document, *, is_first: bool) -> bool:
        value = document.value
        if is_first and isinstance(value, dict) and value and not value.keys() & set(OutputEntry.__struct_fields__):
            issues = check_shape({**value, "outputs": []}, OutputsFile, document=document)
            if issues:
                raise OutputsError(issues)
            return False

        try:
            entry = read_entry(value, name=None)
        except ValueError as error:
            raise OutputsError(Issue(str(error), document.where(), value["id"])) from None
        if entry is None:
            raise OutputsError(entry_issues(value, document))

        name, answers = entry
        for number, _ in answers:
            self._keep(name, number)
        return True

    def _keep(self, name: str, number: int) -> None:
        self.hashes.append(hash(name))
        self.numbers.append(number)
        self.rows.append(len(self._lines))
