"""The records that a report consists of: `deemster.report.v1`, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from deemster.datasets import SelectedPart
from deemster.errors import list_first
from deemster.formats.schema_validation import Share
from deemster.records import BrokenOff, Cause, Trajectory, Usage


class RunEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run this is and how it ended; `models` says by role which models its metrics asked."""

    id: str
    suite: str | None
    status: Literal["complete", "incomplete", "mixed"]
    reason: str | None
    started_at: str
    finished_at: str
    duration_s: float
    seed: int
    varied: Literal["target", "scoring"] | None
    part: SelectedPart | None = None
    label: str | None = None
    target: str | None = None
    models: dict[str, Any] | None = None


# The fields that a report takes by name from the facts that are stored with its run.
STORED_FACTS = ("label", "target")


class PrivacyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was left out on purpose."""

    level: str = "default"
    removed: tuple[str, ...] = ()

    def describe(self) -> str:
        """What is left out, in words; `removed` names what no reader misses too, such as hashes."""
        left_out = [words for name, words in _LEFT_OUT_WORDS.items() if name in self.removed]
        return f"Left out: {list_first(left_out, len(left_out))}. Ids, tags and scores stay." if left_out else ""


_LEFT_OUT_WORDS = {
    "samples.input": "questions",
    "executions.output": "answers",
    "samples.expected_output": "expected texts",
    "quoting details": "reasons",
    "messages": "messages",
}


class DatasetEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which dataset it was, and the metadata key whose equal values belong together."""

    name: str
    schema_version: str
    fingerprint: str | None
    duplicates: tuple[tuple[str, ...], ...]
    cluster: str | None = None


class ScoreEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A mark with a score."""

    score: Share
    success: bool
    threshold: float
    rubric_score: float | None
    details: Mapping[str, Any]
    usage: Usage | None


class UnscoredReason(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """Why a mark has no score."""

    cause: Cause
    message: str | None


class UnscoredEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A mark without a score."""

    unscored: UnscoredReason
    usage: Usage | None


MarkEntry: TypeAlias = ScoreEntry | UnscoredEntry
if TYPE_CHECKING:
    Marks: TypeAlias = Mapping[str, MarkEntry]
else:
    # The decoder cannot tell the two apart untagged.
    Marks = Mapping[str, Any]
# How tables call the place of a mark that was not made, since the metric does not apply to the sample.
NOT_APPLICABLE = "not_applicable"


class ExecutionEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """One sample in one repetition.

    `usage` is what the target used for its output, where it says so; `broken_off` is there where the output ends early.
    """

    id: str
    repetition: int
    output: str | None
    output_chars: int
    output_valid: bool
    output_cut: bool
    retrieved: Any
    trajectory: Trajectory | None
    # A metric that does not apply has no mark.
    marks: Marks
    usage: Usage | None = None
    broken_off: BrokenOff | msgspec.UnsetType = msgspec.UNSET


class FailureEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A mark that could not be made; `metric` is None where the target failed."""

    id: str
    repetition: int
    metric: str | None
    cause: Cause
    message: str | None
