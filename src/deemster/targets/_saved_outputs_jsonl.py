"""Saved outputs in JSONL: checked once, found by offset, decoded when asked for."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from deemster.errors import Issue, OutputsError
from deemster.formats.document import Document, Reading, sort_issues
from deemster.formats.indexed_jsonl import RowReader, index_rows
from deemster.formats.json_values import ROW_DEPTH
from deemster.formats.jsonl_lines import MOST_ISSUES, Lines, parse_line
from deemster.formats.schema_validation import check_shape
from deemster.records import Output
from deemster.targets.saved_output_format import (
    MOST_REPETITIONS,
    Answer,
    OutputEntry,
    OutputsFile,
    SavedAnswer,
    entry_issues,
    read_entry,
)

_encode = msgspec.json.Encoder().encode


_BRACKETS = b"{}[]"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
# Lists of maps of lists are flat after a few rounds; what is not may be deep.
_MOST_LEVELS = 8


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
        order = np.lexsort((numbers, hashes))
        self._lines = lines
        self._hashes = hashes[order]
        self._numbers = numbers[order]
        self._rows = rows[order]
        # The first answer to each id.
        self._starts = np.flatnonzero(np.r_[True, self._hashes[1:] != self._hashes[:-1]])
        self.repetitions = 0

    def __len__(self) -> int:
        return len(self._starts)

    def check_repetitions(self) -> None:
        """Make sure that every id has the same repetitions, from 0, each once.

        Raises:
            OutputsError: It is not so; every issue is given.
        """
        sizes = np.diff(np.r_[self._starts, len(self._hashes)])
        most = int(sizes.max())

        expected = np.arange(len(self._hashes)) - np.repeat(self._starts, sizes)
        is_wrong = np.repeat(sizes != most, sizes) | (self._numbers != expected)
        if is_wrong.any():
            group_of = np.repeat(np.arange(len(sizes)), sizes)
            groups = np.unique(group_of[is_wrong])[:MOST_ISSUES].tolist()
            raise OutputsError(sort_issues(self._group_issues(groups, sizes, most)))
        self.repetitions = most

    def _group_issues(self, groups: list[int], sizes: Any, most: int) -> Iterator[Issue]:
        lines = self._lines
        first_rows = [int(self._rows[self._starts[group]]) for group in groups]
        line_numbers = lines.numbers(first_rows)

        for group, row in zip(groups, first_rows, strict=True):
            sample_id = _id_of_line(next(lines.rows([row])), lines)
            where = f"{lines.reading.file}:{line_numbers[row]}"

            start = self._starts[group]
            repetitions = self._numbers[start : start + sizes[group]].tolist()
            twice = next((number for number, following in itertools.pairwise(repetitions) if number == following), None)
            gap = next((number for number in range(len(repetitions)) if number not in repetitions), None)
            if twice is not None:
                message = f"Repetition {twice} is given twice."
            elif gap is not None:
                message = f"Repetition {gap} is missing."
            else:
                message = f"{len(repetitions)} of {most} repetitions are recorded; every sample needs the same number."
            yield Issue(message, where, sample_id)

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
        recorded = self._hashes[self._starts]
        is_missing = ~_is_in(asked, recorded)
        missing = list(itertools.compress(ids, is_missing)) if is_missing.any() else []

        asked.sort()
        unknown = np.sort(self._rows[self._starts[~_is_in(recorded, asked)]]).tolist()
        return missing, [_id_of_line(line, self._lines) for line in self._lines.rows(unknown)]

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
        self._ids = ids
        self._rows = rows
        self.repetitions = len(rows)

    def __len__(self) -> int:
        return len(self._ids)

    @functools.cached_property
    def _index_of(self) -> dict[str, int]:
        return {sample_id: index for index, sample_id in enumerate(self._ids)}

    def compare(self, ids: Collection[str]) -> tuple[list[str], list[str]]:
        """Ids that are not recorded, and recorded ids that are not asked for."""
        asked = set(ids)
        return [name for name in ids if name not in self._index_of], [name for name in self._ids if name not in asked]

    def answers(self, ids: Sequence[str], repetition: int) -> list[Answer]:
        """Answers in the order asked for.

        Raises:
            OutputsError: The file has changed.
        """
        return _read_answers(ids, self._rows[repetition], [self._index_of[name] for name in ids], repetition)

    def excerpt(self, ids: list[str]) -> SavedOutputExcerpt:
        """The answers of some of the samples."""
        indices = [self._index_of[name] for name in ids]
        return SavedOutputExcerpt(ids, [rows.excerpt(indices) for rows in self._rows])


def _read_answers(ids: Sequence[str], lines: Lines, rows: Sequence[int], repetition: int) -> list[Answer]:
    """The answers in rows of a file, each of which must be that to its id.

    Raises:
        OutputsError: A row has another id, or the file has changed.
    """
    answers: list[Answer] = []
    for sample_id, line in zip(ids, lines.rows(rows), strict=True):
        answer: Answer
        try:
            entry = _simple(line)
            id_of_line = entry.id
            answer = Output(entry.output)
        except (msgspec.MsgspecError, UnicodeError):
            saved = _read_line(line, lines)
            id_of_line = saved[0].sample_id
            answer = saved[repetition if len(saved) > 1 else 0].answer
        if id_of_line != sample_id:
            raise OutputsError(Issue("No output is saved.", sample=sample_id))
        answers.append(answer)
    return answers


def _id_of_line(line: bytes, lines: Lines) -> str:
    return _read_line(line, lines)[0].sample_id


def _read_line(line: bytes, lines: Lines) -> list[SavedAnswer]:
    """The answers of a line that could be read when the file was loaded."""
    try:
        value = _decode(line)
        answers = read_entry(parse_line(line, 1, lines.reading).value if value is None else value, is_json=True)
    except ValueError:
        answers = None
    return answers or lines.lost()


def _decode(line: bytes) -> Any:
    """The value of a line of JSON without long numbers, lone surrogates and deep nesting; None for any other line."""
    if not _is_shallow(line):
        return None
    try:
        return msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _is_shallow(line: bytes) -> bool:
    """Whether a line nests less deep than allowed, as far as its brackets tell.

    >>> _is_shallow(b'{"a": [[1], {"b": {}}]}'), _is_shallow(b"[" * 200 + b"]" * 200)
    (True, False)
    """
    if line.count(b"{") + line.count(b"[") <= ROW_DEPTH:
        return True
    brackets = line.translate(None, _NOT_BRACKETS)
    for _ in range(_MOST_LEVELS):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


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
        except (msgspec.MsgspecError, UnicodeError):
            return self._read_with_more(line)
        number = 0 if entry.repetition is msgspec.UNSET else entry.repetition
        if not entry.id.strip() or not 0 <= number < MOST_REPETITIONS:
            return None
        self._keep(entry.id, number)
        return (data,)

    def _read_with_more(self, line: bytes) -> tuple[bytes] | None:
        """Keep a row that holds more than one text, where it is certainly good."""
        value = _decode(line)
        try:
            data = _encode(value)
            answers = read_entry(value, is_json=True)
        except (UnicodeError, OverflowError, ValueError):
            return None
        if answers is None:
            return None
        for saved in answers:
            self._keep(saved.sample_id, saved.repetition)
        return (data,)

    def read_strictly(self, document: Document, *, is_first: bool) -> bool:
        value = document.value
        if is_first and isinstance(value, dict) and value and not value.keys() & set(OutputEntry.__struct_fields__):
            issues = check_shape({**value, "outputs": []}, OutputsFile, document=document)
            if issues:
                raise OutputsError(issues)
            return False

        try:
            answers = read_entry(value)
        except ValueError as error:
            raise OutputsError(Issue(str(error), document.where(), value["id"])) from None
        if answers is None:
            raise OutputsError(entry_issues(value, document))

        for saved in answers:
            self._keep(saved.sample_id, saved.repetition)
        return True

    def _keep(self, name: str, number: int) -> None:
        self.hashes.append(hash(name))
        self.numbers.append(number)
        self.rows.append(len(self._lines))
