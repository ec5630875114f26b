"""One sample in one repetition: the call of the target, its failure, its marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from deemster.records.frozen_json import FrozenDict
from deemster.records.marks import Mark
from deemster.records.output import Output


class Invocation(msgspec.Struct, frozen=True, gc=False):
    """What a target is asked. It never holds the expected output or metadata.

    Attributes:
        id: The sample's id.
        input: The sample's input.
        repetition: From 0.
        settings: What the suite sets for the target.
    """

    id: str
    input: Mapping[str, Any]
    repetition: int = 0
    settings: Mapping[str, Any] = FrozenDict()


class TargetFailure(msgspec.Struct, frozen=True, gc=False, tag="failure", omit_defaults=True):
    """A target that raised, or a recorded failure, in place of an output.

    Attributes:
        message: What happened, in one line.
        traceback: Where it was raised, frame by frame; None where no Python function raised. No report has it.
    """

    message: str
    traceback: str | None = None


class Cut(msgspec.Struct, frozen=True, gc=False):
    """What is missing from an output that was too large to be kept whole.

    Attributes:
        chars: Characters of the whole text.
        sha256: The hash of the whole text as UTF-8, in hex.
        left_out: Fields of the output that are not kept at all.
    """

    chars: int
    sha256: str
    left_out: tuple[str, ...] = ()


class Execution(msgspec.Struct, frozen=True, gc=False):
    """One sample in one repetition: what the target answered and how it was marked.

    Attributes:
        position: The sample's place in the dataset, from 0.
        id: The sample's id.
        repetition: From 0.
        answer: The output, a failure, or None where the target was never called.
        marks: One per metric, in the order of the suite.
        valid: Whether the output's text was valid Unicode.
        cut: What is missing from the output, where a store kept only a part of it.
    """

    position: int
    id: str
    repetition: int
    answer: Output | TargetFailure | None
    marks: tuple[Mark, ...]
    valid: bool = True
    cut: Cut | None = None
