"""The shapes in which the viewer says something of labels: what `frontend/src/lib/types.ts` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from deemster.records import Trajectory
from deemster.store import LabelFacts
from deemster.view.sample_shapes import FailureAnswer


class NextSample(msgspec.Struct, frozen=True):
    """The first sample of a queue that waits for the person."""

    position: int
    probability: float | None


class QueueAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The samples that a person labels, and how far the person is."""

    said: str
    total: int
    done: int
    positions: Sequence[int]
    tasks: list[dict[str, Any]]
    next: NextSample | None


class LabelledOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a person sees of an output; a target that failed has a failure in its place."""

    output: str | None
    retrieved: Any = None
    trajectory: Trajectory | None = None
    failure: FailureAnswer | None = None


class LabelSampleAnswer(LabelledOutput, frozen=True, kw_only=True):
    """A sample as a person sees it; what the judge said of a question stands there once the person has decided."""

    position: int
    id: str
    row_hash: str
    tags: Any
    metadata: Any
    input: Any
    expected_output: Any
    repetition: int
    repetitions: int
    tasks: list[dict[str, Any]]
    decided: list[dict[str, Any]]
    revealed: list[dict[str, Any]] | None
    probability: float | None


class StoredLabel(msgspec.Struct, frozen=True):
    """A label that was stored, and what the judge said of the same."""

    label: dict[str, Any]
    revealed: dict[str, Any]


class UndoneLabel(msgspec.Struct, frozen=True):
    """The label that was taken back; None where the person has none."""

    undone: dict[str, Any] | None


class Author(msgspec.Struct, frozen=True):
    """Who labelled, and how much."""

    name: str
    labels: int


class LabelOverview(msgspec.Struct, frozen=True, kw_only=True):
    """Who labelled a run, how far they agree on each question, and how many more labels would decide something."""

    authors: list[Author]
    agreement: list[dict[str, Any]]
    needed: list[dict[str, Any]]


def label_entry(label: LabelFacts) -> dict[str, Any]:
    """A label as a page shows it: null where the store has an empty name.

    Args:
        label: The label.
    """
    entry: dict[str, Any] = msgspec.to_builtins(label)
    return {**entry, "metric": label.metric or None, "criterion": label.criterion or None}
