"""The people who labelled the items, what they said, and whether a judge may replace one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deemster.agreement._criterion_columns import CriterionColumn, Floats
from deemster.agreement._labelled_votes import LabelledVotes
from deemster.agreement._verdict_classes import Codes
from deemster.rubrics.criterion import MISSING
from deemster.stats.alternative_annotator_test import AlternativeAnnotator, annotator_trials


@dataclass(frozen=True, slots=True, eq=False)
class Annotators:
    """The people with at least one label on the labelled items.

    Attributes:
        names: Their names, in alphabetical order.
        labels: For each column: codes ``[rows, annotators]``.
        numbers: For each column the numbers ``[rows, annotators]``, NaN where there is none; None unless it is numeric.
    """

    names: tuple[str, ...]
    labels: tuple[Codes, ...]
    numbers: tuple[Floats | None, ...]


def read_annotators(votes: LabelledVotes) -> Annotators:
    """Read who labelled the items, and how."""
    names = sorted({name for block in votes.votes.blocks for name in block.annotations})
    labels = [_column_labels(votes, column, names) for column in votes.columns]

    is_active = np.zeros(len(names), dtype=bool)
    for codes, _ in labels:
        is_active |= (codes != MISSING).any(axis=0)
    return Annotators(
        tuple(name for name, active in zip(names, is_active.tolist(), strict=True) if active),
        tuple(codes[:, is_active] for codes, _ in labels),
        tuple(
            None if column.numbers is None else numbers[:, is_active]
            for column, (_, numbers) in zip(votes.columns, labels, strict=True)
        ),
    )


def _column_labels(votes: LabelledVotes, column: CriterionColumn, names: Sequence[str]) -> tuple[Codes, Floats]:
    """The codes and the numbers that people gave on one criterion, ``[rows, people]``."""
    codes = np.full((len(column.rows), len(names)), MISSING, dtype=np.int16)
    numbers = np.full(codes.shape, np.nan)
    for index, place in column.sources:
        block = votes.votes.blocks[index]
        items = votes.item_index[block.items]
        used = np.flatnonzero(items >= 0)
        rows = np.searchsorted(column.rows, items[used])
        for person, name in enumerate(names):
            if name not in block.annotations:
                continue
            annotations = block.annotations[name]
            codes[rows, person] = annotations.codes[used, place]
            if place in annotations.numbers:
                numbers[rows, person] = annotations.numbers[place][used]
    return codes, numbers


def annotator_trials_by_criterion(
    votes: LabelledVotes,
    annotators: Annotators,
    *,
    judge: int | None = None,
    epsilon: float = 0.2,
    q: float = 0.05,
    min_items: int = 30,
) -> dict[str, AlternativeAnnotator]:
    """The alternative annotator test of each criterion; ordinal ones are compared by value, numeric ones by number.

    Args:
        votes: The labelled votes.
        annotators: Three people or more, and their labels.
        judge: The place of who is tested; None tests the final verdicts of the panel.
        epsilon: How much worse than a person the judge may be.
        q: The false discovery rate over annotators.
        min_items: The fewest items an annotator is tested on.
    """
    tests = {}
    for column in votes.columns:
        people = annotators.numbers[column.index]
        if column.numbers is not None and people is not None:
            is_ordinal = True
            judged = column.numbers[:, 1 if judge is None else 2 + judge]
        else:
            is_ordinal = column.classes.kind == "ordinal"
            numbers = _class_numbers(column)
            judged = numbers[column.final_classes if judge is None else column.vote_classes[:, judge]]
            people = numbers[column.classes.from_codes(annotators.labels[column.index], column.worst_codes)]

        tests[column.name] = annotator_trials(
            judged,
            people.T,
            annotators.names,
            ordinal=is_ordinal,
            epsilon=epsilon,
            q=q,
            min_items=min_items,
        )
    return tests


def _class_numbers(column: CriterionColumn) -> Floats:
    """A number for each class, and NaN as the last one, for no class: its value where classes are ordinal."""
    values = column.classes.values
    numbers = values if column.classes.kind == "ordinal" else range(len(values))
    return np.array([*numbers, None], dtype=np.float64)
