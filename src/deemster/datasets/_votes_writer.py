"""Writes votes files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deemster.datasets._votes_reader import RULE_KEYS, SCORING_KEYS
from deemster.datasets.label_codebook import Codebook
from deemster.datasets.vote_block import Block, Labels
from deemster.datasets.votes_format import SCHEMA
from deemster.errors import VotesError
from deemster.formats.item_files import ITEMS
from deemster.formats.write_rows import write_rows
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING
from deemster.rubrics.verdicts import CHECK
from deemster.rubrics.vote_aggregation import NUMERIC_RULE, Rules

if TYPE_CHECKING:
    from deemster.datasets.votes import Votes

_FAILURES = {FAILED: {"failure": "infrastructure"}, FAILED_WORST: {"failure": "unknown"}}


def write_votes(votes: Votes, path: str | Path) -> None:
    """Write a votes file, JSON or JSONL by extension.

    Raises:
        VotesError: The extension is none of these, or the file cannot be written.
    """
    write_rows(path, _header(votes), _items(votes), key=ITEMS, known=("json", "jsonl"), error=VotesError)


def votes_dict(votes: Votes) -> dict[str, Any]:
    """The map of a votes file."""
    return {**_header(votes), ITEMS: list(_items(votes))}


def _header(votes: Votes) -> dict[str, Any]:
    header: dict[str, Any] = {"schema_version": SCHEMA}
    if votes.name is not None:
        header["name"] = votes.name
    if votes.dataset_fingerprint is not None:
        header["dataset_fingerprint"] = votes.dataset_fingerprint
    if votes.cluster is not None:
        header["cluster"] = votes.cluster
    if votes.sampling is not None:
        header["sampling"] = votes.sampling
    if votes.blocks[0].key is None:
        header["rubric"] = votes.blocks[0].rubric.to_dict()
    else:
        header["rubrics"] = {str(block.key): block.rubric.to_dict() for block in votes.blocks}
    header["judges"] = [
        {"id": judge.id, "weight": judge.weight}
        | {key: value for key, value in (("model", judge.model), ("cost_usd", judge.cost_usd)) if value is not None}
        for judge in votes.judges
    ]
    rules = {key: getattr(votes.rules, key) for key in RULE_KEYS}
    if rules[NUMERIC_RULE] == Rules().numeric_aggregation:
        # Most rubrics have no numeric criterion, and a default says nothing.
        del rules[NUMERIC_RULE]
    header["grading"] = rules | {key: getattr(votes.scoring, key) for key in SCORING_KEYS}
    return header


def _items(votes: Votes) -> Iterator[dict[str, Any]]:
    """Every item in file order."""
    where = {int(at): (block, row) for block in votes.blocks for row, at in enumerate(block.items.tolist())}
    writers = {id(block): _Writer(votes, block) for block in votes.blocks}
    for at, name in enumerate(votes.ids):
        block, row = where[at]
        item: dict[str, Any] = {"id": name}
        if block.key is not None:
            item["rubric"] = block.key
        if votes.tags[at]:
            item["tags"] = list(votes.tags[at])
        if votes.metadata[at]:
            item["metadata"] = dict(votes.metadata[at])
        yield item | writers[id(block)].item(row)


class _Writer:
    """Writes the items of one block."""

    def __init__(self, votes: Votes, block: Block) -> None:
        self._judges = [judge.id for judge in votes.judges]
        self._block = block
        book = Codebook(block.rubric)
        self._cells_of: list[dict[int, Any]] = [
            {code: book.label(position, code) for code in range(MISSING, len(criterion.labels))} | _FAILURES
            for position, criterion in enumerate(block.rubric.criteria)
        ]
        self._detailed = {index // (len(book) * (len(self._judges) + 1)) for index in block.details}

    def item(self, row: int) -> dict[str, Any]:
        """What the file has for an item, beside what it is called."""
        block = self._block
        item: dict[str, Any] = {}
        if block.stated[row]:
            item["ground_truth"] = self._labels(block.truth, row)
        annotations = {
            name: self._labels(labels, row)
            for name, labels in block.annotations.items()
            if (labels.codes[row] != MISSING).any()
        }
        if annotations:
            item["annotations"] = annotations
        if row in block.errors:
            item["error"] = block.errors[row]
        else:
            item["votes"] = self._cells(row)
        if block.penalties[row]:
            item["penalty"] = float(block.penalties[row])
        recorded = block.recorded_final
        if (recorded.codes[row] != MISSING).any():
            item["final"] = self._labels(recorded, row)
        if not math.isnan(block.recorded_score[row]):
            item["score"] = float(block.recorded_score[row])
        return item

    def _labels(self, labels: Labels, row: int, *judge: int) -> list[Any]:
        codes = labels.codes[row].T[judge].tolist()
        return labels.with_numbers(map(getitem, self._cells_of, codes), row, *judge)

    def _cells(self, row: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for judge, name in enumerate(self._judges):
            cells = self._labels(self._block.votes, row, judge)
            if row in self._detailed:
                cells = [self._detail(row, position, judge, cell) for position, cell in enumerate(cells)]
            if any(cell is not None for cell in cells):
                found[name] = cells
        for position, answer in enumerate(self._labels(self._block.checks, row)):
            check = self._block.rubric.criteria[position].check
            if answer is not None and check is not None:
                cells = found.setdefault(CHECK + check.metric, [None] * len(self._cells_of))
                cells[position] = self._detail(row, position, len(self._judges), answer)
        return found

    def _detail(self, row: int, position: int, judge: int, cell: Any) -> Any:
        """The cell as it was read, where it was more than a label."""
        return self._block.details.get(self._block.cell_index(row, position, judge), cell)
