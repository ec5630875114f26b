"""The words and codes of verdicts, and of votes that are no verdict."""

from __future__ import annotations

from typing import Final

VERDICTS: Final = ("MET", "UNMET", "CANNOT_ASSESS")
CANNOT_ASSESS: Final = "CANNOT_ASSESS"
NOT_APPLICABLE: Final = "Cannot assess / not applicable"

# A verdict is an index into the labels of its criterion; these codes are no verdict.
MISSING: Final = -1
# On a numeric criterion: the code of every number. The number itself is kept beside it.
NUMBER: Final = 0
FAILED: Final = -2
FAILED_WORST: Final = -3
# The code that stands for a vote that failed, by category of failure.
FAILURES: Final = {"infrastructure": FAILED, "parse": FAILED, "unknown": FAILED_WORST}
# Begins the judge id of a vote that a metric gave, by the `check` of a criterion.
CHECK: Final = "check:"


def fold_label(label: str) -> str:
    """A label as it is compared: without white space around it, and without case.

    >>> fold_label("  Très BON ")
    'très bon'
    """
    return label.strip().casefold()
