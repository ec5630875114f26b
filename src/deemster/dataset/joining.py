"""Votes that take from a dataset what they lack."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from deemster.dataset.columns import agreement
from deemster.dataset.entries import Codebook
from deemster.dataset.labelled import RubricDataset
from deemster.dataset.votes import Block, Votes
from deemster.errors import Fault, VotesError
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric import Rubric


def with_truth(votes: Votes, dataset: RubricDataset) -> Votes:
    """Votes whose unlabelled items have the labels that a dataset gives them.

    Items are matched by id. An item that has ground truth or annotations keeps them; one that has neither takes both
    from the dataset. Tags, metadata and annotations are taken where the votes have none.

    Args:
        votes: The votes.
        dataset: What was graded.

    Raises:
        VotesError: An item has other criteria in the dataset than in the votes; every such item is given.
    """
    known = {item.id: at for at, item in enumerate(dataset.items)}
    faults = []
    for block in votes.blocks:
        differences: dict[int, str | None] = {}
        for position in block.items.tolist():
            at = known.get(votes.ids[position])
            if at is None:
                continue
            rubric = dataset.rubrics[at]
            if id(rubric) not in differences:
                differences[id(rubric)] = _difference(block.rubric, rubric)
            if wrong := differences[id(rubric)]:
                message = f"{wrong} The votes were cast on another rubric than the dataset has."
                faults.append(Fault(message, None, votes.ids[position]))
    if faults:
        raise VotesError(faults)
    matched = [dataset.items[known[name]] if name in known else None for name in votes.ids]
    tags = zip(votes.tags, matched, strict=True)
    metadata = zip(votes.metadata, matched, strict=True)
    return dataclasses.replace(
        votes,
        tags=tuple(held or (item.tags if item else ()) for held, item in tags),
        metadata=tuple(held or (item.metadata if item else {}) for held, item in metadata),
        blocks=tuple(_labelled(block, matched) for block in votes.blocks),
    )


def overruled(votes: Votes, dataset: RubricDataset) -> tuple[str, ...]:
    """The items whose labels in the votes stand against other ones in the dataset, in the order of the votes.

    Args:
        votes: The votes, as they were before the dataset labelled any.
        dataset: What was graded, with the same rubrics.
    """
    known = {item.id: item for item in dataset.items}
    found = []
    for block in votes.blocks:
        book = Codebook(block.rubric)
        own = block.truth.tolist()
        for row in np.flatnonzero(block.labelled).tolist():
            position = int(block.items[row])
            item = known.get(votes.ids[position])
            if item is not None and item.ground_truth is not None and _codes(book, item.ground_truth) != own[row]:
                found.append(position)
    return tuple(votes.ids[position] for position in sorted(found))


def _difference(one: Rubric, other: Rubric) -> str | None:
    """The first criterion that two rubrics do not share, as a sentence; None where verdicts mean the same in both."""
    if one is other or one.criteria == other.criteria:
        return None
    if len(one.criteria) != len(other.criteria):
        return f"The rubric has {len(one.criteria)} criteria in the votes and {len(other.criteria)} in the dataset."
    for left, right in zip(one.criteria, other.criteria, strict=True):
        left_full, right_full = left.with_guaranteed_na_option(), right.with_guaranteed_na_option()
        if left_full == right_full:
            continue
        if left.name != right.name:
            return f"The criterion `{left.name}` of the votes is `{right.name}` in the dataset."
        fields = [key for key in left.__struct_fields__ if getattr(left_full, key) != getattr(right_full, key)]
        return f"The criterion `{left.name}` has another {fields[0]} in the dataset."
    return None


def _labelled(block: Block, matched: list[Any]) -> Block:
    book = Codebook(block.rubric)
    items = [matched[position] for position in block.items.tolist()]
    open_rows = ~block.labelled
    # A truth of nulls alone gives way to what the dataset says.
    truth, stated = block.truth.copy(), block.stated & ~open_rows
    annotated = np.zeros(len(block), dtype=np.bool_)
    for codes in block.annotations.values():
        annotated |= (codes != MISSING).any(axis=1)
    annotations = {name: codes.copy() for name, codes in block.annotations.items()}
    labelled = block.labelled.copy()
    for row, item in enumerate(items):
        if item is None:
            continue
        if open_rows[row] and item.ground_truth is not None:
            truth[row] = _codes(book, item.ground_truth)
            stated[row] = True
            labelled[row] = bool((truth[row] != MISSING).any())
        if not annotated[row] and item.annotations:
            labelled[row] = True
            _annotate(annotations, book, row, item.annotations, size=len(block))
    fresh = labelled & ~stated & open_rows
    agreed, no_consensus = agreement(book, annotations, rows=fresh)
    truth[fresh] = agreed[fresh]
    return dataclasses.replace(
        block,
        truth=truth,
        stated=stated,
        labelled=labelled,
        annotations=annotations,
        no_consensus=block.no_consensus | no_consensus,
    )


def _annotate(annotations: dict[str, Any], book: Codebook, row: int, given: Mapping[str, Any], *, size: int) -> None:
    for name, entries in given.items():
        if name not in annotations:
            annotations[name] = np.full((size, len(book)), MISSING, dtype=np.int16)
        annotations[name][row] = _codes(book, entries)


def _codes(book: Codebook, entries: Any) -> list[int]:
    return [MISSING if entry is None else book.code(position, entry) for position, entry in enumerate(entries)]
