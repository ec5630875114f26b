"""A sample as a run saw it: what is stored, passed on, compared and reported of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Hex: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class SampleLabels(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a run saw of a sample beside its content.

    Attributes:
        tags: Its tags.
        metadata: Its metadata, where kept.
    """

    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None


class SampleContent(msgspec.Struct, frozen=True, gc=False):
    """What a row hash is about.

    Attributes:
        expected_output: What should come out.
        input: What went in.
    """

    expected_output: Any
    input: Any


class SampleFacts(msgspec.Struct, frozen=True):
    """A sample as a run saw it.

    Attributes:
        position: Its place in the dataset, from 0.
        id: Its id.
        row_hash: The hash of its input and expected output, in hex.
        labels: Its tags and metadata.
        content: Its expected output and input; None where they are not kept.
    """

    position: Count
    id: Name
    row_hash: Hex
    labels: SampleLabels
    content: SampleContent | None

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags."""
        return self.labels.tags

    @property
    def metadata(self) -> Mapping[str, Any] | None:
        """Its metadata, where kept."""
        return self.labels.metadata

    @property
    def expected_output(self) -> Any:
        """What should come out, where kept."""
        return None if self.content is None else self.content.expected_output

    @property
    def input(self) -> Any:
        """What went in, where kept."""
        return None if self.content is None else self.content.input
