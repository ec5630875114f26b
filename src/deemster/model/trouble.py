"""What one attempt to reach a model may come to."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from deemster.errors import visible
from deemster.model.secrets import NO_SECRETS, Secrets
from deemster.records import Usage

Kind: TypeAlias = Literal["transport", "limited", "shape", "refused"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST = 300


class Trouble(Exception):  # noqa: N818 - a client's attempt failed; whether that is an error is decided above it
    """One attempt brought no answer.

    Args:
        kind: `transport` (connection, time-out, 408, 409, 425, 5xx, a body that is truncated or not JSON: retried),
            `limited` (429: retried, and the role slows down), `shape` (a whole reply of the wrong shape: asked again
            once), `refused` (any other 4xx, a hard quota: not retried).
        message: What happened. Secrets are removed, control characters are shown escaped, and it is cut.
        status: The HTTP status, where there is one.
        retry_after_s: How long the provider asks to wait.
        usage: What the attempt used all the same, where that is known.
        may_cost: Whether the model may have worked for it although no usage is known: a time-out after sending, a body
            cut off.
        secrets: Values that must not be shown, beside what looks like a key.

    Raises:
        ValueError: There is no such kind.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        may_cost: bool = False,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"The kind of trouble is one of {', '.join(KINDS)}, not {kind!r}.")
        self.kind: Kind = kind
        self.message = visible(secrets.removed(message, shapes=True), limit=LONGEST)
        self.status = status
        self.retry_after_s = retry_after_s
        self.usage = usage
        self.may_cost = may_cost or usage is not None
        super().__init__(self.message)
