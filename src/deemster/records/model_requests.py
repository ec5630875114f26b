"""The requests that scripts send to models, and the replies."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from deemster.records.frozen_json import FrozenDict, freeze
from deemster.records.marks import Cause, Mark
from deemster.records.usage import Call, Usage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
else:
    # The fields of a struct are resolved, and numpy is not loaded for that.
    Matrix = Any

JUDGE = "judge"
EMBEDDING = "embedding"


class Message(NamedTuple):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


class Ask(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A question to a chat model.

    Attributes:
        messages: The chat so far.
        schema: JSON schema of the answer; None where free text is wanted.
        role: Which of the suite's models is asked.
        temperature: How freely the model chooses; None leaves it to the model.
        seed: Makes the model's choice repeatable, where it supports that.
        max_tokens: The longest answer.
        logprobs: How many alternatives with their log-probabilities are wanted for each token; 0 for none.
        sample: Which of several answers to the same question this is.
        again: 1 where an answer could not be read and the question is put once more; higher where a run that is resumed
            puts it anew.
        once: Whether one answer serves all repetitions of a run, as what a judge judges by does. It changes no answer.
        subject: Whose question it is: those of two samples are never the same question, even where they read alike.
        parameters: Further parameters of a target's question, sent as they are; None for a judge's.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    role: str = JUDGE
    temperature: float | None = 0.0
    seed: int | None = 42
    max_tokens: int | None = 1024
    logprobs: int = 0
    sample: int = 0
    again: int = 0
    once: bool = False
    subject: str = ""
    parameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.schema is not None and not isinstance(self.schema, FrozenDict):
            msgspec.structs.force_setattr(self, "schema", freeze(self.schema))
        if self.parameters is not None and not isinstance(self.parameters, FrozenDict):
            msgspec.structs.force_setattr(self, "parameters", freeze(self.parameters))


class Embed(msgspec.Struct, frozen=True, kw_only=True):
    """Texts to be embedded.

    Attributes:
        texts: Each gets one vector, in order.
        role: Which of the suite's models is asked.
    """

    texts: tuple[str, ...]
    role: str = EMBEDDING


class Token(NamedTuple):
    """A token of an answer, and what else the model might have written in its place.

    Attributes:
        text: The token.
        logprob: Its log-probability.
        alternatives: The likeliest tokens at this place with their log-probabilities, the chosen one among them.
    """

    text: str
    logprob: float
    alternatives: tuple[tuple[str, float], ...] = ()


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat model said, whichever call brought it.

    Attributes:
        text: The answer.
        usage: Tokens, money and time; 0 calls and 1 cached call where it comes from the cache.
        model: The model that says it answered.
        tokens: The answer token by token, where log-probabilities were asked for and offered.
        thinking: The model's reasoning, where the provider sends it apart from the answer.
        finish: Why the model stopped, in the provider's word.
    """

    text: str
    usage: Usage | None = None
    model: str | None = None
    tokens: tuple[Token, ...] | None = None
    thinking: str | None = None
    finish: str | None = None


class Answer(RecordedAnswer, frozen=True, kw_only=True, gc=False):
    """What a chat model said.

    Attributes:
        call: The call it comes from, where other requests of the same run may share it. The gateway sets it.
    """

    call: Call | None = None


class Vectors(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Vectors of texts.

    Attributes:
        values: One row a text, as an array of float32.
        usage: Tokens, money and time.
        model: The model that embedded them.
        calls: What each distinct text used, where other requests of the same run may share its vector. The gateway sets
            them.
    """

    values: Matrix
    usage: Usage | None = None
    model: str | None = None
    calls: tuple[Call, ...] = ()


class NoAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """No answer came.

    Attributes:
        cause: `model_failed`, `rate_limited`, `unreadable` or `not_run`.
        message: What happened, for a person.
        usage: What was spent all the same.
        call_id: The call that was paid for; 0 where nothing was. The gateway sets it.
    """

    cause: Cause
    message: str
    usage: Usage | None = None
    call_id: int = 0


class Exchange(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A question to a chat model and its reply, as a store keeps them for people to read.

    Attributes:
        role: Which of the suite's models was asked.
        messages: The chat that it was sent.
        model: The model that says it answered.
        reply: What it answered; None where no answer came.
        failure: Why no answer came.
    """

    role: str
    messages: tuple[Message, ...]
    model: str | None = None
    reply: str | None = None
    failure: str | None = None


Request: TypeAlias = Ask | Embed
Reply: TypeAlias = Answer | Vectors | NoAnswer
Script: TypeAlias = Generator[Sequence[Request], Sequence[Reply], Mark]
Scripts: TypeAlias = Generator[Sequence[Request], Sequence[Reply], Sequence[Mark]]
