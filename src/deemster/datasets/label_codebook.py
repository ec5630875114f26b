"""Turns labels of a rubric into small integers and back, and finds the consensus of annotators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deemster.errors import Issue, RubricError
from deemster.formats.item_files import IssueList, ItemFile, name_in_item
from deemster.formats.json_values import Path
from deemster.formats.schema_validation import is_id
from deemster.rubrics.criterion import MISSING, NUMBER, Criterion
from deemster.rubrics.rubric_definition import Rubric, read_rubric
from deemster.rubrics.verdicts import CANNOT_ASSESS
from deemster.rubrics.vote_aggregation import Codes, split_cells

Floats: TypeAlias = NDArray[np.float64]
# A code, or a number on a numeric criterion.
Cell: TypeAlias = int | float


class Codebook:
    """The codes of every label of a rubric; a spelling that was resolved once is kept.

    Attributes:
        rubric: The rubric.
        tables: For each criterion, codes by label; None is not labelled.
    """

    def __init__(self, rubric: Rubric) -> None:
        self.rubric = rubric
        self.tables: list[dict[Any, int]] = []
        for criterion in rubric.criteria:
            # Every number on a numeric criterion needs a closer look.
            labels = () if criterion.kind == "numeric" else criterion.labels
            table: dict[Any, int] = {label: code for code, label in enumerate(labels)}
            self.tables.append(table | {CANNOT_ASSESS: criterion.abstention, None: MISSING})

    def __len__(self) -> int:
        return len(self.tables)

    def quick(self, entries: Any) -> list[int] | None:
        """The codes of a list of plain labels, or None where something needs a closer look."""
        if type(entries) is not list or len(entries) != len(self.tables):
            return None
        try:
            return list(map(getitem, self.tables, entries))
        except (KeyError, TypeError):
            return None

    def code(self, position: int, label: str | float) -> Cell:
        """The code of a label of one criterion; the number itself on a numeric one.

        Raises:
            RubricError: It is no label of it.
        """
        criterion = self.rubric.criteria[position]
        # A dict takes 1 and True for one key, and a number recurs less often than a label.
        if criterion.kind == "numeric" or not isinstance(label, str):
            return criterion.cell(label)
        table = self.tables[position]
        if label not in table:
            table[label] = criterion.code(label)
        return table[label]

    def cells(self, entries: Sequence[str | float | None]) -> list[Cell]:
        """The codes of known labels, in which a float is a number; None is a missing one."""
        return [MISSING if entry is None else self.code(position, entry) for position, entry in enumerate(entries)]

    def label(self, position: int, cell: Cell) -> str | float | None:
        """How a code is written, None for a missing one; a number is itself.

        An abstention that the author gave no option for is written as the verdict that means it for any criterion.
        """
        if isinstance(cell, float):
            return cell
        if cell < 0:
            return None
        criterion = self.rubric.criteria[position]
        is_injected = bool(criterion.options) and cell >= len(criterion.options)
        return CANNOT_ASSESS if is_injected else criterion.labels[cell]

    def labels(self, cells: Iterable[Cell]) -> list[str | float | None]:
        """How the codes and numbers of one item are written."""
        return [self.label(position, cell) for position, cell in enumerate(cells)]

    def codes(self, entries: Any, path: Path, found: IssueList) -> Sequence[Cell] | None:
        """The codes of a list of labels, or None where something is wrong; a float is a number.

        Args:
            entries: A label or null for every criterion.
            path: Where the list stands.
            found: Takes the labels that the rubric does not have; what is no label at all is left to the validator.
        """
        quick = self.quick(entries)
        if quick is not None or not isinstance(entries, list):
            return quick
        before = len(found.issues)
        self.check_length(entries, path, found)
        pairs = enumerate(entries[: len(self)])
        codes = [
            self.resolve(at, entry, (*path, at), found) if isinstance(entry, (str, int, float)) else MISSING
            for at, entry in pairs
        ]
        return codes if len(found.issues) == before else None

    def resolve(self, position: int, label: str | float, path: Path, found: IssueList) -> Cell:
        """The code of a label or the number itself, or MISSING with the reason added to what was found."""
        try:
            return self.code(position, label)
        except RubricError as error:
            found.add(path, f"{name_in_item(path)}: {error.issues[0].message}")
            return MISSING

    def check_length(self, entries: Sequence[Any], path: Path, found: IssueList) -> None:
        """Add an issue where a list does not have an entry for each criterion."""
        if len(entries) != len(self):
            given = f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}"
            wanted = f"{len(self)} {'criterion' if len(self) == 1 else 'criteria'}"
            found.add(path, f"{name_in_item(path)} has {given}; the rubric has {wanted}.")


def consensus(criterion: Criterion, codes: Iterable[Cell]) -> Cell:
    """What annotators agree on, or MISSING.

    Binary and nominal: the most frequent entry. Ordinal: the median place on the scale; as an abstention has no place,
    it is the consensus where more than half abstain, and there is none where exactly half do. A tie, or a median
    between two places, is no consensus. Numeric: the mean, as `agreed_numbers` has it.

    Args:
        criterion: What was annotated.
        codes: One for each annotator; missing ones do not count.
    """
    if criterion.kind == "numeric":
        settled, means = agreed_numbers(*split_cells([list(codes)]), criterion.abstention)
        return float(means[0]) if settled[0] == NUMBER else int(settled[0])
    given = [int(code) for code in codes if code != MISSING]
    if not given:
        return MISSING
    if criterion.kind == "ordinal":
        scored = sorted(place for code in given if (place := criterion.positions[code]) is not None)
        away = len(given) - len(scored)
        if away == len(scored):
            return MISSING
        if away < len(scored):
            low, high = scored[(len(scored) - 1) // 2], scored[len(scored) // 2]
            return criterion.positions.index(low) if low == high else MISSING
        given = [code for code in given if criterion.positions[code] is None]
    (code, count), *others = Counter(given).most_common(2)
    return MISSING if others and others[0][1] == count else code


def consensus_rows(criterion: Criterion, codes: Codes) -> Codes:
    """The consensus of each row of codes; MISSING where there is none."""
    # A few distinct rows recur often, so each is settled once.
    distinct, which = np.unique(codes, axis=0, return_inverse=True)
    settled = np.array([consensus(criterion, row) for row in distinct.tolist()], dtype=np.int16)
    return settled[which.reshape(-1)]


def agreed_numbers(codes: NDArray[Any], numbers: Floats, abstention: int) -> tuple[NDArray[np.int16], Floats]:
    """What annotators agree on, row by row, on a numeric criterion: the mean of their numbers.

    An abstention is no number: it is the consensus where more than half abstain, and there is none where exactly half
    do.

    Args:
        codes: Codes, rows by annotators.
        numbers: Their numbers; NaN where there is none.
        abstention: The code that abstains.
    """
    given, away = (~np.isnan(numbers)).sum(axis=1), (codes == abstention).sum(axis=1)
    means = np.full(len(codes), np.nan)
    some = given > away
    # Sorted, so that the order of annotators cannot change the last bit.
    means[some] = np.sort(np.nan_to_num(numbers[some]), axis=1).sum(axis=1) / given[some]
    low, high = (np.where(np.isnan(numbers), end, numbers) for end in (np.inf, -np.inf))
    means[some] = np.clip(means[some], low[some].min(axis=1), high[some].max(axis=1))
    settled = np.where(some, NUMBER, np.where(away > given, abstention, MISSING)).astype(np.int16)
    return settled, means


def annotation_codes(book: Codebook, annotations: Any, path: Path, found: IssueList) -> dict[str, Sequence[Cell]]:
    """The codes of every annotator whose entries are good; what is wrong is added to what was found."""
    people = annotations if isinstance(annotations, dict) else {}
    codes = {name: book.codes(entries, (*path, name), found) for name, entries in people.items()}
    return {name: known for name, known in codes.items() if known is not None}


def check_id_and_tags(row: dict[str, Any], path: Path, found: IssueList) -> None:
    """Note an id that breaks the pattern, which the typed decoder does not check, and every tag that is given twice."""
    name = row.get("id")
    found.is_malformed |= not isinstance(name, str) or not is_id(name)
    tags = row.get("tags")
    if isinstance(tags, list) and len(tags) > 1:
        first = {tag: position for position, tag in reversed(list(enumerate(tags))) if isinstance(tag, str)}
        for position, tag in enumerate(tags):
            if isinstance(tag, str) and first[tag] != position:
                found.add((*path, "tags", position), f"tags[{position}]: `{tag}` is given twice.")


def read_codebook(value: Any, path: Path, file: ItemFile) -> tuple[Codebook | None, list[Issue]]:
    """The codes of a rubric that stands inside a file, or everything that is wrong with it.

    Args:
        value: A rubric, or what a file has for one.
        path: Where it stands.
        file: The file.
    """
    if isinstance(value, Rubric):
        return Codebook(value), []
    rubric, issues = read_rubric(value, None, path)
    if issues and file.document is not None:
        document, rest = file.document(path)
        rubric, issues = read_rubric(value, document, rest)
    return (None, issues) if rubric is None else (Codebook(rubric), [])
