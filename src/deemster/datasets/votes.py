"""The votes of judges on rubric items: loads, parses and saves them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deemster.datasets._votes_reader import read_votes_file, read_votes_value
from deemster.datasets._votes_writer import votes_dict, write_votes
from deemster.datasets.vote_block import Block, Juror
from deemster.datasets.votes_format import Sampling
from deemster.rubrics.rubric_scoring import Scoring
from deemster.rubrics.vote_aggregation import Rules


@dataclasses.dataclass(frozen=True)
class Votes:
    """What judges said about items, and what people did.

    Attributes:
        name: What the file is called by its author.
        dataset_fingerprint: The fingerprint of the dataset that was graded.
        cluster: The metadata key whose equal values are one unit of resampling; None where every item stands alone.
        sampling: How the labelled items were drawn; None where the file does not say.
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
    cluster: str | None
    sampling: Sampling | None
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
        return cls(**read_votes_file(path))

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Votes:
        """Read votes from a map with the keys of a votes file.

        Raises:
            VotesError: Something in it is wrong; every issue is given.
        """
        return cls(**read_votes_value(value))

    def to_dict(self) -> dict[str, Any]:
        """The map of a votes file."""
        return votes_dict(self)

    def save(self, path: str | Path) -> None:
        """Write a votes file, JSON or JSONL by extension; a reader never sees half a file.

        Raises:
            VotesError: The extension is none of these, or the file cannot be written.
        """
        write_votes(self, path)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"<Votes {self.name!r}: {len(self.ids)} items, {len(self.judges)} judges>"
