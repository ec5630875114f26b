"""Fills the columns of votes from the cells of a votes file: labels, details, failures, repeats."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from deemster.datasets.label_codebook import Cell, Codebook, agreed_numbers, consensus_rows
from deemster.datasets.vote_block import Block, Labels, Probability, Repeat
from deemster.datasets.votes_format import FailureCell, VoteCell
from deemster.errors import list_names
from deemster.formats.item_files import IssueList, name_in_item
from deemster.formats.json_values import Path
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.verdicts import FAILURES
from deemster.rubrics.vote_aggregation import Rules, is_missing, merge_repeats, split_cells

SLACK = 1e-6


def cell_code(book: Codebook, position: int, cell: Any, path: Path, found: IssueList) -> Cell:
    """The code of a cell that is not a list, or its number on a numeric criterion; MISSING where it is wrong.

    Args:
        book: The codes of the rubric.
        position: The criterion.
        cell: A label, a number, null, or a map.
        path: Where the cell stands.
        found: Takes what does not fit the rubric, and whether the shape is wrong.
    """
    if cell is None:
        return MISSING
    if isinstance(cell, (str, int, float)):
        return book.resolve(position, cell, path, found)
    try:
        if isinstance(cell, dict) and "failure" in cell:
            return FAILURES[msgspec.convert(cell, FailureCell).failure]
        vote = msgspec.convert(cell, VoteCell)
    except msgspec.ValidationError:
        found.is_malformed = True
        return MISSING
    if vote.p is not msgspec.UNSET and (wrong := _p_issue(book, position, vote.p)):
        found.add((*path, "p"), f"{name_in_item(path)}.p {wrong}")
    known = book.tables[position].get(vote.verdict) if isinstance(vote.verdict, str) else None
    return known if known is not None else book.resolve(position, vote.verdict, (*path, "verdict"), found)


def _p_issue(book: Codebook, position: int, p: float | list[float]) -> str | None:
    """What in the probabilities of a vote does not fit their criterion."""
    criterion = book.rubric.criteria[position]
    if criterion.kind == "numeric":
        return "belongs to verdicts that are chosen; a number has none."
    if criterion.kind == "binary":
        return "is P(MET), a number from 0 to 1, not a list." if isinstance(p, list) else None
    labels = [criterion.labels[code] for code in criterion.scored]
    if not isinstance(p, list):
        return f"is a list with a probability for each of {list_names(labels)}, not {p!r:.40}."
    if len(p) != len(labels):
        return f"has {len(p)} numbers; it needs one for each of {list_names(labels)}."
    total = math.fsum(p)
    return None if abs(total - 1) <= SLACK else f"sums to {total:.6g}, not to 1."


def mean_probabilities(cell: Any) -> tuple[float, ...] | None:
    """The probabilities of a good cell, of repeats their mean; None where it has none.

    >>> mean_probabilities([{"verdict": "MET", "p": 0.75}, "UNMET", {"verdict": "UNMET", "p": 0.25}])
    (0.5,)
    """
    cells: Sequence[Any] = cell if isinstance(cell, list) else [cell]
    given = [one["p"] for one in cells if isinstance(one, dict) and "p" in one]
    lists = [p if isinstance(p, list) else [p] for p in given]
    if not lists:
        return None
    return tuple(math.fsum(entries) / len(lists) for entries in zip(*lists, strict=True))


class Columns:
    """What the items of one rubric hold so far.

    Attributes:
        key: What the file calls the rubric, where it has several.
        book: The codes of its labels.
        rows: The positions of the items in the file.
    """

    def __init__(self, key: str | None, book: Codebook, judges: int) -> None:
        self.key = key
        self.book = book
        self.rows: list[int] = []
        self._judges = judges
        self._blank: list[Cell] = [MISSING] * (len(book) * judges)
        # By item, judge and criterion.
        self._votes: list[Cell] = []
        self._checks: dict[int, list[Cell]] = {}
        self._annotations: dict[str, dict[int, Sequence[Cell]]] = {}
        # What the file has for a row, by its key there.
        self._notes: dict[str, dict[int, Any]] = {
            key: {} for key in ("error", "ground_truth", "final", "penalty", "score")
        }
        self._details: dict[int, Any] = {}
        self._repeats: list[Repeat] = []

    def start(self, at: int) -> None:
        """Begin the item that stands at a position of the file."""
        self.rows.append(at)
        self._votes.extend(self._blank)

    def cast(self, judge: int, cells: Any, path: Path, found: IssueList) -> None:
        """Add the votes of one judge on the item; what is wrong is added to what was found."""
        codes = self.book.quick(cells) or self._codes(judge, cells, path, found)
        start = len(self._votes) + (judge - self._judges) * len(codes)
        self._votes[start : start + len(codes)] = codes

    def check(self, metric: str, cells: Any, path: Path, found: IssueList) -> None:
        """Add the verdicts of a deterministic check; what is wrong is added to what was found."""
        codes = self._codes(self._judges, cells, path, found)
        held = self._checks.setdefault(len(self.rows) - 1, [MISSING] * len(self.book))
        for position, code in enumerate(codes):
            if is_missing(code):
                continue
            criterion = self.book.rubric.criteria[position]
            if criterion.check is None or criterion.check.metric != metric:
                message = f"{name_in_item(path)}[{position}]: `{criterion.name}` has no check by `{metric}`."
                found.add((*path, position), message)
            held[position] = code

    def _codes(self, judge: int, cells: Any, path: Path, found: IssueList) -> list[Cell]:
        """The codes and numbers of cells that are more than labels."""
        width = len(self.book)
        if not isinstance(cells, list):
            return [MISSING] * width
        self.book.check_length(cells, path, found)
        row = len(self.rows) - 1
        codes: list[Cell] = []
        for position, cell in enumerate(cells[:width]):
            if isinstance(cell, list):
                codes.append(self._repeated(judge, position, cell, (*path, position), found))
            else:
                codes.append(cell_code(self.book, position, cell, (*path, position), found))
            if isinstance(cell, (list, dict)):
                self._details[(row * width + position) * (self._judges + 1) + judge] = cell
        return codes + [MISSING] * (width - len(codes))

    def _repeated(self, judge: int, position: int, cells: list[Any], path: Path, found: IssueList) -> int:
        """Note repeats, to be made one vote with all others of their criterion."""
        if not cells:
            found.is_malformed = True
        codes = [cell_code(self.book, position, cell, (*path, at), found) for at, cell in enumerate(cells)]
        if judge == self._judges:
            found.add(path, f"{name_in_item(path)} is a list of repeats; a check answers once.")
        self._repeats.append(Repeat(len(self.rows) - 1, position, judge, tuple(codes)))
        return MISSING

    def note(self, key: str, value: Any) -> None:
        """Add what the file has for the item under a key: labels as cells, everything else as it is."""
        self._notes[key][len(self.rows) - 1] = value

    def annotate(self, annotations: dict[str, Sequence[Cell]]) -> None:
        """Add the annotations of the item; who said nothing about any criterion has not annotated it."""
        for name, codes in annotations.items():
            if all(map(is_missing, codes)):
                continue
            self._annotations.setdefault(name, {})[len(self.rows) - 1] = codes

    def block(self, rules: Rules) -> Block:
        """The block of these columns."""
        size, width = len(self.rows), len(self.book)
        votes = Labels.blank(self.book.rubric, size, self._judges)
        votes.put(slice(None), np.array(self._votes, dtype=votes.cell_type).reshape(size, self._judges, width))
        self._merge(votes, rules)
        annotations = {name: self._spread(rows) for name, rows in self._annotations.items()}
        truths = self._notes["ground_truth"]
        stated = self._flags(truths)
        agreed, no_consensus = agreement(self.book, annotations, rows=~stated)
        truth = self._spread(truths).where(stated[:, None], agreed)
        return Block(
            rubric=self.book.rubric,
            key=self.key,
            items=np.array(self.rows, dtype=np.intp),
            votes=votes,
            truth=truth,
            # A truth of nulls alone labels nothing.
            labelled=(truth.codes != MISSING).any(axis=1)
            | self._flags(itertools.chain.from_iterable(self._annotations.values())),
            no_consensus=no_consensus,
            errored=self._flags(self._notes["error"]),
            penalties=self._floats("penalty", 0.0),
            recorded_final=self._spread(self._notes["final"]),
            recorded_score=self._floats("score", np.nan),
            annotations=annotations,
            repeats=tuple(sorted(self._repeats)),
            probabilities=tuple(sorted(self._probabilities())),
            checks=self._spread(self._checks),
            stated=stated,
            details=self._details,
            errors=self._notes["error"],
        )

    def _merge(self, votes: Labels, rules: Rules) -> None:
        """Make the repeats of each judge one vote."""
        by_criterion: dict[int, list[Repeat]] = {}
        for repeat in self._repeats:
            by_criterion.setdefault(repeat.criterion, []).append(repeat)
        for position, repeats in by_criterion.items():
            criterion = self.book.rubric.criteria[position]
            longest = max(len(repeat.codes) for repeat in repeats)
            cells = [[*repeat.codes, *[MISSING] * (longest - len(repeat.codes))] for repeat in repeats]
            codes, numbers = split_cells(cells) if position in votes.numbers else (cells, None)
            merged = merge_repeats(criterion, codes, numbers, rule=rules.rule_for(criterion))
            items, judges = [repeat.item for repeat in repeats], [repeat.judge for repeat in repeats]
            votes.codes[items, position, judges] = merged.codes
            if numbers is not None:
                votes.numbers[position][items, judges] = merged.values

    def _probabilities(self) -> Iterable[Probability]:
        width, judges = len(self.book), self._judges
        for index, cell in self._details.items():
            cell_at, judge = divmod(index, judges + 1)
            p = mean_probabilities(cell) if judge < judges else None
            if p is not None:
                yield Probability(*divmod(cell_at, width), judge, p)

    def _spread(self, rows: Mapping[int, Sequence[Cell]]) -> Labels:
        labels = Labels.blank(self.book.rubric, len(self.rows))
        if rows:
            labels.put(list(rows), list(rows.values()))
        return labels

    def _flags(self, rows: Iterable[int]) -> Any:
        flags = np.zeros(len(self.rows), dtype=np.bool_)
        flags[list(rows)] = True
        return flags

    def _floats(self, key: str, default: float) -> Any:
        values = np.full(len(self.rows), default)
        held = self._notes[key]
        values[list(held)] = list(held.values())
        return values


def agreement(book: Codebook, annotations: Mapping[str, Labels], *, rows: Any) -> tuple[Labels, Any]:
    """The consensus of annotators, and where they said something and have none.

    Args:
        book: The codes of the rubric.
        annotations: Labels by annotator.
        rows: The rows to look at.
    """
    agreed = Labels.blank(book.rubric, len(rows))
    if not annotations:
        return agreed, np.zeros(agreed.codes.shape, dtype=np.bool_)
    stack = np.stack([labels.codes for labels in annotations.values()], axis=2)
    for position, criterion in enumerate(book.rubric.criteria):
        if position in agreed.numbers:
            people = np.stack([labels.numbers[position] for labels in annotations.values()], axis=1)
            settled, means = agreed_numbers(stack[:, position], people, criterion.abstention)
            agreed.codes[rows, position] = settled[rows]
            agreed.numbers[position][rows] = means[rows]
            continue
        agreed.codes[rows, position] = consensus_rows(criterion, stack[rows, position])
    said = (stack != MISSING).any(axis=2) & rows[:, None]
    return agreed, said & (agreed.codes == MISSING)
