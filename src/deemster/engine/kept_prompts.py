"""Keeps what judges were asked and replied, for `deemster show`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from deemster.engine.play_scripts import AskModels
from deemster.errors import ConfigurationError, DeemsterError
from deemster.models.secret_redaction import Secrets
from deemster.records import Answer, Exchange, Mark, MetricScore, NoAnswer, Reply, Request
from deemster.records import Ask as Question

WhichPrompts: TypeAlias = Literal["failed", "all", "none"]
# The fact of a run that says which prompts it keeps; runs of earlier versions and imported runs have none.
PROMPTS_FACT = "prompts"
# The most characters of one message or reply that are kept.
_LONGEST = 65_536
_encode = msgspec.json.Encoder().encode


def check_keep_prompts(which: Any) -> WhichPrompts:
    """What is given as `keep_prompts`.

    Raises:
        ConfigurationError: It is none of the words.
    """
    if which not in get_args(WhichPrompts):
        raise ConfigurationError(f"`keep_prompts` is `failed`, `all` or `none`, not {which!r:.100}.")
    return which  # type: ignore[no-any-return]


class KeptPrompts:
    """Keeps the prompts of a run's marks.

    A run that fails to keep a prompt goes on: what it stores next says why the store fails, and ends it.

    Args:
        which: `failed` for marks that did not pass or have no score, `all` for every mark.
        add: Writes the prompts of one mark: position, repetition, place of the metric, JSON. It does not wait.
        secrets: What must not be kept.

    Attributes:
        which: Of which marks.
        add: Writes the prompts of one mark.
    """

    def __init__(self, which: WhichPrompts, add: Callable[[int, int, int, bytes], None], *, secrets: Secrets) -> None:
        self.which, self.add, self._secrets = which, add, secrets

    def listen(self, ask: AskModels, heard: list[tuple[Request, Reply]]) -> AskModels:
        """A way to ask that notes every request with its reply.

        Args:
            ask: Answers one round of requests.
            heard: Gets each request with its reply.
        """

        async def ask_and_note(requests: Sequence[Request]) -> Sequence[Reply]:
            replies = await ask(requests)
            heard.extend(zip(requests, replies, strict=False))
            return replies

        return ask_and_note

    def keep(
        self, key: tuple[int, int, int], mark: Mark, heard: Sequence[tuple[Request, Reply]], *, replaces: bool
    ) -> None:
        """Keep the prompts of a mark, if it is one of those whose prompts are kept.

        Args:
            key: Position, repetition, and the place of the metric.
            mark: The mark.
            heard: Every request of its script with the reply.
            replaces: Whether it replaces an earlier mark, whose prompts must not stay.
        """
        passed = isinstance(mark, MetricScore) and mark.success
        if passed and not replaces and self.which != "all":
            return
        exchanges = [self._exchange(request, reply) for request, reply in heard if isinstance(request, Question)]
        if not exchanges:
            return
        try:
            self.add(*key, _encode(exchanges))
        except (DeemsterError, UnicodeEncodeError):
            return

    def _exchange(self, request: Question, reply: Reply) -> Exchange:
        messages = tuple(message._replace(content=self._text(message.content)) for message in request.messages)
        if isinstance(reply, Answer):
            return Exchange(role=request.role, messages=messages, model=reply.model, reply=self._text(reply.text))
        failure = f"{reply.cause}: {reply.message}" if isinstance(reply, NoAnswer) else "The model sent vectors."
        return Exchange(role=request.role, messages=messages, failure=self._text(failure))

    def _text(self, text: str) -> str:
        """A text as it is kept: without secrets, and not endless."""
        text = self._secrets.redact(text)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ... ({len(text) - _LONGEST:,} more characters)"
