"""What comes of a reply of the gateway to a target's question."""

from __future__ import annotations

from deemster.records import Answer, NoAnswer, Reply, TargetFailure, Usage


def paid_usage(answer: Answer) -> Usage | None:
    """What an answer used; also what an earlier process of the run paid for it."""
    own = None if answer.call is None else answer.call.usage
    return own or answer.usage


def why_no_output(reply: Reply) -> TargetFailure | None:
    """The failure of a target whose question got no answer; None where it was not asked at all."""
    if isinstance(reply, NoAnswer) and reply.cause != "not_run":
        return TargetFailure(reply.message)
    return None
