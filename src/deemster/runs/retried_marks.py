"""What of a stored execution is made again when its run is resumed, and its output as metrics must see it."""

from __future__ import annotations

import msgspec

from deemster.records import Execution, Mark, MetricScore, NotApplicable, Output, TargetFailure, Unscored
from deemster.records.marks import failed_votes

# Causes that a second attempt may remove.
RETRIED_CAUSES = frozenset({"model_failed", "rate_limited", "not_run", "unreadable", "no_quorum", "metric_failed"})
# Those of them that say that something was tried.
FAILED_CAUSES = RETRIED_CAUSES - {"not_run"}
_REPLACEMENT = "\ufffd"
_LONE_SURROGATE = "\ud800"


def is_retried(mark: Mark) -> bool:
    """Whether a mark is made again when its run is resumed.

    A panel may have given a score without the vote of a judge that failed, or in earlier versions was not asked.
    """
    if isinstance(mark, Unscored):
        return mark.cause in RETRIED_CAUSES
    if isinstance(mark, NotApplicable):
        return False
    return any(vote["cause"] in RETRIED_CAUSES for vote in failed_votes(mark.details))


def has_failed(execution: Execution) -> bool:
    """Whether the target, a metric or a judge failed, and was not just not asked yet."""
    return isinstance(execution.answer, TargetFailure) or any(map(_is_failure, execution.marks))


def _is_failure(mark: Mark) -> bool:
    if isinstance(mark, MetricScore):
        return any(vote["cause"] != "not_run" for vote in failed_votes(mark.details))
    return isinstance(mark, Unscored) and mark.cause in FAILED_CAUSES


def restore_invalid_text(output: Output, *, valid: bool) -> Output:
    """An output as metrics must see it: the store replaces invalid Unicode, and metrics must still find it invalid.

    Args:
        output: The stored output.
        valid: Whether its text was valid Unicode.
    """
    if valid:
        return output
    return msgspec.structs.replace(output, text=output.text.replace(_REPLACEMENT, _LONE_SURROGATE))
