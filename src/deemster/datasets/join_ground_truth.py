"""Gives votes the ground truth, tags and metadata of a rubric dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from deemster.datasets.label_codebook import Cell, Codebook
from deemster.datasets.rubric_dataset import RubricDataset
from deemster.datasets.vote_block import Block, Labels
from deemster.datasets.vote_columns import agreement
from deemster.datasets.votes import Votes
from deemster.errors import Issue, VotesError
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import is_missing


def with_ground_truth(votes: Votes, dataset: RubricDataset) -> Votes:
    """Votes whose items have the labels that a dataset gives them.

    Items are matched by id. Where the dataset labels an item, its labels take the place of those in the votes: its
    ground truth, else the consensus of its annotators. Any other item keeps what it has. Annotations of the votes stay
    where the dataset has none. Tags, metadata and the cluster of the dataset are taken where the votes have none, and
    how it says that its items were drawn.

    Args:
        votes: The votes.
        dataset: What was graded.

    Raises:
        VotesError: An item has other criteria in the dataset than in the votes; every such item is given.
    """
    known = {item.id: at for at, item in enumerate(dataset.items)}
    issues = []
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
                issues.append(Issue(message, None, votes.ids[position]))
    if issues:
        raise VotesError(issues)
    matched = [dataset.items[known[name]] if name in known else None for name in votes.ids]
    tags = zip(votes.tags, matched, strict=True)
    metadata = zip(votes.metadata, matched, strict=True)
    return dataclasses.replace(
        votes,
        cluster=votes.cluster or dataset.cluster,
        sampling=dataset.sampling or votes.sampling,
        tags=tuple(held or (item.tags if item else ()) for held, item in tags),
        metadata=tuple(held or (item.metadata if item else {}) for held, item in metadata),
        blocks=tuple(_labelled(block, matched) for block in votes.blocks),
    )


def changed_labels(votes: Votes, joined: Votes) -> tuple[int, tuple[str, ...]]:
    """How many labels of votes a dataset has changed or taken away, and on which items, in the order of the votes.

    Args:
        votes: The votes, as they were before the dataset labelled any.
        joined: The same with the labels of the dataset.
    """
    labels = 0
    positions: list[int] = []
    for before, after in zip(votes.blocks, joined.blocks, strict=True):
        other = (before.truth.codes != MISSING) & (before.truth.codes != after.truth.codes)
        for place, held in before.truth.numbers.items():
            given = after.truth.numbers[place]
            other[:, place] |= ~np.isnan(held) & ~np.isnan(given) & (held != given)
        labels += int(other.sum())
        positions += before.items[other.any(axis=1)].tolist()
    return labels, tuple(votes.ids[position] for position in sorted(positions))


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
    truth, stated = block.truth.copy(), block.stated.copy()
    annotations = {name: labels.copy() for name, labels in block.annotations.items()}
    # Items whose truth is what the annotators of the dataset agree on.
    agreeing, touched = np.zeros((2, len(block)), dtype=np.bool_)
    for row, position in enumerate(block.items.tolist()):
        item = matched[position]
        if item is None:
            continue
        cells = [] if item.ground_truth is None else book.cells(item.ground_truth)
        people = {name: book.cells(entries) for name, entries in (item.annotations or {}).items()}
        people = {name: said for name, said in people.items() if _says(said)}
        if people:
            for labels in annotations.values():
                labels.put(row, [MISSING] * len(book))
            for name, said in people.items():
                annotations.setdefault(name, Labels.blank(block.rubric, len(block))).put(row, said)
        if _says(cells):
            truth.put(row, cells)
            stated[row] = True
        elif people:
            stated[row], agreeing[row] = False, True
        touched[row] = _says(cells) or bool(people)
    annotations = {name: labels for name, labels in annotations.items() if (labels.codes != MISSING).any()}
    agreed, tied = agreement(book, annotations, rows=agreeing)
    return dataclasses.replace(
        block,
        truth=agreed.where(agreeing[:, None], truth),
        stated=stated,
        labelled=block.labelled | touched,
        annotations=annotations,
        no_consensus=np.where(touched[:, None], tied, block.no_consensus),
    )


def _says(cells: Sequence[Cell]) -> bool:
    """Whether there is a label among the cells; a truth of nulls alone labels nothing."""
    return not all(map(is_missing, cells))
