"""A golden sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.records.frozen_json import FrozenDict


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One golden row: what goes in and what should come out.

    Attributes:
        id: Unique within its dataset.
        input: What the target receives.
        expected_output: Any JSON value; None where a judge needs none.
        metadata: Anything metrics read, and `tags`.

    Raises:
        ValueError: The id is not a non-blank string, or input or metadata is not a map.
    """

    id: str
    input: Mapping[str, Any]
    expected_output: Any = None
    metadata: Mapping[str, Any] = FrozenDict()

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise ValueError(f"A sample's id is a non-blank string, not {self.id!r}.")
        if type(self.input) is not dict and not isinstance(self.input, Mapping):
            raise ValueError(f"The input of sample `{self.id}` is a map.")
        if type(self.metadata) is not dict and not isinstance(self.metadata, Mapping):
            raise ValueError(f"The metadata of sample `{self.id}` is a map.")

    @property
    def tags(self) -> tuple[str, ...]:
        """The sample's tags, trimmed, distinct, in the order of the file."""
        tags = self.metadata.get("tags")
        if not tags:
            return ()
        if isinstance(tags, str):
            return (tags.strip(),)
        if len(tags) == 1:
            return (tags[0].strip(),)
        return tuple(dict.fromkeys(tag.strip() for tag in tags))
