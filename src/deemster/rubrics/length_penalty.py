"""What a submission loses for its length."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from deemster.errors import ConfigurationError, RubricError, show_value
from deemster.formats.json_values import is_number, name_kind
from deemster.formats.schema_validation import decode_struct

_AtLeastZero = Annotated[float, Meta(ge=0)]
_TAG: Final = re.compile(r"</?(?:thinking|output)>")


class Parts(NamedTuple):
    """A submission in its parts.

    Attributes:
        thinking: What was thought before answering.
        output: The answer, the only part judges see.
        whole: Everything, without the tags.
    """

    thinking: str
    output: str
    whole: str


def submission_parts(submission: str | Mapping[str, str]) -> Parts:
    """Tell thinking from output.

    Args:
        submission: Text, in which `<thinking>` and `<output>` parts are recognised, or a map with these keys. Text
            without an `<output>` part is output but for its thinking; a part that is never closed ends with the text.

    Raises:
        RubricError: It is neither.

    >>> submission_parts("<thinking>hm</thinking> Yes.").output
    ' Yes.'
    """
    if isinstance(submission, Mapping):
        unknown = [key for key in submission if key not in {"thinking", "output"}]
        texts = {key: submission.get(key, "") for key in ("thinking", "output")}
        if unknown or not all(isinstance(text, str) for text in texts.values()):
            raise RubricError("A submission in parts is a map of `thinking` and `output` to text.")
        return Parts(texts["thinking"], texts["output"], f"{texts['thinking']}\n{texts['output']}")
    if not isinstance(submission, str):
        raise RubricError(f"A submission is text or a map of `thinking` and `output`, not {name_kind(submission)}.")
    thinking, rest = _cut(submission, "thinking")
    output, _ = _cut(rest, "output")
    found = rest if output is None else output
    return Parts(thinking or "", _TAG.sub(" ", found), _TAG.sub(" ", submission))


def _cut(text: str, tag: str) -> tuple[str | None, str]:
    """What stands between the first pair of a tag, and the text without it."""
    before, opened, after = text.partition(f"<{tag}>")
    if not opened:
        return None, text
    inside, _, behind = after.partition(f"</{tag}>")
    return inside, before + behind


class LengthPenaltyEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A length penalty."""

    free_budget: _AtLeastZero = 6000
    max_cap: _AtLeastZero = 8000
    penalty_at_cap: _AtLeastZero = 0.5
    exponent: Annotated[float, Meta(gt=0)] = 1.6
    count: Annotated[Literal["words"], Meta(title="`words` or a function of a text")] = "words"
    part: Literal["all", "output", "thinking"] = "all"


class LengthPenalty(LengthPenaltyEntry, frozen=True):
    """A penalty that grows from nothing at a free budget to its most at a cap.

    Attributes:
        free_budget: So many units cost nothing.
        max_cap: From so many on the penalty is at its most.
        penalty_at_cap: The most it can be.
        exponent: How it grows between; 1 is a straight line.
        count: `words`, split at white space, or a function of a text.
        part: Which part of a submission is counted.

    Raises:
        ConfigurationError: A setting is impossible; all issues are listed.
    """

    count: Literal["words"] | Callable[[str], float] = "words"  # type: ignore[assignment] # no file holds a function

    def __post_init__(self) -> None:
        count = "words" if callable(self.count) else self.count
        decode_struct(self, LengthPenaltyEntry, error=ConfigurationError, changes={"count": count})
        if self.free_budget >= self.max_cap:
            raise ConfigurationError(f"free_budget must be below max_cap, and {self.free_budget} is not.")

    def at(self, units: float) -> float:
        """The penalty of so many counted units.

        Raises:
            RubricError: It is no count.

        >>> round(LengthPenalty(free_budget=100, max_cap=200).at(150), 4)
        0.1649
        """
        if not is_number(units) or units < 0:
            raise RubricError(f"A count of units is a finite number of at least 0, not {show_value(units)[:80]}.")
        if units <= self.free_budget:
            return 0.0
        if units >= self.max_cap:
            return float(self.penalty_at_cap)
        share = (units - self.free_budget) / (self.max_cap - self.free_budget)
        return float(self.penalty_at_cap * math.pow(share, self.exponent))

    def of(self, submission: str | Mapping[str, str]) -> float:
        """The penalty of a submission.

        Raises:
            RubricError: It is neither text nor parts, or the function that counts gives no count.
        """
        parts = submission_parts(submission)
        text = parts.whole if self.part == "all" else getattr(parts, self.part)
        units: Any = len(text.split()) if self.count == "words" else self.count(text)
        return self.at(units)
