"""The protocols of chat and embedding clients, and the failure that one attempt may end in."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

from deemster.errors import visible
from deemster.models.secret_redaction import NO_SECRETS, Secrets
from deemster.records import Answer, Ask, Usage

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


@runtime_checkable
class ChatClient(Protocol):
    """Answers questions, one attempt a call.

    It raises ``Trouble`` where an attempt fails; retries, limits, caching and accounting are the gateway's. A method
    that is not a coroutine is run in a thread. A client may also have

    - ``identity``: a mapping of all that can change an answer beside the question (URL, model, extra parameters), never
      a key. Without it no answer is kept on disk.
    - ``is_local``: True where it reaches no network; then it works offline and costs nothing, and vectors it gives are
      kept in memory only.
    - ``secrets``: a list of texts, such as its key, that are removed from whatever it answers or raises. Beside them
      only what looks like a key is removed, and from messages alone.
    - ``is_clean``: True where it has removed them from its answers itself.
    - ``most_tokens(ask)``: the most tokens an answer can have, where that is not ``ask.max_tokens``; None for no limit.
      Budgets and dry runs count with it.
    - ``close()``: called when the gateway closes, sync or async.
    """

    def complete(self, ask: Ask) -> Answer | Awaitable[Answer]:
        """Answer one question.

        Raises:
            Trouble: The attempt failed.
        """
        ...


@runtime_checkable
class EmbeddingClient(Protocol):
    """Gives texts their vectors, one attempt a call; otherwise like a ``ChatClient``."""

    def embed_many(self, texts: Sequence[str]) -> Any | Awaitable[Any]:
        """One vector a text, in order: ``Vectors``, an array of two dimensions, or a list of lists.

        Raises:
            Trouble: The attempt failed.
        """
        ...
