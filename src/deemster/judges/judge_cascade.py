"""The cascade: a cheap judge first, and a stronger panel where it is unsure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import force_setattr

from deemster.errors import ConfigurationError, show_value
from deemster.formats.schema_validation import Share, decode_struct
from deemster.judges.judge_panel import Judge, check_judges
from deemster.judges.vote import Vote
from deemster.rubrics.criterion import Criterion

Way = Literal["probability", "consistency"]
REPEATS = 5
# What `calibrate_cascade` rounds confidences to, so that the same votes escalate here and there.
_DIGITS = 9


class CascadeEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cascade."""

    unsure_below: Share = 0.8
    by: Way = "probability"
    repeats: Annotated[int, Meta(ge=1, le=100)] | None = None


class Cascade(CascadeEntry, frozen=True):
    """A cheap judge that is asked first, and the judges that decide if it is unsure.

    The cheap judge's verdict on a criterion stands if it is no abstention, no failure, and confident enough. Otherwise
    the strong panel is asked about that criterion, and its verdict stands; the cheap judge's vote is kept too.
    ``calibrate_cascade`` says which threshold to choose.

    Attributes:
        cheap: The judge that is asked first.
        strong: One or more judges that are asked if it is unsure.
        unsure_below: Its verdict stands from this confidence on.
        by: How its confidence is measured: `probability`, by the log-probabilities of its reply, or `consistency`, by
            the share of its repeats that agree. Without a confidence its verdict does not stand.
        repeats: How often the cheap judge is asked; 5 by consistency, else once.

    Raises:
        ConfigurationError: A setting is none of these; all issues are listed.
    """

    cheap: Judge
    strong: tuple[Judge, ...]

    def __post_init__(self) -> None:
        checked = decode_struct(self, CascadeEntry, error=ConfigurationError, path=("cascade",))
        if self.by == "consistency" and self.repeats == 1:
            raise ConfigurationError("cascade.repeats must be a whole number from 2 to 100 by consistency, not 1.")
        strong = (self.strong,) if isinstance(self.strong, Judge) else self.strong
        if isinstance(strong, str) or not isinstance(strong, Iterable):
            raise ConfigurationError(f"`strong` of a cascade is one or more judges, not {show_value(strong)[:60]}.")
        judges = check_judges([self.cheap, *strong])
        if len(judges) < 2:
            raise ConfigurationError("`strong` of a cascade is empty: no judge decides where the cheap one is unsure.")
        force_setattr(self, "strong", judges[1:])
        force_setattr(self, "unsure_below", checked.unsure_below)
        if self.repeats is None:
            force_setattr(self, "repeats", REPEATS if self.by == "consistency" else 1)

    @property
    def judges(self) -> tuple[Judge, ...]:
        """All of them, the cheap one first."""
        return (self.cheap, *self.strong)

    @property
    def cheap_repeats(self) -> int:
        """How often the cheap judge is asked."""
        return self.repeats or 1

    @property
    def settings(self) -> dict[str, Any]:
        """What can change a verdict, as JSON."""
        return {
            "cheap": self.cheap.id,
            "strong": [judge.id for judge in self.strong],
            "unsure_below": self.unsure_below,
            "by": self.by,
            "repeats": self.cheap_repeats,
        }

    def is_confident(self, criterion: Criterion, votes: Sequence[Vote], code: float) -> bool:
        """Whether the cheap judge's verdict on a criterion stands.

        Args:
            criterion: What it was asked.
            votes: Its answers.
            code: The verdict that they were merged into.
        """
        if not isinstance(code, float) and code not in criterion.scored:
            return False
        if self.by == "consistency":
            confidence = vote_consistency(votes, code)
        else:
            # A number has no probability, so that a cascade by probability asks the others about it.
            confidence = None if isinstance(code, float) else verdict_probability(criterion, votes, code)
        return confidence is not None and round(confidence, _DIGITS) >= self.unsure_below


def vote_consistency(votes: Sequence[Vote], code: float) -> float | None:
    """The share of a judge's answers that equal its verdict; a failed answer agrees with none."""
    return sum(vote.code == code for vote in votes) / len(votes) if votes else None


def verdict_probability(criterion: Criterion, votes: Sequence[Vote], code: int) -> float | None:
    """The probability that a judge gave to its verdict, averaged over its answers; None if it gave none."""
    given = [vote.probabilities for vote in votes if vote.probabilities is not None]
    if not given:
        return None
    means = [math.fsum(column) / len(given) for column in zip(*given, strict=True)]
    if criterion.options:
        return means[criterion.scored.index(code)]
    return means[0] if code == criterion.scored[0] else 1 - means[0]
