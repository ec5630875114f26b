"""One pass of one sample through target and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.records.mark import Mark
from deemster.records.output import Output


class Invocation(msgspec.Struct, frozen=True, gc=False):
    """What a target is asked. It never holds the expected output or metadata."""

    id: str
    input: Mapping[str, Any]
    repetition: int = 0


class TargetFailure(msgspec.Struct, frozen=True, gc=False, tag="failure"):
    """A target that raised, or a recorded failure, in place of an output."""

    message: str


class Execution(msgspec.Struct, frozen=True, gc=False):
    """One sample in one repetition: what the target answered and how it was marked.

    Attributes:
        position: The sample's place in the dataset, from 0.
        id: The sample's id.
        repetition: From 0.
        answer: The output, a failure, or None where the target was never called.
        marks: One per metric, in the order of the suite.
        valid: Whether the output's text was valid Unicode.
    """

    position: int
    id: str
    repetition: int
    answer: Output | TargetFailure | None
    marks: tuple[Mark, ...]
    valid: bool = True
