"""Checks every line of a run file, before any of it reaches a store."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from deemster.datasets.fingerprint import row_hash
from deemster.errors import Issue, StoreError, plural
from deemster.formats.document import Reading
from deemster.formats.schema_validation import MOST_TAGS
from deemster.store.run_facts import IMPORTED_FACT, TRAITS
from deemster.store.run_file_format import (
    LONGEST,
    EndLine,
    EntryLine,
    LabelLine,
    Line,
    MarksLine,
    OutputLine,
    RunLine,
    SampleLine,
    ScoringLine,
    parse_header,
    parse_line,
)

_FAULTS = 100
# A report walks through all executions that a run should have, also where the file holds only a few. So a run may have
# so many in all, and so many for each sample and output of the file.
_EXECUTIONS = 100_000_000
_EXECUTIONS_A_ROW = 1_000
# A report looks at all scorings for each execution.
_SCORINGS = 1_000
_ORDER = (RunLine, ScoringLine, SampleLine, OutputLine, MarksLine, EntryLine, LabelLine, EndLine)
_PLACES = {kind: place for place, kind in enumerate(_ORDER)}


class CheckedRun(NamedTuple):
    """A run of a file that was checked.

    Attributes:
        id: The run's id.
        sha256: Of its lines, in hex.
        samples: How many samples it has.
        graded_token: The token of a grading whose items an earlier version wrote, which a store keeps otherwise.
    """

    id: str
    sha256: str
    samples: int
    graded_token: str | None = None


def raw_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a run file without their ends, each with its number.

    Raises:
        StoreError: The file cannot be read, or a line is too long.
    """
    reading = Reading(str(path), error=StoreError)
    try:
        with reading.open(path) as file:
            number = 0
            while data := file.readline(LONGEST + 1):
                number += 1
                if len(data) > LONGEST:
                    reading.refuse(f"The line is longer than {LONGEST // 2**20} MiB.", line=number)
                yield number, data.removesuffix(b"\n")
    except OSError as error:
        reading.refuse(f"The file cannot be read: {error.strerror}.")


def check_run_file(path: Path) -> list[CheckedRun]:
    """Check every line of a run file, and return its runs.

    Raises:
        StoreError: The file cannot be read or is no run file. The error carries all issues that were found.
    """
    lines = raw_lines(path)
    _, first = next(lines, (0, b""))
    if not first:
        raise StoreError(Issue("The file is empty.", str(path)))
    try:
        header = parse_header(first)
    except ValueError as error:
        raise StoreError(Issue(str(error), f"{path}:1")) from None
    issues: list[Issue] = []
    runs = list(_runs(path, lines, issues))
    if not issues and len(runs) != header.runs:
        issues.append(
            Issue(f"The file holds {plural(len(runs), 'run')}; its first line says {header.runs}.", str(path))
        )
    if issues:
        raise StoreError(issues)
    return runs


def _runs(path: Path, lines: Iterator[tuple[int, bytes]], issues: list[Issue]) -> Iterator[CheckedRun]:
    """The runs that are sound; what is wrong with the others is added to the issues."""
    check: _Check | None = None
    seen: set[str] = set()
    for number, data in lines:
        check = check or _Check()
        where = f"{path}:{number}"
        line = None
        try:
            line = parse_line(data)
            check.take(line, data)
        except ValueError as error:
            check.is_sound = False
            issues.append(Issue(str(error), where))
            if len(issues) >= _FAULTS or isinstance(error, _OutOfPlaceError):
                return
        if isinstance(line, EndLine):
            if line.id in seen:
                issues.append(Issue(f"The run `{line.id}` stands in the file twice.", where))
            elif check.is_sound:
                yield CheckedRun(line.id, line.sha256, check.samples, check.graded_token)
            seen.add(line.id)
            check = None
    if check is not None:
        issues.append(Issue("The file ends within a run: the rest of it is missing.", str(path)))


class _OutOfPlaceError(ValueError):
    """A line out of place; the lines after it cannot be checked."""


class _Check:
    """Checks the lines of one run against each other.

    Attributes:
        is_sound: Whether nothing was wrong so far.
        samples: How many samples there were so far.
        outputs: The outputs so far, each as its place among all that the run should have.
        graded_token: The token of a grading whose items an earlier version wrote.
    """

    def __init__(self) -> None:
        self.is_sound = True
        self._place = -1
        self._run: RunLine | None = None
        self._digest = hashlib.sha256()
        self._cards: list[int] = []
        self._ids = array("Q")
        self.samples = 0
        self.outputs = array("q")
        # How many outputs have marks of scoring 0.
        self._marked = 0
        # The scoring and place of the last marks, the index of their output, and the position of the last entry.
        self._last_marks = (-1, -1)
        self._output_index = 0
        self._last_entry = -1
        self._labels: set[tuple[int, int, str, str, str]] = set()
        self.graded_token: str | None = None

    def take(self, line: Line, data: bytes) -> None:
        """Check a line against those before it.

        Raises:
            ValueError: It does not.
        """
        place = _PLACES[type(line)]
        if self._run is None:
            if not isinstance(line, RunLine):
                raise _OutOfPlaceError("A run begins with a line `run`; this is another one.")
            if IMPORTED_FACT in line.facts:
                raise _OutOfPlaceError(f"`{IMPORTED_FACT}` is no fact of a run file.")
            if line.samples * line.repetitions > _EXECUTIONS:
                raise _OutOfPlaceError(f"A run of a file has at most {_EXECUTIONS:,} executions.")
            self._run = line
        elif isinstance(line, RunLine):
            raise _OutOfPlaceError(f"Another run begins before the end of the run `{self._run.id}`.")
        if place < self._place:
            before = _ORDER[self._place].__struct_config__.tag
            raise _OutOfPlaceError(f"This line stands behind lines `{before}`, which follow its kind.")
        self._place = place
        if isinstance(line, EndLine):
            self._end(line)
            return
        self._digest.update(data + b"\n")
        if isinstance(line, SampleLine):
            self._sample(line)
        elif isinstance(line, OutputLine):
            self._output(line, self._run)
        elif isinstance(line, MarksLine):
            self._marks(line, self._run)
        elif isinstance(line, ScoringLine):
            self._scoring(line)
        elif isinstance(line, EntryLine):
            self._entry(line, self._run)
        elif isinstance(line, LabelLine):
            self._label(line, self._run)

    def _scoring(self, line: ScoringLine) -> None:
        self._cards.append(len(line.cards))
        if line.number != len(self._cards) - 1:
            raise ValueError(f"Scorings are numbered from 0; this should be {len(self._cards) - 1}, not {line.number}.")
        if line.number >= _SCORINGS:
            raise _OutOfPlaceError(f"A run of a file has at most {_SCORINGS:,} scorings.")
        if len({card.name for card in line.cards}) < len(line.cards):
            raise ValueError("Two metrics of this scoring have the same name.")

    def _sample(self, line: SampleLine) -> None:
        self.samples += 1
        self._ids.append(int.from_bytes(hashlib.blake2b(line.id.encode(), digest_size=8).digest()))
        if line.position != self.samples - 1:
            raise ValueError(f"Samples stand in order from 0; this should be {self.samples - 1}, not {line.position}.")
        tags = (line.labels.metadata or {}).get("tags") or []
        if not isinstance(tags, str) and not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
            raise ValueError("The `tags` of a sample's metadata are text, or a list of text.")
        if isinstance(tags, list) and max(len(tags), len(line.labels.tags)) > MOST_TAGS:
            raise ValueError(f"A sample has at most {MOST_TAGS:,} tags.")
        if line.content is None:
            return
        if not isinstance(line.content.input, dict):
            raise ValueError("The input of a sample is a map.")  # noqa: TRY004 - bad data, not a bad call
        if row_hash(line.content.input, line.content.expected_output) != line.row_hash:
            # Contents are shared by all runs of a store: a wrong hash would change what another run reads.
            raise ValueError("`row_hash` is not the hash of this input and expected output.")

    def _output(self, line: OutputLine, run: RunLine) -> None:
        key = self._key(line, run)
        if self.outputs and key <= self.outputs[-1]:
            raise ValueError("Outputs stand in the order of position and repetition, each once.")
        self.outputs.append(key)

    def _marks(self, line: MarksLine, run: RunLine) -> None:
        self._marked += line.scoring == 0
        key = self._key(line, run)
        if line.scoring >= len(self._cards):
            raise ValueError(f"There is no scoring {line.scoring}.")
        if (line.scoring, key) <= self._last_marks:
            raise ValueError("Marks stand in the order of scoring, position and repetition, each once.")
        if line.scoring != self._last_marks[0]:
            self._output_index = 0
        self._last_marks = (line.scoring, key)
        while self._output_index < len(self.outputs) and self.outputs[self._output_index] < key:
            self._output_index += 1
        if self._output_index == len(self.outputs) or self.outputs[self._output_index] != key:
            raise ValueError("There is no output that these marks could be about.")
        wanted = self._cards[line.scoring]
        if len(line.marks) != wanted or (line.final is not None and len(line.final) != wanted):
            raise ValueError(f"The scoring has {plural(wanted, 'metric')}; each gives one mark.")

    def _entry(self, line: EntryLine, run: RunLine) -> None:
        if TRAITS[run.kind].has_metrics:
            raise ValueError("Only a grading has entries.")
        if self.outputs:
            raise ValueError("A grading has entries in place of outputs.")
        if line.position <= self._last_entry:
            raise ValueError("Entries stand in the order of position, each once.")
        self._last_entry = line.position
        self.graded_token = run.facts.get("token")

    def _label(self, line: LabelLine, run: RunLine) -> None:
        label = line.body
        if label.position >= self.samples or label.repetition >= run.repetitions:
            raise ValueError("Neither `position` nor `repetition` may go beyond those of the run.")
        key = (label.position, label.repetition, label.metric, label.criterion, label.author)
        if key in self._labels:
            raise ValueError("A person has one label for each sample, repetition, metric and criterion.")
        self._labels.add(key)

    def _key(self, line: OutputLine | MarksLine, run: RunLine) -> int:
        if line.position >= self.samples or line.repetition >= run.repetitions:
            raise ValueError("Neither `position` nor `repetition` may go beyond those of the run.")
        return line.position * run.repetitions + line.repetition

    def _end(self, line: EndLine) -> None:
        if not self.is_sound or self._run is None:
            return
        if not self._cards:
            raise ValueError("The run has no scoring; its own is number 0.")
        if line.id != self._run.id:
            raise ValueError(f"This is the end of the run `{line.id}`, not of `{self._run.id}`.")
        if self._marked != len(self.outputs):
            raise ValueError("Every output has marks of the scoring 0; some are missing.")
        if self.samples != self._run.samples:
            raise ValueError(
                f"The run has {plural(self._run.samples, 'sample')} by its first line, {self.samples} by count."
            )
        rows = self.samples + len(self.outputs)
        if self.samples * self._run.repetitions > _EXECUTIONS_A_ROW * rows:
            said = f"{plural(self._run.repetitions, 'repetition')} in a file of {rows:,} samples and outputs"
            raise ValueError(f"{said}: a run has at most {_EXECUTIONS_A_ROW:,} executions for each of those.")
        if line.sha256 != self._digest.hexdigest():
            raise ValueError("The check sum does not fit: the lines of this run are not those that were written.")
        if any(one == other for one, other in itertools.pairwise(sorted(self._ids))):
            raise ValueError("Two samples of the run have the same id.")
