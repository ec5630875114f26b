"""Declares the columns that votes are kept in: one block of arrays for the items of one rubric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from deemster.formats.schema_validation import Id
from deemster.rubrics.rubric_definition import Rubric

Codes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Juror(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A judge: one of a panel.

    Attributes:
        id: How votes name it.
        weight: How much its vote counts where the rule weighs votes.
        model: The model behind it.
    """

    id: Id
    weight: Annotated[float, Meta(gt=0)] = 1.0
    model: str | None = None


class Repeat(NamedTuple):
    """The votes of one judge that was asked several times.

    Attributes:
        item: The row in its block.
        criterion: The position of the criterion.
        judge: The position of the judge.
        codes: What it said, in order; a float is a number on a numeric criterion.
    """

    item: int
    criterion: int
    judge: int
    codes: tuple[int | float, ...]


class Probability(NamedTuple):
    """The probabilities that a judge gave with a vote; of repeats, their mean.

    Attributes:
        item: The row in its block.
        criterion: The position of the criterion.
        judge: The position of the judge.
        p: P(MET) alone for a binary criterion, else one for every scored option.
    """

    item: int
    criterion: int
    judge: int
    p: tuple[float, ...]


class NumberColumn(NamedTuple):
    """The numbers on one numeric criterion; every array has a row for each item, and NaN where there is no number.

    Attributes:
        votes: By item and judge; repeats are one vote.
        truth: Ground truth, or the mean of the annotators.
        recorded_final: What the grader recorded.
        checks: What a metric answered.
        annotations: By annotator.
    """

    votes: Floats
    truth: Floats
    recorded_final: Floats
    checks: Floats
    annotations: Mapping[str, Floats]


def put_numbers_back(codes: Sequence[Any], numbers: Mapping[int, float]) -> list[Any]:
    """The cells of one item: codes or labels, and in their place the numbers that there are, by criterion."""
    cells = list(codes)
    for place, number in numbers.items():
        if not math.isnan(number):
            cells[place] = float(number)
    return cells


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """The items that share one rubric; every array has a row for each.

    Attributes:
        rubric: Their rubric.
        key: What the file calls it, where the file has several.
        items: Positions in `Votes.ids`.
        votes: Codes by item, criterion and judge; repeats are one vote.
        truth: Ground truth, or the consensus of annotators.
        labelled: Whether the item has any label, of ground truth or of an annotator.
        no_consensus: Where annotators said something and agree on nothing.
        errored: Whether grading the item failed.
        penalties: Length penalties.
        recorded_final: Verdicts that the grader recorded.
        recorded_score: Scores that the grader recorded, NaN where it did not.
        annotations: Codes by annotator.
        repeats: Cells with several votes of one judge.
        probabilities: Cells with probabilities.
        checks: Verdicts of deterministic criteria, which join no panel.
        stated: Whether the truth of an item is stated, not the consensus of annotators.
        details: Cells that are more than a label, as the file has them, by `cell_index`.
        errors: What failed, by row.
        numbers: The numbers on numeric criteria, by the place of the criterion; the codes say `NUMBER` there.
    """

    rubric: Rubric
    key: str | None
    items: npt.NDArray[np.intp]
    votes: Codes
    truth: Codes
    labelled: Flags
    no_consensus: Flags
    errored: Flags
    penalties: Floats
    recorded_final: Codes
    recorded_score: Floats
    annotations: Mapping[str, Codes]
    repeats: tuple[Repeat, ...]
    probabilities: tuple[Probability, ...]
    checks: Codes
    stated: Flags
    details: Mapping[int, Any]
    errors: Mapping[int, str]
    numbers: Mapping[int, NumberColumn] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *self.annotations.values()):
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return all(_same(value, getattr(other, name)) for name, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def cell_index(self, item: int, criterion: int, judge: int) -> int:
        """The key of a cell in `details`; the judge after the last is the check."""
        criteria, judges = map(int, self.votes.shape[1:])
        return (item * criteria + criterion) * (judges + 1) + judge


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, NumberColumn):
        return all(_same(*sides) for sides in zip(one, other, strict=True))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)
