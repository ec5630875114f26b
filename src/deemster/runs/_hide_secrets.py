"""Keeping the keys of a run's models out of what its target and metrics say."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deemster.models.secret_redaction import Secrets
from deemster.records import Execution, Mark, Output, TargetFailure, Unscored

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Output).decode


def redact_answer(answer: Output | TargetFailure, secrets: Secrets) -> Output | TargetFailure:
    """What a target said, without secrets; a failure also without what only looks like one.

    Args:
        answer: What it said.
        secrets: The keys that the run knows.

    >>> hidden_answer(TargetFailure("401 for Bearer abcdef123456"), Secrets()).message
    '401 for Bearer [removed]'
    """
    if isinstance(answer, TargetFailure):
        return msgspec.structs.replace(answer, message=secrets.removed(answer.message, shapes=True))
    if not secrets:
        return answer
    try:
        body = _encode(answer).decode()
    except UnicodeEncodeError:
        # Text that is no valid Unicode is marked as such, and kept.
        return msgspec.structs.replace(answer, text=secrets.removed(answer.text))
    clean = secrets.removed(body)
    return answer if clean == body else _decode(clean)


def redact_marks(executions: Sequence[Execution], secrets: Secrets) -> Sequence[Execution]:
    """Executions in which no metric that failed tells a secret.

    Args:
        executions: Finished ones.
        secrets: The keys that the run knows.
    """
    return [
        msgspec.structs.replace(execution, marks=tuple(_hidden(mark, secrets) for mark in execution.marks))
        if [mark for mark in execution.marks if type(mark) is Unscored and mark.cause == "metric_failed"]
        else execution
        for execution in executions
    ]


def _hidden(mark: Mark, secrets: Secrets) -> Mark:
    if not isinstance(mark, Unscored):
        return mark
    return msgspec.structs.replace(mark, message=secrets.removed(mark.message, shapes=True))
