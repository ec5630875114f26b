"""The words of grading: verdicts, kinds of criteria, rules of aggregation, and the codes that are no verdict."""

from __future__ import annotations

from typing import Final, Literal

Kind = Literal["binary", "ordinal", "nominal"]

MISSING: Final = -1
FAILED: Final = -2
FAILED_WORST: Final = -3
# The code that stands for a vote that failed, by category of failure.
FAILURES: Final = {"infrastructure": FAILED, "parse": FAILED, "unknown": FAILED_WORST}

VERDICTS: Final = ("MET", "UNMET", "CANNOT_ASSESS")
CANNOT_ASSESS: Final = "CANNOT_ASSESS"
NOT_APPLICABLE: Final = "Cannot assess / not applicable"
# Begins the judge id of a vote that a metric gave, by the `check` of a criterion.
CHECK: Final = "check:"
SCALES: Final = ("ordinal", "nominal")

RULES: Final[dict[Kind, tuple[str, ...]]] = {
    "binary": ("majority", "weighted", "unanimous", "any"),
    "ordinal": ("mean", "median", "weighted_mean", "mode", "min", "max"),
    "nominal": ("mode", "weighted_mode", "unanimous"),
}


def folded(label: str) -> str:
    """A label as it is compared: without white space around it, and without case.

    >>> folded("  Très BON ")
    'très bon'
    """
    return label.strip().casefold()
