"""A sample of a comparison, with what was asked and what both runs answered."""

from __future__ import annotations

from typing import Any

import msgspec

from deemster.report.report_entries import ExecutionEntry


class ComparedSample(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample that changed, with what was asked and what both runs answered.

    Attributes:
        id: Its id in the candidate, or in the baseline where it was removed.
        status: How it changed.
        tags: Its tags.
        input: What the target received.
        expected_output: What should come out.
        baseline: Its first repetition in the baseline that shows the change.
        candidate: The same in the candidate.
    """

    id: str
    status: str
    tags: tuple[str, ...] = ()
    input: Any = None
    expected_output: Any = None
    baseline: ExecutionEntry | None = None
    candidate: ExecutionEntry | None = None
