"""Marks: a score, the reason why there is none, or that the metric does not apply."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import msgspec

from deemster.records.frozen_json import FrozenDict, freeze
from deemster.records.usage import Call, Usage

Cause: TypeAlias = Literal[
    "no_expected",
    "bad_sample",
    "bad_output",
    "no_trajectory",
    "no_usage",
    "too_large",
    "unreadable",
    "model_failed",
    "rate_limited",
    "no_quorum",
    "target_failed",
    "metric_failed",
    "not_run",
]
CAUSES: tuple[Cause, ...] = get_args(Cause)
_CAUSES = frozenset(CAUSES)
# The detail of an unscored mark of a panel: the cause of the failure that it names first.
FIRST_CAUSE = "first_cause"
_EMPTY: Mapping[str, Any] = FrozenDict()


class MetricScore(msgspec.Struct, frozen=True, gc=False, tag="score", omit_defaults=True):
    """How well one output did by one metric, 0 worst to 1 best.

    Attributes:
        score: Finite and within [0, 1]; nothing is clamped.
        details: Finite JSON values, frozen.
        rubric_score: The value on the metric's own scale, where it has one.
        threshold: The pass mark.
        higher_is_better: Whether a higher score is a better one.
        usage: Tokens, cost and latency of the model calls behind this mark.
        calls: The calls behind this mark that other marks of the run may share. The engine sets them.

    Raises:
        ValueError: The score is outside [0, 1] or not finite, or a detail is not finite JSON.
    """

    score: float
    details: Mapping[str, Any] = _EMPTY
    rubric_score: float | None = None
    threshold: float = 0.5
    higher_is_better: bool = True
    usage: Usage | None = None
    calls: tuple[Call, ...] = ()

    def __post_init__(self) -> None:
        score = self.score
        if type(score) is not float:
            score = _number(score)
            msgspec.structs.force_setattr(self, "score", score)
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"A score is a finite number between 0 and 1, not {score!r}.")
        if type(self.details) is not FrozenDict:
            msgspec.structs.force_setattr(self, "details", freeze(self.details))

    @property
    def success(self) -> bool:
        """Whether the score reaches the threshold from the good side."""
        return reaches(self.score, self.threshold, higher_is_better=self.higher_is_better)


# Reports round to nine decimals, so numbers closer than this are one number: what is shown as 0.5 reaches 0.5.
_ROUNDING = 5e-10


def reaches(value: float, bound: float, *, higher_is_better: bool = True) -> bool:
    """Whether a number reaches a bound from the good side; one that is equal as a fraction does.

    >>> reaches(0.1 + 0.2, 0.3), reaches(0.7 - 0.1, 0.6), reaches(0.59, 0.6)
    (True, True, False)
    """
    return value >= bound - _ROUNDING if higher_is_better else value <= bound + _ROUNDING


def _number(value: object) -> float:
    # float() would accept text; a score must be a number.
    if not isinstance(value, (str, bytes, bytearray)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return float(value)  # type: ignore[arg-type]
    raise ValueError(f"A score is a finite number between 0 and 1, not {type(value).__name__} {value!r:.80}.")


def failed_votes(details: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The votes of judges that gave none, each with its `cause`, from the details of a mark."""
    votes = details.get("votes")
    for vote in votes if isinstance(votes, (list, tuple)) else ():
        if isinstance(vote, Mapping) and isinstance(vote.get("cause"), str):
            yield vote


class Unscored(msgspec.Struct, frozen=True, gc=False, tag="unscored", omit_defaults=True):
    """Why there is no score. It is not a 0, and it stays in every denominator.

    Attributes:
        cause: One of ``CAUSES``.
        message: What happened, for a person.
        usage: What was spent before it failed.
        calls: The calls behind it that other marks of the run may share. The engine sets them.
        details: What is known all the same, such as the votes of judges; finite JSON values, frozen.

    Raises:
        ValueError: The cause is not a known one, or a detail is not finite JSON.
    """

    cause: Cause
    message: str
    usage: Usage | None = None
    calls: tuple[Call, ...] = ()
    details: Mapping[str, Any] = _EMPTY

    def __post_init__(self) -> None:
        if type(self.details) is not FrozenDict:
            msgspec.structs.force_setattr(self, "details", freeze(self.details))
        if self.cause not in _CAUSES:
            raise ValueError(f"`{self.cause}` is no cause. Known: {', '.join(CAUSES)}.")


class NotApplicable(msgspec.Struct, frozen=True, gc=False, tag="not_applicable"):
    """The metric does not apply to the sample, which lies outside its `where`: nothing was scored and nothing paid.

    It is neither a score nor unscored, and it stands in no denominator. Reports count it.
    """

    usage: ClassVar[None] = None
    calls: ClassVar[tuple[Call, ...]] = ()


NOT_APPLICABLE = NotApplicable()
Mark: TypeAlias = MetricScore | Unscored | NotApplicable
