"""The protocols of chat and embedding clients, and `ModelFailure`, which a failed attempt raises."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from deemster.errors import visible
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Answer, Ask, Usage

FailureKind: TypeAlias = Literal["transport", "limited", "shape", "refused", "local"]
FAILURE_KINDS: tuple[FailureKind, ...] = get_args(FailureKind)
LONGEST_MESSAGE = 300


class ModelFailure(Exception):  # noqa: N818 - a failure is a value in reports; the gateway catches it
    """One attempt brought no answer.

    Args:
        kind: What the gateway does about it. `transport` (connection, timeout, 408, 409, 425, 5xx, a body that is cut
            off or no JSON) is retried. `limited` (429) is retried, and the role slows down. `shape` (a reply of
            the wrong shape) is retried once. `refused` (any other 4xx, a hard quota) is not retried. `local` (this
            machine has no file descriptor left) is retried for as long as a call may take and is no fault of the
            endpoint; the role slows down.
        message: What happened. Secrets are removed, control characters are escaped, and a long text is cut.
        status: The HTTP status, where there is one.
        retry_after_s: How long the provider asks to wait.
        usage: What the attempt used, where that is known.
        may_cost: Whether the model may have worked although no usage is known: a timeout after sending, a reply cut
            off.
        secrets: Values that must not be shown. What looks like a key is removed too.

    Raises:
        ValueError: There is no such kind.
    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
        usage: Usage | None = None,
        may_cost: bool = False,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        if kind not in FAILURE_KINDS:
            raise ValueError(f"The kind of a failure is one of {', '.join(FAILURE_KINDS)}, not {kind!r}.")
        self.kind: FailureKind = kind
        self.message = visible(secrets.redact(message, shapes=True), limit=LONGEST_MESSAGE)
        self.status = status
        self.retry_after_s = retry_after_s
        self.usage = usage
        self.may_cost = may_cost or usage is not None
        super().__init__(self.message)


@runtime_checkable
class ChatClient(Protocol):
    """Answers questions, one attempt a call.

    A question of a target has no ``temperature`` unless it is given, and may have further ``parameters``.
    It raises ``ModelFailure`` where an attempt fails. The gateway does retries, limits, caching and accounting. A
    method that is not a coroutine runs in a thread. A client may also have

    - ``identity``: a mapping of everything that can change an answer beside the question (URL, model, extra
      parameters), never a key. Without it no answer is kept on disk.
    - ``is_local``: True where it reaches no network. Then it works offline and costs nothing, and its vectors are kept
      in memory only.
    - ``secrets``: a list of texts, such as its key, that are removed from everything it answers or raises. Beside them,
      only what looks like a key is removed, and only from messages.
    - ``is_clean``: True where it removes them from its answers itself.
    - ``most_tokens(ask)``: the most tokens an answer can have, where that is not ``ask.max_tokens``; None for no limit.
      Budgets and dry runs count with it.
    - ``close()``: called when the gateway closes, sync or async.
    """

    def complete(self, ask: Ask) -> Answer | Awaitable[Answer]:
        """Answer one question.

        Raises:
            ModelFailure: The attempt failed.
        """
        ...


@runtime_checkable
class EmbeddingClient(Protocol):
    """Gives texts their vectors, one attempt a call; otherwise like a ``ChatClient``."""

    def embed_many(self, texts: Sequence[str]) -> Any | Awaitable[Any]:
        """One vector a text, in order: ``Vectors``, an array of two dimensions, or a list of lists.

        Raises:
            ModelFailure: The attempt failed.
        """
        ...
