"""What anyone who brings a model of their own has to offer."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, runtime_checkable

from deemster.records import Answer, Ask


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
