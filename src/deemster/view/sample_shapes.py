"""The shapes in which the viewer says something of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from deemster.judges.item_grading import ItemGrading
from deemster.records import BrokenOff, Trajectory, Usage


class MetricCell(msgspec.Struct, frozen=True):
    """The marks of a sample by one metric, over its repetitions.

    Attributes:
        score: The mean of the scores.
        stdev: Their standard deviation.
        n: How many there are.
        passed: The share that passed; None where the verdict on a criterion neither passes nor fails.
        cause: Why the first mark without a score has none.
    """

    score: float | None
    stdev: float | None
    n: int
    passed: float | None
    cause: str | None


class Preview(msgspec.Struct, frozen=True):
    """The beginnings of the texts of a sample."""

    input: str | None
    expected: str | None
    output: str | None


class ListedSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a line of the table; a metric that does not apply has no cell."""

    position: int
    id: str
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    repetitions: int
    passed: float | None
    unscored: int
    unstable: bool
    score_mean: float | None
    scores: dict[str, MetricCell | None]
    latency_ms: float | None
    output_chars: float | None
    preview: Preview


class FailureAnswer(msgspec.Struct, frozen=True):
    """How a target failed."""

    message: str | None
    traceback: str | None


class ExecutionAnswer(msgspec.Struct, kw_only=True):
    """One repetition of a sample, as a report has it, with what only the store knows.

    `add_prompts` sets the prompts, which are read one sample at a time.
    """

    repetition: int
    output: str | None
    output_chars: int
    output_valid: bool
    output_cut: bool
    retrieved: Any
    trajectory: Trajectory | None
    marks: Mapping[str, Any]
    usage: Usage | None
    latency_ms: float | None
    model: str | None
    failure: FailureAnswer | None
    votes: dict[str, Any]
    broken_off: BrokenOff | msgspec.UnsetType = msgspec.UNSET
    prompts: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class SampleAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with everything that is stored of it but the prompts of judges."""

    run: str
    kind: str
    position: int
    id: str
    row_hash: str
    tags: Any
    metadata: Any
    input: Any
    expected_output: Any
    passed: float | None
    repetitions: int
    interval: Any
    unstable: bool
    metric_order: Sequence[str]
    metrics: dict[str, dict[str, Any]]
    scores: dict[str, MetricCell | None]
    executions: list[ExecutionAnswer]
    grading: ItemGrading | None
