"""Votes of judges on rubric items, in columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from deemster.rubrics.rubric_definition import Rubric
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.vote_aggregation import Rules

Codes = npt.NDArray[np.int16]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

SCHEMA = "deemster.votes.v1"


class Juror(msgspec.Struct, frozen=True):
    """A judge of a panel.

    Attributes:
        id: How votes name it.
        weight: How much its vote counts where the rule weighs votes.
        model: The model behind it.
    """

    id: str
    weight: float = 1.0
    model: str | None = None


class Repeat(NamedTuple):
    """The votes of one judge that was asked several times.

    Attributes:
        item: The row in its block.
        criterion: The position of the criterion.
        judge: The position of the judge.
        codes: What it said, in order.
    """

    item: int
    criterion: int
    judge: int
    codes: tuple[int, ...]


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


@dataclasses.dataclass(frozen=True)
class Votes:
    """What judges said about items, and what people did.

    Attributes:
        name: What the file is called by its author.
        dataset_fingerprint: The fingerprint of the dataset that was graded.
        judges: The panel; `check:` votes have no judge here.
        rules: How votes become one verdict.
        scoring: How verdicts become a score.
        ids: Items in file order.
        tags: Tags by item.
        metadata: Metadata by item.
        blocks: Items by rubric, in order of first appearance.
    """

    name: str | None
    dataset_fingerprint: str | None
    judges: tuple[Juror, ...]
    rules: Rules
    scoring: Scoring
    ids: tuple[str, ...]
    tags: tuple[tuple[str, ...], ...]
    metadata: tuple[Mapping[str, Any], ...]
    blocks: tuple[Block, ...]

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def load(cls, path: str | Path) -> Votes:
        """Read a votes file, JSON or JSONL.

        Raises:
            VotesError: The file or something in it is wrong; every issue is given with its place.
        """
        from deemster.datasets._votes_reader import votes_of_file  # noqa: PLC0415 - the reader needs this class

        return votes_of_file(path)

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Votes:
        """Read votes from a map with the keys of a votes file.

        Raises:
            VotesError: Something in it is wrong; every issue is given.
        """
        from deemster.datasets._votes_reader import votes_of_value  # noqa: PLC0415 - the reader needs this class

        return votes_of_value(value)

    def to_dict(self) -> dict[str, Any]:
        """The map of a votes file."""
        from deemster.datasets._votes_writer import votes_dict  # noqa: PLC0415 - the writer needs this class

        return votes_dict(self)

    def save(self, path: str | Path) -> None:
        """Write a votes file, JSON or JSONL by extension; a reader never sees half a file.

        Raises:
            VotesError: The extension is none of these, or the file cannot be written.
        """
        from deemster.datasets._votes_writer import write_votes  # noqa: PLC0415 - the writer needs this class

        write_votes(self, path)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Votes {self.name!r}: {len(self.ids)} items, {len(self.judges)} judges>"


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    return bool(one == other)
