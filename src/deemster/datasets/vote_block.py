"""Declares the columns that votes are kept in: one block of arrays for the items of one rubric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from deemster.formats.schema_validation import Id
from deemster.rubrics.criterion import MISSING
from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.vote_aggregation import split_cells

Codes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class Juror(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A judge: one of a panel.

    Attributes:
        id: How votes name it.
        weight: How much its vote counts where the rule weighs votes.
        model: The model behind it.
        cost_usd: What its votes cost in all, in US dollars; None where that is not known.
    """

    id: Id
    weight: Annotated[float, Meta(gt=0)] = 1.0
    model: str | None = None
    cost_usd: Annotated[float, Meta(ge=0)] | None = None


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


class Labels(NamedTuple):
    """Labels of items, each a code or, on a numeric criterion, a number beside the code `NUMBER`.

    Attributes:
        codes: Codes by item and criterion, and by judge where there are several.
        numbers: For each numeric criterion, by its place, numbers by item, and by judge; NaN where there is none.
    """

    codes: Codes
    numbers: Mapping[int, Floats]

    @classmethod
    def blank(cls, rubric: Rubric, items: int, *judges: int) -> Labels:
        """Labels that are all missing."""
        numeric = (place for place, criterion in enumerate(rubric.criteria) if criterion.kind == "numeric")
        codes = np.full((items, len(rubric.criteria), *judges), MISSING, dtype=np.int16)
        return cls(codes, {place: np.full((items, *judges), np.nan) for place in numeric})

    def copy(self) -> Labels:
        """The same labels in arrays of their own."""
        return Labels(self.codes.copy(), {place: column.copy() for place, column in self.numbers.items()})

    @property
    def cell_type(self) -> type:
        """The type of an array of cells: of codes alone a small one."""
        return object if self.numbers else np.int16

    def put(self, rows: Any, cells: Any) -> None:
        """Set the labels of an item, or of several, by judge where there are several; a float is a number."""
        given: npt.NDArray[Any] = np.asarray(cells, dtype=self.cell_type)
        codes, numbers = split_cells(given) if self.numbers else (given, given)
        self.codes[rows] = np.moveaxis(codes, -1, 1) if self.codes.ndim > 2 else codes
        for place, column in self.numbers.items():
            column[rows] = numbers[..., place]

    def where(self, chosen: Flags, other: Labels) -> Labels:
        """These labels in the chosen cells, and others elsewhere."""
        return Labels(
            np.where(chosen, self.codes, other.codes),
            {
                place: np.where(np.broadcast_to(chosen, self.codes.shape)[:, place], column, other.numbers[place])
                for place, column in self.numbers.items()
            },
        )

    def of_judges(self, places: Any) -> Labels:
        """The labels of some judges, or of one."""
        return Labels(
            np.ascontiguousarray(self.codes[:, :, places]),
            {place: np.ascontiguousarray(column[:, places]) for place, column in self.numbers.items()},
        )

    def with_numbers(self, cells: Iterable[Any], *index: int) -> list[Any]:
        """The cells of one item, of one judge, with the numbers in their places."""
        given = list(cells)
        for place, column in self.numbers.items():
            if not math.isnan(number := column[index]):
                given[place] = float(number)
        return given


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """The items that share one rubric; every array has a row for each.

    Attributes:
        rubric: Their rubric.
        key: What the file calls it, where the file has several.
        items: Positions in `Votes.ids`.
        votes: Votes by item, criterion and judge; repeats are one vote.
        truth: Ground truth, or the consensus of annotators.
        labelled: Whether the item has any label, of ground truth or of an annotator.
        no_consensus: Where annotators said something and agree on nothing.
        errored: Whether grading the item failed.
        penalties: Length penalties.
        recorded_final: Verdicts that the grader recorded.
        recorded_score: Scores that the grader recorded, NaN where it did not.
        annotations: Labels by annotator.
        repeats: Cells with several votes of one judge.
        probabilities: Cells with probabilities.
        checks: Verdicts of deterministic criteria, which join no panel.
        stated: Whether the truth of an item is stated, not the consensus of annotators.
        details: Cells that are more than a label, as the file has them, by `cell_index`.
        errors: What failed, by row.
    """

    rubric: Rubric
    key: str | None
    items: npt.NDArray[np.intp]
    votes: Labels
    truth: Labels
    labelled: Flags
    no_consensus: Flags
    errored: Flags
    penalties: Floats
    recorded_final: Labels
    recorded_score: Floats
    annotations: Mapping[str, Labels]
    repeats: tuple[Repeat, ...]
    probabilities: tuple[Probability, ...]
    checks: Labels
    stated: Flags
    details: Mapping[int, Any]
    errors: Mapping[int, str]

    def __post_init__(self) -> None:
        for value in (*vars(self).values(), *self.annotations.values()):
            arrays = (value.codes, *value.numbers.values()) if isinstance(value, Labels) else (value,)
            for array in arrays:
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Block):
            return NotImplemented
        return all(_same(value, getattr(other, name)) for name, value in vars(self).items())

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.items)

    def cell_index(self, item: int, criterion: int, judge: int) -> int:
        """The key of a cell in `details`; the judge after the last is the check."""
        criteria, judges = map(int, self.votes.codes.shape[1:])
        return (item * criteria + criterion) * (judges + 1) + judge


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Labels):
        return all(_same(*sides) for sides in zip(one, other, strict=True))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)
