"""Finds the columns of a spreadsheet of labels or verdicts: by their names, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from deemster.errors import (
    ConfigurationError,
    DatasetError,
    Issue,
    VotesError,
    did_you_mean,
    list_names,
    nearest,
)
from deemster.formats.document import Reading
from deemster.formats.read_file import file_format
from deemster.formats.read_table import TABLES, read_table_lines

SheetKind = Literal["labels", "verdicts"]
METADATA: Final = "metadata"
# What a column may hold, and the names by which it is found; the first found counts.
NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "item", "item_id", "sample", "sample_id", "answer_id", "response_id", "case", "case_id"),
    "criterion": ("criterion", "criteria", "metric", "dimension", "aspect"),
    "annotator": ("annotator", "person", "rater", "labeler", "labeller", "reviewer", "coder"),
    "judge": ("judge", "judge_id", "grader"),
    "label": ("label", "human_label", "human_verdict", "verdict", "ground_truth", "rating", "score"),
    "verdict": ("verdict", "judge_verdict", "judgement", "judgment", "success", "label", "rating", "score"),
    "tags": ("tags", "tag"),
    "error": ("error",),
    "submission": ("submission", "output", "answer", "response", "actual_output", "text", "essay"),
    "prompt": ("prompt", "question", "input"),
    "reference_submission": ("reference_submission", "reference", "expected_output", "expected"),
    "description": ("description",),
}
TEXTS: Final = ("submission", "prompt", "reference_submission", "description")
# The columns of each kind of sheet; the last one of a kind holds what is compared, so it is found apart.
_ROLES: Final[dict[SheetKind, tuple[str, ...]]] = {
    "labels": ("id", "criterion", "annotator", "tags", *TEXTS, "label"),
    "verdicts": ("id", "criterion", "judge", "tags", "error", "verdict"),
}
# How a queue of the viewer picks samples that look hard.
_PICKED: Final = frozenset({"disputed", "uncertain", "chosen"})
_BREAKS = re.compile(r"[\s_-]+")
Columns = Mapping[str, str | Sequence[str]]


class Sheet(NamedTuple):
    """A table, and what its columns hold.

    Attributes:
        kind: Whose verdicts it holds: `labels` of people, or `verdicts` of judges.
        reading: How the file is called and what its errors are.
        header: The names of the columns.
        lines: The cells of each line below the header, with its number.
        roles: The position of a column by what it holds.
        others: The positions of all other columns by their names, as `fold_name` writes them.
        metadata: The positions of columns that the user called metadata.
    """

    kind: SheetKind
    reading: Reading
    header: list[str]
    lines: list[tuple[int, list[str]]]
    roles: dict[str, int]
    others: dict[str, int]
    metadata: frozenset[int]

    @property
    def verdict_role(self) -> str:
        """What the column is called that holds one verdict a line."""
        return _ROLES[self.kind][-1]

    def find_verdicts(self) -> int | None:
        """The column with one verdict a line: as the user says, else by its name, else the only one that is left."""
        named = self.roles.get(self.verdict_role)
        if named is None:
            named = next((self.others[name] for name in NAMES[self.verdict_role] if name in self.others), None)
        return next(iter(self.others.values())) if named is None and len(self.others) == 1 else named

    def where(self, line: int) -> str:
        """The place of a line as messages name it."""
        return f"{self.reading.file}:{line}"

    def require(self, role: str, what: str) -> None:
        """Refuse a sheet that lacks a column.

        Raises:
            InputError: It does.
        """
        if role not in self.roles:
            _refuse_missing(self.reading, role, what, self._guess(role))

    def _guess(self, role: str) -> str:
        """The column that may be meant: one with such a name; for ids, else the first whose cells all differ."""
        named = [name for name in self.header if name]
        close = next((guess for word in NAMES[role] if (guess := nearest(word, map(fold_name, named)))), None)
        by_name = next((name for name in named if fold_name(name) == close), None)
        if role != "id":
            return by_name or named[0]

        cells_by_name = {name: [cells[index] for _, cells in self.lines] for index, name in enumerate(self.header)}
        distinct = [name for name in named if len({*cells_by_name[name]}) == len(self.lines)]
        return by_name if by_name in distinct else next(iter(distinct), named[0])

    def cell(self, cells: list[str], role: str) -> str:
        """The text of a cell by what it holds; blank where there is no such column."""
        return cells[self.roles[role]].strip() if role in self.roles else ""

    def other_cell(self, cells: list[str], name: str) -> str:
        """The text of a cell by the name of its column; blank where there is no such column."""
        return cells[self.others[name]].strip() if name in self.others else ""

    def is_drawn(self, cells: list[str]) -> bool:
        """Whether a line is about a sample that was drawn at random, and not picked because it looked hard."""
        return self.other_cell(cells, "order") not in _PICKED

    def drawn_evenly(self) -> bool:
        """Whether every sample was as likely to be drawn as any other, as far as the sheet says."""
        chances = {self.other_cell(cells, "inclusion_probability") for _, cells in self.lines}
        orders = {self.other_cell(cells, "order") for _, cells in self.lines}
        return ("order" in self.others and "efficient" not in orders) or len(chances) < 2


def fold_name(name: str) -> str:
    """A column's name as it is compared: case, spaces, hyphens and underscores do not count.

    >>> fold_name(" Item ID"), fold_name("asks-back")
    ('item_id', 'asks_back')
    """
    return _BREAKS.sub("_", name.strip().casefold())


def load_sheets(paths: Mapping[SheetKind, str | Path], columns: Columns | None = None) -> dict[SheetKind, Sheet]:
    """Read the tables and find their columns.

    Args:
        paths: The files.
        columns: Which column holds what, where its name does not say it; `metadata` may name several. A column that
            only one of two files has is found by its name in the other.

    Raises:
        InputError: A file is no table, a column is missing or unknown, or a line has too many or too few cells.
        MissingExtraError: A file is a workbook, and openpyxl is not installed.
    """
    given = {role: [names] if isinstance(names, str) else list(names) for role, names in (columns or {}).items()}
    _check_roles(given, paths)
    tables = {kind: _read(kind, path) for kind, path in paths.items()}
    for role, names in given.items():
        readers = [kind for kind in tables if role == METADATA or role in _ROLES[kind]]
        for name in names:
            if not any(column_index(name, tables[kind][1]) is not None for kind in readers):
                reading, header, _ = tables[readers[0]]
                reading.refuse(f"There is no column `{name}`. {did_you_mean(name, header)}", line=1)
    return {kind: _find_columns(kind, *table, given) for kind, table in tables.items()}


def _check_roles(given: Mapping[str, list[str]], kinds: Mapping[SheetKind, str | Path]) -> None:
    known = [*dict.fromkeys(role for kind in kinds for role in _ROLES[kind]), METADATA]
    issues = [
        Issue(f"`{role}` is nothing that a column of these files holds. {did_you_mean(role, known)}")
        for role in given
        if role not in known
    ]
    issues += [
        Issue(f"The column of `{role}` is given twice: {list_names(names)}.")
        for role, names in given.items()
        if len(names) != 1 and role != METADATA
    ]
    if issues:
        raise ConfigurationError(issues)


def _read(kind: SheetKind, path: str | Path) -> tuple[Reading, list[str], list[tuple[int, list[str]]]]:
    """A table: its header and its lines."""
    reading = Reading(str(path), error=DatasetError if kind == "labels" else VotesError)
    (top, header), *lines = read_table_lines(reading.content(path), file_format(path, reading, known=TABLES), reading)
    header = [name.strip() for name in header]
    twice = {name for name in header if name and [*map(fold_name, header)].count(fold_name(name)) > 1}
    issues = [Issue(f"The column `{name}` is given twice.", f"{reading.file}:{top}") for name in sorted(twice)]
    issues += [
        Issue(f"The line has {len(cells)} cells; the header has {len(header)}.", f"{reading.file}:{number}")
        for number, cells in lines
        if len(cells) != len(header)
    ]
    if not lines:
        issues.append(Issue("There is no line below the header.", reading.file))
    if issues:
        raise reading.error(issues)
    return reading, header, lines


def column_index(name: str, header: list[str]) -> int | None:
    """The position of a column that the user names, as it is written or nearly so."""
    if name.strip() in header:
        return header.index(name.strip())
    folded = [fold_name(known) for known in header]
    return folded.index(fold_name(name)) if fold_name(name) in folded else None


def _find_columns(
    kind: SheetKind,
    reading: Reading,
    header: list[str],
    lines: list[tuple[int, list[str]]],
    given: Mapping[str, list[str]],
) -> Sheet:
    others = {fold_name(name): at for at, name in enumerate(header) if name}
    roles = {
        role: at for role in _ROLES[kind] if role in given and (at := column_index(given[role][0], header)) is not None
    }
    metadata = frozenset(at for name in given.get(METADATA, ()) if (at := column_index(name, header)) is not None)
    taken = metadata | frozenset(roles.values())
    others = {name: at for name, at in others.items() if at not in taken}
    for role in _ROLES[kind][:-1]:
        found = next((name for name in NAMES[role] if name in others), None)
        # A sheet to fill in has a column of annotators, which a single person leaves blank.
        if role not in roles and found is not None and any(cells[others[found]].strip() for _, cells in lines):
            roles[role] = others.pop(found)
    sheet = Sheet(kind, reading, header, lines, roles, others, metadata)
    sheet.require("id", "ids")
    return sheet


def _refuse_missing(reading: Reading, role: str, what: str, guess: str) -> None:
    """Refuse a table without a column, and name the column that may be meant."""
    said = f"There is no column of {what}: it is called {list_names(NAMES[role], limit=4)}, or as you say with"
    reading.refuse(f"{said} `--columns {role}=NAME`. Is it `{guess}`?", line=1)
